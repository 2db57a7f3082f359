"""The registries: one file a framework, with a tuple `REGISTRIES`. To add one, write its file."""

from __future__ import annotations

from generators.discovery import collected
from harness.studies.surface.registry import Registry

_FIRST = ("onnx", "torch", "inductor", "jax", "tensorflow", "tflite", "relax", "tvm", "tf2onnx")
REGISTRIES: dict[str, Registry] = collected(__name__, "REGISTRIES", _FIRST)
"""By name, in the order of the table."""
