"""A value written over another one: the statement of programs that write."""

from __future__ import annotations

from generators.graph import EVERY
from generators.ops.shape.layout import DEEP
from generators.ops.slots import like, one_of, same_as, tensor
from generators.ops.spec import OpSpec

MODES = ("copy", "slice", "rows")
"""How it is said: a copy, or an operator that writes its result there; a subscript assignment, to a slice of something
if that is one; a copy row by row, by indices."""

write = OpSpec(
    "write", "indexing", (tensor(EVERY, max_rank=DEEP), like(0)), same_as(1), lambda args, call: args[1],
    attrs={"mode": one_of(*MODES)},
    torch="torch.clone({1})", tensorflow="tf.identity({1})", jax="jnp.copy({1})",
    relax="{1}", onnx='g.op("Identity", {1})',
    signed_zero=True,
)  # fmt: skip
"""As a value, what is written. Only the questions `memory` and `state` print it as a write over operand 0."""

OPERATORS = (write,)
