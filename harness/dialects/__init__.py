"""The dialects: one file each, with a tuple `DIALECTS`. To add one, write its file. Operators are spelled in
generators/ops, in the field of the dialect's name, or by `spellings` of its own. Keras' dialects are in no such tuple:
they have targets only for globs that name them."""

from __future__ import annotations

from generators.discovery import collected
from harness.dialects.dialect import Dialect
from harness.dialects.jax import JAX
from harness.dialects.onnx import ONNX
from harness.dialects.relax import RELAX
from harness.dialects.tensorflow import TENSORFLOW
from harness.dialects.torch import TORCH

_FIRST = ("torch", "tensorflow", "jax", "relax", "onnx")
DIALECTS: dict[str, Dialect] = collected(__name__, "DIALECTS", _FIRST)
"""By name. What is not named in _FIRST comes after it, in alphabetical order of the files."""

__all__ = ["DIALECTS", "JAX", "ONNX", "RELAX", "TENSORFLOW", "TORCH", "Dialect"]
