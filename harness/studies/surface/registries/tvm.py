"""The maps of TVM's importers of ONNX and of exported programs."""

from __future__ import annotations

from harness.studies.surface.registries.onnx import TRACER as ONNX
from harness.studies.surface.registry import Registry, Tracer

_MODULES, _PACKAGES = ("tvm", "tvm.relax"), ("apache-tvm",)
_EXPORTED = Tracer("exported", "torch-export", ("torch",), ("torch",), every=20)

REGISTRIES = (
    Registry(
        "tvm-onnx",
        ("importer_onnx",),
        (*_MODULES, "onnx"),
        _PACKAGES,
        ONNX,
        "tvm-*",
        ("tvm-onnx", "tvm-onnx-parameters"),
    ),
    Registry(
        "tvm-torch", ("exported",), (*_MODULES, "torch"), _PACKAGES, _EXPORTED, "tvm-*", ("tvm-pt2", "tvm-pt2-whole")
    ),
)
