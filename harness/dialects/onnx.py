"""ONNX."""

from __future__ import annotations

from generators.graph import INTEGERS
from harness.dialects.dialect import Dialect, functions

ONNX = Dialect(
    "onnx",
    "import numpy as np\nimport onnx\nfrom onnx import TensorProto, helper, numpy_helper",
    {
        "float32": "TensorProto.FLOAT",
        "float64": "TensorProto.DOUBLE",
        "float16": "TensorProto.FLOAT16",
        "bfloat16": "TensorProto.BFLOAT16",
        **{n: f"TensorProto.{n.upper()}" for n in (*INTEGERS, "bool")},
    },
    functions("onnx"),
    context=("g",),
    bfloat16={"session.run(None, ": "run_by_value(session, "},
    absent="ONNX has complex tensors, and hardly an operator that takes them",
)

DIALECTS = (ONNX,)
