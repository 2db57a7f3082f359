"""Rejection  the run   torch-tensor-columns on 3 ranks vs one device

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
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.distributed.tensor import Replicate
from torch.distributed.tensor import DTensor
from torch.distributed.device_mesh import init_device_mesh

DTYPE = torch.float64
BATCHES = [(0, 3), (3, 6), (0, 3), (3, 6), (0, 3)]  # samples of each step: the first, and the one after the last
FROZEN = []
FACTOR = lambda world: 1  # of the loss on each rank, so that what the ranks make of their gradients is the gradient


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.l0 = torch.nn.LayerNorm(4)
        self.l1 = torch.nn.SiLU()
        self.l2 = torch.nn.Linear(4, 2, bias=True)

    def forward(self, x):
        l0 = self.l0(x)
        l1 = self.l1(l0)
        l2 = self.l2(l1)
        return l2


def criterion(outputs, y, coefficient):
    """The sum of the samples' losses, each times its coefficient."""
    return (torch.nn.functional.cross_entropy(outputs, y, reduction="none") * coefficient).sum()


OPTIMIZER, OPTIONS = torch.optim.Adagrad, dict(lr=0.25, eps=0.001, initial_accumulator_value=0.0)


def optimizer_of(parameters):
    return OPTIMIZER(parameters, **OPTIONS)


def distribute(model, rank, world):
    start(rank, world)
    mesh = init_device_mesh("cpu", (world,))
    plan = {name: ColwiseParallel(output_layouts=Replicate()) for name, layer in model.named_children() if isinstance(layer, torch.nn.Linear)}
    subject = parallelize_module(model, mesh, plan)
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
    'x': array([[0.626975849124197, 0.37638327563219415, 0.07225064790504417, -0.008980955856976641], [0.4108954505571291, 0.6955701937173395, -0.30306102894784764, -1.4835348994128352], [0.11074102126950035, 0.7171759178857791, -1.448103230195168, -0.22429295056432264], [0.5890581906358064, -0.5987905058648357, 1.288312356959672, -0.8473381285783993], [-0.026322393653956055, 0.27840673396625226, 0.2980198348662981, 0.9743742280305523], [-0.5350487276360315, 0.1710015462628409, 1.0126188859499246, 0.7107957455673168]], dtype='float64'),
    'y': array([1, 1, 0, 0, 0, 0], dtype='int64'),
    'coefficient': array([0.5333333333333333, 0.3333333333333333, 0.13333333333333333, 0.29411764705882354, 0.4117647058823529, 0.29411764705882354], dtype='float64'),
    'initial.l0.weight': array([0.9023990306333716, 0.8762988436762823, 1.0108255794965426, 1.1403549607452028], dtype='float64'),
    'initial.l0.bias': array([-0.09235307810354013, 0.1061654224760953, 0.12678515967439555, 0.034802001269793284], dtype='float64'),
    'initial.l2.weight': array([[-0.20674692444749845, -0.30611221851040726, 1.0640527540707798, -0.2913040683103419], [0.15474254521001982, -0.34772182546708386, -0.5519427554996196, -1.1503393203149446]], dtype='float64'),
    'initial.l2.bias': array([-0.0017414910975261833, 0.09668326293811669], dtype='float64'),
}
EXPECTED = {
    'loss.0': array(0.4654682174320072, dtype='float64'),
    'gradient.l0.weight': array([-0.08825777599770097, 0.0030824568344305823, -0.05807345820870719, 0.011178574852856601], dtype='float64'),
    'gradient.l0.bias': array([-0.06636734627254537, 0.005982218435414291, 0.15181747020752698, -0.04316346866554663], dtype='float64'),
    'gradient.l2.weight': array([[0.16029535441273798, 0.06637273465507648, -0.010403267241741499, -0.07398358225169914], [-0.16029535441273798, -0.06637273465507648, 0.010403267241741499, 0.07398358225169914]], dtype='float64'),
    'gradient.l2.bias': array([0.1877338309283023, -0.1877338309283023], dtype='float64'),
    'loss.1': array(0.1744543343105982, dtype='float64'),
    'loss.2': array(0.2577560038239354, dtype='float64'),
    'loss.3': array(0.01317752448516807, dtype='float64'),
    'loss.4': array(0.19872973490871937, dtype='float64'),
    'prediction': array([[-1.5430729082885708, 1.752949417288466], [-0.830735889089393, 1.1845691592589394], [-0.46423409739234045, -0.39260681363333505], [2.6998184406354033, -1.179686200603373], [0.8783463477609049, -4.4513520625078105], [3.107425317110679, -3.9094179241204454]], dtype='float64'),
    'parameter.l0.weight': array([1.3136510282647402, 0.5700379326822516, 1.6319841703990323, 1.2088232773060585], dtype='float64'),
    'parameter.l0.bias': array([0.09547860876018838, -0.4876477224452917, -0.034933206795147664, 0.8016274563350538], dtype='float64'),
    'parameter.l2.weight': array([[-0.5921529698016759, -0.5392280468439654, 1.5554692471898852, 0.35514231804957624], [0.5401485905641973, -0.11460599713352557, -1.043359248618725, -1.796785706674863]], dtype='float64'),
    'parameter.l2.bias': array([-0.07619716080858985, 0.17113893264918031], dtype='float64'),
    'state.l0.weight.step': array(5.0, dtype='float64'),
    'state.l0.weight.sum': array([0.013535950958528113, 0.0008120616782983623, 0.0488381691136921, 0.03832841265864107], dtype='float64'),
    'state.l0.bias.step': array(5.0, dtype='float64'),
    'state.l0.bias.sum': array([0.006813899845337571, 0.0005787745427421507, 0.0826547484641082, 0.05094372378336945], dtype='float64'),
    'state.l2.weight.step': array(5.0, dtype='float64'),
    'state.l2.weight.sum': array([[0.030703763198781323, 0.005744088522257815, 0.006832699506684567, 0.02606969674762347], [0.030703763198781327, 0.005744088522257815, 0.006832699506684557, 0.02606969674762347]], dtype='float64'),
    'state.l2.bias.step': array(5.0, dtype='float64'),
    'state.l2.bias.sum': array([0.0603991975520996, 0.06039919755209958], dtype='float64'),
}
ALLOWED = {
    'loss.0': array(5.076355529205052e-15, dtype='float64'),
    'gradient.l0.weight': array([1.271878403483929e-15, 7.174438437424429e-16, 1.4116027975041476e-15, 7.870846861849193e-16], dtype='float64'),
    'gradient.l0.bias': array([1.0581467668946812e-15, 1.1294140897492383e-15, 2.466309352484621e-15, 1.370604490938329e-15], dtype='float64'),
    'gradient.l2.weight': array([[3.4730399484430467e-15, 2.3904191822899504e-15, 1.1749741333149025e-15, 1.3979782507182563e-15], [4.8053075779932345e-15, 2.7234860896774974e-15, 1.0917074064680157e-15, 2.06411206549335e-15]], dtype='float64'),
    'gradient.l2.bias': array([2.054120279140916e-15, 4.0525217234661975e-15], dtype='float64'),
    'loss.1': array(4.8178832783834815e-15, dtype='float64'),
    'loss.2': array(3.3375577890950008e-15, dtype='float64'),
    'loss.3': array(4.431779409661701e-15, dtype='float64'),
    'loss.4': array(6.3937563997995274e-15, dtype='float64'),
    'prediction': array([[5.4661229239173334e-14, 6.550577806167054e-14], [4.0705870575665234e-14, 5.967188446410438e-14], [3.505128107529773e-14, 4.697807193355293e-14], [6.634676669448982e-14, 3.8351265452799206e-14], [6.472897448951268e-14, 1.5316756935002813e-13], [8.802507639869955e-14, 8.873738892500467e-14]], dtype='float64'),
    'parameter.l0.weight': array([2.6035752245925128e-14, 1.471715010542085e-14, 2.0989418354843388e-14, 1.5284505463336426e-14], dtype='float64'),
    'parameter.l0.bias': array([1.540587977967095e-14, 1.9084864997194455e-14, 1.1188768317889194e-14, 1.1370129243757401e-14], dtype='float64'),
    'parameter.l2.weight': array([[5.85500800713994e-15, 5.80800123270461e-15, 2.0033281031563887e-14, 1.2305838408765603e-14], [1.6466959876172813e-14, 6.096994906398057e-15, 1.4249365464119567e-14, 2.0247613103196884e-14]], dtype='float64'),
    'parameter.l2.bias': array([4.952657982223299e-15, 8.70071919636322e-15], dtype='float64'),
    'state.l0.weight.step': array(2.384185791015625e-06, dtype='float64'),
    'state.l0.weight.sum': array([1.1500009397722694e-15, 4.751681263377868e-16, 2.76342341819608e-15, 1.4218212497662119e-15], dtype='float64'),
    'state.l0.bias.step': array(2.384185791015625e-06, dtype='float64'),
    'state.l0.bias.sum': array([6.860635613795352e-16, 4.3853173274287916e-16, 2.7934585742031965e-15, 1.5995593505587719e-15], dtype='float64'),
    'state.l2.weight.step': array(2.384185791015625e-06, dtype='float64'),
    'state.l2.weight.sum': array([[1.0819822932706393e-15, 4.977632426437298e-16, 7.277136222564846e-16, 9.11332961759491e-16], [1.5815826543519597e-15, 5.185799243554515e-16, 5.403634868509895e-16, 5.78266054371944e-16]], dtype='float64'),
    'state.l2.bias.step': array(2.384185791015625e-06, dtype='float64'),
    'state.l2.bias.sum': array([1.802246527617601e-15, 1.802246527617601e-15], dtype='float64'),
}
TYPES = {'loss.0': ('float64', ()), 'gradient.l0.weight': ('float64', (4,)), 'gradient.l0.bias': ('float64', (4,)), 'gradient.l2.weight': ('float64', (2, 4)), 'gradient.l2.bias': ('float64', (2,)), 'loss.1': ('float64', ()), 'loss.2': ('float64', ()), 'loss.3': ('float64', ()), 'loss.4': ('float64', ()), 'prediction': ('float64', (6, 2)), 'parameter.l0.weight': ('float64', (4,)), 'parameter.l0.bias': ('float64', (4,)), 'parameter.l2.weight': ('float64', (2, 4)), 'parameter.l2.bias': ('float64', (2,)), 'state.l0.weight.step': ('float32', ()), 'state.l0.weight.sum': ('float64', (4,)), 'state.l0.bias.step': ('float32', ()), 'state.l0.bias.sum': ('float64', (4,)), 'state.l2.weight.step': ('float32', ()), 'state.l2.weight.sum': ('float64', (2, 4)), 'state.l2.bias.step': ('float32', ()), 'state.l2.bias.sum': ('float64', (2,))}


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
