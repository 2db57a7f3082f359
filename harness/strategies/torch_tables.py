"""PyTorch: TorchRec's DistributedModelParallel. Tables are spread over the ranks by row, by column, whole or not at
all; what is dense is DistributedDataParallel's. It runs in the environment `torchrec` of environments.toml."""

from __future__ import annotations

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

    def forward(self, rows):
        lengths = torch.full((len(rows),), rows.shape[1])
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
                table.inner, {{"table": spread(world)}}, EmbeddingBagCollectionSharder(), world, world, "cpu"
            )
            setattr(model, name, table)
    group = ShardingEnv.from_process_group(dist.group.WORLD)
    subject = DistributedModelParallel(
        model, group, torch.device("cpu"), ShardingPlan(plans), [EmbeddingBagCollectionSharder()],
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


_REASONS: tuple[Reason, ...] = (
    _tables, APART, even_parts("TorchRec's ranks have equally many samples"),
)  # fmt: skip


def _torchrec(name: str, spread: str, *reasons: Reason, worlds: tuple[int, ...] = (2, 3, 4)) -> Strategy:
    pieces = {
        "start": START, "tables": _TABLE.format(spread=spread),
        "distribute": distribute("    subject = tables_of(model, rank, world)"), "summed": SUMMED,
        "gradients": _GRADIENTS, "clip": _CLIP, "parameters": _PARAMETERS, "buffers": _BUFFERS, "states": _STATES,
    }  # fmt: skip
    return Strategy(
        name, "torch", (*MODULES, "torchrec.distributed"), worlds, pieces, imports=_IMPORTS, factor="world",
        home="torchrec", unsupported=first_reason(*reasons, *_REASONS),
    )  # fmt: skip


STRATEGIES = (
    _torchrec("torchrec-rows", "row_wise()"),
    _torchrec("torchrec-columns", "column_wise(ranks=list(range(world)))", _columns, worlds=(2, 4)),
    _torchrec("torchrec-tables", "table_wise(rank=1)"),
    _torchrec("torchrec-table-rows", "table_row_wise(host_index=0)"),
    _torchrec("torchrec-data", "data_parallel()"),
)
