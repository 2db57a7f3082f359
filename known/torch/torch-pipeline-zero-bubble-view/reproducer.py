"""Rejection  the run   torch-pipeline-interleaved-zb on 2 ranks vs one device

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
FROZEN = []
AUTOCAST = False  # do stages compute in bfloat16 where PyTorch's list has it so?
FACTOR = lambda world: 1  # of the loss on each rank, so that what the ranks make of their gradients is the gradient


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.l0 = torch.nn.Embedding(7, 2)
        self.l1 = torch.nn.LayerNorm(2)
        self.l2 = torch.nn.Linear(2, 2, bias=False)
        self.l3 = torch.nn.Flatten()
        self.l4 = torch.nn.Linear(8, 2, bias=True)

    def forward(self, x):
        l0 = self.l0(x)
        l1 = self.l1(l0)
        l2 = self.l2(l1)
        l3 = self.l3(l2)
        l4 = self.l4(l3)
        return l4


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
SYMPTOM = 'rejected'
SECONDS = 60.0  # for all ranks
GRACE = 3.0  # for the others once one has ended in another way than well: they wait for it, as a rule
ZERO_SIGNS = False
ARRAYS = {
    'x': array([[4, 3, 5, 2], [2, 5, 5, 1], [4, 0, 3, 3], [5, 3, 0, 3]], dtype='int64'),
    'y': array([[1.5412591695785522, -1.0122530460357666], [-1.0516356229782104, 0.9802377820014954], [0.7883749604225159, -1.1841793060302734], [-1.4311872720718384, -1.390978217124939]], dtype='float32'),
    'coefficient': array([0.25, 0.25, 0.25, 0.25], dtype='float32'),
    'initial.l0.weight': array([[-0.09672405570745468, 0.6199879050254822], [-0.34939560294151306, -0.7764349579811096], [0.462877094745636, 0.6234639883041382], [-1.2506206035614014, -0.5177735686302185], [-1.0308867692947388, 0.8714399337768555], [0.20014172792434692, 1.0459293127059937], [0.35878387093544006, -0.615143358707428]], dtype='float32'),
    'initial.l1.weight': array([0.9705440998077393, 0.9731083512306213], dtype='float32'),
    'initial.l1.bias': array([-0.14109212160110474, -0.06331221759319305], dtype='float32'),
    'initial.l2.weight': array([[0.7235510945320129, -0.39130374789237976], [0.9787240028381348, 0.29884248971939087]], dtype='float32'),
    'initial.l4.weight': array([[-0.3847277760505676, -0.4712153673171997, 0.24218542873859406, -0.3317824602127075, 0.01931074447929859, -0.13814960420131683, 0.2185431718826294, 0.3706607222557068], [-0.3808501660823822, -0.12599486112594604, 0.12300923466682434, -0.7028453946113586, 0.1533665806055069, 0.061019763350486755, 0.177886962890625, -0.2895478904247284]], dtype='float32'),
    'initial.l4.bias': array([-0.02533252350986004, -0.060104940086603165], dtype='float32'),
}
EXPECTED = {
    'loss.0': array(2.6735919611077033, dtype='float64'),
    'gradient.l0.weight': array([[-9.128148037634842e-06, 9.128148037759742e-06], [0.0001445798984365254, -0.00014457989843608132], [-0.005190683262789264, 0.005190683262785711], [-4.690953042757462e-06, 4.690953043076651e-06], [-8.498580919592824e-07, 8.498580919454046e-07], [-3.162445078135068e-05, 3.162445078147558e-05], [0.0, 0.0]], dtype='float64'),
    'gradient.l1.weight': array([2.272590190592136, -0.6484860401763718], dtype='float64'),
    'gradient.l1.bias': array([-1.6429568845860434, -0.5987447401565291], dtype='float64'),
    'gradient.l2.weight': array([[0.04963478530716453, -0.08223893462897616], [2.453749946977489, -2.092472619976816]], dtype='float64'),
    'gradient.l4.weight': array([[-0.7054184023040987, -0.4961912377173808, -0.7059021382419667, -0.4964856229742362, -0.7058980758623449, -0.49648315074801763, 0.5623290749181887, 0.2753168051926065], [-1.5899505997665986, -1.11826071254016, -1.589860812267466, -1.1182060709187185, -1.589865064053262, -1.1182086584110995, -1.7299531768467422, -1.2034615243628106]], dtype='float64'),
    'gradient.l4.bias': array([0.608377972344657, 1.370226164101897], dtype='float64'),
    'prediction': array([[-0.42320889202600886, -1.073501183438532], [-0.2454048067940997, -0.33316361957657287], [-0.42327412416754817, -1.073775718252172], [-0.42327926386525405, -1.0737795321413495]], dtype='float64'),
    'parameter.l0.weight': array([[-0.09672291468894997, 0.6199867640069775], [-0.3494136754288176, -0.7764168854938052], [0.46352593015348464, 0.62281515289629], [-1.250620017192271, -0.5177741549993489], [-1.0308866630624773, 0.8714398275445939], [0.2001456809806946, 1.045925359649646], [0.35878387093544006, -0.615143358707428]], dtype='float64'),
    'parameter.l1.weight': array([0.6864703259837223, 1.054169106252668], dtype='float64'),
    'parameter.l1.bias': array([0.06427748897215069, 0.011530874926373086], dtype='float64'),
    'parameter.l2.weight': array([[0.7173467463686174, -0.38102388106375773], [0.6720052594659487, 0.5604015672164928]], dtype='float64'),
    'parameter.l4.weight': array([[-0.2965504757625553, -0.4091914626025271, 0.3304231960188399, -0.269721757340928, 0.1075480039620917, -0.07608921035781463, 0.14825203751785582, 0.336246121606631], [-0.18210634111155738, 0.013787727941573957, 0.3217418362002576, -0.5630696357465188, 0.35209971361216463, 0.2007958456518742, 0.3941311099964678, -0.13911519987937707]], dtype='float64'),
    'parameter.l4.bias': array([-0.10137977005294216, -0.23138321059934028], dtype='float64'),
}
ALLOWED = {
    'loss.0': array(7.739190876133294e-06, dtype='float64'),
    'gradient.l0.weight': array([[1.9632539227553957e-05, 1.9811353158882526e-05], [2.076713765285903e-05, 2.076713764220089e-05], [0.00012886771992879994, 7.16472608591598e-05], [2.1161437539328742e-05, 2.545297195549633e-05], [1.851053375455244e-05, 1.8599940721382458e-05], [2.2086095926685742e-05, 2.0297956586421625e-05], [1.8409320688306252e-05, 1.8409320688306252e-05]], dtype='float64'),
    'gradient.l1.weight': array([1.2019395690488336e-05, 4.04657648083951e-06], dtype='float64'),
    'gradient.l1.bias': array([1.0365971690799458e-05, 2.762500549827108e-06], dtype='float64'),
    'gradient.l2.weight': array([[7.584878181492255e-06, 3.161765537794607e-06], [9.179713261401329e-06, 8.917826386520374e-06]], dtype='float64'),
    'gradient.l4.weight': array([[7.725563142756705e-06, 1.096366395143077e-05, 4.262322925266484e-06, 4.8595063501642475e-06, 5.43087200678839e-06, 5.459103217195535e-06, 9.878699898143001e-06, 7.372680683774995e-06], [7.202100428288852e-06, 7.2095372812565775e-06, 8.763488108507552e-06, 8.90965658393134e-06, 6.217307788287852e-06, 6.154402396594228e-06, 7.953020786396265e-06, 7.765642488958567e-06]], dtype='float64'),
    'gradient.l4.bias': array([3.71531626428857e-06, 5.267800641355478e-06], dtype='float64'),
    'prediction': array([[3.1188148737624327e-06, 3.761232396991087e-06], [4.453150858225935e-06, 3.021369260369596e-06], [3.1565832561744793e-06, 4.473067995240053e-06], [3.148584617848751e-06, 5.3405599255886036e-06]], dtype='float64'),
    'parameter.l0.weight': array([[2.500187939054359e-06, 3.4632917746261026e-06], [2.9442458742969726e-06, 3.6670908233624813e-06], [1.632918198955582e-05, 9.252579626155866e-06], [4.276792981268569e-06, 3.2148901636870605e-06], [4.179062194046946e-06, 3.7671969330394975e-06], [2.856197003825193e-06, 4.100648011124116e-06], [2.7405191582730026e-06, 3.462703322298921e-06]], dtype='float64'),
    'parameter.l1.weight': array([2.295821484007926e-06, 2.1106031895322406e-06], dtype='float64'),
    'parameter.l1.bias': array([1.1332609635155574e-06, 3.0596237592972905e-07], dtype='float64'),
    'parameter.l2.weight': array([[1.5228234015502128e-06, 1.0132583510196007e-06], [1.4740988967416873e-06, 1.2680526055655043e-06]], dtype='float64'),
    'parameter.l4.weight': array([[1.1236895217662708e-06, 1.4287162370596753e-06, 1.0037806000552058e-06, 7.925520105532751e-07, 8.383589397994731e-07, 8.083307880896482e-07, 1.3422504504206407e-06, 9.484616069984985e-07], [1.1381997770363704e-06, 8.968302785789201e-07, 1.6409385828181184e-06, 2.1010433676085163e-06, 1.2039014237625005e-06, 9.581711300218857e-07, 1.2381666034423375e-06, 1.0642854259955067e-06]], dtype='float64'),
    'parameter.l4.bias': array([4.3616775450876354e-07, 4.955933696612788e-07], dtype='float64'),
}
TYPES = {'loss.0': ('float32', ()), 'gradient.l0.weight': ('float32', (7, 2)), 'gradient.l1.weight': ('float32', (2,)), 'gradient.l1.bias': ('float32', (2,)), 'gradient.l2.weight': ('float32', (2, 2)), 'gradient.l4.weight': ('float32', (2, 8)), 'gradient.l4.bias': ('float32', (2,)), 'prediction': ('float32', (4, 2)), 'parameter.l0.weight': ('float32', (7, 2)), 'parameter.l1.weight': ('float32', (2,)), 'parameter.l1.bias': ('float32', (2,)), 'parameter.l2.weight': ('float32', (2, 2)), 'parameter.l4.weight': ('float32', (2, 8)), 'parameter.l4.bias': ('float32', (2,))}


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
