"""PyTorch: TorchRec's DistributedModelParallel. Tables are spread over the ranks by row, by column, whole or not at
all; what is dense is DistributedDataParallel's. It runs in the environment `torchrec` of environments.toml."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from generators.training import Training
from harness.strategies.strategy import Reason, Strategy, even_parts, first_reason
from harness.strategies.torch_data import APART, START, SUMMED, distribute
from harness.strategies.torch_program import MODULES

_IMPORTS = (
    "import torchrec",
    "from torchrec.distributed import sharding_plan",
    "from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder",
    "from torchrec.distributed.model_parallel import DefaultDataParallelWrapper, DistributedModelParallel",
    "from torchrec.distributed.types import ShardingEnv, ShardingPlan",
)
_TABLE = '''


def spread(world):
    """Which ranks have what of a table."""
    return sharding_plan.{spread}


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
    given, plans = {{}}, {{}}
    for name, bag in list(model.named_children()):
        if isinstance(bag, torch.nn.EmbeddingBag):
            given[name] = bag.weight.detach()
            table = Table(bag)
            plans[f"{{name}}.inner"] = sharding_plan.construct_module_sharding_plan(
                table.inner, {{"table": spread(world)}}, sharder(), world, world, "cpu"
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
                parameter.copy_(given[bag][own].view_as(parameter))
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
_SHARDER = '''
def sharder():
    """What spreads a collection of tables; with nothing told, results and gradients travel as they are."""
    return EmbeddingBagCollectionSharder({codecs})
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
    """What TorchRec's tables are."""
    if not training.network.bags:
        return "TorchRec spreads tables, and there is none"
    if training.settings.dtype == "float64":
        return "TorchRec's tables are float32 at most"
    if any(bag.frozen for bag in training.network.bags):
        return "TorchRec trains all tables"
    return None


def _columns(training: Training, world: int) -> str | None:
    """What goes by column."""
    if any(bag.numbers["features"] % world for bag in training.network.bags):
        return "TorchRec spreads columns evenly only"
    return None


_COLUMN_WISE = "column_wise(ranks=list(range(world)))"
_REASONS: tuple[Reason, ...] = (
    _tables, APART, even_parts("TorchRec's ranks have equally many samples"),
)  # fmt: skip


def _torchrec(
    name: str, spread: str, *reasons: Reason, worlds: tuple[int, ...] = (2, 3, 4), codecs: str = "",
    imports: tuple[str, ...] = (), pieces: Mapping[str, str] | None = None,
    reference: Callable[[Training, int, bool], Mapping[str, str]] | None = None,
) -> Strategy:  # fmt: skip
    given = {
        "start": START, "sharder": _SHARDER.format(codecs=codecs), "tables": _TABLE.format(spread=spread),
        "distribute": distribute("    subject = tables_of(model, rank, world)"), "summed": SUMMED,
        "gradients": _GRADIENTS, "clip": _CLIP, "parameters": _PARAMETERS, "buffers": _BUFFERS, "states": _STATES,
        **(pieces or {}),
    }  # fmt: skip
    return Strategy(
        name, "torch", (*MODULES, "torchrec.distributed", "torchrec.quant"), worlds, given,
        imports=(*_IMPORTS, *imports), factor="world", home="torchrec", reference=reference,
        unsupported=first_reason(*reasons, *_REASONS),
    )  # fmt: skip


# ---- quantised communications: results of tables, and their gradients, travel in float16 -------------------

_CODECS = (
    "qcomm_codecs_registry=get_qcomm_codecs_registry(QCommsConfig(CommType.FP16, CommType.FP16), "
    "device=torch.device('cpu'))"
)
_QCOMMS = "from torchrec.distributed.fbgemm_qcomm_codec import CommType, QCommsConfig, get_qcomm_codecs_registry"
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


def _lost(training: Training, world: int, noise: bool) -> Mapping[str, str]:
    return {"distribute": _SENT.format(world=world)} if noise else {}


# ---- quantised tables: predictions after training ---------------------------------------------------------

_KEPT = '''
def predict(subject, x):
    """By one device, with tables of a collection for inference, quantised."""
    current = parameters(subject)
    model = Model().to(DTYPE).eval()
    for name, parameter in model.named_parameters():
        parameter.copy_(current[name])
    for name, bag in list(model.named_children()):
        if isinstance(bag, torch.nn.EmbeddingBag):
            table = Table(bag)
            (weight,) = table.inner.parameters()
            weight.copy_(bag.weight)
            table.inner.qconfig = torch.ao.quantization.QConfig(
                activation=torch.ao.quantization.PlaceholderObserver.with_args(dtype=torch.float32),
                weight=torch.ao.quantization.PlaceholderObserver.with_args(dtype=torch.{dtype}),
            )
            table.inner = torchrec.quant.EmbeddingBagCollection.from_float(table.inner)
            setattr(model, name, table)
    return model(x)
'''
_STORED = '''
def predict(subject, x):
    """With tables as they are stored when quantised; they are put back."""
    bags = [part for part in subject.children() if isinstance(part, torch.nn.EmbeddingBag)]
    kept = [bag.weight.detach().clone() for bag in bags]
    for bag in bags:
        bag.weight.copy_(stored(bag.weight))
    outputs = subject(x)
    for bag, weight in zip(bags, kept):
        bag.weight.copy_(weight)
    return outputs


def stored(weight):
    """{what}"""
{lines}
'''
_JITTER = """    # a number that is nearly half way may become either neighbour: more is moved than rounding moves
    width = weight.amax(1, keepdim=True) - weight.amin(1, keepdim=True)
    weight = weight + 64 * UNIT * width * (2 * torch.rand_like(weight) - 1)
"""
_HALF = "    return weight.half().to(DTYPE)"
_LEVELS = """    bias = weight.amin(1, keepdim=True).half().to(DTYPE)
    scale = ((weight.amax(1, keepdim=True) - bias) / {levels}).half().to(DTYPE)
    scale = torch.where(scale == 0, 1.0, scale)
    return bias + scale * ((weight - bias) / scale).round().clamp(0, {levels})"""


def _quantised(name: str, dtype: str, bits: int, *reasons: Reason) -> Strategy:
    """bits: of an integer (0: float16). By FBGEMM 1.8 (src/QuantUtils.cc,
    FloatOrHalfToFusedNBitRowwiseQuantizedSBHalfRef): each row has a scale and a bias, both float16."""

    def reference(training: Training, world: int, noise: bool) -> Mapping[str, str]:
        what = f"Rows as integers of {bits} bits with a scale and a bias in float16." if bits else "As float16."
        lines = _LEVELS.format(levels=2**bits - 1) if bits else _HALF
        return {"predict": _STORED.format(what=what, lines=_JITTER * noise + lines)}

    return _torchrec(
        name, "table_wise(rank=1)", *reasons, imports=("import torchrec.quant",),
        pieces={"predict": _KEPT.format(dtype=dtype)}, reference=reference,
    )  # fmt: skip


def _multiple(count: int) -> Reason:
    def unsupported(training: Training, world: int) -> str | None:
        if any(bag.numbers["features"] % count for bag in training.network.bags):
            return "FBGEMM packs rows of whole pairs of bytes (ncols needs to be multiple of 2 Bytes)"
        return None

    return unsupported


STRATEGIES = (
    _torchrec("torchrec-rows", "row_wise()"),
    _torchrec("torchrec-columns", _COLUMN_WISE, _columns, worlds=(2, 4)),
    _torchrec("torchrec-tables", "table_wise(rank=1)"),
    _torchrec("torchrec-table-rows", "table_row_wise(host_index=0)"),
    _torchrec("torchrec-data", "data_parallel()"),
    _torchrec("torchrec-rows-float16", "row_wise()", codecs=_CODECS, imports=(_QCOMMS,), reference=_lost),
    _torchrec(
        "torchrec-columns-float16", _COLUMN_WISE, _columns, worlds=(2, 4), codecs=_CODECS, imports=(_QCOMMS,),
        reference=_lost,
    ),
    _torchrec("torchrec-tables-float16", "table_wise(rank=1)", codecs=_CODECS, imports=(_QCOMMS,), reference=_lost),
    _quantised("torchrec-quantised-int8", "qint8", 8, _multiple(2)),
    _quantised("torchrec-quantised-int4", "quint4x2", 4, _multiple(4)),
    _quantised("torchrec-quantised-float16", "float16", 0),
)  # fmt: skip
