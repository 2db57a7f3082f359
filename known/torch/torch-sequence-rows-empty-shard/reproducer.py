"""Rejection  the run   torch-sequence-rows on 3 ranks vs one device

ran with numpy 2.4.6, torch 2.13.0+cpu
exit status: 1 reproduced, 0 not reproduced, 77 not available here
"""

import importlib.util
import sys

for module in ['torch', 'torch.distributed', 'torch._dynamo', 'torch.nn', 'torch.nn.parallel', 'torch.distributed.optim', 'torch.distributed.fsdp', 'torch.distributed.tensor', 'torch.distributed.tensor.parallel']:
    if importlib.util.find_spec(module) is None:
        print(f"not available: {module}")
        sys.exit(77)

# ---- the program that ran ----

import os

import numpy as np
import torch
import torch.distributed as dist
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, SequenceParallel
from torch.distributed.tensor.parallel import parallelize_module
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor import DTensor
from torch.distributed.device_mesh import init_device_mesh

DTYPE = torch.float32
BATCHES = [(0, 1)]  # samples of each step: the first, and the one after the last
FROZEN = []
FACTOR = lambda world: 1  # of the loss on each rank, so that what the ranks make of their gradients is the gradient


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.l1 = torch.nn.Linear(2, 2, bias=False)
        self.l8 = torch.nn.Flatten()
        self.l9 = torch.nn.Linear(6, 2, bias=True)

    def forward(self, x):
        l1 = self.l1(x)
        l8 = self.l8(l1)
        l9 = self.l9(l8)
        return l9


def criterion(outputs, y, coefficient):
    """The sum of the samples' losses, each times its coefficient."""
    return (torch.nn.functional.mse_loss(outputs, y, reduction="none").mean(1) * coefficient).sum()


OPTIMIZER, OPTIONS = torch.optim.SGD, dict(lr=0.125, momentum=0.0, weight_decay=0.0, nesterov=False)


def optimizer_of(parameters):
    return OPTIMIZER(parameters, **OPTIONS)


def distribute(model, rank, world):
    start(rank, world)
    mesh = init_device_mesh("cpu", (world,))
    plan = {}
    for name, layer in model.named_children():
        if isinstance(layer, torch.nn.LayerNorm):
            plan[name] = SequenceParallel()
        elif isinstance(layer, torch.nn.Linear):
            plan[name] = RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1), use_local_output=False)
        if isinstance(layer, torch.nn.LayerNorm):
            layer.register_forward_pre_hook(lambda layer, given: spread(given[0], mesh))
    subject = parallelize_module(model, mesh, plan)
    for name in plan:
        getattr(model, name).register_forward_hook(lambda layer, given, result: whole(result))
    return subject, optimizer_of(subject.parameters())

def share(part, rank, world):
    """Every rank sees the whole batch."""
    return part

def backward(subject, x, y, coefficient, last, world):
    """Adds the gradients of these samples; returns their part of the loss. last: the optimiser steps next."""
    loss = criterion(subject(x), y, coefficient)
    (loss * FACTOR(world)).backward()
    return loss.detach()

def summed(value, world):
    """The sum over all ranks."""
    return value

def predict(subject, x):
    return subject(x)

def module(subject):
    """The model itself, with the names that it was given."""
    return subject

def whole(value):
    """All of a tensor that may be spread over the ranks."""
    return value.full_tensor() if isinstance(value, DTensor) else value

def gradients(subject):
    named = module(subject).named_parameters()
    return {name: whole(p.grad).clone() for name, p in named if p.requires_grad and p.grad is not None}

def clip(subject, limit):
    torch.nn.utils.clip_grad_norm_(subject.parameters(), limit)

def parameters(subject):
    return {name: whole(parameter) for name, parameter in module(subject).named_parameters()}

def buffers(subject):
    return {name: whole(buffer) for name, buffer in module(subject).named_buffers()}

def states(subject, optimizer):
    """What the optimiser keeps of each parameter."""
    found = {}
    for name, parameter in module(subject).named_parameters():
        for key, value in optimizer.state.get(parameter, {}).items():
            if isinstance(value, torch.Tensor):
                found[f"{name}.{key}"] = whole(value)
    return found

def start(rank, world):
    """One group of processes for the whole life of this one."""
    torch.set_num_threads(1)
    if not dist.is_initialized():
        meeting = os.environ.get("RENDEZVOUS", "env://")
        dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=world)

def spread(value, mesh):
    """Some of the times of a tensor that all ranks have."""
    return DTensor.from_local(value, mesh, [Replicate()], run_check=False).redistribute(placements=[Shard(1)])


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

WORLD = 3
VARIABLES = {}
SYMPTOM = 'rejected'
SECONDS = 60.0  # for all ranks
GRACE = 3.0  # for the others once one has ended in another way than well: they wait for it, as a rule
ZERO_SIGNS = False
ARRAYS = {
    'x': array([[[-0.5901444554328918, -1.2967841625213623], [0.3106188178062439, 0.19737949967384338], [-1.381764531135559, 2.058314800262451]]], dtype='float32'),
    'y': array([[-0.09653439372777939, -2.8169002532958984]], dtype='float32'),
    'coefficient': array([1.0], dtype='float32'),
    'initial.l1.weight': array([[0.07137608528137207, -0.5278120040893555], [-0.8133949041366577, 0.4381028711795807]], dtype='float32'),
    'initial.l9.weight': array([[0.3579852879047394, -0.42899101972579956, -0.6688493490219116, 0.5656995177268982, 0.12303519248962402, 0.05575278028845787], [0.07218155264854431, -0.17082402110099792, -0.13048015534877777, -0.005490147043019533, 0.11985857039690018, -0.24807006120681763]], dtype='float32'),
    'initial.l9.bias': array([0.029920058324933052, 0.06069660931825638], dtype='float32'),
}
EXPECTED = {
    'loss.0': array(2.710901167627406, dtype='float64'),
    'gradient.l1.weight': array([[-0.7633921099000553, 0.1831694500331585], [1.1323667900511483, -0.4169764355259892]], dtype='float64'),
    'gradient.l9.weight': array([[0.20694502112445815, -0.028385081685011002, -0.026421144759416874, -0.05354018955847454, -0.3817872089132551, 0.652622751386303], [1.4812783428692358, -0.20317573494698438, -0.1891181982213523, -0.3832318498659873, -2.7327698974095243, 4.6713660586735]], dtype='float64'),
    'gradient.l9.bias': array([0.32217563093902823, 2.3060800502332635], dtype='float64'),
    'prediction': array([[-0.1447510988149237, -2.8557831852608353]], dtype='float64'),
    'parameter.l1.weight': array([[0.166800099018879, -0.5507081853435003], [-0.9549407528930512, 0.4902249256203293]], dtype='float64'),
    'parameter.l9.weight': array([[0.3321171602641821, -0.4254428845151732, -0.6655467059269845, 0.5723920414217075, 0.17075859360378093, -0.025825063634830003], [-0.11297824021011016, -0.14542705423262486, -0.10684038057110873, 0.04241383419022888, 0.4614548075730907, -0.8319908185410051]], dtype='float64'),
    'parameter.l9.bias': array([-0.010351895542445477, -0.22756339696090155], dtype='float64'),
}
ALLOWED = {
    'loss.0': array(8.06835286955553e-06, dtype='float64'),
    'gradient.l1.weight': array([[5.471384063376347e-06, 2.415626972620402e-06], [6.977073916208518e-06, 4.866153916903346e-06]], dtype='float64'),
    'gradient.l9.weight': array([[4.723325738065173e-06, 3.447211172961252e-06, 2.814898045312939e-06, 2.8748395765804446e-06, 5.418039759098997e-06, 7.085382484931481e-06], [9.545617296479896e-06, 7.749651372061857e-06, 3.835775310982909e-06, 4.28016155162414e-06, 1.3636714729078035e-05, 2.0626491039804306e-05]], dtype='float64'),
    'gradient.l9.bias': array([4.320346857428358e-06, 1.2430390332797125e-05], dtype='float64'),
    'prediction': array([[4.655357145718648e-06, 1.3068500886910473e-05]], dtype='float64'),
    'parameter.l1.weight': array([[6.586409828929936e-07, 1.178684360968445e-06], [1.8263293911961211e-06, 1.147453576513618e-06]], dtype='float64'),
    'parameter.l9.weight': array([[1.182690659382041e-06, 1.2006662374673488e-06, 1.4203692160116218e-06, 1.4196967604181889e-06, 7.108435425883457e-07, 8.550384706627849e-07], [1.1853052551538184e-06, 1.0662915228424044e-06, 5.05546443868033e-07, 5.700366735023055e-07, 2.207065152760412e-06, 2.887531869189651e-06]], dtype='float64'),
    'parameter.l9.bias': array([5.242835747827814e-07, 1.5656318066119265e-06], dtype='float64'),
}
TYPES = {'loss.0': ('float32', ()), 'gradient.l1.weight': ('float32', (2, 2)), 'gradient.l9.weight': ('float32', (2, 6)), 'gradient.l9.bias': ('float32', (2,)), 'prediction': ('float32', (1, 2)), 'parameter.l1.weight': ('float32', (2, 2)), 'parameter.l9.weight': ('float32', (2, 6)), 'parameter.l9.bias': ('float32', (2,))}


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
