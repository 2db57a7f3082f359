"""The settings of D3's protocol, each with the strategy of ours that mirrors it, or with the reason why none does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product

from harness.execute import environments
from harness.strategies import STRATEGIES
from harness.strategies.strategy import Strategy
from harness.training.judge import available
from harness.training.programs import single_device

BASE = "base"
"""The setting that is one device again: a run that is not repeatable shows here."""


@dataclass(frozen=True)
class Setting:
    """name: of one setting, as stored; mirrors: D3's setting in words; strategy: of ours, `base` for one device, "" for
    none; world: ranks or devices; why: it cannot be run here ("": it can); own: it is D3's, no mirror or variant."""

    name: str
    mirrors: str
    strategy: str
    world: int
    why: str = ""
    own: bool = True


@dataclass(frozen=True)
class Preset:
    """framework: of all settings; freeze: what D3 freezes there; settings: all of D3's, those that cannot be run among
    them, and mirrors of these; paper: how many settings the paper counts; described: how many its description gives."""

    framework: str
    freeze: str
    settings: tuple[Setting, ...]
    paper: int
    described: int


_NO_GPU = "needs GPUs: strategies here run on a CPU (tensorflow-cpu; gloo)"
_NCCL = "NCCL needs GPUs"
_SINGLE_TABLE = (
    "refused by TorchRec: table-wise sharding on a single EmbeddingBag is not supported yet (ShardedEmbeddingBag)"
)


def _tensorflow() -> tuple[Setting, ...]:
    found = []
    for precision, device, count in product(("float", "8-bit"), ("cpu", "gpu"), (0, 1, 2, 3, 4, 8)):
        what = f"MirroredStrategy over {count} devices" if count else "no strategy"
        why = _NO_GPU if device == "gpu" else ""
        one, several = (BASE, "tf-mirrored") if precision == "float" else ("tfmot-one-device", "tfmot-mirrored")
        strategy = "" if why else several if count else one
        found.append(Setting(f"{precision}-{device}-{count}", f"{what}, {device}, {precision}", strategy, count, why))
    return tuple(found)


MIRRORS: Mapping[str, str] = {
    "torch-ddp": "data-parallel tables: every rank has all parameters",
    "torch-fully-shard": "row-wise tables: the rows of every parameter are spread",
    "torch-fsdp": "row-wise tables: all parameters in one, which is spread",
    "torch-tensor-columns": "column-wise tables: outputs of dense layers are spread",
    "torch-tensor-rows": "row-wise tables: inputs of dense layers are spread",
    "torch-pipeline-gpipe": "table-wise: whole layers on a rank each",
}
"""Strategies of ours by what they have in common with D3's settings of PyTorch."""


SHARDINGS: Mapping[tuple[str, str], str] = {
    ("EmbeddingBagCollection", "row-wise"): "torchrec-rows",
    ("EmbeddingBagCollection", "column-wise"): "torchrec-columns",
    ("EmbeddingBagCollection", "table-wise"): "torchrec-tables",
    ("EmbeddingBagCollection", "data-parallel"): "torchrec-data",
    ("EmbeddingBag", "row-wise"): "torchrec-bag-rows",
    ("EmbeddingBag", "column-wise"): "torchrec-bag-columns",
    ("EmbeddingBag", "table-wise"): "",
    ("EmbeddingBag", "data-parallel"): "torchrec-bag-data",
}
"""Strategies that run D3's settings of TorchRec themselves, by module and sharding, with its dense compute kernel. The
same with `-fused` has the other one that there is for a CPU: tables are trained on the way back. D3's description names
no kernel."""


def _torch() -> tuple[Setting, ...]:
    worlds = (1, 2, 3, 4, 8)
    found = [Setting("base", "no strategy, cpu, float", BASE, 0, own=False)]
    for (name, what), world in product(MIRRORS.items(), worlds):
        found.append(Setting(f"{name}-{world}", f"{what}, gloo, float", name, world, own=False))
    for ((module, sharding), name), backend, world in product(SHARDINGS.items(), ("gloo", "nccl"), worlds):
        what = f"TorchRec's {module}, {sharding}"
        why = _NCCL if backend == "nccl" else "" if name else _SINGLE_TABLE
        strategy = "" if why else name
        found.append(
            Setting(f"{module}-{sharding}-{backend}-{world}", f"{what}, {backend}, float", strategy, world, why)
        )
        if f"{strategy}-fused" in STRATEGIES:
            fused = f"{module}-{sharding}-fused-{backend}-{world}"
            found.append(Setting(fused, f"{what}, fused kernel, {backend}, float", f"{name}-fused", world, own=False))
    for output, world in product(("qint8", "float16", "float32"), worlds[:4]):
        what = f"TorchRec's tables in qint8 with output in {output}, table-wise"
        found.append(Setting(f"quantised-{output}-{world}", what, f"torchrec-devices-int8-{output}", world))
    return tuple(found)


PRESETS: Mapping[str, Callable[[], Preset]] = {
    "d3-tensorflow": lambda: Preset("tensorflow", "layer", _tensorflow(), 24, 24),
    "d3-pytorch": lambda: Preset("torch", "parameter", _torch(), 79, 92),
}


def strategy_of(preset: Preset, setting: Setting) -> Strategy:
    """What runs a setting that can be run."""
    return single_device(preset.framework, 1) if setting.strategy == BASE else STRATEGIES[setting.strategy]


def versions_beside(preset: Preset) -> dict[str, str]:
    """Versions of what settings run with in environments of their own, by `package (environment)`."""
    used = {strategy_of(preset, setting) for setting in preset.settings if not why_not(preset, setting)}
    found = {}
    for strategy in used:
        if strategy.environment:
            for name, version in environments.versions_of(strategy.packages, strategy.environment).items():
                found[f"{name.split('|')[0]} ({strategy.environment})"] = version
    return dict(sorted(found.items()))


def why_not(preset: Preset, setting: Setting) -> str:
    """Why a setting cannot be run here; "" where it can."""
    return setting.why or available(strategy_of(preset, setting)) or ""
