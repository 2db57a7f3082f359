"""ValueMismatch  state.l0.weight.exp_avg   torch-fsdp on 2 ranks vs one device

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
from torch.distributed.fsdp import FullStateDictConfig, FullyShardedDataParallel, ShardingStrategy
from torch.distributed.fsdp import FullOptimStateDictConfig, StateDictType
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp.wrap import CustomPolicy

DTYPE = torch.float32
BATCHES = [(0, 2)]  # samples of each step: the first, and the one after the last
FROZEN = []
FACTOR = lambda world: world  # of the loss on each rank, so that what the ranks make of their gradients is the gradient


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.l0 = torch.nn.LayerNorm(4)
        self.l1 = torch.nn.Linear(4, 3, bias=True)

    def forward(self, x):
        l0 = self.l0(x)
        l1 = self.l1(l0)
        return l1


def criterion(outputs, y, coefficient):
    """The sum of the samples' losses, each times its coefficient."""
    return (torch.nn.functional.mse_loss(outputs, y, reduction="none").mean(1) * coefficient).sum()


OPTIMIZER, OPTIONS = torch.optim.AdamW, dict(lr=0.125, eps=1e-08, weight_decay=0.0)


def optimizer_of(parameters):
    return OPTIMIZER(parameters, **OPTIONS)


def distribute(model, rank, world):
    start(rank, world)
    subject = FullyShardedDataParallel(
        model, use_orig_params=True, device_id=torch.device("cpu"), sharding_strategy=ShardingStrategy.FULL_SHARD,
        device_mesh=None, auto_wrap_policy=None,
    )
    return subject, optimizer_of(subject.parameters())

def share(part, rank, world):
    """The samples of a batch that this rank has: as even a split as there is, the first ranks' shares being larger."""
    return np.array_split(part, world)[rank]

def backward(subject, x, y, coefficient, last, world):
    """Adds the gradients of these samples; returns their part of the loss. last: the optimiser steps next."""
    loss = criterion(subject(x), y, coefficient)
    (loss * FACTOR(world)).backward()
    return loss.detach()

def summed(value, world):
    """The sum over all ranks."""
    value = value.clone()
    dist.all_reduce(value)
    return value

def predict(subject, x):
    return subject(x)

def module(subject):
    """The model itself, with the names that it was given."""
    return subject.module

def whole(value):
    """All of a tensor that may be spread over the ranks."""
    return value

def gradients(subject):
    with FullyShardedDataParallel.summon_full_params(subject, with_grads=True):
        named = subject.named_parameters()
        return {name: p.grad.clone() for name, p in named if p.requires_grad and p.grad is not None}

def clip(subject, limit):
    subject.clip_grad_norm_(limit)

def parameters(subject):
    with FullyShardedDataParallel.summon_full_params(subject):
        return {name: parameter.detach().clone() for name, parameter in subject.named_parameters()}

def buffers(subject):
    return {name: whole(buffer) for name, buffer in module(subject).named_buffers()}

def states(subject, optimizer):
    """What the optimiser keeps of each parameter."""
    every = FullStateDictConfig(rank0_only=False), FullOptimStateDictConfig(rank0_only=False)
    with FullyShardedDataParallel.state_dict_type(subject, StateDictType.FULL_STATE_DICT, *every):
        kept = FullyShardedDataParallel.optim_state_dict(subject, optimizer)["state"]
    return {
        f"{name}.{key}": value
        for name, values in kept.items()
        for key, value in values.items()
        if isinstance(value, torch.Tensor)
    }

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
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
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
        schedule.step()
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
SYMPTOM = 'value'
SECONDS = 60.0  # for all ranks
GRACE = 3.0  # for the others once one has ended in another way than well: they wait for it, as a rule
ZERO_SIGNS = False
ARRAYS = {
    'x': array([[0.0012350992765277624, 0.5735875964164734, -0.36999183893203735, 0.40479186177253723], [0.7862686514854431, 0.2037234753370285, 0.6839230060577393, 0.213222473859787], [0.3132252097129822, -2.638622283935547, -0.7565604448318481, 0.8785332441329956], [0.9884337782859802, 0.5513052344322205, -1.5372745990753174, -0.2946656346321106]], dtype='float32'),
    'y': array([[0.408386766910553, -0.8105223178863525, 0.9925942420959473], [-0.5979563593864441, 0.5829744935035706, 0.34375014901161194], [-1.5718268156051636, -0.3651295304298401, 1.2781037092208862], [0.3499475121498108, -1.701094627380371, -0.1773301512002945]], dtype='float32'),
    'coefficient': array([0.875, 0.125, 0.5, 0.5], dtype='float32'),
    'initial.l0.weight': array([0.8598364591598511, 0.9628309011459351, 1.0401071310043335, 0.8516973257064819], dtype='float32'),
    'initial.l0.bias': array([-0.053419582545757294, -0.20315894484519958, 0.16431525349617004, -0.0030001092236489058], dtype='float32'),
    'initial.l1.weight': array([[0.05716770887374878, 0.6565118432044983, 1.1224417686462402, -0.5357469320297241], [0.1441364586353302, 0.22963181138038635, -0.7330787777900696, -0.16321735084056854], [0.9394460916519165, 0.4076494872570038, -0.37777477502822876, 0.52711421251297]], dtype='float32'),
    'initial.l1.bias': array([-0.018798844888806343, 0.13753989338874817, -0.1501230001449585], dtype='float32'),
}
EXPECTED = {
    'loss.0': array(2.1341977326823978, dtype='float64'),
    'gradient.l0.weight': array([-0.0561805434781968, -0.5455025469478176, 2.815742107934463, 0.23568616136748965], dtype='float64'),
    'gradient.l0.bias': array([-0.15861117374996325, -0.42633860162654824, -1.6121461320156065, 0.13370294731776083], dtype='float64'),
    'gradient.l1.weight': array([[0.5073994094586544, -1.009374752529995, 1.387549717554175, -0.6606383881627431], [-0.5626040814781134, 1.15203750009819, -1.6110439353289643, 0.7512283122931113], [0.013041473497108283, -0.09932598549926142, 0.19771736466730774, -0.05879056947707702]], dtype='float64'),
    'gradient.l1.bias': array([-0.8438606792182393, 1.0506965238011947, -0.2786889747885334], dtype='float64'),
    'prediction': array([[-0.12080317492016071, 0.5552442928856985, 1.0802921197928224], [0.46383395856896437, -0.1569631247201628, -0.7008849281647507], [-1.443669059191375, -0.2597394266022035, -0.04692332705594228], [-0.46016037340561566, 1.1447995788252028, 1.6128668852119286]], dtype='float64'),
    'parameter.l0.weight': array([0.9848364369101593, 1.08783089885447, 0.9151071314482662, 0.7266973310101448], dtype='float64'),
    'parameter.l0.bias': array([0.07158040957333564, -0.07815894777714141, 0.28931525272080605, -0.12800009987456623], dtype='float64'),
    'parameter.l1.weight': array([[-0.06783228866270878, 0.7815118419661079, 0.9974417695471088, -0.41074693392183337], [0.26913645641351913, 0.10463181246542046, -0.608078778565964, -0.288217349176627], [0.814446187499908, 0.5326494746721815, -0.5027747687060732, 0.6521141912510601]], dtype='float64'),
    'parameter.l1.bias': array([0.10620115362990648, 0.012539894578435185, -0.025123004630245208], dtype='float64'),
    'state.l0.weight.step': array(1.0, dtype='float64'),
    'state.l0.weight.exp_avg': array([-0.005618054347819679, -0.05455025469478175, 0.28157421079344624, 0.02356861613674896], dtype='float64'),
    'state.l0.weight.exp_avg_sq': array([3.1562534655055637e-06, 0.0002975730287265562, 0.00792840361839522, 5.5547966660142416e-05], dtype='float64'),
    'state.l0.bias.step': array(1.0, dtype='float64'),
    'state.l0.bias.exp_avg': array([-0.015861117374996323, -0.042633860162654816, -0.1612146132015606, 0.01337029473177608], dtype='float64'),
    'state.l0.bias.exp_avg_sq': array([2.5157504438341053e-05, 0.00018176460323688075, 0.0025990151509728836, 1.7876478121455943e-05], dtype='float64'),
    'state.l1.weight.step': array(1.0, dtype='float64'),
    'state.l1.weight.exp_avg': array([[0.050739940945865425, -0.10093747525299948, 0.13875497175541748, -0.0660638388162743], [-0.056260408147811324, 0.11520375000981897, -0.1611043935328964, 0.07512283122931111], [0.001304147349710828, -0.00993259854992614, 0.01977173646673077, -0.0058790569477077]], dtype='float64'),
    'state.l1.weight.exp_avg_sq': array([[0.0002574541607189914, 0.0010188373910449897, 0.0019252942186846727, 0.0004364430799142676], [0.00031652335249583187, 0.0013271904016324881, 0.002595462561560238, 0.0005643439771907567], [1.700800309757779e-07, 9.865651395399498e-06, 3.9092156290985184e-05, 3.456331059439023e-06]], dtype='float64'),
    'state.l1.bias.step': array(1.0, dtype='float64'),
    'state.l1.bias.exp_avg': array([-0.0843860679218239, 0.10506965238011945, -0.027868897478853332], dtype='float64'),
    'state.l1.bias.exp_avg_sq': array([0.0007121008459306687, 0.0011039631851279155, 7.766754466868385e-05], dtype='float64'),
}
ALLOWED = {
    'loss.0': array(7.1127261015511426e-06, dtype='float64'),
    'gradient.l0.weight': array([2.2575405351677305e-06, 4.232521611305449e-06, 1.1158963086404918e-05, 2.4813104583457808e-06], dtype='float64'),
    'gradient.l0.bias': array([2.4866713905820366e-06, 3.495196569836922e-06, 7.023724234376242e-06, 2.682043631641994e-06], dtype='float64'),
    'gradient.l1.weight': array([[2.337960366375861e-06, 3.6852327873231807e-06, 5.6259386982914464e-06, 3.7627714872413716e-06], [2.7007844541398614e-06, 5.259337770034658e-06, 8.703417397299634e-06, 3.4890693686593576e-06], [1.8056054712402827e-06, 2.4245952336257367e-06, 3.0584795970397974e-06, 2.3740142796843402e-06]], dtype='float64'),
    'gradient.l1.bias': array([2.5045451911978805e-06, 3.992234475419189e-06, 1.9116806933530704e-06], dtype='float64'),
    'prediction': array([[5.33722092838474e-06, 3.583734111382544e-06, 3.76014726362469e-06], [7.467686822784971e-06, 2.0218226656599854e-06, 5.124177337415205e-06], [5.336748412684727e-06, 3.3565908693342926e-06, 4.727726779854534e-06], [5.285904474205102e-06, 5.014971831754791e-06, 7.36547921307136e-06]], dtype='float64'),
    'parameter.l0.weight': array([1.7997220452190878e-06, 2.2031228563877107e-06, 1.7743943418920468e-06, 1.6135293322315845e-06], dtype='float64'),
    'parameter.l0.bias': array([3.0043031464274805e-07, 2.2519387960968575e-07, 6.283344616464334e-07, 6.011296257264482e-07], dtype='float64'),
    'parameter.l1.weight': array([[3.129104398279698e-07, 1.6449841745071086e-06, 2.0257005575029742e-06, 9.374777176914314e-07], [1.011707000226613e-06, 6.029198517843099e-07, 1.3395708168642485e-06, 7.182450088964372e-07], [1.7168391783410886e-06, 9.429400626924211e-07, 1.1574591215309291e-06, 1.4526183803243766e-06]], dtype='float64'),
    'parameter.l1.bias': array([2.248046873807219e-07, 3.8990076468677546e-07, 1.7447235992220197e-07], dtype='float64'),
    'state.l0.weight.step': array(4.76837158203125e-07, dtype='float64'),
    'state.l0.weight.exp_avg': array([2.2575405369440873e-07, 4.232521613081806e-07, 1.1158963098839416e-06, 2.659161772466184e-07], dtype='float64'),
    'state.l0.weight.exp_avg_sq': array([7.99178823224579e-09, 1.0843059783034983e-08, 5.9060963605916456e-08, 8.379314932071567e-09], dtype='float64'),
    'state.l0.bias.step': array(4.76837158203125e-07, dtype='float64'),
    'state.l0.bias.exp_avg': array([2.4866713895273245e-07, 3.4951965689487437e-07, 7.023724228158993e-07, 2.682043630920349e-07], dtype='float64'),
    'state.l0.bias.exp_avg_sq': array([3.3745033322689974e-09, 5.012806983645709e-09, 2.1407231311941448e-08, 3.3508560265690083e-09], dtype='float64'),
    'state.l1.weight.step': array(4.76837158203125e-07, dtype='float64'),
    'state.l1.weight.exp_avg': array([[2.3379603663758611e-07, 3.685232784658645e-07, 7.056450179562159e-07, 3.7627714879075053e-07], [2.700784454472928e-07, 5.259337769368524e-07, 8.703417397299633e-07, 3.489069369325491e-07], [1.805605471281916e-07, 2.4245952339588036e-07, 3.0584795973728645e-07, 2.37401427968434e-07]], dtype='float64'),
    'state.l1.weight.exp_avg_sq': array([[4.7519826530021896e-09, 8.317849231551677e-09, 1.7398121506118475e-08, 6.918313504208606e-09], [5.265041378368488e-09, 1.2525715695066623e-08, 2.6805564886644273e-08, 6.922452235995788e-09], [3.6700112765908063e-09, 3.904318595987077e-09, 4.395087400584855e-09, 3.7967655138608196e-09]], dtype='float64'),
    'state.l1.bias.step': array(4.76837158203125e-07, dtype='float64'),
    'state.l1.bias.exp_avg': array([2.5045451889774343e-07, 3.992234473864877e-07, 1.9116806934640928e-07], dtype='float64'),
    'state.l1.bias.exp_avg_sq': array([5.049245794153241e-09, 7.862842670658387e-09, 1.798565411171792e-09], dtype='float64'),
}
TYPES = {'loss.0': ('float32', ()), 'gradient.l0.weight': ('float32', (4,)), 'gradient.l0.bias': ('float32', (4,)), 'gradient.l1.weight': ('float32', (3, 4)), 'gradient.l1.bias': ('float32', (3,)), 'prediction': ('float32', (4, 3)), 'parameter.l0.weight': ('float32', (4,)), 'parameter.l0.bias': ('float32', (4,)), 'parameter.l1.weight': ('float32', (3, 4)), 'parameter.l1.bias': ('float32', (3,)), 'state.l0.weight.step': ('float32', ()), 'state.l0.weight.exp_avg': ('float32', (4,)), 'state.l0.weight.exp_avg_sq': ('float32', (4,)), 'state.l0.bias.step': ('float32', ()), 'state.l0.bias.exp_avg': ('float32', (4,)), 'state.l0.bias.exp_avg_sq': ('float32', (4,)), 'state.l1.weight.step': ('float32', ()), 'state.l1.weight.exp_avg': ('float32', (3, 4)), 'state.l1.weight.exp_avg_sq': ('float32', (3, 4)), 'state.l1.bias.step': ('float32', ()), 'state.l1.bias.exp_avg': ('float32', (3,)), 'state.l1.bias.exp_avg_sq': ('float32', (3,))}


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
