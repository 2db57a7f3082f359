"""Keras 3: models of `keras.ops`, and of layers where it has no such function. Its spellings stand in the files beside
this one, since it has targets only for globs that name them."""

from __future__ import annotations

from dataclasses import replace

from generators.graph import DTYPES
from generators.ops.spec import Spelling
from harness.dialects.dialect import Dialect, functions
from harness.dialects.keras import elementwise, linear, moving, networks, reducing

KERAS = Dialect(
    "keras",
    "import numpy as np\nimport keras",
    {name: repr(name) for name in DTYPES},
    functions("keras"),
    absent="its spellings here have no complex numbers",
    spellings={
        **elementwise.SPELLINGS,
        **moving.SPELLINGS,
        **reducing.SPELLINGS,
        **linear.SPELLINGS,
        **networks.SPELLINGS,
    },
)

_PLACES = """
argmax argmin argmax_whole argmin_whole nanargmax nanargmin argsort topk_indices bucketize searchsorted bincount
histogram count_nonzero unravel_index unique_inverse one_hot
"""
PLACES: frozenset[str] = frozenset(_PLACES.split())
"""What gives or takes places and counts: of int64 here and of 32 bits in Keras, and no other in value."""

_SPELLINGS: dict[str, Spelling] = {
    "linear": "keras_dense({0}, {1}, {2}, turned=True)",
    "matmul": "keras_dense({0}, {1})",
}
KERAS_LAYERS = replace(KERAS, spellings={**(KERAS.spellings or {}), **_SPELLINGS})
"""The same with products of constant matrices as Dense layers."""
