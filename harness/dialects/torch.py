"""PyTorch."""

from __future__ import annotations

from generators.graph import EVERY
from harness.dialects.dialect import Dialect, functions

_ARRAYS = {
    "torch.from_numpy(": "from_array(",
    "output.numpy()": "to_array(output)",
    "output.numpy(force=True)": "to_array(output)",
    "output.cpu().numpy()": "to_array(output.cpu())",
}

TORCH = Dialect(
    "torch",
    "import numpy as np\nimport torch",
    {n: f"torch.{n}" for n in EVERY},
    functions("torch"),
    bfloat16=_ARRAYS,
    complexes=_ARRAYS,
)

DIALECTS = (TORCH,)
