"""Which elements an entry is about: what an expression may say, and where it holds."""

from __future__ import annotations

import numpy as np
import pytest

from harness.findings.known.predicate import Predicate, PredicateError, values_of

NAN, INF = np.nan, np.inf
X = np.array([[1.0, NAN, 3.0], [4.0, 5.0, INF]], np.float32)


def holds(text: str, shape: tuple[int, ...], **attributes: object) -> list:
    """Of an operator of X and of a row, whose result is zeros, of which it got ones."""
    values = values_of([X, np.arange(3)], attributes, "float32", np.zeros(shape), np.ones(shape))
    return Predicate(text).holds(values, shape).tolist()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("isnan(x0)", [[0, 1, 0], [0, 0, 0]]),
        ("isnan(x0) or isinf(x0)", [[0, 1, 0], [0, 0, 1]]),
        ("not isfinite(x0) and x1 > 1", [[0, 0, 0], [0, 0, 1]]),
        ("x1 == 2", [[0, 0, 1], [0, 0, 1]]),
        ("any(isnan(x0), axis)", [[1, 1, 1], [0, 0, 0]]),
        ("any(isnan(operands))", [[1, 1, 1], [1, 1, 1]]),
        ("max(x0) == 5", [[1, 1, 1], [1, 1, 1]]),
        ("mode == 'keys'", [[1, 1, 1], [1, 1, 1]]),
        ("item(scales, 1) == 2.5 and x1 < 1", [[1, 0, 0], [1, 0, 0]]),
        ("item(scales, 2) == 2.5 or item(axis, 0) == 1", [[0, 0, 0], [0, 0, 0]]),
        ("abs(got - expected) <= 4 * unit * abs(x0)", [[0, 0, 0], [0, 0, 1]]),
        ("largest > 3e38 and tiny < 2e-38 and least < 0", [[1, 1, 1], [1, 1, 1]]),
        ("any(stride > kernel)", [[1, 1, 1], [1, 1, 1]]),
        ("any(stride > 3)", [[0, 0, 0], [0, 0, 0]]),
        ("all(stride != kernel) and not any(stride == kernel)", [[1, 1, 1], [1, 1, 1]]),
        ("item(stride / kernel, 1) == 1.5", [[1, 1, 1], [1, 1, 1]]),
        ("x0 == missing", [[0, 0, 0], [0, 0, 0]]),
    ],
)
def test_where_it_holds(text: str, expected: list) -> None:
    found = holds(text, (2, 3), axis=1, mode="keys", scales=(1.0, 2.5), stride=(1, 3), kernel=(2, 2))
    assert found == np.array(expected, bool).tolist()


@pytest.mark.parametrize(
    ("axis", "shape", "expected"),
    [
        (1, (2,), [True, False]),
        (1, (2, 1), [[True], [False]]),
        (0, (3,), [False, True, False]),
        (0, (3, 3), [[False, True, False]] * 3),
        (None, (), True),
        (1, (4, 2), [[True, True]] * 4),
    ],
)
def test_where_a_reduction_holds(axis: int | None, shape: tuple[int, ...], expected: list) -> None:
    """Over the reduced axes; a result of another shape is excused as a whole."""
    assert holds("any(isnan(x0), axis)", shape, axis=axis) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x0 +", "no expression: invalid syntax"),
        ("__import__('os')", "not part of the language"),
        ("x0.shape", "x0.shape is not part of the language"),
        ("x0[0]", "not part of the language"),
        ("2 ** 3", "not part of the language"),
        ("lambda: 1", "not part of the language"),
        ("isnan(x0, where=1)", "not part of the language"),
        ("1 < x0 < 2", "not part of the language"),
        ("x7 == 0", "unknown name 'x7'; there are axis, expected, got, largest, least, operands, tiny, unit, x0"),
        ("x0 == 0 or " * 60 + "x0", "longer than 400 characters"),
    ],
)
def test_what_it_may_not_say(text: str, message: str) -> None:
    with pytest.raises(PredicateError) as caught:
        Predicate(text).check(("axis",), 1)
    assert message in str(caught.value)


def test_integers_and_complex_numbers() -> None:
    whole = values_of([np.array([-128, 3], np.int8)], {}, "int8", np.array([1, 2], np.int8))
    assert Predicate("x0 == least").holds(whole, (2,)).tolist() == [True, False]
    assert Predicate("signbit(x0)").holds(whole, (2,)).tolist() == [True, False]
    twofold = values_of([np.array([-1 - 0j, 1j], np.complex64)], {}, "complex64", None)
    assert Predicate("real(x0) < 0 and imag(x0) == 0").holds(twofold, (2,)).tolist() == [True, False]
