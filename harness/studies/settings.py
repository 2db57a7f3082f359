"""The settings of D3's protocol, each with the strategy of ours that mirrors it, or with the reason why none does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product

from harness.strategies import STRATEGIES
from harness.strategies.programs import alone
from harness.strategies.strategy import Strategy
from harness.training.gym import available

BASE = "base"
"""The setting that is one device again: a run that is not repeatable shows here."""


@dataclass(frozen=True)
class Setting:
    """name: of one setting, as stored; mirrors: D3's setting in words; strategy: of ours, `base` for one device, "" for
    none; world: ranks or devices; why: it cannot be run here ("": it can)."""

    name: str
    mirrors: str
    strategy: str
    world: int
    why: str = ""


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
_EIGHT_BITS = (
    "8-bit weights and activations need quantisation-aware training (tensorflow-model-optimization with tf_keras and "
    "TensorFlow 2.19), in an environment of its own that is not there"
)
_TORCHREC = "TorchRec is no strategy here yet (torchrec and fbgemm-gpu-cpu, with tables of their own)"
_NCCL = "NCCL needs GPUs, and TorchRec is no strategy here yet"
_QUANTISED = "quantised tables are TorchRec's, which is no strategy here yet"


def _tensorflow() -> tuple[Setting, ...]:
    found = []
    for precision, device, count in product(("float", "8-bit"), ("cpu", "gpu"), (0, 1, 2, 3, 4, 8)):
        what = f"MirroredStrategy over {count} devices" if count else "no strategy"
        why = (_EIGHT_BITS if precision == "8-bit" else "") or (_NO_GPU if device == "gpu" else "")
        strategy = "" if why else "tf-mirrored" if count else BASE
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


def _torch() -> tuple[Setting, ...]:
    worlds = (1, 2, 3, 4, 8)
    found = [Setting("base", "no strategy, cpu, float", BASE, 0)]
    for (name, what), world in product(MIRRORS.items(), worlds):
        found.append(Setting(f"{name}-{world}", f"{what}, gloo, float", name, world))
    shardings = ("row-wise", "column-wise", "table-wise", "data-parallel")
    for collection, sharding, backend, world in product(
        ("EmbeddingBagCollection", "EmbeddingBag"), shardings, ("gloo", "nccl"), worlds
    ):
        name = f"{collection}-{sharding}-{backend}-{world}"
        why = _NCCL if backend == "nccl" else _TORCHREC
        found.append(Setting(name, f"TorchRec's {collection}, {sharding}, {backend}, float", "", world, why))
    for output, world in product(("qint8", "float16", "float32"), worlds[:4]):
        what = f"TorchRec's tables in qint8 with output in {output}"
        found.append(Setting(f"quantised-{output}-{world}", what, "", world, _QUANTISED))
    return tuple(found)


PRESETS: Mapping[str, Callable[[], Preset]] = {
    "d3-tensorflow": lambda: Preset("tensorflow", "layer", _tensorflow(), 24, 24),
    "d3-pytorch": lambda: Preset("torch", "parameter", _torch(), 79, 92),
}


def strategy_of(preset: Preset, setting: Setting) -> Strategy:
    """What runs a setting that can be run."""
    return alone(preset.framework, 1) if setting.strategy == BASE else STRATEGIES[setting.strategy]


def why_not(preset: Preset, setting: Setting) -> str:
    """Why a setting cannot be run here; "" where it can."""
    return setting.why or available(strategy_of(preset, setting)) or ""
