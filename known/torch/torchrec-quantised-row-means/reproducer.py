"""ValueMismatch  prediction   torchrec-devices-rows-int8 on 2 ranks vs one device

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
import torchrec.quant
from torchrec.distributed.global_settings import set_propogate_device
from torchrec.distributed.quant_embeddingbag import QuantEmbeddingBagCollectionSharder
from torchrec.distributed.shard import _shard_modules
from torchrec.quant.embedding_modules import MODULE_ATTR_QUANT_STATE_DICT_SPLIT_SCALE_BIAS

DTYPE = torch.float32
BATCHES = [(0, 2)]  # samples of each step: the first, and the one after the last
FROZEN = []
FACTOR = lambda world: world  # of the loss on each rank, so that what the ranks make of their gradients is the gradient


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.l2 = torch.nn.EmbeddingBag(7, 2, mode="mean")

    def forward(self, x):
        l2 = self.l2(x[:, 4:6].round().long())
        return l2


def criterion(outputs, y, coefficient):
    """The sum of the samples' losses, each times its coefficient."""
    return (torch.nn.functional.mse_loss(outputs, y, reduction="none").mean(1) * coefficient).sum()


OPTIMIZER, OPTIONS = torch.optim.SGD, dict(lr=0.125, momentum=0.0, weight_decay=0.0, nesterov=False)


def optimizer_of(parameters):
    return OPTIMIZER(parameters, **OPTIONS)


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
    """By one process, with tables of a collection for inference, quantised."""
    current = parameters(subject)
    model = Model().to(DTYPE).eval()
    for name, parameter in model.named_parameters():
        parameter.copy_(current[name])
    for name, bag in list(model.named_children()):
        if isinstance(bag, torch.nn.EmbeddingBag):
            table = Table(bag)
            (weight,) = table.inner.parameters()
            weight.copy_(bag.weight)
            setattr(table.inner, MODULE_ATTR_QUANT_STATE_DICT_SPLIT_SCALE_BIAS, True)
            table.inner.qconfig = torch.ao.quantization.QConfig(
                activation=torch.ao.quantization.PlaceholderObserver.with_args(dtype=torch.float32),
                weight=torch.ao.quantization.PlaceholderObserver.with_args(dtype=torch.qint8),
            )
            table.inner = over_devices(torchrec.quant.EmbeddingBagCollection.from_float(table.inner))
            setattr(model, name, table)
    return model(x)

def over_devices(table):
    """A quantised collection as a process serves it that drives as many devices as there are ranks."""
    world, sharder = dist.get_world_size(), QuantEmbeddingBagCollectionSharder()
    plan = sharding_plan.construct_module_sharding_plan(
        table, {"table": sharding_plan.row_wise()}, sharder, world, world, "cpu"
    )
    set_propogate_device(True)  # else devices are GPUs
    served = _shard_modules(
        module=torch.nn.Sequential(table), device=torch.device("cpu"), plan=ShardingPlan({"0": plan}),
        env=ShardingEnv.from_local(world, 0), sharders=[sharder],
    )[0]
    given = table.state_dict()
    for name, value in served.state_dict().items():
        rows = given[name].view(len(given[name]), -1)
        for part in [shard.tensor for shard in value.local_shards()] if hasattr(value, "local_shards") else [value]:
            part.copy_(rows[: len(part)].view_as(part))
            rows = rows[len(part) :]
    return served

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

def spread(world, columns):
    """Which ranks have what of a table of so many columns."""
    return sharding_plan.table_wise(rank=world // 2)

class Table(torch.nn.Module):
    """A table in the place of torch.nn.EmbeddingBag."""

    def __init__(self, bag):
        super().__init__()
        count, size = bag.weight.shape
        mode = torchrec.PoolingType.MEAN if bag.mode == "mean" else torchrec.PoolingType.SUM
        config = torchrec.EmbeddingBagConfig(
            name="table", num_embeddings=count, embedding_dim=size, feature_names=["bag"], pooling=mode
        )
        self.inner = torchrec.EmbeddingBagCollection(tables=[config], device=torch.device("cpu"))

    def forward(self, rows, begins=None):
        """Rows of a matrix, or between where bags begin."""
        if begins is None:
            lengths = torch.full((len(rows),), rows.shape[1])
        else:
            lengths = torch.diff(begins, append=torch.tensor([len(rows)]))
        bags = torchrec.KeyedJaggedTensor(keys=["bag"], values=rows.flatten(), lengths=lengths)
        return self.inner(bags).values()

def tables_of(model, rank, world):
    """The model over the ranks, its tables as they are spread, with the values that they had."""
    given, plans = {}, {}
    for name, bag in list(model.named_children()):
        if isinstance(bag, torch.nn.EmbeddingBag):
            given[name] = bag.weight.detach()
            table = Table(bag).requires_grad_(name + ".weight" not in FROZEN)
            plan = {"table": spread(world, bag.embedding_dim)}
            plans[f"{name}.inner"] = sharding_plan.construct_module_sharding_plan(
                table.inner, plan, sharder(), world, world, "cpu"
            )
            setattr(model, name, table)
    group = ShardingEnv.from_process_group(dist.group.WORLD)
    subject = DistributedModelParallel(
        model, group, torch.device("cpu"), ShardingPlan(plans), [sharder()],
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
    return name.removeprefix("module.").split(".")[0]


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
SYMPTOM = 'value'
SECONDS = 60.0  # for all ranks
GRACE = 3.0  # for the others once one has ended in another way than well: they wait for it, as a rule
ZERO_SIGNS = False
ARRAYS = {
    'x': array([[-0.5448621511459351, -0.1717127412557602, -0.38539525866508484, 0.31987249851226807, 1.0, 1.0, 0.8139638304710388, -0.6565255522727966, -0.90715491771698, 1.2558650970458984, 0.8312253355979919, 0.8465666770935059, 0.20925894379615784, 0.5182543396949768], [-0.1112765446305275, 0.5277374386787415, -0.3804022967815399, 0.4390151798725128, 1.0, 5.0, 0.9284815192222595, -1.7062982320785522, -1.4139788150787354, 0.6673566699028015, 0.4820373058319092, -0.13172464072704315, -1.3720712661743164, 0.24977052211761475]], dtype='float32'),
    'y': array([[-0.5406509637832642, 0.178205668926239], [-0.7661128044128418, -0.35624879598617554]], dtype='float32'),
    'coefficient': array([0.5, 0.5], dtype='float32'),
    'initial.l2.weight': array([[-0.08745793253183365, 0.5771222710609436], [0.14078550040721893, 0.10008019953966141], [-0.13378098607063293, -0.8598741888999939], [0.2899305522441864, -0.09404613822698593], [-0.16621343791484833, -1.1369386911392212], [0.5885541439056396, 0.015188601799309254], [1.042396903038025, -0.7064515352249146]], dtype='float32'),
}
EXPECTED = {
    'loss.0': array(0.48010697318002715, dtype='float64'),
    'gradient.l2.weight': array([[0.0, 0.0], [0.6234138887375593, 0.06440806447062641], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.28269565664231777, 0.10347079916391522], [0.0, 0.0]], dtype='float64'),
    'prediction': array([[0.0628662109375, 0.09203344583511353], [0.3080911636352539, 0.04714396595954895]], dtype='float64'),
    'parameter.l2.weight': array([[-0.08745793253183365, 0.5771222710609436], [0.06285876431502402, 0.0920291914808331], [-0.13378098607063293, -0.8598741888999939], [0.2899305522441864, -0.09404613822698593], [-0.16621343791484833, -1.1369386911392212], [0.5532171868253499, 0.0022547519038198516], [1.042396903038025, -0.7064515352249146]], dtype='float64'),
}
ALLOWED = {
    'loss.0': array(6.283131573236751e-07, dtype='float64'),
    'gradient.l2.weight': array([[1.2665987014770508e-07, 1.2665987014770508e-07], [1.1838859981239125e-06, 4.0937548068109564e-07], [1.2665987014770508e-07, 1.2665987014770508e-07], [1.2665987014770508e-07, 1.2665987014770508e-07], [1.2665987014770508e-07, 1.2665987014770508e-07], [4.6420239430133847e-07, 4.214622300602322e-07], [1.2665987014770508e-07, 1.2665987014770508e-07]], dtype='float64'),
    'prediction': array([[3.93132265302798e-06, 3.98541931717622e-06], [2.6783446016753754e-05, 2.675665988843834e-05]], dtype='float64'),
    'parameter.l2.weight': array([[4.1655807891949337e-07, 1.2005217193689077e-06], [3.8926942458328284e-07, 4.326538433838123e-07], [5.04903417519742e-07, 1.8721497356821715e-06], [7.114649536177353e-07, 4.298060019003458e-07], [5.59487216555965e-07, 2.3094006937895983e-06], [1.3325865518831748e-06, 2.8101395513346894e-07], [1.8339825835766987e-06, 1.3835839123288451e-06]], dtype='float64'),
}
TYPES = {'loss.0': ('float32', ()), 'gradient.l2.weight': ('float32', (7, 2)), 'prediction': ('float32', (2, 2)), 'parameter.l2.weight': ('float32', (7, 2))}


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
