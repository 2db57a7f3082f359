"""Complex numbers: compared part by part and by modulus; bounds that correct formulas keep; faults that are seen."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from examples.one_node import applied
from planted.faults.complex import COMPLEX_FAULTS
from planted.faults.forward import Fault
from planted.targets import planted

from generators.bounds import complex_values
from generators.bounds.bounded import Bounded
from generators.graph import COMPLEX, COMPONENT, Leaf, TensorType
from generators.graphs import Case
from generators.inputs import FLOATING, Recipe, fill
from generators.ops import OPS
from generators.retype import float64_twin
from generators.sweep import sweep
from harness.backends import TARGETS
from harness.dialects import ONNX, RELAX
from harness.findings import reproducer
from harness.questions.forward import FORWARD
from harness.questions.question import reproduction_of
from harness.search.campaign import Campaign
from harness.search.reduce import Budget, reduce
from oracles.judge.compare import Expected, compare
from oracles.judge.outcome import Value
from oracles.judge.verdict import judge
from oracles.questions import forward, levels

Array = np.ndarray
C3 = TensorType("complex64", (3,))
INF, NAN = np.inf, np.nan


def number(real: float, imag: float) -> complex:
    return complex(real, imag)


# ---- comparison ---------------------------------------------------------------------------------------

EXPECTED = Bounded(np.array([1 + 2j, number(INF, 1), number(NAN, -INF)]), np.array([1e-6, 1e-6, 0.0]), "complex64")
RIGHT = np.array([1 + 2j, number(INF, 1), number(NAN, -INF)], np.complex64)


@pytest.mark.parametrize(
    ("place", "got", "symptom"),
    [
        (0, 1 + 2j, None),
        (0, number(1 + 5e-7, 2 - 5e-7), None),
        (0, number(1 + 9e-7, 2 - 9e-7), "value"),  # each part within the bound, the modulus is not
        (0, 1 - 2j, "value"),
        (0, number(1, NAN), "special"),
        (0, number(INF, 2), "special"),
        (1, number(INF, 1.1), "value"),
        (1, number(-INF, 1), "special"),
        (1, number(INF, NAN), "special"),
        (1, number(3e38, 1), "special"),
        (2, number(NAN, INF), "special"),
        (2, number(0, -INF), "special"),
    ],
)
def test_parts_and_moduli_are_compared(place: int, got: complex, symptom: str | None) -> None:
    output = RIGHT.copy()
    output[place] = got
    found = compare(output, C3, EXPECTED)
    assert (found and found.symptom) == symptom
    loose = replace(EXPECTED, error=np.where(np.arange(3) == place, INF, EXPECTED.error))
    assert compare(output, C3, loose) is None


def test_the_sign_of_a_zero_part_counts_where_it_is_fixed() -> None:
    case = applied("conj", np.array([number(0.0, 0.0)], np.complex64))
    expected = forward.expect(case)
    assert judge(expected, Value((np.array([number(0.0, -0.0)], np.complex64),))).status == "agree"
    assert judge(expected, Value((np.array([number(0.0, 0.0)], np.complex64),))).status == "mismatch"


def test_levels_with_complex_results() -> None:
    a = np.array([number(1, NAN), 1 + 1j], np.complex64)
    assert levels.identical(a, a.conj().conj())
    assert not levels.identical(a, a.conj())
    expected = forward.expect(applied("complex_mul", a, a))
    low = a * a
    assert levels.judge(expected, [low], [low * np.float32(1 + 1e-6)]).agreement == "different"
    assert levels.judge(expected, [low], [low * np.float32(1 + 1e-7)]).agreement == "within_bound"


# ---- bounds -------------------------------------------------------------------------------------------


def parts(z: Array) -> tuple[Array, Array]:
    return np.real(z), np.imag(z)


def whole(real: Array, imag: Array) -> Array:
    return np.stack([real, imag], axis=-1).view(np.result_type(real, np.complex64))[..., 0]


def plain_product(x: Array, y: Array) -> Array:
    (a, b), (c, d) = parts(x), parts(y)
    return whole(a * c - b * d, a * d + b * c)


def plain_quotient(x: Array, y: Array) -> Array:
    (a, b), (c, d) = parts(x), parts(y)
    size = c * c + d * d
    return whole((a * c + b * d) / size, (b * c - a * d) / size)


def smiths_quotient(x: Array, y: Array) -> Array:
    (a, b), (c, d) = parts(x), parts(y)
    swap = np.abs(c) < np.abs(d)
    a, b, c, d = np.where(swap, b, a), np.where(swap, -a, b), np.where(swap, d, c), np.where(swap, -c, d)
    r = d / c
    one = 1 / (c + d * r)
    return whole((a + b * r) * one, (b - a * r) * one)


def polar_root(x: Array) -> Array:
    a, b = parts(x)
    r, angle = np.sqrt(np.hypot(a, b)), np.arctan2(b, a) / 2
    return whole(r * np.cos(angle), r * np.sin(angle))


def plain_log(x: Array) -> Array:
    a, b = parts(x)
    return whole(np.log(np.hypot(a, b)), np.arctan2(b, a))


def plain_exp(x: Array) -> Array:
    a, b = parts(x)
    return whole(np.exp(a) * np.cos(b), np.exp(a) * np.sin(b))


def plain_sine(x: Array) -> Array:
    a, b = parts(x)
    return whole(np.sin(a) * np.cosh(b), np.cos(a) * np.sinh(b))


def plain_cosine(x: Array) -> Array:
    a, b = parts(x)
    return whole(np.cos(a) * np.cosh(b), -np.sin(a) * np.sinh(b))


def plain_tangent(x: Array) -> Array:
    t, h = (f(part) for f, part in zip((np.tan, np.tanh), parts(x), strict=True))
    return smiths_quotient(whole(t, h), whole(np.ones_like(t), -t * h))


def turned(formula: Callable[[Array], Array], back: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """Of a hyperbolic function: that of i x, turned back. Parts change places: no product makes a NaN."""

    def of(x: Array) -> Array:
        a, b = parts(x)
        return back(formula(whole(-b, a)))

    return of


def backwards(x: Array) -> Array:
    a, b = parts(x)
    return whole(b, -a)


def plain_power(x: Array, y: Array) -> Array:
    return np.where(y == 0, 1, np.where(x == 0, 0, plain_exp(plain_product(y, plain_log(np.where(x == 0, 1, x))))))


def careful_log1p(x: Array) -> Array:
    a, b = parts(x)
    one, half = a.dtype.type(1), a.dtype.type(0.5)
    near = half * np.log1p(a * (2 * one + a) + b * b)
    return whole(np.where(np.hypot(a, b) < half, near, np.log(np.hypot(one + a, b))), np.arctan2(b, one + a))


def careful_expm1(x: Array) -> Array:
    a, b = parts(x)
    half = np.sin(b / 2)
    return whole(np.expm1(a) * np.cos(b) - 2 * half * half, np.exp(a) * np.sin(b))


def halved_sigmoid(x: Array) -> Array:
    a, _ = parts(x)
    w = plain_exp(np.where(a < 0, x, -x))
    return smiths_quotient(np.where(a < 0, w, np.ones_like(w)), 1 + w)


def direction(x: Array) -> Array:
    return np.where(x == 0, 0, x / np.where(x == 0, 1, np.abs(x)))


FORMULAS: list[tuple[str, Callable[..., Array], Callable[..., Array]]] = [
    ("complex_mul", plain_product, np.multiply),
    (
        "complex_square",
        lambda x: whole((np.real(x) - np.imag(x)) * (np.real(x) + np.imag(x)), 2 * np.real(x) * np.imag(x)),
        np.square,
    ),
    ("complex_div", plain_quotient, np.divide),
    ("complex_div", smiths_quotient, np.divide),
    ("complex_reciprocal", lambda x: plain_quotient(np.ones_like(x), x), np.reciprocal),
    ("complex_sqrt", polar_root, np.sqrt),
    ("complex_log", plain_log, np.log),
    ("complex_exp", plain_exp, np.exp),
    ("complex_sin", plain_sine, np.sin),
    ("complex_cos", plain_cosine, np.cos),
    ("complex_tan", plain_tangent, np.tan),
    ("complex_tan", np.tan, np.tan),
    ("complex_sinh", turned(plain_sine, backwards), np.sinh),
    ("complex_cosh", turned(plain_cosine, lambda x: x), np.cosh),
    ("complex_tanh", turned(plain_tangent, backwards), np.tanh),
    ("complex_rsqrt", lambda x: smiths_quotient(np.ones_like(x), polar_root(x)), lambda x: 1 / np.sqrt(x)),
    ("complex_pow", plain_power, lambda x, y: np.exp(y * np.log(x))),
    ("complex_sign", direction, direction),
    ("complex_sigmoid", halved_sigmoid, halved_sigmoid),
    ("complex_log1p", careful_log1p, careful_log1p),
    ("complex_expm1", careful_expm1, careful_expm1),
    ("complex_asin", np.arcsin, np.arcsin),
    ("complex_acos", np.arccos, np.arccos),
    ("complex_atan", np.arctan, np.arctan),
    ("complex_asinh", np.arcsinh, np.arcsinh),
    ("complex_acosh", np.arccosh, np.arccosh),
    ("complex_atanh", np.arctanh, np.arctanh),
    ("modulus", np.abs, np.abs),
    ("phase", np.angle, np.angle),
]


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize(
    ("operator", "formula", "accurate"), FORMULAS, ids=[f"{n}-{f.__name__}" for n, f, _ in FORMULAS]
)
def test_correct_formulas_are_within_the_bound(
    operator: str, formula: Callable, accurate: Callable, dtype: str
) -> None:
    """In the dtype itself, and the reference beside 64 bits of mantissa; what is farther off is not accepted."""
    count = len(OPS[operator].operands)
    determined = 0
    for i, name in enumerate(FLOATING):
        leaf = Leaf("x0", TensorType(dtype, (400,)))
        arrays = [fill(leaf, Recipe(name, 10 * i + j)) for j in range(count)]
        expected = forward.expect(applied(operator, *arrays))
        bound = expected.values[0]
        with np.errstate(all="ignore"):
            got = formula(*arrays)
            exact = accurate(*[a.astype(np.clongdouble) for a in arrays])
            assert judge(expected, Value((got,))).discrepancy is None, name
            sure = ~bound.undetermined & np.isfinite(exact)
            assert (np.abs(exact - bound.value) <= bound.error)[sure].all(), name
            beyond = bound.value + np.where(sure, 1.2 * bound.error, 0.0)
        determined += int(sure.sum())
        if (bound.error[sure] > 0).any() and name == "normal":
            assert judge(expected, Value((beyond.astype(got.dtype),))).status == "mismatch"
    assert determined > 400 * len(FLOATING) / 3


@pytest.mark.parametrize("dtype", COMPLEX)
def test_sums_and_products_in_another_order_are_within_the_bound(dtype: str) -> None:
    rng = np.random.default_rng(3)
    x, y = ((rng.standard_normal((4, 40)) + 1j * rng.standard_normal((4, 40))).astype(dtype) for _ in range(2))
    total = np.zeros(4, dtype)
    inner = np.zeros(4, dtype)
    for i in reversed(range(40)):
        total = total + x[:, i]
        inner = inner + plain_product(x[:, i].conj(), y[:, i])
    exact = x.astype(np.clongdouble).sum(axis=1)
    for case, got in (
        (applied("complex_sum", x, axes=(1,), keepdims=False), total),
        (applied("complex_inner", x, y), inner),
        (
            applied("complex_matmul", x, y.T.copy()),
            (x.astype(np.clongdouble) @ y.T.astype(np.clongdouble)).astype(dtype),
        ),
    ):
        expected = forward.expect(case)
        assert judge(expected, Value((got,))).status == "agree"
        beyond = expected.values[0].value + 1.5 * expected.values[0].error
        assert judge(expected, Value((beyond.astype(dtype),))).status == "mismatch"
    assert (np.abs(exact - x.astype(np.complex128).sum(axis=1)) < 1e-13).all()


@pytest.mark.parametrize("dtype", COMPLEX)
def test_distributions_fill_both_parts(dtype: str) -> None:
    for name in FLOATING:
        array = fill(Leaf("x0", TensorType(dtype, (300,))), Recipe(name, 0))
        assert str(array.dtype) == dtype
        assert len(np.unique(np.real(array))) > 1, name
        assert not np.array_equal(np.real(array), np.imag(array)), name


def test_what_overflows_on_the_way_only_is_wrong() -> None:
    x = np.array([1 + 89j], np.complex64)
    (a, b), with_half = parts(x), np.float32(0.5)
    with np.errstate(over="ignore"):
        wrong = whole(np.sin(a) * (np.exp(b) * with_half), np.cos(a) * (np.exp(b) * with_half))
    expected = forward.expect(applied("complex_sin", x))
    assert judge(expected, Value((plain_sine(x),))).discrepancy is None
    found = judge(expected, Value((wrong,))).discrepancy
    assert found
    assert found.symptom == "special"


def test_powers_of_zero() -> None:
    zero, finite = np.zeros(4, np.complex64), np.array([0, 2, 1j, -1], np.complex64)
    bound = forward.expect(applied("complex_pow", zero, finite)).values[0]
    assert bound.value[:2].tolist() == [1, 0]
    assert bound.undetermined.tolist() == [False, False, True, True]
    wild = np.array([number(INF, 0), number(0, NAN)], np.complex64)
    assert forward.expect(applied("complex_pow", wild, np.zeros(2, np.complex64))).values[0].undetermined.all()


# ---- the rest of the way ------------------------------------------------------------------------------


def test_dialects_without_complex_numbers_say_so() -> None:
    graph = applied("identity", np.ones(2, np.complex64)).graph
    assert "no complex" in (RELAX.unsupported(graph) or "")
    assert "complex" in (ONNX.unsupported(graph) or "")


def test_the_twin_of_complex64_is_complex128() -> None:
    twin = float64_twin(applied("modulus", np.ones(2, np.complex64)))
    assert twin
    assert {t.dtype for t in twin.graph.types.values()} == {"complex128", "float64"}
    assert float64_twin(applied("conj", np.ones(2, np.complex128))) is None


@pytest.mark.slow(one_in=3)
@pytest.mark.parametrize(("size", "wrong"), [(4, False), (4, True), (100, True)])
def test_a_reproducer_stands_alone(tmp_path: Path, size: int, wrong: bool) -> None:
    array = np.arange(size) * (1 - 2j)
    array[1] = number(INF, NAN)
    case = applied("conj", array.astype(np.complex64))

    def expect(case: Case) -> Expected:
        right = forward.expect(case)
        values = np.where(np.arange(size) == 2, 7.0 if wrong else right.values[0].value, right.values[0].value)
        return replace(right, values=(replace(right.values[0], value=values),))

    question = replace(FORWARD, expect=expect)
    path = reproducer.write(tmp_path, reproduction_of(question, TARGETS["torch-eager"], case), "value", "a title", 60.0)
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == int(wrong), done.stdout + done.stderr


def test_arrays_are_simplified(tmp_path: Path) -> None:
    case = applied("conj", np.array([1.2345 + 0.3j, 3.25 - 7j], np.complex64))
    small = reduce(case, lambda c: bool(np.any(np.imag(c.arrays["x0"]) != 0)), Budget())
    assert small.arrays["x0"].tolist() in ([1j], [1 + 1j], [0j, 1j], [1j, 0j])


# ---- planted faults -----------------------------------------------------------------------------------


@pytest.mark.slow(one_in=3)
@pytest.mark.parametrize("fault", COMPLEX_FAULTS, ids=lambda fault: f"{fault.operator}: {fault.name}")
def test_fault_is_seen(fault: Fault, campaign: Campaign) -> None:
    """By the sweep of its operator; on the target without the fault, the same cases show nothing that is not known."""
    target, right = planted(fault.operator, fault.text), TARGETS["torch-eager"]
    cases = list(sweep(fault.operator, 60))
    wrong = [
        judge(forward.expect(c), o)
        for c, o in zip(cases, campaign.lab.outcomes([(target, c) for c in cases]), strict=True)
    ]
    assert any(v.discrepancy and v.discrepancy.symptom in ("value", "special") for v in wrong)
    for case, outcome in zip(cases, campaign.lab.outcomes([(right, c) for c in cases]), strict=True):
        found = judge(forward.expect(case), outcome).discrepancy
        assert not found or campaign.unexplained(right, case, found) is None, found


def test_there_are_enough_faults() -> None:
    assert len(set(COMPLEX_FAULTS)) == len(COMPLEX_FAULTS) >= 16
    assert {OPS[fault.operator].family for fault in COMPLEX_FAULTS} == {"complex"}
    assert set(COMPONENT) == set(COMPLEX)


def test_a_quotient_by_what_may_be_anything_is_undetermined() -> None:
    """Its bound is no number less than zero."""
    x = Bounded(np.array([1 + 1j, 2 - 1j]), np.array([np.inf, 5.0]), "complex64")
    one = Bounded(np.ones(2, np.complex128), np.zeros(2), "complex64")
    assert complex_values.divide(one, x).error.tolist() == [np.inf, np.inf]
