"""MissingOutput  the run   torch-pipeline-interleaved-zb on 2 ranks vs one device

ran with numpy 2.4.6, torch 2.13.0+cpu
exit status: 1 reproduced, 0 not reproduced, 77 not available here
"""

import importlib.util
import sys

for module in ['torch', 'torch.distributed', 'torch._dynamo', 'torch.nn', 'torch.nn.parallel', 'torch.distributed.optim', 'torch.distributed.pipelining', 'torch.fx', 'torch.fx.passes', 'torch.fx.passes.split_module']:
    if importlib.util.find_spec(module) is None:
        print(f"not available: {module}")
        sys.exit(77)

# ---- the program that ran ----

import os

import numpy as np
import torch
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage, schedules
from torch.fx.passes.split_module import split_module

DTYPE = torch.float32
BATCHES = [(0, 4)]  # samples of each step: the first, and the one after the last
FROZEN = ['l1.weight']
AUTOCAST = False  # do stages compute in bfloat16 where PyTorch's list has it so?
FACTOR = lambda world: 1  # of the loss on each rank, so that what the ranks make of their gradients is the gradient


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.l1 = torch.nn.Linear(3, 3, bias=False)
        self.l6 = torch.nn.Linear(3, 9, bias=True)
        self.l7 = torch.nn.Linear(9, 9, bias=False)
        self.l15 = torch.nn.Linear(9, 3, bias=True)

    def forward(self, x):
        l0 = x[:, 0:3]
        l1 = self.l1(l0)
        l6 = self.l6(l1)
        l7 = self.l7(l6)
        l9 = l6 + l7
        l15 = self.l15(l9)
        return l15


def criterion(outputs, y, coefficient):
    """The sum of the samples' losses, each times its coefficient."""
    return (torch.nn.functional.mse_loss(outputs, y, reduction="none").mean(1) * coefficient).sum()


OPTIMIZER, OPTIONS = torch.optim.SGD, dict(lr=0.125, momentum=0.0, weight_decay=0.0, nesterov=False)


def optimizer_of(parameters):
    return OPTIMIZER(parameters, **OPTIONS)


def distribute(model, rank, world):
    start(rank, world)
    subject = Pipeline(model, rank, world)
    return subject, optimizer_of([p for name, p in model.named_parameters() if subject.owner(name) == rank])


class Pipeline:
    """The stages, of which this rank has some (`numbers`), and a schedule for each shape of a batch."""

    def __init__(self, model, rank, world):
        self.model = model
        self.count = 2 * world
        self.parts = stages(model, self.count)
        self.numbers = [rank, rank + world]
        self.schedules = {}

    def schedule(self, x):
        """Batches go in parts of one size: as few as there are stages, or a little more."""
        if x.shape not in self.schedules:
            count = next(n for n in range(self.count, len(x) + 1) if len(x) % n == 0 and n % max(1, n // dist.get_world_size()) == 0)
            own = [PipelineStage(self.parts[k], k, self.count, torch.device("cpu")) for k in self.numbers]
            self.schedules[x.shape] = schedules.ScheduleInterleavedZeroBubble(own, count, criterion_of, scale_grads=False)
        return self.schedules[x.shape]

    def owner(self, name):
        """The rank that trains a parameter: 0 for one that no stage uses."""
        found = [k for k, part in enumerate(self.parts) if name in dict(part.named_parameters())]
        return found[0] % dist.get_world_size() if found else 0

    def train(self):
        self.model.train()

    def eval(self):
        self.model.eval()

def share(part, rank, world):
    """All samples of a batch, which the schedule takes apart."""
    return part

def backward(subject, x, y, coefficient, last, world):
    """Adds the gradients of these samples; returns their part of the loss. last: the optimiser steps next."""
    losses = []
    CURRENT.update(y=y, coefficient=coefficient)
    schedule = subject.schedule(x)
    given = (x,) if 0 in subject.numbers else ()
    ends = subject.count - 1 in subject.numbers
    schedule.step(*given, target=torch.arange(len(x)) if ends else None, losses=losses if ends else None)
    return sum(loss.detach() for loss in losses) / FACTOR(world) if ends else torch.zeros((), dtype=DTYPE)


CURRENT = {}  # what the loss needs of the samples of a batch


def criterion_of(outputs, samples):
    loss = criterion(outputs, CURRENT["y"][samples], CURRENT["coefficient"][samples])
    return loss * FACTOR(dist.get_world_size())

def summed(value, world):
    """The sum over all ranks."""
    value = value.clone()
    dist.all_reduce(value)
    return value

def predict(subject, x):
    """By the whole model, with the parameters of all stages."""
    current = parameters(subject)
    return torch.func.functional_call(subject.model, current, (x,))

def module(subject):
    """The model itself, with the names that it was given."""
    return subject.model

def whole(value):
    """All of a tensor that may be spread over the ranks."""
    return value

def gradients(subject):
    named = subject.model.named_parameters()
    return gathered(subject, {name: whole(p.grad).clone() for name, p in named if p.grad is not None})

def clip(subject, limit):
    torch.nn.utils.clip_grad_norm_(subject.parameters(), limit)

def parameters(subject):
    return gathered(subject, {name: whole(p.detach()).clone() for name, p in subject.model.named_parameters()})

def buffers(subject):
    return {name: whole(buffer) for name, buffer in module(subject).named_buffers()}

def states(subject, optimizer):
    """What the optimisers of all ranks keep of each parameter."""
    found = {}
    for name, parameter in subject.model.named_parameters():
        for key, value in optimizer.state.get(parameter, {}).items():
            if isinstance(value, torch.Tensor):
                found[f"{name}.{key}"] = whole(value)
    return gathered(subject, found)

def start(rank, world):
    """One group of processes for the whole life of this one."""
    torch.set_num_threads(1)
    if not dist.is_initialized():
        meeting = os.environ.get("RENDEZVOUS", "env://")
        dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=world)

def stages(model, count):
    """The model in so many parts, cut before layers with parameters where one value is all that goes on."""
    traced = torch.fx.symbolic_trace(model)
    nodes = list(traced.graph.nodes)
    found = []
    for number, node in enumerate(nodes):
        if node.op == "call_module" and any(True for _ in traced.get_submodule(node.target).parameters()):
            before = set(nodes[:number])
            alive = [value for value in before if any(user not in before for user in value.users)]
            found.append(number if len(alive) == 1 else 0)
    cuts = [number for number in found[1:] if number]
    chosen = [cuts[k * len(cuts) // (count - 1)] for k in range(count - 1)]
    whole = split_module(traced, model, lambda node: sum(cut <= nodes.index(node) for cut in chosen))
    found = [getattr(whole, f"submod_{number}") for number in range(count)]
    for part in found:
        part.forward = torch.autocast("cpu", torch.bfloat16, AUTOCAST)(part.forward)
    return found

def gathered(subject, found):
    """What the ranks found, by name: each name from the rank that owns the parameter."""
    everything = [None] * dist.get_world_size()
    dist.all_gather_object(everything, found)
    names = {name for part in everything for name in part}
    known = [name for name, _ in subject.model.named_parameters()]
    owners = {name: subject.owner(next(p for p in known if f"{name}.".startswith(f"{p}."))) for name in names}
    return {name: everything[owner][name] for name, owner in owners.items() if name in everything[owner]}


def train(rank, world, arrays):
    """All that is compared, by name, whole on every rank."""
    torch.manual_seed(0)
    data = {name: torch.from_numpy(array.copy()) for name, array in arrays.items()}
    x, y, coefficient = data["x"], data["y"], data["coefficient"]
    model = Model().to(DTYPE)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(data["initial." + name])
            parameter.requires_grad_(name not in FROZEN)
    subject, optimizer = distribute(model, rank, world)
    found = {}
    subject.train()
    for step, (first, last) in enumerate(BATCHES):
        optimizer.zero_grad()
        total = torch.zeros((), dtype=DTYPE)
        parts = np.array_split(np.arange(first, last), 1)
        for number, part in enumerate(parts):
            mine = share(part, rank, world)
            loss = backward(subject, x[mine], y[mine], coefficient[mine], number == len(parts) - 1, world)
            total += loss
        found[f"loss.{step}"] = summed(total, world)
        if step == 0:
            found |= {f"gradient.{name}": value for name, value in gradients(subject).items()}
        optimizer.step()
    subject.eval()
    with torch.no_grad():
        found["prediction"] = predict(subject, x)
    found |= {f"parameter.{name}": value for name, value in parameters(subject).items()}
    found |= {f"buffer.{name}": value for name, value in buffers(subject).items()}
    found |= {f"state.{name}": value for name, value in states(subject, optimizer).items()}
    return {name: value.detach().cpu().numpy().copy() for name, value in found.items()}


# ---- its arrays, and what a correct run returns: value, and how far from it (inf: anything) ----

import ctypes
import json
import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from numpy import array, inf, nan

WORLD = 2
VARIABLES = {}
SYMPTOM = 'outputs'
SECONDS = 60.0  # for all ranks
GRACE = 3.0  # for the others once one has ended in another way than well: they wait for it, as a rule
ZERO_SIGNS = False
DATA = np.load(Path(__file__).with_name("data.npz"))
ARRAYS, EXPECTED, ALLOWED = (
    {name.removeprefix(kind): DATA[name] for name in DATA.files if name.startswith(kind)}
    for kind in ("arrays/", "expected/", "allowed/")
)
TYPES = {'loss.0': ('float32', ()), 'gradient.l6.weight': ('float32', (9, 3)), 'gradient.l6.bias': ('float32', (9,)), 'gradient.l7.weight': ('float32', (9, 9)), 'gradient.l15.weight': ('float32', (3, 9)), 'gradient.l15.bias': ('float32', (3,)), 'prediction': ('float32', (4, 3)), 'parameter.l1.weight': ('float32', (3, 3)), 'parameter.l6.weight': ('float32', (9, 3)), 'parameter.l6.bias': ('float32', (9,)), 'parameter.l7.weight': ('float32', (9, 9)), 'parameter.l15.weight': ('float32', (3, 9)), 'parameter.l15.bias': ('float32', (3,))}


def wrong(output, expected, allowed, dtype, shape):
    """What is wrong with one output, or None."""
    if str(output.dtype) != dtype or output.shape != tuple(shape):
        return f"{output.dtype}{output.shape} instead of {dtype}{tuple(shape)}"
    if not shape and output.ndim == 0:
        output, expected, allowed = output.reshape(1), expected.reshape(1), allowed.reshape(1)
    if "complex" in dtype:  # the parts side by side: NaN and infinities in place, then the modulus of the difference
        got, bad, distance = output, np.zeros(output.shape, bool), np.zeros(output.shape)
        for a, b in ((output.real, expected.real), (output.imag, expected.imag)):
            bad |= (np.isnan(a) != np.isnan(b)) | ((np.isinf(a) | np.isinf(b)) & ~np.isnan(b) & (a != b))
            with np.errstate(all="ignore"):
                distance = np.hypot(distance, np.where(np.isfinite(a) & np.isfinite(b), a.astype("float64") - b, 0.0))
            if ZERO_SIGNS:
                bad |= (a == 0) & (b == 0) & (allowed == 0) & (np.signbit(a) != np.signbit(b))
        bad = ~np.isinf(allowed) & (bad | (distance > allowed))
    elif "float" in dtype:
        got = output.astype("float64")
        with np.errstate(all="ignore"):
            same = (got == expected) | (np.isnan(got) & np.isnan(expected))
            near = np.isfinite(got) & np.isfinite(expected) & (np.abs(got - expected) <= allowed)
        bad = ~np.isinf(allowed) & ~same & ~near
        if ZERO_SIGNS:
            bad |= (allowed == 0) & (got == 0) & (expected == 0) & (np.signbit(got) != np.signbit(expected))
    else:
        got, bad = output, ~np.isinf(allowed) & (output != expected)
    if not bad.any():
        return None
    at = tuple(int(i[0]) for i in np.nonzero(bad))
    detail = f"expected {expected[at]}, got {got[at]}, allowed {allowed[at]:.3g}"
    return f"{bad.sum()} of {bad.size} wrong, at {at}: {detail}"


def launched():
    """The number of this rank and how many there are, as this file, torchrun or TF_CONFIG says; None: not launched."""
    if "RANK" in os.environ:
        return int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    if "TF_CONFIG" in os.environ:
        config = json.loads(os.environ["TF_CONFIG"])
        return config["task"]["index"], len(config["cluster"]["worker"])
    return None


def rank(number, world):
    """One rank: 1 where it returns something wrong."""
    try:
        found = train(number, world, ARRAYS)
    except Exception as error:
        print(f"rank {number}: {type(error).__name__}: {error}", flush=True)
        return 1 if SYMPTOM == "rejected" else 77
    if set(found) != set(EXPECTED):
        print(f"rank {number}: other names than expected: {sorted(set(found) ^ set(EXPECTED))}", flush=True)
        return 1
    problems = {name: wrong(found[name], EXPECTED[name], ALLOWED[name], *TYPES[name]) for name in EXPECTED}
    for name, problem in problems.items():
        if problem:
            print(f"rank {number}: {name}: {problem}", flush=True)
    return int(any(problems.values()))


def main():
    if launched():
        if "RENDEZVOUS" in os.environ and sys.platform == "linux":
            ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: no rank outlives the process that started it
        code = rank(*launched())
        sys.stdout.flush()
        os._exit(code)  # threads of a process group that is taken down at the end may abort a rank that is done
    with tempfile.TemporaryDirectory() as folder:
        meeting = {**VARIABLES, "RENDEZVOUS": f"file://{folder}/meet", "WORLD_SIZE": str(WORLD), "GLOO_SOCKET_IFNAME": "lo"}
        ranks = [
            subprocess.Popen([sys.executable, __file__], env={**os.environ, **meeting, "RANK": str(number)})
            for number in range(WORLD)
        ]
        deadline = time.monotonic() + SECONDS
        while None in (codes := [process.poll() for process in ranks]) and time.monotonic() < deadline:
            if any(codes):
                deadline = min(deadline, time.monotonic() + GRACE)
            time.sleep(0.02)
        for process in ranks:
            process.kill()
            process.wait()
    crashed, hanging = any(code is not None and code < 0 for code in codes), None in codes
    shown = {"crash": crashed, "timeout": hanging and not crashed}.get(SYMPTOM, 1 in codes)
    told = "reproduced" if shown else "could not be run" if any(code != 0 for code in codes) else "not reproduced"
    print(told, "- exit statuses of the ranks:", codes)
    return {"reproduced": 1, "not reproduced": 0}.get(told, 77)


if __name__ == "__main__":
    sys.exit(main())
