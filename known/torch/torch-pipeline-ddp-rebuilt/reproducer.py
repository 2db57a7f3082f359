"""Rejection  the run   torch-pipeline-ddp-by-default on 4 ranks vs one device

ran with numpy 2.4.6, torch 2.13.0+cpu
exit status: 1 reproduced, 0 not reproduced, 77 not available here
"""

import importlib.util
import sys

for module in ['torch', 'torch.distributed', 'torch._dynamo', 'torch.nn', 'torch.nn.parallel', 'torch.distributed.optim', 'torch.distributed.fsdp', 'torch.distributed.tensor', 'torch.distributed.tensor.parallel', 'torch.distributed.pipelining', 'torch.fx', 'torch.fx.passes', 'torch.fx.passes.split_module']:
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
from torch.nn.parallel import DistributedDataParallel
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor
from torch.distributed.device_mesh import init_device_mesh

DTYPE = torch.float32
BATCHES = [(0, 4), (0, 4)]  # samples of each step: the first, and the one after the last
FROZEN = []
AUTOCAST = False  # do stages compute in bfloat16 where PyTorch's list has it so?
FACTOR = lambda world: (world // 2)  # of the loss on each rank, so that what the ranks make of their gradients is the gradient


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.l1 = torch.nn.LayerNorm(3)
        self.l2 = torch.nn.Sigmoid()
        self.l4 = torch.nn.GELU()
        self.l6 = torch.nn.Linear(3, 2, bias=True)

    def forward(self, x):
        l1 = self.l1(x)
        l2 = self.l2(l1)
        l4 = self.l4(l2)
        l6 = self.l6(l4)
        return l6


def criterion(outputs, y, coefficient):
    """The sum of the samples' losses, each times its coefficient."""
    return (torch.nn.functional.smooth_l1_loss(outputs, y, reduction="none").mean(1) * coefficient).sum()


OPTIMIZER, OPTIONS = torch.optim.RMSprop, dict(lr=0.03125, eps=0.001, momentum=0.0)


def optimizer_of(parameters):
    return OPTIMIZER(parameters, **OPTIONS)


def distribute(model, rank, world):
    start(rank, world)
    mesh = init_device_mesh("cpu", (world // 2, 2), mesh_dim_names=("data", "stage"))
    subject = Pipeline(model, rank % 2, mesh)
    own = [p for name, p in model.named_parameters() if subject.owner(name) == rank % 2]
    return subject, optimizer_of(own)


class Pipeline:
    """The stages, of which this rank has one, and a schedule for each shape of a batch."""

    def __init__(self, model, stage, mesh):
        self.model, self.group = model, mesh["stage"].get_group()
        self.count, self.numbers = 2, [stage]
        self.parts = stages(model, self.count)
        part = self.parts[stage]
        self.own = DistributedDataParallel(part, process_group=mesh["data"].get_group())
        self.schedules = {}

    def schedule(self, x):
        """Batches go in parts of one size: as few as there are stages, or a little more."""
        if x.shape not in self.schedules:
            count = next(n for n in range(self.count, len(x) + 1) if len(x) % n == 0)
            stage = PipelineStage(self.own, self.numbers[0], self.count, torch.device("cpu"), group=self.group)
            self.schedules[x.shape] = schedules.ScheduleGPipe(stage, count, criterion_of, scale_grads=False)
        return self.schedules[x.shape]

    def owner(self, name):
        """The stage that trains a parameter: 0 for one that no stage uses."""
        found = [k for k, part in enumerate(self.parts) if name in dict(part.named_parameters())]
        return found[0] if found else 0

    def train(self):
        self.model.train()

    def eval(self):
        self.model.eval()

def share(part, rank, world):
    """The samples of this rank's replica."""
    return np.array_split(part, world // 2)[rank // 2]

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
    return value.full_tensor() if isinstance(value, DTensor) else value

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

WORLD = 4
VARIABLES = {}
SYMPTOM = 'rejected'
SECONDS = 60.0  # for all ranks
GRACE = 3.0  # for the others once one has ended in another way than well: they wait for it, as a rule
ZERO_SIGNS = False
ARRAYS = {
    'x': array([[-1.2712414264678955, 1.1608643531799316, -1.3450696468353271], [0.32512179017066956, 0.15821988880634308, 0.018496353179216385], [-2.0612130165100098, -0.4019222557544708, -0.6237509846687317], [-0.05587163195014, 0.3023086190223694, 0.3377689719200134]], dtype='float32'),
    'y': array([[-0.967409610748291, -0.9257286190986633], [0.5478889346122742, 1.4726861715316772], [-1.0946295261383057, 0.057508744299411774], [-0.24436862766742706, 0.5380948781967163]], dtype='float32'),
    'coefficient': array([0.25, 0.25, 0.25, 0.25], dtype='float32'),
    'initial.l1.weight': array([0.9675562381744385, 1.030830979347229, 0.8661957383155823], dtype='float32'),
    'initial.l1.bias': array([-0.06509613990783691, 0.1087702140212059, 0.08532015979290009], dtype='float32'),
    'initial.l6.weight': array([[0.03039524517953396, -0.47499799728393555, -0.1290425807237625], [-0.09609198570251465, 0.3828759789466858, -0.6766616106033325]], dtype='float32'),
    'initial.l6.bias': array([-0.019081179052591324, -0.22498923540115356], dtype='float32'),
}
EXPECTED = {
    'loss.0': array(0.34906627870449214, dtype='float64'),
    'gradient.l1.weight': array([0.0002488481033287693, -0.015508834380538126, 0.009467339817576689], dtype='float64'),
    'gradient.l1.bias': array([0.0024133346241156806, -0.02165462861871742, 0.021767477617591412], dtype='float64'),
    'gradient.l6.weight': array([[-0.029306441776789052, 0.06531435795257616, 0.041262208735129084], [-0.07234180193655182, -0.06704921898671404, -0.08215638564014244]], dtype='float64'),
    'gradient.l6.bias': array([0.06835895364753841, -0.1940863436501003], dtype='float64'),
    'loss.1': array(0.2946720969348424, dtype='float64'),
    'prediction': array([[-0.3192709226143899, 0.38736561722150287], [0.08844653715952085, 0.40078937007729615], [-0.3584469496735536, 0.21952501101999256], [-0.33884270942954303, 0.17438534591295995]], dtype='float64'),
    'parameter.l1.weight': array([1.143247609513177, 1.0696481834004987, 0.7890555004694036], dtype='float64'),
    'parameter.l1.bias': array([0.005102525077605502, 0.1758749019799461, -0.20648302964048615], dtype='float64'),
    'parameter.l6.weight': array([[0.5223376265578508, -0.5424670290051152, -0.19101017841918996], [0.3315886391720967, 0.5002658298639532, -0.42105539278774673]], dtype='float64'),
    'parameter.l6.bias': array([-0.019019944679228795, 0.06552319769786531], dtype='float64'),
    'state.l1.weight.step': array(2.0, dtype='float64'),
    'state.l1.weight.square_avg': array([2.0131669085594753e-06, 4.745364918368737e-06, 1.1315850539160246e-06], dtype='float64'),
    'state.l1.bias.step': array(2.0, dtype='float64'),
    'state.l1.bias.square_avg': array([6.177992939240981e-07, 7.816304249354132e-06, 5.370795724019732e-06], dtype='float64'),
    'state.l6.weight.step': array(2.0, dtype='float64'),
    'state.l6.weight.square_avg': array([[6.452346972130485e-05, 8.790158797314585e-05, 3.4047316157404125e-05], [7.39322968691486e-05, 6.443951948967752e-05, 6.727984677213303e-05]], dtype='float64'),
    'state.l6.bias.step': array(2.0, dtype='float64'),
    'state.l6.bias.square_avg': array([0.00030931738376413677, 0.0003731164772863925], dtype='float64'),
}
ALLOWED = {
    'loss.0': array(1.241002632121037e-06, dtype='float64'),
    'gradient.l1.weight': array([4.1803798123719866e-08, 7.272689217807567e-08, 1.8279329545391026e-07], dtype='float64'),
    'gradient.l1.bias': array([2.971088089136279e-08, 7.709265212034932e-08, 1.3984207783246017e-07], dtype='float64'),
    'gradient.l6.weight': array([[2.2860066214918507e-07, 3.139889239573481e-07, 3.160871628413836e-07], [4.027868721835581e-07, 4.441018330048373e-07, 8.171663427016779e-07]], dtype='float64'),
    'gradient.l6.bias': array([5.890591347262838e-07, 1.1148459104301398e-06], dtype='float64'),
    'loss.1': array(8.405412956079428e-07, dtype='float64'),
    'prediction': array([[2.563636472129599e-06, 2.9310053601473663e-06], [1.620415801156193e-06, 3.0820409672245784e-06], [2.4511500442912916e-06, 2.266546609617771e-06], [1.565030370796796e-06, 2.2843902182765118e-06]], dtype='float64'),
    'parameter.l1.weight': array([1.8456055983594758e-06, 2.4561198979012826e-06, 2.9920706762492924e-06], dtype='float64'),
    'parameter.l1.bias': array([9.002951248210751e-07, 1.1190258203609498e-06, 8.983879671836543e-07], dtype='float64'),
    'parameter.l6.weight': array([[1.8633822568876723e-06, 1.73644416187449e-06, 2.0018317416507554e-06], [1.4234785489196988e-06, 3.3845565823944467e-06, 1.649234074399853e-06]], dtype='float64'),
    'parameter.l6.bias': array([7.674651782551019e-07, 1.074330683941324e-06], dtype='float64'),
    'state.l1.weight.step': array(9.5367431640625e-07, dtype='float64'),
    'state.l1.weight.square_avg': array([1.4576400783655916e-11, 4.503749562736385e-11, 3.4825346814176253e-11], dtype='float64'),
    'state.l1.bias.step': array(9.5367431640625e-07, dtype='float64'),
    'state.l1.bias.square_avg': array([1.6195579280089585e-11, 5.498003610228693e-11, 7.51124249287707e-11], dtype='float64'),
    'state.l6.weight.step': array(9.5367431640625e-07, dtype='float64'),
    'state.l6.weight.square_avg': array([[4.640001668903181e-10, 9.437162842423946e-10, 4.074746052768056e-10], [6.569624502395719e-10, 8.032069560640926e-10, 1.300872476456596e-09]], dtype='float64'),
    'state.l6.bias.step': array(9.5367431640625e-07, dtype='float64'),
    'state.l6.bias.square_avg': array([2.466966805802495e-09, 4.105166384470869e-09], dtype='float64'),
}
TYPES = {'loss.0': ('float32', ()), 'gradient.l1.weight': ('float32', (3,)), 'gradient.l1.bias': ('float32', (3,)), 'gradient.l6.weight': ('float32', (2, 3)), 'gradient.l6.bias': ('float32', (2,)), 'loss.1': ('float32', ()), 'prediction': ('float32', (4, 2)), 'parameter.l1.weight': ('float32', (3,)), 'parameter.l1.bias': ('float32', (3,)), 'parameter.l6.weight': ('float32', (2, 3)), 'parameter.l6.bias': ('float32', (2,)), 'state.l1.weight.step': ('float32', ()), 'state.l1.weight.square_avg': ('float32', (3,)), 'state.l1.bias.step': ('float32', ()), 'state.l1.bias.square_avg': ('float32', (3,)), 'state.l6.weight.step': ('float32', ()), 'state.l6.weight.square_avg': ('float32', (2, 3)), 'state.l6.bias.step': ('float32', ()), 'state.l6.bias.square_avg': ('float32', (2,))}


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
