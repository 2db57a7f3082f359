"""Rejection  the run   torch-dtensor-data on 2 ranks vs one device

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
BATCHES = [(0, 1)]  # samples of each step: the first, and the one after the last
FROZEN = []
FACTOR = lambda world: 1  # of the loss on each rank, so that what the ranks make of their gradients is the gradient


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.l0 = torch.nn.Conv2d(1, 1, 1, padding=0)
        self.l8 = torch.nn.Flatten()
        self.l9 = torch.nn.Linear(16, 2, bias=True)

    def forward(self, x):
        l0 = self.l0(x)
        l2 = x + l0
        l8 = self.l8(l2)
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

WORLD = 2
VARIABLES = {}
SYMPTOM = 'rejected'
SECONDS = 60.0  # for all ranks
GRACE = 3.0  # for the others once one has ended in another way than well: they wait for it, as a rule
ZERO_SIGNS = False
ARRAYS = {
    'x': array([[[[0.7376729846000671, -1.9211925268173218, 2.1483142375946045, 0.061233583837747574], [1.3178455829620361, 2.012576103210449, -0.003155606798827648, -0.6648979783058167], [-1.4761674404144287, -0.4336668848991394, 0.42290833592414856, 1.8414313793182373], [0.17633451521396637, -0.07246933877468109, -0.5232741236686707, 1.1705646514892578]]]], dtype='float32'),
    'y': array([[-1.9119551181793213, -0.9520146250724792]], dtype='float32'),
    'coefficient': array([1.0], dtype='float32'),
    'initial.l0.weight': array([[[[0.0840316191315651]]]], dtype='float32'),
    'initial.l0.bias': array([-0.2650814950466156], dtype='float32'),
    'initial.l9.weight': array([[-0.24753250181674957, -0.12609484791755676, 0.5516985654830933, -0.32416361570358276, -0.19762419164180756, 0.048736248165369034, 0.054292600601911545, -0.23799572885036469, 0.060585521161556244, -0.12803560495376587, -0.04404912889003754, 0.18171709775924683, -0.7063591480255127, -0.009243287146091461, 0.4645019471645355, 0.3499295115470886], [-0.09128725528717041, -0.117686428129673, -0.02912064641714096, 0.598987877368927, 0.08012495189905167, -0.052662573754787445, 0.0786275714635849, 0.09230209141969681, 0.4759860634803772, 0.36894041299819946, 0.14059236645698547, -0.22582070529460907, 0.014750157482922077, 0.037617627531290054, -0.04447301849722862, -0.26020216941833496]], dtype='float32'),
    'initial.l9.bias': array([-0.04144119843840599, 0.19241145253181458], dtype='float32'),
}
EXPECTED = {
    'loss.0': array(6.817740212983347, dtype='float64'),
    'gradient.l0.weight': array([[[[6.590604270761348]]]], dtype='float64'),
    'gradient.l0.bias': array([-1.8572686201830648], dtype='float64'),
    'gradient.l9.weight': array([[1.9394311550618233, -8.517410077430835, 7.487230227721574, -0.7208836998265491, 4.221145939981412, 6.953396487596368, -0.9741148394551356, -3.576628913953391, -6.767206220557059, -2.667238491088286, 0.7015182396955975, 6.280314980526973, -0.26821237818774174, -1.246713317035399, -3.019647691580547, 3.6419164489179545], [-0.3678141498472142, 1.6153313503053697, -1.4199571940113487, 0.13671597700098012, -0.8005425721057837, -1.3187153413312762, 0.18474139728683742, 0.678309575398564, 1.2834042581808633, 0.5058431981351416, -0.13304330718958945, -1.1910650756054382, 0.05086662014485325, 0.2364398435137845, 0.5726777904015866, -0.6906913911211466]], dtype='float64'),
    'gradient.l9.bias': array([3.6279575217143694, -0.6880440731543471], dtype='float64'),
    'prediction': array([[-2.8221916784838013, 0.390878489717459]], dtype='float64'),
    'parameter.l0.weight': array([[[[-0.7397939147136035]]]], dtype='float64'),
    'parameter.l0.bias': array([-0.0329229175237325], dtype='float64'),
    'parameter.l9.weight': array([[-0.4899613961994775, 0.9385814117612976, -0.38420521298210353, -0.23405315322526413, -0.725267434139484, -0.820438312784177, 0.1760569555338035, 0.2090828853938092, 0.9064862987311886, 0.20536920643226986, -0.13173890885198722, -0.6033222748066248, -0.672832600752045, 0.14659587748333341, 0.8419579086121038, -0.10531004456765569], [-0.04531048655626863, -0.31960284691784424, 0.14837400283427762, 0.5818983802438045, 0.18019277341227463, 0.11217684391162208, 0.05553489680273022, 0.007513394494876313, 0.3155605312077693, 0.30571001323130675, 0.15722277985568417, -0.0769375708439293, 0.008391829964815422, 0.008062647092066992, -0.11605774229742695, -0.17386574552819162]], dtype='float64'),
    'parameter.l9.bias': array([-0.49493588865270216, 0.27841696167610797], dtype='float64'),
}
ALLOWED = {
    'loss.0': array(2.2646981095707235e-05, dtype='float64'),
    'gradient.l0.weight': array([[[[2.2994495276295925e-05]]]], dtype='float64'),
    'gradient.l0.bias': array([1.1349274185287562e-05], dtype='float64'),
    'gradient.l9.weight': array([[1.4645092190494372e-05, 4.363982034773909e-05, 3.77355319584812e-05, 8.993069580018276e-06, 2.2840159817223798e-05, 3.274915875354752e-05, 9.480822563690883e-06, 1.9781925110357903e-05, 4.368452927689729e-05, 1.2360846246323894e-05, 1.0079234652353728e-05, 3.3557406889921615e-05, 8.284570246341741e-06, 1.3809107421564573e-05, 1.83042328157668e-05, 2.452932707917766e-05], [9.263911990919896e-06, 1.8888405391966354e-05, 1.6924038527710145e-05, 6.899683440149118e-06, 1.2875680027751864e-05, 1.7787221324255954e-05, 7.049323760229188e-06, 1.1660731875518025e-05, 1.8962548998184166e-05, 8.96327494724841e-06, 6.729710496792382e-06, 1.6918094375554595e-05, 6.262092842765932e-06, 7.69651081570933e-06, 1.0539790705634862e-05, 1.1321980803612915e-05]], dtype='float64'),
    'gradient.l9.bias': array([1.6187601003085965e-05, 7.485699047338707e-06], dtype='float64'),
    'prediction': array([[3.575351389729989e-05, 9.544076153172471e-06]], dtype='float64'),
    'parameter.l0.weight': array([[[[3.549230537633312e-06]]]], dtype='float64'),
    'parameter.l0.bias': array([1.3056133889914153e-06], dtype='float64'),
    'parameter.l9.weight': array([[2.0887408754809717e-06, 6.48474132704505e-06, 4.7082864288129185e-06, 1.3015372886813411e-06, 3.1994037431018938e-06, 3.545862008213325e-06, 1.5299704741179601e-06, 2.6507721938484305e-06, 5.327549168412664e-06, 1.6240510178047253e-06, 1.4645843405969317e-06, 4.750769948463104e-06, 2.4299753156223523e-06, 1.749239044004296e-06, 3.7926420197839696e-06, 3.043039512524535e-06], [1.2728453587157487e-06, 2.5135606151161654e-06, 2.325816718079502e-06, 1.9410577221926086e-06, 1.631506267061462e-06, 2.2987448439170015e-06, 1.0385039913634553e-06, 1.5702360230559975e-06, 2.4819390602110752e-06, 1.6882577479213833e-06, 1.1971305324450088e-06, 2.1916826200128315e-06, 9.283169703780375e-07, 1.0888629643162747e-06, 1.426869817923731e-06, 1.6967259240872325e-06]], dtype='float64'),
    'parameter.l9.bias': array([2.3111437249956406e-06, 1.2546608844144568e-06], dtype='float64'),
}
TYPES = {'loss.0': ('float32', ()), 'gradient.l0.weight': ('float32', (1, 1, 1, 1)), 'gradient.l0.bias': ('float32', (1,)), 'gradient.l9.weight': ('float32', (2, 16)), 'gradient.l9.bias': ('float32', (2,)), 'prediction': ('float32', (1, 2)), 'parameter.l0.weight': ('float32', (1, 1, 1, 1)), 'parameter.l0.bias': ('float32', (1,)), 'parameter.l9.weight': ('float32', (2, 16)), 'parameter.l9.bias': ('float32', (2,))}


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
