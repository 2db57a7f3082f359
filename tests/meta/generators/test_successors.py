"""Pairs of operators: the second takes the result of the first, and the same seed gives the same pair."""

from __future__ import annotations

import pytest

from generators import caseio
from generators.ops import OPS, check
from generators.sweep import pair, successors

SOME = tuple(OPS)[::29]


@pytest.mark.parametrize("first", SOME)
def test_the_second_takes_the_result_of_the_first(first: str) -> None:
    met = dict(successors(first, SOME))
    assert met
    for second, case in met.items():
        check(case.graph)
        producer, consumer = case.graph.nodes
        assert (producer.op, consumer.op) == (first, second)
        assert producer.name in consumer.operands
        assert case.graph.outputs == (consumer.name,)


def test_a_pair_depends_on_its_names_and_the_seed_alone() -> None:
    one, other = pair("add", "softmax"), pair("add", "softmax", 1)
    same = dict(successors("add", (*SOME, "softmax")))["softmax"]
    assert one is not None
    assert other is not None
    assert caseio.dumps(one) == caseio.dumps(same)
    assert caseio.dumps(one) != caseio.dumps(other)


def test_what_does_not_fit_is_no_pair() -> None:
    assert pair("equal", "conv2d") is None
