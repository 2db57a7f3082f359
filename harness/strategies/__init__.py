"""The distribution strategies: a folder a framework, one file a kind, with a tuple `STRATEGIES`. To add one, write its
file."""

from __future__ import annotations

from generators.discovery import collected
from harness.strategies.strategy import Strategy

_FIRST = (
    "torch.ddp",
    "torch.local_sgd",
    "torch.join",
    "torch.powersgd",
    "torch.fsdp",
    "torch.tensor_parallel",
    "torch.sequence_parallel",
    "torch.pipeline",
    "torch.pipeline_replicas",
    "torch.checkpoint",
    "torch.torchrec.tables",
    "torch.torchrec.quantised",
    "jax.devices",
    "jax.checkpoint",
    "keras.devices",
    "tensorflow.mirrored",
    "tensorflow.mixed_precision",
    "tensorflow.keras_fit",
    "tensorflow.checkpoint",
    "tensorflow.dtensor",
    "tensorflow.workers",
    "tensorflow.quantization_aware",
    "torch.torchrec.collection",
)
STRATEGIES: dict[str, Strategy] = collected(__name__, "STRATEGIES", _FIRST)
"""By name. What is not named in _FIRST comes after it, in alphabetical order of the files."""

__all__ = ["STRATEGIES", "Strategy"]
