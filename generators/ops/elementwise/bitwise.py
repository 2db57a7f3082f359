"""Bitwise logic and shifts of integers in two's complement; of booleans, bitwise logic is logic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from generators.bounds.bounded import Bounded, exact
from generators.graph import INTEGERS
from generators.ops.elementwise.references import logic, wrapping
from generators.ops.slots import broadcast, broadcastable, same_as, tensor
from generators.ops.spec import Call, Domain, OpSpec, Reference, Spelling, Types

Array = np.ndarray

BITS = (*INTEGERS, "bool")


def _by_kind(integers: str, booleans: str) -> Spelling:
    return lambda call: booleans if call.result.dtype == "bool" else integers


def _logic(f: Callable[[Array, Array], Array], deciding: bool | None) -> Reference:
    def reference(args: Sequence[Bounded], call: Call) -> Bounded:
        x, y = args
        return logic(f, deciding)(args, call) if x.dtype == "bool" else wrapping(f, x, y)

    return reference


def _connective(name: str, f: Callable[[Array, Array], Array], deciding: bool | None) -> OpSpec:
    """Of integers, and of booleans, for which TensorFlow and ONNX have other operators."""
    onnx = name.capitalize()
    return OpSpec(
        f"bitwise_{name}", "bitwise", (tensor(BITS), broadcastable(0)), broadcast(), _logic(f, deciding),
        torch=f"torch.bitwise_{name}({{0}}, {{1}})",
        tensorflow=_by_kind(f"tf.bitwise.bitwise_{name}({{0}}, {{1}})", f"tf.math.logical_{name}({{0}}, {{1}})"),
        jax=f"jnp.bitwise_{name}({{0}}, {{1}})", relax=f"relax.op.bitwise_{name}({{0}}, {{1}})",
        onnx=_by_kind(f'g.op("Bitwise{onnx}", {{0}}, {{1}})', f'g.op("{onnx}", {{0}}, {{1}})'),
    )  # fmt: skip


bitwise_not = OpSpec(
    "bitwise_not", "bitwise", (tensor(BITS),), same_as(0),
    lambda args, call: exact(np.invert(args[0].value), args[0].dtype, args[0].undetermined),
    torch="torch.bitwise_not({0})", tensorflow=_by_kind("tf.bitwise.invert({0})", "tf.math.logical_not({0})"),
    jax="jnp.bitwise_not({0})", relax="relax.op.bitwise_not({0})",
    onnx=_by_kind('g.op("BitwiseNot", {0})', 'g.op("Not", {0})'),
)  # fmt: skip


def _places(earlier: Types) -> Domain:
    """A shift by less than the width of operand 0: others have no common meaning."""
    return 0, np.iinfo(earlier[0].dtype).bits - 1


def _shift(side: str, f: Callable[[Array, Array], Array]) -> OpSpec:
    """To the left, bits fall off; to the right, the sign comes in. ONNX shifts unsigned integers only."""
    return OpSpec(
        f"{side}_shift", "bitwise", (tensor(INTEGERS), replace(broadcastable(0), domain=_places)), broadcast(),
        lambda args, call: wrapping(f, args[0], args[1]),
        torch=f"torch.bitwise_{side}_shift({{0}}, {{1}})", tensorflow=f"tf.bitwise.{side}_shift({{0}}, {{1}})",
        jax=f"jnp.{side}_shift({{0}}, {{1}})", relax=f"relax.op.{side}_shift({{0}}, {{1}})",
        onnx=f"{side}_shift(g, {{0}}, {{1}}, {{name}})",
    )  # fmt: skip


OPERATORS: tuple[OpSpec, ...] = (
    _connective("and", np.bitwise_and, False),
    _connective("or", np.bitwise_or, True),
    _connective("xor", np.bitwise_xor, None),
    bitwise_not,
    _shift("left", np.left_shift),
    _shift("right", np.right_shift),
)
