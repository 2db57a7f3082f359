"""PyTorch: TorchRec's DistributedModelParallel. Tables are spread over the ranks by row, by column, whole or not at
all; what is dense is DistributedDataParallel's. It runs in the environment `torchrec` of environments.toml."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from generators.training.runs import Training
from harness.strategies.strategy import WORLDS, Reason, Strategy, even_parts, first_reason
from harness.strategies.torch.ddp import APART, START, SUMMED, distribute
from harness.strategies.torch.program import MODULES

_IMPORTS = (
    "import torchrec",
    "from torchrec.distributed import sharding_plan",
    "from torchrec.distributed.model_parallel import DefaultDataParallelWrapper, DistributedModelParallel",
    "from torchrec.distributed.types import ShardingEnv, ShardingPlan",
)
_SPREAD = '''
def spread(world, columns):
    """Which ranks have what of a table of so many columns."""
    return sharding_plan.{spread}
'''
COLLECTION = '''
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
'''
_TABLES = '''
def tables_of(model, rank, world):
    """The model over the ranks, its tables as they are spread, with the values that they had."""
    given, plans = {{}}, {{}}
    for name, bag in list(model.named_children()):
        if isinstance(bag, torch.nn.EmbeddingBag):
            given[name] = bag.weight.detach()
            table = Table(bag).requires_grad_(name + ".weight" not in FROZEN){fused}
            plan = {{"{parameter}": spread(world, bag.embedding_dim)}}
            plans[f"{{name}}.inner"] = sharding_plan.construct_module_sharding_plan(
                table.inner, plan, sharder(), world, world, "cpu"
            )
            setattr(model, name, table)
'''
OVER_RANKS = """    group = ShardingEnv.from_process_group(dist.group.WORLD)
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
"""
PLACES = '''

def named(name):
    """The layer that a parameter is of."""
    return name.removeprefix("module."){within}.split(".")[0]


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
    found = {{}}
    for name, key, at, value in (entry for part in parts for entry in part):
        bag = named(name)
        if at and value.ndim:
            full = found.setdefault((f"{{bag}}.weight", key), torch.zeros_like(subject.given[bag]))
            full[at] = value.view_as(full[at])
        elif bag not in subject.given:
            found.setdefault((name.removeprefix("module."), key), value)
        elif at:
            found.setdefault((f"{{bag}}.weight", key), value)
    return found
'''
_SINGLE = '''
class Table(torch.nn.Module):
    """A table of torch's own, which TorchRec spreads where rows are added up: for a mean each has a weight."""

    def __init__(self, bag):
        super().__init__()
        self.mean = bag.mode == "mean"
        self.inner = torch.nn.EmbeddingBag(*bag.weight.shape, mode="sum", include_last_offset=True)

    def forward(self, rows, begins=None):
        """Rows of a matrix, or between where bags begin."""
        if begins is None:
            begins = torch.arange(len(rows)) * rows.shape[1]
        ends = torch.cat([begins, torch.tensor([rows.numel()])])
        lengths = torch.diff(ends)
        weights = (1 / lengths.clamp(min=1)).repeat_interleave(lengths) if self.mean else None
        return self.inner(rows.flatten(), ends, weights).wait()
'''
_SHARDER = '''
def sharder():
    """What spreads a collection of tables; with nothing told, results and gradients travel as they are."""
    return {sharder}({options})
'''
_GRADIENTS = """
def gradients(subject):
    own = {(n, ""): p.grad for n, p in subject.named_parameters() if p.requires_grad and p.grad is not None}
    return {name: value for (name, _), value in together(subject, own).items()}
"""
_CLIP = '''
def clip(subject, limit):
    """By the norm of all shards together; no rank has it."""
    norm = torch.sqrt(sum((value**2).sum() for value in gradients(subject).values()))
    for parameter in subject.parameters():
        if parameter.grad is not None:
            parameter.grad.mul_(torch.clamp(limit / (norm + 1e-6), max=1.0))
'''
_PARAMETERS = """
def parameters(subject):
    own = {(name, ""): parameter.detach() for name, parameter in subject.named_parameters()}
    return {name: value for (name, _), value in together(subject, own).items()}
"""
_STATES = '''
def states(subject, optimizer):
    """What the optimiser keeps of each parameter."""
    own = {
        (name, key): value
        for name, parameter in subject.named_parameters()
        for key, value in optimizer.state.get(parameter, {}).items()
        if isinstance(value, torch.Tensor)
    }
    return {f"{name}.{key}": value for (name, key), value in together(subject, own).items()}
'''
_BUFFERS = """
def buffers(subject):
    return {}
"""


def _tables(training: Training, world: int) -> str | None:
    """What TorchRec is for."""
    return None if training.network.bags else "TorchRec spreads tables, and there is none"


ONE = "table_wise(rank=world // 2)"
_RATE = 'fused_params={"optimizer": EmbOptimType.EXACT_SGD, "learning_rate": OPTIONS["lr"]}'
_OPTIMIZERS = "from fbgemm_gpu.split_embedding_configs import EmbOptimType"
_PARTS = "np.array_split(range({columns}), world)"
COLUMN_WISE = f"column_wise(size_per_rank=[len(p) for p in {_PARTS.format(columns='columns')} if len(p)])"
FOURS = f"column_wise(size_per_rank=[4 * len(p) for p in {_PARTS.format(columns='columns // 4')} if len(p)])"
_BACKWARD = ("from torch.distributed.optim import _apply_optimizer_in_backward",)
_FUSED = """
            _apply_optimizer_in_backward(OPTIMIZER, table.inner.parameters(), {"lr": OPTIONS["lr"]})"""
_DENSE = 'optimizer_of(p for p in subject.parameters() if not hasattr(p, "_in_backward_optimizers"))'
_SEEN = """
def gradients(subject):
    tables = [f"{name}.weight" for name, part in subject.named_children() if isinstance(part, torch.nn.EmbeddingBag)]
    seen = {name: p for name, p in subject.named_parameters() if p.requires_grad and name not in tables}
    return {name: p.grad.clone() for name, p in seen.items() if p.grad is not None}
"""


def _unseen(training: Training, world: int, noise: bool) -> Mapping[str, str]:
    """Nobody sees gradients of tables that are trained on the way back."""
    return {"gradients": _SEEN}


def _steps(training: Training, world: int) -> str | None:
    """What is trained on the way back cannot wait."""
    settings = training.settings
    if any(bag.frozen for bag in training.network.bags):
        return "tables that are trained on the way back: none that is frozen"
    if settings.optimizer != "sgd" or any(value for name, value in settings.options if name != "lr"):
        return "tables that are trained on the way back: plain SGD only"
    if settings.clip or settings.accumulate > 1 or settings.decay != 1:
        return "tables that are trained on the way back: no clipping, no accumulation, no schedule"
    return None


def _multiple_of_four(training: Training, world: int) -> str | None:
    """What columns it takes."""
    if any(bag.numbers["features"] % 4 for bag in training.network.bags):
        return "TorchRec's fused kernel takes columns by fours (local_cols not divisible by 4)"
    return None


_IN_BACKWARD: tuple[Reason, ...] = (_steps, _multiple_of_four)
_REASONS: tuple[Reason, ...] = (
    _tables, APART, even_parts("TorchRec's ranks have equally many samples"),
)  # fmt: skip


def torchrec(
    name: str, spread: str, *reasons: Reason, worlds: tuple[int, ...] = WORLDS, options: str = "",
    imports: tuple[str, ...] = (), pieces: Mapping[str, str] | None = None, single: bool = False, fused: bool = False,
    reference: Callable[[Training, int, bool], Mapping[str, str]] | None = None,
) -> Strategy:  # fmt: skip
    """spread: of torchrec.distributed.sharding_plan; options: of what spreads tables; single: these are
    modules of torch's own, not collections; fused: they are trained on the way back."""
    sharder = "EmbeddingBagSharder" if single else "EmbeddingBagCollectionSharder"
    tables = _TABLES.format(parameter="weight" if single else "table", fused=_FUSED * fused)
    tables += OVER_RANKS + PLACES.format(within="")
    given = {
        "start": START, "sharder": _SHARDER.format(sharder=sharder, options=options),
        "spread": _SPREAD.format(spread=spread), "table": _SINGLE if single else COLLECTION, "tables": tables,
        "distribute": distribute("    subject = tables_of(model, rank, world)", _DENSE), "summed": SUMMED,
        "gradients": _GRADIENTS, "clip": _CLIP, "parameters": _PARAMETERS, "buffers": _BUFFERS, "states": _STATES,
        **(pieces or {}),
    }  # fmt: skip
    return Strategy(
        name, "torch", (*MODULES, "torchrec.distributed", "torchrec.quant"), worlds, given,
        imports=(*_IMPORTS, f"from torchrec.distributed.embeddingbag import {sharder}", *_BACKWARD * fused, *imports),
        factor="world", environment="torchrec", double=False, reference=_unseen if fused else reference,
        unsupported=first_reason(*reasons, *_IN_BACKWARD * fused, *_REASONS),
    )  # fmt: skip


# ---- quantised communications: results of tables, and their gradients, travel in float16 -------------------

CODECS = (
    "qcomm_codecs_registry=get_qcomm_codecs_registry(QCommsConfig(CommType.FP16, CommType.FP16), "
    "device=torch.device('cpu'))"
)
QCOMMS = "from torchrec.distributed.fbgemm_qcomm_codec import CommType, QCommsConfig, get_qcomm_codecs_registry"
_SENT = '''
def distribute(model, rank, world):
    """On one device, but for what results of tables and their gradients lose on their way."""
    for part in model.children():
        if isinstance(part, torch.nn.EmbeddingBag):
            part.register_forward_pre_hook(lambda part, given: rows_of(part))
            part.register_forward_hook(lambda part, given, result: Sent.apply(result))
    return model, optimizer_of(model.parameters())


def rows_of(part):
    """Ranks with some of a bag's rows send what these add up to: each row is off, too."""
    part.weight.data.mul_(1 + off(part.weight, HALF))


class Sent(torch.autograd.Function):
    """A result, and on the way back its gradient, off by a random part of float16's unit roundoff and of its smallest
    number; out of range (gradients are multiplied by the number of ranks) nothing is known."""

    @staticmethod
    def forward(ctx, x):
        return sent(x)

    @staticmethod
    def backward(ctx, g):
        return sent(g)


HALF = 2.0**-11


def sent(x):
    near = x * (1 + off(x, HALF)) + off(x, 2.0**-24)
    return torch.where(x.abs() * {world} >= 65504, torch.full_like(x, UNIT and torch.nan), near)


def off(x, most):
    return bool(UNIT) * most * (2 * torch.rand_like(x) - 1)
'''


def lost(training: Training, world: int, noise: bool) -> Mapping[str, str]:
    return {"distribute": _SENT.format(world=world)} if noise else {}


STRATEGIES = (
    torchrec("torchrec-rows", "row_wise()"),
    torchrec("torchrec-columns", COLUMN_WISE),
    torchrec("torchrec-tables", ONE),
    torchrec("torchrec-table-rows", "table_row_wise(host_index=0)"),
    torchrec("torchrec-data", "data_parallel()"),
    torchrec("torchrec-rows-fused", "row_wise()", fused=True),
    torchrec("torchrec-columns-fused", FOURS, fused=True),
    torchrec("torchrec-tables-fused", ONE, fused=True),
    torchrec("torchrec-table-rows-fused", "table_row_wise(host_index=0)", fused=True),
    torchrec("torchrec-bag-rows", "row_wise()", single=True),
    torchrec("torchrec-bag-columns", COLUMN_WISE, single=True),
    torchrec("torchrec-bag-data", "data_parallel()", single=True),
    torchrec("torchrec-bag-rows-fused", "row_wise()", single=True, fused=True, options=_RATE, imports=(_OPTIMIZERS,)),
    torchrec("torchrec-bag-rows-in-backward", "row_wise()", single=True, fused=True),
    torchrec("torchrec-rows-float16", "row_wise()", options=CODECS, imports=(QCOMMS,), reference=lost),
    torchrec("torchrec-columns-float16", COLUMN_WISE, options=CODECS, imports=(QCOMMS,), reference=lost),
    torchrec("torchrec-tables-float16", ONE, options=CODECS, imports=(QCOMMS,), reference=lost),
)  # fmt: skip
