"""The cells of the table operator x dtype x dialect: which dtypes an operator takes, with small cases of each."""

from __future__ import annotations

from functools import cache

from generators.graph import DTYPES, TensorType
from generators.graphs import Case, seeded_case
from generators.ops.spec import OpSpec

_SHAPES = ((), (1, 2), (2,), (2, 3), (2, 4, 3), (2, 4, 3, 3), (2, 3, 4, 4, 2))


def dtypes_of(spec: OpSpec) -> list[str]:
    """dtypes that the operator's first operand may have."""
    slot = spec.slot(0)
    return [dtype for dtype in DTYPES if any(slot.accepts(TensorType(dtype, shape), ()) for shape in _SHAPES)]


@cache
def samples(operator: str, each: int = 2, drawn: int = 200) -> tuple[Case, ...]:
    """One-node cases of an operator: the first `each` drawn for every dtype of its first operand."""
    kept: dict[str, list[Case]] = {}
    for index in range(drawn):
        case = seeded_case(0, index, 1, (operator,))
        bucket = kept.setdefault(case.graph.types[case.graph.nodes[0].operands[0]].dtype, [])
        if len(bucket) < each:
            bucket.append(case)
    return tuple(case for bucket in kept.values() for case in bucket)
