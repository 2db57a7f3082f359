"""The dialects, one record each: graph -> program text. Spellings of operators stand in generators/ops."""

from __future__ import annotations

from pathlib import Path

from harness.dialects.base import Dialect

_HERE = Path(__file__).parent
_NAMES = ("float32", "float64", "int32", "int64", "bool")


def _helpers(name: str) -> Path:
    return _HERE / f"{name}_helpers.py"


TORCH = Dialect("torch", "import numpy as np\nimport torch", {n: f"torch.{n}" for n in _NAMES}, _helpers("torch"))
TENSORFLOW = Dialect(
    "tensorflow",
    "import numpy as np\nimport tensorflow as tf",
    {n: f"tf.{n}" for n in _NAMES},
    _helpers("tensorflow"),
)
JAX = Dialect(
    "jax",
    'import numpy as np\nimport jax\nimport jax.numpy as jnp\n\njax.config.update("jax_enable_x64", True)',
    {n: f"jnp.{n}_" if n == "bool" else f"jnp.{n}" for n in _NAMES},
    _helpers("jax"),
)
RELAX = Dialect(
    "relax",
    "import numpy as np\nimport tvm\nfrom tvm import relax",
    {n: repr(n) for n in _NAMES},
    _helpers("relax"),
    context=("bb",),
    line="{name} = bb.emit({expression})",
)
ONNX = Dialect(
    "onnx",
    "import numpy as np\nimport onnx\nfrom onnx import TensorProto, helper, numpy_helper",
    {
        "float32": "TensorProto.FLOAT",
        "float64": "TensorProto.DOUBLE",
        "int32": "TensorProto.INT32",
        "int64": "TensorProto.INT64",
        "bool": "TensorProto.BOOL",
    },
    _helpers("onnx"),
    context=("g",),
)

DIALECTS: dict[str, Dialect] = {d.name: d for d in (TORCH, TENSORFLOW, JAX, RELAX, ONNX)}
