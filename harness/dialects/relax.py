"""Relax, the intermediate representation of TVM."""

from __future__ import annotations

from generators.graph import DTYPES
from harness.dialects.dialect import Dialect, functions

RELAX = Dialect(
    "relax",
    "import numpy as np\nimport tvm\nfrom tvm import relax",
    {n: repr(n) for n in DTYPES},
    functions("relax"),
    context=("bb",),
    line="{name} = bb.emit({expression})",
    absent="Relax has no complex numbers",
)

DIALECTS = (RELAX,)
