"""Rejection  the run   torch-tensor-columns on 2 ranks vs one device

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

DTYPE = torch.float32
BATCHES = [(0, 1)]  # samples of each step: the first, and the one after the last
FROZEN = []
FACTOR = lambda world: 1  # of the loss on each rank, so that what the ranks make of their gradients is the gradient


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.l0 = torch.nn.Embedding(7, 4)
        self.l1 = torch.nn.Linear(4, 4, bias=True)
        self.l10 = torch.nn.Flatten()
        self.l11 = torch.nn.Linear(12, 2, bias=True)

    def forward(self, x):
        l0 = self.l0(x)
        l1 = self.l1(l0)
        l3 = l0 + l1
        l10 = self.l10(l3)
        l11 = self.l11(l10)
        return l11


def criterion(outputs, y, coefficient):
    """The sum of the samples' losses, each times its coefficient."""
    return (torch.nn.functional.mse_loss(outputs, y, reduction="none").mean(1) * coefficient).sum()


OPTIMIZER, OPTIONS = torch.optim.SGD, dict(lr=0.125, momentum=0.0, weight_decay=0.0, nesterov=False)


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
        parts = np.array_split(np.arange(first, last), 2)
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
    'x': array([[1, 3, 6]], dtype='int64'),
    'y': array([[1.3293249607086182, -0.4759463667869568]], dtype='float32'),
    'coefficient': array([1.0], dtype='float32'),
    'initial.l0.weight': array([[0.43539753556251526, 0.10566304624080658, -0.21135829389095306, 1.0793935060501099], [0.2572711706161499, -0.07302574813365936, -0.33813461661338806, -0.6318705677986145], [0.3996361494064331, 0.25957298278808594, -0.7065092325210571, 0.19221049547195435], [-0.402161180973053, -0.34601858258247375, -0.1315561980009079, -0.33555230498313904], [-0.22868968546390533, 0.37647151947021484, 0.19356131553649902, -0.44267845153808594], [-0.4593600630760193, 0.13472187519073486, 0.28348496556282043, -0.036322221159935], [-0.24156281352043152, 0.5735496282577515, -0.016924967989325523, 0.7433788180351257]], dtype='float32'),
    'initial.l1.weight': array([[-0.3421112596988678, -0.1877363920211792, 0.6119866967201233, 0.6556078791618347], [-0.6030901670455933, -0.12332373857498169, -1.3393069505691528, -0.5543409585952759], [0.62776780128479, 0.1194588840007782, 0.06543691456317902, -0.1609119027853012], [-0.27995601296424866, 0.0012118361191824079, -0.37631845474243164, -0.2738509178161621]], dtype='float32'),
    'initial.l1.bias': array([0.036886245012283325, -0.024445107206702232, -0.07621437311172485, 0.1084967628121376], dtype='float32'),
    'initial.l11.weight': array([[-0.16858549416065216, -0.4397313594818115, 0.012989557348191738, 0.1661517471075058, 0.3408370316028595, -0.6260318756103516, -0.11774825304746628, 0.420479416847229, 0.47795143723487854, 0.04814070463180542, -0.37270933389663696, 0.3474259078502655], [-0.4683084487915039, 0.2721988260746002, 0.32496020197868347, -0.2737184166908264, -0.2170335352420807, -0.24699369072914124, 0.05744773894548416, -0.5400149822235107, 0.571325957775116, 0.3270200788974762, -0.1989109367132187, 0.14581356942653656]], dtype='float32'),
    'initial.l11.bias': array([0.019450150430202484, 0.05767471715807915], dtype='float32'),
}
EXPECTED = {
    'loss.0': array(1.6702226630360784, dtype='float64'),
    'gradient.l0.weight': array([[0.0, 0.0, 0.0, 0.0], [-0.39570711601886843, 0.926373312916752, -0.8310003822304619, -1.2311771758595882], [0.0, 0.0, 0.0, 0.0], [-0.2936512441371429, 0.6081823380448623, -0.4164839805921358, -1.692775827118874], [0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0], [0.07670526456306433, 0.31833385403505765, -0.05672992234017976, -0.3669219374014643]], dtype='float64'),
    'gradient.l1.weight': array([[0.17164008348636325, 0.3332796540022381, 0.21966604715040292, 0.5506032475390807], [-0.052244313075735876, -0.04189504748080555, -0.3853160240161961, -0.4930098495602284], [-0.04719600049791874, 0.028505993974108038, -0.16771485344611486, -0.14981171121617617], [0.41805861017738705, 0.31405896847209447, 0.3588937327891434, 0.5712540280354321]], dtype='float64'),
    'gradient.l1.bias': array([-0.9995817562439181, 1.7850702609497828, 0.8607038063935115, -2.0760285391398225], dtype='float64'),
    'gradient.l11.weight': array([[0.5276434144355538, -0.7355939132721655, 0.23929759026132585, 0.3881021837307368, 0.6090109296845769, -0.364109326682044, 0.5997442878461046, -0.0348538740574986, -0.32511958496692134, -0.30847942184567384, 0.39045922452008314, -0.9505166942614726], [-0.5095633811320669, 0.7103883253960612, -0.23109790789440535, -0.37480361842121984, -0.5881427873186504, 0.35163289170262924, -0.5791936727883323, 0.03365958415171208, 0.3139791579986326, 0.2979091805277252, -0.37707989372614403, 0.9179466421816]], dtype='float64'),
    'gradient.l11.bias': array([-1.31469914007559, 1.2696501475432753], dtype='float64'),
    'prediction': array([[1.417985493528423, -0.1548680846799893]], dtype='float64'),
    'parameter.l0.weight': array([[0.43539753556251526, 0.10566304624080658, -0.21135829389095306, 1.0793935060501099], [0.30673456011850847, -0.18882241224825336, -0.23425956883458032, -0.477973420816166], [0.3996361494064331, 0.25957298278808594, -0.7065092325210571, 0.19221049547195435], [-0.3654547754559101, -0.4220413748380816, -0.07949570042689091, -0.12395532659327979], [-0.22868968546390533, 0.37647151947021484, 0.19356131553649902, -0.44267845153808594], [-0.4593600630760193, 0.13472187519073486, 0.28348496556282043, -0.036322221159935], [-0.25115097159081456, 0.5337578965033692, -0.009833727696803053, 0.7892440602103088]], dtype='float64'),
    'parameter.l1.weight': array([[-0.3635662701346632, -0.22939634877145895, 0.5845284408263229, 0.5867824732194497], [-0.5965596279111263, -0.118086857639881, -1.2911424475671283, -0.49271472740024735], [0.6336673013470299, 0.1158956347540147, 0.08640127124394337, -0.1421854388832792], [-0.33221333923642204, -0.0380455349398294, -0.42118017134107455, -0.34525767132059115]], dtype='float64'),
    'parameter.l1.bias': array([0.1618339645427731, -0.24757888982542509, -0.1838023489109138, 0.3680003302046154], dtype='float64'),
    'parameter.l11.weight': array([[-0.23454092096509638, -0.3477821203227908, -0.016922641434473994, 0.1176389741411637, 0.2647106653922874, -0.580518209775096, -0.19271628902822935, 0.4248361511044163, 0.5185913853557437, 0.08670063236251466, -0.4215167369616474, 0.4662404946329496], [-0.40461302614999556, 0.18340028540009257, 0.35384744046548416, -0.22686796438817394, -0.14351568682724938, -0.2909478021919699, 0.1298469480440257, -0.5442224302424747, 0.5320785630252869, 0.2897814313315106, -0.1517759499974507, 0.031070239153836554]], dtype='float64'),
    'parameter.l11.bias': array([0.18378754293965124, -0.10103155128483027], dtype='float64'),
}
ALLOWED = {
    'loss.0': array(4.7782435042862375e-06, dtype='float64'),
    'gradient.l0.weight': array([[9.456993086409682e-07, 9.456993086409682e-07, 9.456993086409682e-07, 9.456993086409682e-07], [4.236654008737464e-06, 4.332539364478263e-06, 7.016147021215261e-06, 4.141747619301592e-06], [9.456993086409682e-07, 9.456993086409682e-07, 9.456993086409682e-07, 9.456993086409682e-07], [4.531461938350605e-06, 3.313898350388589e-06, 4.761538165526504e-06, 5.960568164923842e-06], [9.456993086409682e-07, 9.456993086409682e-07, 9.456993086409682e-07, 9.456993086409682e-07], [9.456993086409682e-07, 9.456993086409682e-07, 9.456993086409682e-07, 9.456993086409682e-07], [2.0673515901103322e-06, 2.190723119831507e-06, 3.7355521018862185e-06, 3.4389611693135535e-06]], dtype='float64'),
    'gradient.l1.weight': array([[1.5630870130741314e-06, 2.644820245740954e-06, 1.8564014170943748e-06, 4.393806831842955e-06], [1.8546272413446942e-06, 2.1108306076150136e-06, 1.9543638380719387e-06, 3.949394873855268e-06], [1.5322512713234549e-06, 1.6779676509214044e-06, 1.2478082465743885e-06, 2.871280463637857e-06], [2.0693653611262397e-06, 2.5802891515217687e-06, 2.0718631171888472e-06, 2.160211379567173e-06]], dtype='float64'),
    'gradient.l1.bias': array([4.586656659005358e-06, 9.252060152658171e-06, 3.5846850274804216e-06, 6.801038766953504e-06], dtype='float64'),
    'gradient.l11.weight': array([[4.279755513642067e-06, 4.538210617148831e-06, 1.7726354535545499e-06, 3.021228372660467e-06, 2.6341073786519746e-06, 2.075276025500279e-06, 2.7591694935782207e-06, 1.7777308836359594e-06, 2.8385218678563827e-06, 2.923949481683081e-06, 1.7328469920902289e-06, 3.752789272687968e-06], [4.524155499252714e-06, 5.839222971930212e-06, 1.6368306419801129e-06, 3.075176858440454e-06, 2.8234129670803174e-06, 2.0047379660837698e-06, 3.0189918443697132e-06, 1.8133301876309197e-06, 2.957466487177845e-06, 2.6016741822615085e-06, 2.0613818487206163e-06, 4.883777586744186e-06]], dtype='float64'),
    'gradient.l11.bias': array([5.253833103092018e-06, 5.676563691665575e-06], dtype='float64'),
    'prediction': array([[4.728413219291183e-06, 2.524111900258887e-06]], dtype='float64'),
    'parameter.l0.weight': array([[1.0002575585588147e-06, 3.805639172682618e-07, 5.798146047730768e-07, 1.697969051139836e-06], [9.656671058635369e-07, 8.370317687143112e-07, 1.0310094297105257e-06, 1.2322135568301949e-06], [9.399338316562478e-07, 6.460262227392377e-07, 1.2201247083787337e-06, 5.03140543672842e-07], [1.0287369921202667e-06, 9.718737031248412e-07, 6.525782141893043e-07, 9.126937966378463e-07], [5.584622897458758e-07, 8.873918275753567e-07, 5.437083845372115e-07, 1.018484780068718e-06], [1.0527078155853076e-06, 4.259947350426785e-07, 6.249976411965008e-07, 2.394991822085579e-07], [5.691262933528366e-07, 1.1219624306794933e-06, 5.373681698900888e-07, 1.6553951044568395e-06]], dtype='float64'),
    'parameter.l1.weight': array([[1.0037779470014696e-06, 8.355310600943995e-07, 1.3811396294339725e-06, 1.2012838053569488e-06], [1.4904091689685002e-06, 5.869582718366014e-07, 2.6267021174562155e-06, 1.3073018095212794e-06], [1.5552318197531523e-06, 5.414225846564651e-07, 4.831883443718389e-07, 6.828230738577069e-07], [9.439200003086718e-07, 5.825136774412646e-07, 8.847481589173247e-07, 1.0588014996998415e-06]], dtype='float64'),
    'parameter.l1.bias': array([7.681654651362762e-07, 1.1571788655051694e-06, 4.944005877472297e-07, 1.0791097841018643e-06], dtype='float64'),
    'parameter.l11.weight': array([[6.039882348839242e-07, 6.600353051799872e-07, 2.537714283182835e-07, 5.922513270552363e-07, 7.987528641575674e-07, 1.2687999572898462e-06, 5.418678655536278e-07, 8.255911207069014e-07, 1.127338658878402e-06, 5.213454830665398e-07, 8.916941642807996e-07, 8.503575066897565e-07], [1.1208914417581787e-06, 7.868978344339155e-07, 8.937637612863104e-07, 5.246898894869844e-07, 4.3327480241228833e-07, 8.139454101005569e-07, 6.317171394137346e-07, 9.459699445592074e-07, 1.1330247437042787e-06, 7.573415106772905e-07, 4.4653766301898457e-07, 5.741632778993451e-07]], dtype='float64'),
    'parameter.l11.bias': array([7.900271822667279e-07, 5.553195777255319e-07], dtype='float64'),
}
TYPES = {'loss.0': ('float32', ()), 'gradient.l0.weight': ('float32', (7, 4)), 'gradient.l1.weight': ('float32', (4, 4)), 'gradient.l1.bias': ('float32', (4,)), 'gradient.l11.weight': ('float32', (2, 12)), 'gradient.l11.bias': ('float32', (2,)), 'prediction': ('float32', (1, 2)), 'parameter.l0.weight': ('float32', (7, 4)), 'parameter.l1.weight': ('float32', (4, 4)), 'parameter.l1.bias': ('float32', (4,)), 'parameter.l11.weight': ('float32', (2, 12)), 'parameter.l11.bias': ('float32', (2,))}


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
