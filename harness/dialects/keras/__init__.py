"""Keras 3: models of `keras.ops`, and of layers where it has no such function. Its spellings stand in the files beside
this one, since it has targets only for globs that name them."""

from __future__ import annotations

from dataclasses import replace

from generators.graph import DTYPES
from generators.ops.spec import Spelling
from harness.dialects.dialect import Dialect, Spellings, functions
from harness.dialects.keras import elementwise, linear, moving, networks, reducing

_ALL = Spellings(
    __name__,
    "_ALL",
    {
        **elementwise.SPELLINGS,
        **moving.SPELLINGS,
        **reducing.SPELLINGS,
        **linear.SPELLINGS,
        **networks.SPELLINGS,
    },
)
KERAS = Dialect(
    "keras",
    "import numpy as np\nimport keras",
    {name: repr(name) for name in DTYPES},
    functions("keras"),
    absent="its spellings here have no complex numbers",
    spellings=_ALL,
)

_PLACES = """
argmax argmin argmax_whole argmin_whole nanargmax nanargmin argsort topk_indices bucketize searchsorted bincount
histogram count_nonzero unravel_index unique_inverse one_hot
"""
PLACES: frozenset[str] = frozenset(_PLACES.split())
"""What gives or takes places and counts: of int64 here and of 32 bits in Keras, and no other in value."""

_WRITTEN = """
abs sign square reciprocal sqrt rsqrt exp expm1 log log1p log2 sin cos tan sinh cosh tanh erf floor ceil trunc isnan
isinf isfinite logical_not relu relu6 selu sigmoid silu softplus softsign log_sigmoid add sub mul div maximum minimum
logical_and logical_or logical_xor equal not_equal less less_equal greater greater_equal matmul outer mean max min all
any logsumexp sum prod neg asin acos atan asinh acosh atanh gelu gelu_tanh leaky_relu cast where clip softmax
log_softmax reshape flatten transpose squeeze unsqueeze broadcast_to concat stack flip tile repeat take embedding
conv2d global_avg_pool
"""
_FILES = Spellings(__name__, "_FILES", {name: _ALL[name] for name in _WRITTEN.split()})
KERAS_FILES = replace(KERAS, spellings=_FILES)
"""What files of models are written of: what converts the others has not been looked at."""

_PRODUCTS: dict[str, Spelling] = {
    "linear": "keras_dense({0}, {1}, {2}, turned=True)",
    "matmul": "keras_dense({0}, {1})",
}
_LAYERS = Spellings(__name__, "_LAYERS", {**_FILES, **_PRODUCTS})
KERAS_LAYERS = replace(KERAS_FILES, spellings=_LAYERS)
"""The same with products of constant matrices as Dense layers."""
