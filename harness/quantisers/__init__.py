"""The quantisers: one file a framework, with a tuple `QUANTISERS`. To add one, write its file."""

from __future__ import annotations

from generators.discovery import collected
from harness.quantisers.quantiser import Quantiser

_FIRST = ("onnxruntime", "tensorflow", "tfmot", "keras", "torch", "torchao", "tvm", "tvm_tflite", "litert")
QUANTISERS: dict[str, Quantiser] = collected(__name__, "QUANTISERS", _FIRST)
"""By name, e.g. ort-qdq-u8s8-channels. What is not named in _FIRST comes after it, in alphabetical order of the
files."""

__all__ = ["QUANTISERS", "Quantiser"]
