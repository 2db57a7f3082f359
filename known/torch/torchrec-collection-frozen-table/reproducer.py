"""MissingOutput  the run   torchrec-collection-rows on 1 ranks vs one device

ran with numpy 2.4.6, torch 2.13.0+cpu, torchrec 1.8.0, fbgemm-gpu-cpu 1.8.0 (environment torchrec)
exit status: 1 reproduced, 0 not reproduced, 77 not available here
"""

import importlib.util
import sys

for module in ['torch', 'torch.distributed', 'torch._dynamo', 'torch.nn', 'torch.nn.parallel', 'torch.distributed.optim', 'torchrec', 'torchrec.distributed', 'torchrec.quant']:
    if importlib.util.find_spec(module) is None:
        print(f"not available: {module}")
        sys.exit(77)

# ---- the program that ran ----

import os

import numpy as np
import torch
import torch.distributed as dist
import torchrec
from torchrec.distributed import sharding_plan
from torchrec.distributed.model_parallel import DefaultDataParallelWrapper, DistributedModelParallel
from torchrec.distributed.types import ShardingEnv, ShardingPlan
from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder

DTYPE = torch.float32
BATCHES = [(0, 5), (5, 10), (0, 5), (5, 10), (0, 5), (5, 10), (0, 5), (5, 10), (0, 5), (5, 10), (0, 5), (5, 10), (0, 5), (5, 10), (0, 5), (5, 10), (0, 5), (5, 10), (0, 5), (5, 10)]  # samples of each step: the first, and the one after the last
FROZEN = ['l4.weight']
FACTOR = lambda world: world  # of the loss on each rank, so that what the ranks make of their gradients is the gradient


def bagged(columns, count):
    """The integers of bags of different lengths, which the last column says, and where each bag begins."""
    rows, lengths = columns[:, :count].round().long(), columns[:, count].round().long()
    return rows[torch.ones_like(rows).cumsum(1) <= lengths[:, None]], lengths.cumsum(0) - lengths


class Interaction(torch.nn.Module):
    """The first of some vectors, and the products of all pairs of them."""

    def forward(self, *vectors):
        together = torch.stack(vectors, 1)
        products = together @ together.transpose(1, 2)
        pairs = [(i, j) for i in range(len(vectors)) for j in range(i)]
        return torch.cat([vectors[0], *(products[:, i, j, None] for i, j in pairs)], 1)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.l1 = torch.nn.Linear(3, 4, bias=True)
        self.l2 = torch.nn.GELU()
        self.l3 = torch.nn.EmbeddingBag(7, 4, mode="mean")
        self.l4 = torch.nn.EmbeddingBag(7, 4, mode="mean")
        self.l5 = Interaction()
        self.l6 = torch.nn.Linear(7, 5, bias=True)

    def forward(self, x):
        l0 = x[:, 0:3]
        l1 = self.l1(l0)
        l2 = self.l2(l1)
        l3 = self.l3(x[:, 3:5].round().long())
        l4 = self.l4(*bagged(x[:, 5:7], 1))
        l5 = self.l5(l2, l3, l4)
        l6 = self.l6(l5)
        return l6


def criterion(outputs, y, coefficient):
    """The sum of the samples' losses, each times its coefficient."""
    return (torch.nn.functional.smooth_l1_loss(outputs, y, reduction="none").mean(1) * coefficient).sum()


OPTIMIZER, OPTIONS = torch.optim.SGD, dict(lr=0.5, momentum=0.0, weight_decay=0.0625, nesterov=False)


def optimizer_of(parameters):
    return OPTIMIZER(parameters, **OPTIONS)


TABLES = ['l3', 'l4']


def bags_of(x):
    """Of each table its bags: rows of a matrix, or rows and where bags begin."""
    return {
        "l3": (x[:, 3:5].round().long(),),
        "l4": (*bagged(x[:, 5:7], 1),),
    }


def distribute(model, rank, world):
    start(rank, world)
    subject = tables_of(model, rank, world)
    return subject, optimizer_of(p for p in subject.parameters() if not hasattr(p, "_in_backward_optimizers"))

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
    return subject

def whole(value):
    """All of a tensor that may be spread over the ranks."""
    return value

def gradients(subject):
    own = {(n, ""): p.grad for n, p in subject.named_parameters() if p.requires_grad and p.grad is not None}
    return {name: value for (name, _), value in together(subject, own).items()}

def clip(subject, limit):
    """By the norm of all shards together; no rank has it."""
    norm = torch.sqrt(sum((value**2).sum() for value in gradients(subject).values()))
    for parameter in subject.parameters():
        if parameter.grad is not None:
            parameter.grad.mul_(torch.clamp(limit / (norm + 1e-6), max=1.0))

def parameters(subject):
    own = {(name, ""): parameter.detach() for name, parameter in subject.named_parameters()}
    return {name: value for (name, _), value in together(subject, own).items()}

def buffers(subject):
    return {}

def states(subject, optimizer):
    """What the optimiser keeps of each parameter."""
    own = {
        (name, key): value
        for name, parameter in subject.named_parameters()
        for key, value in optimizer.state.get(parameter, {}).items()
        if isinstance(value, torch.Tensor)
    }
    return {f"{name}.{key}": value for (name, key), value in together(subject, own).items()}

def start(rank, world):
    """One group of processes for the whole life of this one."""
    torch.set_num_threads(1)
    if not dist.is_initialized():
        meeting = os.environ.get("RENDEZVOUS", "env://")
        dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=world)

def sharder():
    """What spreads a collection of tables; with nothing told, results and gradients travel as they are."""
    return EmbeddingBagCollectionSharder()

def spread(world, columns, number):
    """Which ranks have what of the table of this number, of so many columns."""
    ways = [sharding_plan.row_wise()]
    return ways[number % len(ways)]

class Collection(torch.nn.Module):
    """Tables in the place of torch.nn.EmbeddingBag, which are looked up at once; `found` has the results by name."""

    def __init__(self, bags):
        super().__init__()
        pooling = {"mean": torchrec.PoolingType.MEAN, "sum": torchrec.PoolingType.SUM}
        configs = [
            torchrec.EmbeddingBagConfig(
                name=name, num_embeddings=bag.num_embeddings, embedding_dim=bag.embedding_dim, feature_names=[name],
                pooling=pooling[bag.mode],
            )
            for name, bag in bags.items()
        ]
        self.inner = torchrec.EmbeddingBagCollection(tables=configs, device=torch.device("cpu"))
        for name, bag in bags.items():
            self.inner.embedding_bags[name].requires_grad_(name + ".weight" not in FROZEN)
        self.found = {}

    def look_up(self, bags):
        """bags: of each table, rows of a matrix, or between where bags begin."""
        rows, lengths = [], []
        for own, *begins in bags.values():
            ends = [torch.diff(begin, append=torch.tensor([len(own)])) for begin in begins]
            lengths += ends or [torch.full((len(own),), own.shape[1])]
            rows.append(own.flatten())
        together = torchrec.KeyedJaggedTensor(list(bags), torch.cat(rows), lengths=torch.cat(lengths))
        self.found.update(self.inner(together).to_dict())


class Found(torch.nn.Module):
    """What the collection has found, in the place of a table."""

    def __init__(self, found, name):
        super().__init__()
        self.found, self.name = found, name

    def forward(self, *bags):
        return self.found.pop(self.name)

def tables_of(model, rank, world):
    """The model over the ranks, its tables as they are spread, with the values that they had."""
    named_bags = dict(model.named_children())
    bags = {name: named_bags[name] for name in TABLES}
    given = {name: bag.weight.detach() for name, bag in bags.items()}
    collection = Collection(bags)
    for name in bags:
        setattr(model, name, Found(collection.found, name))
    model.collection = collection
    model.register_forward_pre_hook(lambda model, given: collection.look_up(bags_of(*given)))
    plan = {name: spread(world, bag.embedding_dim, k) for k, (name, bag) in enumerate(bags.items())}
    plans = sharding_plan.construct_module_sharding_plan(collection.inner, plan, sharder(), world, world, "cpu")
    group = ShardingEnv.from_process_group(dist.group.WORLD)
    subject = DistributedModelParallel(
        model, group, torch.device("cpu"), ShardingPlan({"collection.inner": plans}), [sharder()],
        data_parallel_wrapper=DefaultDataParallelWrapper(find_unused_parameters=True),
    )
    subject.given = given
    with torch.no_grad():
        for name, parameter in subject.named_parameters():
            bag, own = named(name), place(subject, name)
            if own:
                parameter.copy_(given[bag][own].reshape(parameter.shape))
    return subject


def named(name):
    """The layer that a parameter is of."""
    return name.removeprefix("module.").removeprefix("collection.inner.embedding_bags.").split(".")[0]


def place(subject, name):
    """Which rows and columns of a table this rank has; None: none of them, or it is no table."""
    if named(name) not in subject.given:
        return None
    value = subject.state_dict()[name]
    if not hasattr(value, "local_shards"):
        return slice(None), slice(None)
    shards = [shard.metadata for shard in value.local_shards()]
    assert len(shards) <= 1
    return next((tuple(slice(o, o + s) for o, s in zip(m.shard_offsets, m.shard_sizes)) for m in shards), None)


def together(subject, own):
    """All of what ranks have, by the parameter's name and a key: own tensors, shards put together."""
    parts = [None] * dist.get_world_size()
    mine = [(name, key, place(subject, name), value) for (name, key), value in own.items()]
    dist.all_gather_object(parts, mine)
    found = {}
    for name, key, at, value in (entry for part in parts for entry in part):
        bag = named(name)
        if at and value.ndim:
            full = found.setdefault((f"{bag}.weight", key), torch.zeros_like(subject.given[bag]))
            full[at] = value.view_as(full[at])
        elif bag not in subject.given:
            found.setdefault((name.removeprefix("module."), key), value)
        elif at:
            found.setdefault((f"{bag}.weight", key), value)
    return found


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

WORLD = 1
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
TYPES = {'loss.0': ('float32', ()), 'gradient.l1.weight': ('float32', (4, 3)), 'gradient.l1.bias': ('float32', (4,)), 'gradient.l3.weight': ('float32', (7, 4)), 'gradient.l6.weight': ('float32', (5, 7)), 'gradient.l6.bias': ('float32', (5,)), 'loss.1': ('float32', ()), 'loss.2': ('float32', ()), 'loss.3': ('float32', ()), 'loss.4': ('float32', ()), 'loss.5': ('float32', ()), 'loss.6': ('float32', ()), 'loss.7': ('float32', ()), 'loss.8': ('float32', ()), 'loss.9': ('float32', ()), 'loss.10': ('float32', ()), 'loss.11': ('float32', ()), 'loss.12': ('float32', ()), 'loss.13': ('float32', ()), 'loss.14': ('float32', ()), 'loss.15': ('float32', ()), 'loss.16': ('float32', ()), 'loss.17': ('float32', ()), 'loss.18': ('float32', ()), 'loss.19': ('float32', ()), 'prediction': ('float32', (10, 5)), 'parameter.l1.weight': ('float32', (4, 3)), 'parameter.l1.bias': ('float32', (4,)), 'parameter.l3.weight': ('float32', (7, 4)), 'parameter.l4.weight': ('float32', (7, 4)), 'parameter.l6.weight': ('float32', (5, 7)), 'parameter.l6.bias': ('float32', (5,))}


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
