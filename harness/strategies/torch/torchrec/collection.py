"""TorchRec: all tables of a model in one collection, looked up at once, each spread in the same way or in its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from generators.training.runs import Training
from harness.strategies.strategy import Reason, Strategy
from harness.strategies.torch.torchrec.tables import (
    CODECS,
    COLUMN_WISE,
    FOURS,
    OVER_RANKS,
    PLACES,
    QCOMMS,
    lost,
    torchrec,
)

_COLLECTION = '''
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
'''
_TABLES = '''
def tables_of(model, rank, world):
    """The model over the ranks, its tables as they are spread, with the values that they had."""
    named_bags = dict(model.named_children())
    bags = {{name: named_bags[name] for name in TABLES}}
    given = {{name: bag.weight.detach() for name, bag in bags.items()}}
    collection = Collection(bags)
{fused}    for name in bags:
        setattr(model, name, Found(collection.found, name))
    model.collection = collection
    model.register_forward_pre_hook(lambda model, given: collection.look_up(bags_of(*given)))
    plan = {{name: spread(world, bag.embedding_dim, k) for k, (name, bag) in enumerate(bags.items())}}
    of_tables = sharding_plan.construct_module_sharding_plan(collection.inner, plan, sharder(), world, world, "cpu")
    plans = {{"collection.inner": of_tables}}
'''
_SPREAD_OUT = OVER_RANKS + PLACES.format(within='.removeprefix("collection.inner.embedding_bags.")')
_FUSED = """    _apply_optimizer_in_backward(OPTIMIZER, collection.inner.parameters(), {"lr": OPTIONS["lr"]})
"""
_SPREAD = '''
def spread(world, columns, number):
    """Which ranks have what of the table of this number, of so many columns."""
    ways = [{ways}]
    return ways[number % len(ways)]
'''
_ROWS, _TABLE, _DATA = "row_wise()", "table_wise(rank=number % world)", "data_parallel()"
_TABLE_ROWS = "table_row_wise(host_index=0)"


def _several(training: Training, world: int) -> str | None:
    """What it is for."""
    if len(training.network.bags) < 2:
        return "a collection of several tables, and there are not as many"
    if any(bag.name in training.network.idle for bag in training.network.bags):
        return "a collection of tables that are all looked up"
    return None


def _collected(
    name: str, ways: tuple[str, ...], *reasons: Reason, fused: bool = False, options: str = "",
    imports: tuple[str, ...] = (), reference: Callable[[Training, int, bool], Mapping[str, str]] | None = None,
) -> Strategy:  # fmt: skip
    """ways: of torchrec.distributed.sharding_plan, of which the tables have one each in turn."""
    pieces = {
        "table": _COLLECTION,
        "tables": _TABLES.format(fused=_FUSED * fused) + _SPREAD_OUT,
        "spread": _SPREAD.format(ways=", ".join(f"sharding_plan.{way}" for way in ways)),
    }
    return torchrec(
        f"torchrec-collection-{name}", ways[0], _several, *reasons, fused=fused, options=options, imports=imports,
        reference=reference, pieces=pieces,
    )  # fmt: skip


STRATEGIES = (
    _collected("rows", (_ROWS,)),
    _collected("columns", (COLUMN_WISE,)),
    _collected("tables", (_TABLE,)),
    _collected("data", (_DATA,)),
    _collected("mixed", (_ROWS, COLUMN_WISE, _TABLE, _DATA)),
    _collected("mixed-back", (_TABLE_ROWS, _DATA, COLUMN_WISE)),
    _collected("rows-fused", (_ROWS,), fused=True),
    _collected("mixed-fused", (_ROWS, FOURS, _TABLE), fused=True),
    _collected("mixed-float16", (_ROWS, _TABLE, COLUMN_WISE), options=CODECS, imports=(QCOMMS,), reference=lost),
)
