"""Rejection  the run   torch-dtensor-data on 3 ranks vs one device

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
from torch.distributed.tensor import Shard, distribute_module, distribute_tensor
from torch.distributed.tensor import DTensor
from torch.distributed.device_mesh import init_device_mesh

DTYPE = torch.float32
BATCHES = [(0, 2)]  # samples of each step: the first, and the one after the last
FROZEN = []
FACTOR = lambda world: 1  # of the loss on each rank, so that what the ranks make of their gradients is the gradient


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.l0 = torch.nn.Conv2d(1, 1, 1, padding=0)
        self.l3 = torch.nn.BatchNorm2d(1)
        self.l8 = torch.nn.Flatten()
        self.l9 = torch.nn.Linear(16, 2, bias=True)

    def forward(self, x):
        l0 = self.l0(x)
        l2 = x + l0
        l3 = self.l3(l2)
        l8 = self.l8(l3)
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
    distribute_module(model, mesh)
    subject = model
    MESH.append(mesh)
    return subject, optimizer_of(subject.parameters())

def share(part, rank, world):
    """Every rank sees the whole batch."""
    return part

MESH = []


def backward(subject, x, y, coefficient, last, world):
    """Adds the gradients of these samples; returns their part of the loss. last: the optimiser steps next."""
    x, y, coefficient = (distribute_tensor(value, MESH[-1], [Shard(0)]) for value in (x, y, coefficient))
    loss = criterion(subject(x), y, coefficient)
    loss.backward()
    return loss.detach().full_tensor()

def summed(value, world):
    """The sum over all ranks."""
    return value

def predict(subject, x):
    return subject(distribute_tensor(x, MESH[-1], [Shard(0)])).full_tensor()

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
    'x': array([[[[0.7376729846000671, -1.9211925268173218, 2.1483142375946045, 0.061233583837747574], [1.3178455829620361, 2.012576103210449, -0.003155606798827648, -0.6648979783058167], [-1.4761674404144287, -0.4336668848991394, 0.42290833592414856, 1.8414313793182373], [0.17633451521396637, -0.07246933877468109, -0.5232741236686707, 1.1705646514892578]]], [[[0.0396166667342186, -0.6067302227020264, -0.8750061392784119, -0.7183272242546082], [-0.5488998889923096, -1.7518240213394165, -1.538100004196167, 1.686486005783081], [-0.3370359241962433, 0.24722400307655334, 1.1120158433914185, 1.8315048217773438], [-0.7596853375434875, -2.3322019577026367, -0.6933853030204773, 0.9816403985023499]]]], dtype='float32'),
    'y': array([[-1.9119551181793213, -0.9520146250724792], [-0.33190807700157166, 1.1467742919921875]], dtype='float32'),
    'coefficient': array([0.5, 0.5], dtype='float32'),
    'initial.l0.weight': array([[[[0.0840316191315651]]]], dtype='float32'),
    'initial.l0.bias': array([-0.2650814950466156], dtype='float32'),
    'initial.l3.weight': array([0.7633368372917175], dtype='float32'),
    'initial.l3.bias': array([-0.1615331619977951], dtype='float32'),
    'initial.l9.weight': array([[-0.24753250181674957, -0.12609484791755676, 0.5516985654830933, -0.32416361570358276, -0.19762419164180756, 0.048736248165369034, 0.054292600601911545, -0.23799572885036469, 0.060585521161556244, -0.12803560495376587, -0.04404912889003754, 0.18171709775924683, -0.7063591480255127, -0.009243287146091461, 0.4645019471645355, 0.3499295115470886], [-0.09128725528717041, -0.117686428129673, -0.02912064641714096, 0.598987877368927, 0.08012495189905167, -0.052662573754787445, 0.0786275714635849, 0.09230209141969681, 0.4759860634803772, 0.36894041299819946, 0.14059236645698547, -0.22582070529460907, 0.014750157482922077, 0.037617627531290054, -0.04447301849722862, -0.26020216941833496]], dtype='float32'),
    'initial.l9.bias': array([-0.04144119843840599, 0.19241145253181458], dtype='float32'),
}
EXPECTED = {
    'loss.0': array(2.9171989797780578, dtype='float64'),
    'gradient.l0.weight': array([[[[1.0948108785879818e-05]]]], dtype='float64'),
    'gradient.l0.bias': array([2.220446049250313e-16], dtype='float64'),
    'gradient.l3.weight': array([2.5778428261513042], dtype='float64'),
    'gradient.l3.bias': array([-1.4157597216283004], dtype='float64'),
    'gradient.l9.weight': array([[0.407179021214286, -2.1785395707271102, 1.5968954763972378, -0.3366032107009923, 0.8657366996200105, 1.3426889366342898, -0.5156741656079926, -0.6689289287120159, -1.7223670366467814, -0.6606342483847637, 0.26746033177314643, 1.7012172350815937, -0.23471035969543183, -0.6956431551787912, -0.8808413090300531, 0.9493462029661817], [0.1324711968634101, 0.4535519084834489, 0.6567068779073268, 0.541972309474717, 0.46536764090720384, 1.1391708836624972, 0.9938921554000232, -0.7961013013293156, 0.3106021664333036, 0.0019781627003727775, -0.46410534993614916, -0.8423413343036605, 0.566370813953434, 1.4315665618840698, 0.5202996451937765, -0.381993954096466]], dtype='float64'),
    'gradient.l9.bias': array([1.6838646558059756, -0.8384677126545192], dtype='float64'),
    'prediction': array([[-0.6651208768265742, -0.4723580327985676], [-0.3986160162357457, 0.5903531109151022]], dtype='float64'),
    'parameter.l0.weight': array([[[[0.08403025061796686]]]], dtype='float64'),
    'parameter.l0.bias': array([-0.2650814950466156], dtype='float64'),
    'parameter.l3.weight': array([0.4411064840228045], dtype='float64'),
    'parameter.l3.bias': array([0.01543680320574245], dtype='float64'),
    'parameter.l9.weight': array([[-0.29842987946853533, 0.14622259842333202, 0.3520866309334385, -0.2820882143659587, -0.30584127909430886, -0.11909986891391719, 0.11875187130291062, -0.1543796127613627, 0.2758814007424039, -0.04545632390567041, -0.07748167036168084, -0.03093505662595239, -0.6770203530635838, 0.07771210725125743, 0.5746071107932922, 0.23126123617631592], [-0.10784615489509668, -0.17438041669010412, -0.11120900615555682, 0.5312413386845873, 0.021953996785651186, -0.1950589342125996, -0.045608947961418, 0.19181475408586124, 0.43716079267621427, 0.36869314266065284, 0.19860553519900412, -0.1205280385066515, -0.056046194261257176, -0.14132819270421867, -0.10951047414645068, -0.2124529251562767]], dtype='float64'),
    'parameter.l9.bias': array([-0.25192428041415293, 0.29721991661362945], dtype='float64'),
    'buffer.l3.running_mean': array([-0.024708151619306312], dtype='float64'),
    'buffer.l3.running_var': array([1.0711501431213153], dtype='float64'),
    'buffer.l3.num_batches_tracked': array(1, dtype='int64'),
}
ALLOWED = {
    'loss.0': array(9.439040925548627e-06, dtype='float64'),
    'gradient.l0.weight': array([[[[inf]]]], dtype='float64'),
    'gradient.l0.bias': array([inf], dtype='float64'),
    'gradient.l3.weight': array([1.6135593147009527e-05], dtype='float64'),
    'gradient.l3.bias': array([5.098733695628478e-06], dtype='float64'),
    'gradient.l9.weight': array([[4.569923265111148e-06, 1.1790208354657807e-05, 1.188811083244273e-05, 3.937986565470881e-06, 6.117748586366702e-06, 1.4653735707475556e-05, 5.1405021888804485e-06, 6.230089865351832e-06, 9.253671276144443e-06, 4.4020762265872925e-06, 4.209382330915609e-06, 1.2711312493703607e-05, 3.528564997626246e-06, 5.628744406702597e-06, 5.9584448485472295e-06, 7.296825298466372e-06], [2.8692166593946936e-06, 6.332699052921642e-06, 5.6444541675826615e-06, 6.219291282031525e-06, 3.4613680724230445e-06, 7.945968240040219e-06, 9.014553550645182e-06, 8.237388492816905e-06, 4.885917548202755e-06, 2.7620060959130407e-06, 6.152885591234547e-06, 9.963448305827874e-06, 5.5281954813123255e-06, 1.0935082691492152e-05, 5.6903920340442756e-06, 4.788803877899155e-06]], dtype='float64'),
    'gradient.l9.bias': array([4.725810002390248e-06, 5.113890141195464e-06], dtype='float64'),
    'prediction': array([[7.673543593640029e-06, 6.787467221033599e-06], [3.6956806918502597e-06, 5.300497016022223e-06]], dtype='float64'),
    'parameter.l0.weight': array([[[[9.415442575354373e-07]]]], dtype='float64'),
    'parameter.l0.bias': array([5.528426088030614e-07], dtype='float64'),
    'parameter.l3.weight': array([2.033372325064452e-06], dtype='float64'),
    'parameter.l3.bias': array([5.477494921994287e-07], dtype='float64'),
    'parameter.l9.weight': array([[1.061409823917734e-06, 1.5337520527696605e-06, 1.2065552081572607e-06, 8.254704095588072e-07, 8.602091841033293e-07, 1.8574201140978587e-06, 5.397875091444961e-07, 8.838218120120974e-07, 1.1690698223113854e-06, 4.815245158797096e-07, 5.598638193874263e-07, 1.5253287230241745e-06, 1.5117763820387504e-06, 7.851188021543049e-07, 1.6856010977457634e-06, 1.2614053409254265e-06], [4.5580474314619206e-07, 7.227210054024769e-07, 8.800103412597048e-07, 1.317749513333584e-06, 4.333244795441239e-07, 1.1542360920086793e-06, 1.0922813848290031e-06, 9.711914448417077e-07, 1.1927050078839071e-06, 9.84161973747951e-07, 8.098433162944451e-07, 1.319105562906608e-06, 6.754543090867051e-07, 1.4745805776614112e-06, 8.575289704469368e-07, 8.410098342166155e-07]], dtype='float64'),
    'parameter.l9.bias': array([9.093169361315124e-07, 1.0222258765652399e-06], dtype='float64'),
    'buffer.l3.running_mean': array([6.610031164361652e-08], dtype='float64'),
    'buffer.l3.running_var': array([1.6463422156456095e-06], dtype='float64'),
    'buffer.l3.num_batches_tracked': array(0.0, dtype='float64'),
}
TYPES = {'loss.0': ('float32', ()), 'gradient.l0.weight': ('float32', (1, 1, 1, 1)), 'gradient.l0.bias': ('float32', (1,)), 'gradient.l3.weight': ('float32', (1,)), 'gradient.l3.bias': ('float32', (1,)), 'gradient.l9.weight': ('float32', (2, 16)), 'gradient.l9.bias': ('float32', (2,)), 'prediction': ('float32', (2, 2)), 'parameter.l0.weight': ('float32', (1, 1, 1, 1)), 'parameter.l0.bias': ('float32', (1,)), 'parameter.l3.weight': ('float32', (1,)), 'parameter.l3.bias': ('float32', (1,)), 'parameter.l9.weight': ('float32', (2, 16)), 'parameter.l9.bias': ('float32', (2,)), 'buffer.l3.running_mean': ('float32', (1,)), 'buffer.l3.running_var': ('float32', (1,)), 'buffer.l3.num_batches_tracked': ('int64', ())}


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
