"""The dialects, one record each: graph -> program text. Spellings of operators stand in generators/ops."""

from __future__ import annotations

from pathlib import Path

from generators.graph import DTYPES, EVERY, INTEGERS
from harness.dialects.dialect import Dialect

_HERE = Path(__file__).parent


def _helpers(name: str) -> tuple[Path, ...]:
    """The functions of the dialect, its names for those of `functions/shared/` among them, and these."""
    return _HERE / "functions" / name, _HERE / "functions" / "shared"


_TORCH_ARRAYS = {
    "torch.from_numpy(": "from_array(",
    "output.numpy()": "to_array(output)",
    "output.cpu().numpy()": "to_array(output.cpu())",
}

TORCH = Dialect(
    "torch",
    "import numpy as np\nimport torch",
    {n: f"torch.{n}" for n in EVERY},
    _helpers("torch"),
    bfloat16=_TORCH_ARRAYS,
    complexes=_TORCH_ARRAYS,
)
TENSORFLOW = Dialect(
    "tensorflow",
    "import numpy as np\nimport tensorflow as tf",
    {n: f"tf.{n}" for n in EVERY},
    _helpers("tensorflow"),
)
JAX = Dialect(
    "jax",
    'import numpy as np\nimport jax\nimport jax.numpy as jnp\n\njax.config.update("jax_enable_x64", True)',
    {n: f"jnp.{n}_" if n == "bool" else f"jnp.{n}" for n in EVERY},
    _helpers("jax"),
)
RELAX = Dialect(
    "relax",
    "import numpy as np\nimport tvm\nfrom tvm import relax",
    {n: repr(n) for n in DTYPES},
    _helpers("relax"),
    context=("bb",),
    line="{name} = bb.emit({expression})",
    absent="Relax has no complex numbers",
)
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
    _helpers("onnx"),
    context=("g",),
    absent="ONNX has complex tensors, and hardly an operator that takes them",
)

DIALECTS: dict[str, Dialect] = {d.name: d for d in (TORCH, TENSORFLOW, JAX, RELAX, ONNX)}
