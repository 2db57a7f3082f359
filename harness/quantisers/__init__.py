"""The quantisers: one file a framework. To add one, write its file and name it here."""

from __future__ import annotations

from harness.quantisers import keras, onnxruntime, tensorflow, tfmot, torch, torchao, tvm
from harness.quantisers.quantiser import Quantiser

QUANTISERS: dict[str, Quantiser] = {
    quantiser.name: quantiser
    for module in (onnxruntime, tensorflow, tfmot, keras, torch, torchao, tvm)
    for quantiser in module.QUANTISERS
}
"""By name, e.g. ort-qdq-u8s8-channels."""

__all__ = ["QUANTISERS", "Quantiser"]
