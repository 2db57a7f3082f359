"""Rejection  the run   torch-sequence-columns on 3 ranks vs one device

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
        self.l1 = torch.nn.LayerNorm(4)
        self.l8 = torch.nn.Flatten()
        self.l9 = torch.nn.Linear(32, 2, bias=True)

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
            plan[name] = ColwiseParallel(input_layouts=Shard(1), output_layouts=Replicate())
        if isinstance(layer, (torch.nn.LayerNorm, torch.nn.Linear)):
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
    'x': array([[[[-0.5901444554328918, -1.2967841625213623, 0.3106188178062439, 0.19737949967384338], [-1.381764531135559, 2.058314800262451, -0.6945526003837585, -1.1003835201263428], [-1.8795632123947144, -1.3696316480636597, -1.4586626291275024, 0.06692126393318176], [0.31732288002967834, 0.21761402487754822, -0.21047474443912506, -0.6821990609169006]], [[0.34084996581077576, -0.5792815089225769, -0.9748649597167969, 0.06350985169410706], [0.7412159442901611, 0.05331956222653389, 0.544154167175293, 0.768702507019043], [-1.1776851415634155, -0.9666255712509155, -1.4792159795761108, 0.27149832248687744], [1.610884428024292, -0.033326655626297, 0.5927852392196655, -0.09336378425359726]]]], dtype='float32'),
    'y': array([[-0.09653439372777939, -2.8169002532958984]], dtype='float32'),
    'coefficient': array([1.0], dtype='float32'),
    'initial.l1.weight': array([1.012617588043213, 0.9066951274871826, 0.8562107086181641, 1.0774463415145874], dtype='float32'),
    'initial.l1.bias': array([0.023494793102145195, 0.046880029141902924, -0.1434762328863144, -0.10581918805837631], dtype='float32'),
    'initial.l9.weight': array([[0.15501217544078827, -0.1857585608959198, -0.2896202802658081, 0.24495506286621094, 0.05327580124139786, 0.024141663685441017, 0.03125552833080292, -0.07396896928548813, -0.05649956688284874, -0.0023773035500198603, 0.051900286227464676, -0.10741748660802841, 0.1987828016281128, -0.2135525941848755, 0.2572062909603119, -0.09223971515893936, -0.031113360077142715, 0.35522139072418213, -0.07446994632482529, -0.19617809355258942, 0.0727372020483017, -0.2872177064418793, 0.4511900246143341, -0.2389458566904068, 0.16910476982593536, 0.03644014522433281, -0.009630627930164337, -0.21165359020233154, -0.11232827603816986, 0.10313364118337631, -0.41351383924484253, -0.14595475792884827], [0.2491210401058197, -0.2678300440311432, 0.17996293306350708, -0.09955988079309464, 0.13569122552871704, 0.04900375008583069, 0.0875774398446083, -0.045768581330776215, -0.3148348033428192, 0.042387455701828, 0.12093514204025269, -0.15418381989002228, 0.1273222267627716, -0.09101853519678116, 0.24664394557476044, -0.044594258069992065, 0.11326677352190018, -0.05498727038502693, -0.12070244550704956, -0.40300270915031433, -0.1621808111667633, -0.0017574100056663156, 0.10639724880456924, -0.14218680560588837, 0.10381636023521423, 0.13480626046657562, 0.12889333069324493, -0.13380151987075806, -0.396577388048172, 0.0903477743268013, 0.10673227161169052, 0.10270591825246811]], dtype='float32'),
    'initial.l9.bias': array([0.029920058324933052, 0.06069660931825638], dtype='float32'),
}
EXPECTED = {
    'loss.0': array(1.550787215051655, dtype='float64'),
    'gradient.l1.weight': array([-0.7363721507076293, 0.5013024906694974, 0.2142304650947782, -1.5915544327525202], dtype='float64'),
    'gradient.l1.bias': array([-0.3495966351451885, -0.13628981074123508, 1.4959105405098927, -1.4306710908400737], dtype='float64'),
    'gradient.l9.weight': array([[0.07773412253162756, 0.277541989685473, -0.1559298580780857, -0.171745924170061, 0.17117252034526628, -0.34493297936421485, 0.08719347509846373, 0.1625909701040733, 0.20983315986000803, 0.04586398460959763, 0.10647529413478436, -0.36720167169021856, -0.23068487515184677, -0.16263734812832276, 0.08784467092426389, 0.3727301808098188, -0.2708760709293444, 0.10038434352622913, 0.27696277906376054, -0.13504436565538103, -0.16905830717150283, 0.31415562470807346, 0.01988960882147102, -0.17391174160518239, 0.10679868549887929, 0.02777878637854959, 0.20967055693061915, -0.3659395887927799, -0.35460775821724455, 0.14825833908172056, 0.011173230810576307, 0.23162485964470975], [-0.6271311453882391, -2.239109675599206, 1.2579864197598476, 1.3855847938170183, -1.3809587764940956, 2.78279611817635, -0.7034458244078357, -1.311725893215888, -1.692859012204059, -0.37001425195972193, -0.859004655762709, 2.962451976760499, 1.86108320601238, 1.3121000545561226, -0.7086994398190076, -3.007054014367003, 2.1853314231606453, -0.8098650410447031, -2.2344368111120847, 1.0894897241199242, 1.3639020594942, -2.5344954099555443, -0.1604622623283374, 1.4030578355720966, -0.8616136618203898, -0.22410933000481206, -1.6915471898276033, 2.9522699425743717, 2.860848779554367, -1.1960953436355801, -0.09014163674482752, -1.8686666652765724]], dtype='float64'),
    'gradient.l9.bias': array([-0.21663745050855626, 1.7477535996645703], dtype='float64'),
    'prediction': array([[0.4286746834601749, -9.42405388399014]], dtype='float64'),
    'parameter.l1.weight': array([1.1046641068816665, 0.8440323161534955, 0.8294319004813168, 1.2763906456086525], dtype='float64'),
    'parameter.l1.bias': array([0.06719437249529375, 0.06391625548455732, -0.330465050450051, 0.0730146982966329], dtype='float64'),
    'parameter.l9.weight': array([[0.14529541012433483, -0.22045130960660392, -0.27012904800604737, 0.26642330338746856, 0.03187923619823957, 0.06725828610596787, 0.02035634394349495, -0.09429284054849729, -0.08272871186534975, -0.008110301626219564, 0.03859087446061663, -0.06151727764675109, 0.22761841102209363, -0.19322292566883514, 0.2462257070947789, -0.13883098776016672, 0.002746148789025335, 0.34267334778340347, -0.10909029370779535, -0.1792975478456668, 0.09386949044473955, -0.3264871595303884, 0.4487038235116502, -0.217206888989759, 0.15575493413857544, 0.03296779692701411, -0.03583944754649173, -0.16591114160323406, -0.06800230626101429, 0.08460134879816124, -0.41491049309616457, -0.17490786538443698], [0.3275124332793496, 0.012058665418757553, 0.02271463059352613, -0.2727579800202219, 0.30831107259047896, -0.29884576468621304, 0.17550816789558776, 0.11819715532120978, -0.10322742681731184, 0.08863923719679324, 0.22831072401059133, -0.5244903169850846, -0.1053131739887759, -0.25503104201629645, 0.3352313755521364, 0.3312874937258833, -0.1598996543731805, 0.04624585974556096, 0.15860215588196103, -0.5391889246653049, -0.33266856860353833, 0.3150545162387767, 0.12645503159561142, -0.3175690350524004, 0.21151806796276296, 0.16281992671717713, 0.34033672942169535, -0.5028352626925545, -0.7541834854924678, 0.23985969228124882, 0.11799997620479397, 0.3362892514120397]], dtype='float64'),
    'parameter.l9.bias': array([0.056999739638502585, -0.1577725906398149], dtype='float64'),
}
ALLOWED = {
    'loss.0': array(7.259277891214141e-06, dtype='float64'),
    'gradient.l1.weight': array([5.377398159753183e-06, 3.5360713453812347e-06, 2.9459176466449735e-06, 7.781035485096666e-06], dtype='float64'),
    'gradient.l1.bias': array([4.852557272310179e-06, 2.201995086926937e-06, 4.187181638885171e-06, 7.52374046469781e-06], dtype='float64'),
    'gradient.l9.weight': array([[4.035899150440402e-06, 9.134859057731801e-06, 6.135637049866116e-06, 6.125825762818472e-06, 6.509472306388188e-06, 1.0296216070591186e-05, 4.4491120275683125e-06, 5.906990128281765e-06, 6.102098257711472e-06, 3.3410369019673504e-06, 5.1780641223842935e-06, 1.240288678505075e-05, 7.625240165116567e-06, 6.6696899240569555e-06, 4.6429831947744745e-06, 1.0411451746162907e-05, 8.196170244047008e-06, 4.770950645269288e-06, 9.305474372199655e-06, 5.768203002798225e-06, 6.802156304932386e-06, 1.0204628763108085e-05, 3.0187043780958655e-06, 6.729711442619542e-06, 5.16653005938322e-06, 2.7962945359803415e-06, 7.284650881728263e-06, 1.2597827483215771e-05, 1.1165993616885188e-05, 5.697970548025929e-06, 2.532788870321055e-06, 7.75280594779322e-06], [5.819922072241635e-06, 9.663113558750576e-06, 9.621903963772458e-06, 1.0519484891977514e-05, 6.0986309209550075e-06, 1.0761853140084729e-05, 3.6543197794824303e-06, 6.984340567748174e-06, 1.3128858929584742e-05, 4.536370054622031e-06, 7.828921316523083e-06, 8.465621850212922e-06, 1.0297861029790801e-05, 7.575211319488058e-06, 4.891203958825158e-06, 1.40805021909842e-05, 1.0154847675791346e-05, 6.552514113684704e-06, 1.2051220141440769e-05, 7.136933850840147e-06, 8.920263660669407e-06, 1.6425255840071394e-05, 6.4918956613693604e-06, 7.191570341700116e-06, 7.601060902840448e-06, 5.3897332438323105e-06, 9.004506198889734e-06, 1.2246627561420889e-05, 1.0829803872679235e-05, 8.902010636170654e-06, 4.190377378735171e-06, 7.075781762121231e-06]], dtype='float64'),
    'gradient.l9.bias': array([6.516710666096056e-06, 5.440872512310691e-06], dtype='float64'),
    'prediction': array([[2.6659394424708948e-05, 3.852765967188081e-05]], dtype='float64'),
    'parameter.l1.weight': array([2.65012978807564e-06, 1.7911960486667762e-06, 1.5749663953930495e-06, 2.208071550470146e-06], dtype='float64'),
    'parameter.l1.bias': array([5.650614149191356e-07, 3.4822556860147397e-07, 9.605846130915595e-07, 9.680187201056951e-07], dtype='float64'),
    'parameter.l9.weight': array([[8.27093912108326e-07, 1.5225763420191035e-06, 1.0083388676124891e-06, 1.1789864241486496e-06, 8.9217994441092e-07, 1.3091802271392332e-06, 6.245976290623555e-07, 8.27455212171506e-07, 9.69278054474763e-07, 5.035835346634331e-07, 6.784185158906098e-07, 1.7185442277169725e-06, 1.001684534352718e-06, 1.0748668509236266e-06, 8.342944741064951e-07, 1.5715033743314612e-06, 1.083937343676074e-06, 9.889980976330372e-07, 1.1563728769854472e-06, 1.1265951107841825e-06, 9.682746957065215e-07, 1.2363808686573998e-06, 1.1623305133459875e-06, 1.0524390377716262e-06, 8.311467521244581e-07, 4.533717938429377e-07, 9.737529036012314e-07, 1.6022558670090076e-06, 1.4832078487007774e-06, 8.400402851422396e-07, 1.0800926060889072e-06, 1.0268085943331648e-06], [1.1620788704611794e-06, 1.1472508575757179e-06, 1.1828941687874645e-06, 1.2571576817232837e-06, 1.2583561370428142e-06, 1.7275332013650276e-06, 7.631412612166185e-07, 9.200263436187437e-07, 1.6709893433642472e-06, 5.934251482323087e-07, 1.0143727301405528e-06, 1.4981826295689794e-06, 1.3000828145281752e-06, 1.1227788706463565e-06, 1.0622172102558469e-06, 1.4469137444990648e-06, 1.2737957044899898e-06, 8.801421945906038e-07, 1.4776157023042153e-06, 1.284670880763771e-06, 1.3499377305502913e-06, 2.567254063745877e-06, 9.357832741050174e-07, 1.1154872987276062e-06, 1.2570620584920946e-06, 1.0422830916553707e-06, 1.6190280134879866e-06, 2.241381654781726e-06, 2.5741644228831006e-06, 1.3085648924411983e-06, 7.997873133467746e-07, 1.2125371034800193e-06]], dtype='float64'),
    'parameter.l9.bias': array([7.38987711315962e-07, 6.590724999092857e-07], dtype='float64'),
}
TYPES = {'loss.0': ('float32', ()), 'gradient.l1.weight': ('float32', (4,)), 'gradient.l1.bias': ('float32', (4,)), 'gradient.l9.weight': ('float32', (2, 32)), 'gradient.l9.bias': ('float32', (2,)), 'prediction': ('float32', (1, 2)), 'parameter.l1.weight': ('float32', (4,)), 'parameter.l1.bias': ('float32', (4,)), 'parameter.l9.weight': ('float32', (2, 32)), 'parameter.l9.bias': ('float32', (2,))}


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
