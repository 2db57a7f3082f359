"""Jacobians of the nodes of a graph, which several accumulations share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache, lru_cache
from hashlib import blake2b

import numpy as np

from generators.bounds.bounded import Bounded
from generators.graph import Graph
from generators.ops import OPS, Call, call_of
from oracles.derivatives.jacobians.complex_blocks import jacobian_of_parts
from oracles.derivatives.jacobians.jacobian import Jacobian
from oracles.derivatives.jacobians.measured import function_of, jacobian
from oracles.derivatives.rounding.formulas import known
from oracles.derivatives.rounding.matrix_first_derivatives import shift

NodeJacobians = Callable[[int, int], Jacobian]
"""Number of a node, position of an operand -> its slopes."""


KEPT, LARGEST = 8192, 4096
"""So many are kept, of nodes whose operands and result have no more elements together: a plan asks the same of one
target after the other, and measuring takes longer than most programs."""


STAIRS = ("floor_divide", "trunc_divide")
"""Constant between jumps, which steps that are longer than the divisor take for a slope."""


def _on_stairs(operands: Sequence[Bounded], position: int, result: Bounded) -> Jacobian:
    """Slopes of 0, undetermined where a jump is in reach."""
    x, shape = operands[position].value, result.value.shape
    with np.errstate(invalid="ignore"):
        near = result.undetermined | ~np.isfinite(result.value) | (result.error >= 0.5)
    rows = np.flatnonzero(near)
    columns = np.broadcast_to(np.arange(x.size).reshape(x.shape), shape).ravel()[rows]
    zeros = np.zeros(rows.size)

    def still(values: Sequence[np.ndarray], steps: np.ndarray) -> np.ndarray:
        return zeros

    return Jacobian(rows, columns, zeros, zeros + np.inf, zeros, np.zeros(x.size), np.zeros(near.size, bool), still)


@dataclass(frozen=True)
class _Measurement:
    """What the slopes of a node follow from: all of that is in `key`."""

    key: bytes
    operator: str = field(compare=False)
    call: Call = field(compare=False)
    operands: Sequence[Bounded] = field(compare=False)
    result: Bounded = field(compare=False)
    position: int = field(compare=False)
    backwards: bool = field(compare=False)

    def carry_out(self) -> Jacobian:
        operands, position, result = self.operands, self.position, self.result
        if self.operator in STAIRS:
            return _on_stairs(operands, position, result)
        f = function_of(OPS[self.operator], operands, self.call)
        if operands[position].complex or result.complex:
            return jacobian_of_parts(f, operands, position, result)
        formula = known(self.operator, operands, position, result, self.call) if self.backwards else None
        return jacobian(f, operands, position, result, shift(self.operator, operands, self.call), formula)


@lru_cache(KEPT)
def _kept(measurement: _Measurement) -> Jacobian:
    found = measurement.carry_out()
    for one in fields(found):
        if isinstance(array := getattr(found, one.name), np.ndarray):
            array.flags.writeable = False  # shared
    return found


def node_jacobians(graph: Graph, values: Mapping[str, Bounded], backwards: bool = False) -> NodeJacobians:
    """The slopes of a graph's nodes, each of them measured once, when it is asked for. Of `values`, complex ones are
    pairs. backwards: with what is known of the formulas of gradients."""

    @cache
    def local(index: int, position: int) -> Jacobian:
        node = graph.nodes[index]
        operands = [values[name] for name in node.operands]
        call, result = call_of(graph, index), values[node.name]
        key = blake2b(repr((node.op, call, position, backwards)).encode())
        for one in (*operands, result):
            key.update(repr((one.dtype, one.value.shape, one.zero_sign)).encode())
            key.update(one.value.tobytes() + one.error.tobytes())
        asked = _Measurement(key.digest(), node.op, call, operands, result, position, backwards)
        small = sum(one.value.size for one in (*operands, result)) <= LARGEST
        return _kept(asked) if small else asked.carry_out()

    return local
