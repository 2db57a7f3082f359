"""Derivatives by way of complex numbers: values against formulas and against differences of whole graphs, in parts and
as moduli; conventions of frameworks; what is left open; faults that are seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from examples.one_node import applied
from planted.targets import planted

from generators.bounds.bounded import Bounded
from generators.graph import COMPLEX, Graph, Leaf, Node, TensorType
from generators.graphs import SMOOTH, Case, SeededDraw, build_case, seeded_case
from generators.ops import ON_REQUEST, OPS, check
from harness.backends import TARGETS
from harness.execute.pool import Pool
from harness.questions.derivatives.gradient import GRADIENT
from harness.questions.derivatives.hessian import HESSIAN
from harness.questions.derivatives.jvp import JVP
from harness.questions.question import Question
from harness.search.laboratory import Laboratory
from oracles.derivatives import gradient, jvp
from oracles.derivatives.complex_pairs import parts_of
from oracles.derivatives.node_jacobians import node_jacobians
from oracles.judge import reference

Array = np.ndarray
Z = np.array([0.5 - 1.25j, -2.25 + 0.75j, 3.0 + 2.0j, -1.5 - 0.5j], np.complex64)
OPERATORS = tuple(name for name, spec in OPS.items() if spec.family == "complex" and GRADIENT.concerns(name))


def pulled(case: Case, number: int = 0) -> Bounded:
    """The gradient by one leaf."""
    return gradient.expect(case).values[number]


def weight(case: Case) -> Array:
    return gradient.weights(case.graph)["v0"].astype(np.complex128)


def test_all_of_them_are_drawn() -> None:
    """But those that sweeps alone take."""
    often = set(OPERATORS) - set(ON_REQUEST)
    assert len(often) == 30
    assert often < set(GRADIENT.drawn)
    assert often < set(JVP.drawn)


# ---- values -------------------------------------------------------------------------------------------

HOLOMORPHIC: dict[str, Callable[[Array], Array]] = {
    "complex_exp": np.exp,
    "complex_log": np.reciprocal,
    "complex_neg": lambda z: -np.ones_like(z),
    "complex_reciprocal": lambda z: -1 / z**2,
    "complex_sqrt": lambda z: 0.5 / np.sqrt(z),
    "complex_square": lambda z: 2 * z,
}


@pytest.mark.parametrize("operator", HOLOMORPHIC)
@pytest.mark.parametrize("dtype", COMPLEX)
def test_functions_with_a_derivative(operator: str, dtype: str) -> None:
    """w is pulled back to w conj(f'), t is pushed to f' t; and not much beside is allowed."""
    case = applied(operator, Z.astype(dtype))
    slope = HOLOMORPHIC[operator](Z.astype(np.complex128))
    unit = 2.0**-24 if dtype == "complex64" else 4e-12
    for found, right in (
        (pulled(case), weight(case) * slope.conj()),
        (jvp.expect(case).values[0], jvp.tangents(case.graph)["x0"] * slope),
    ):
        assert (np.abs(found.value - right) <= 1e-10 * np.abs(right)).all()
        assert (found.error <= 200 * unit * np.abs(right)).all()
        assert (found.error >= 2.0**-54 * np.abs(right)).all()


REAL: dict[str, Callable[[Array, Array], Array]] = {
    "modulus": lambda z, w: w * z / np.abs(z),
    "phase": lambda z, w: 1j * w * z / np.abs(z) ** 2,
    "real_part": lambda z, w: w + 0j * z,
    "imaginary_part": lambda z, w: 1j * w + 0 * z,
    "conj": lambda z, w: np.conj(w) + 0 * z,
    "complex_sign": lambda z, w: (w - np.real(w * np.conj(z)) * z / np.abs(z) ** 2) / np.abs(z),
}


@pytest.mark.parametrize("operator", REAL)
def test_functions_without_one(operator: str) -> None:
    case = applied(operator, Z)
    found, right = pulled(case), REAL[operator](Z.astype(np.complex128), weight(case))
    assert (np.abs(found.value - right) <= 1e-10).all()
    assert (found.error <= 2e-5).all()


def along(case: Case, step: float) -> float:
    """The weighted sum of all outputs with all leaves a step along their tangents."""
    tangents = jvp.tangents(case.graph)
    arrays = {name: a + step * tangents[name] if name in tangents else a for name, a in case.arrays.items()}
    values, weights = reference.evaluate(case.graph, arrays), gradient.weights(case.graph)
    return sum(float(np.sum(parts_of(values[name].value) * parts_of(w))) for name, w in weights.items())


@pytest.mark.slow
def test_graphs_of_real_and_complex_leaves_agree_with_their_differences() -> None:
    """Gradients and tangents against central differences of whole graphs along one direction, in double precision."""
    kinds: set[frozenset[str]] = set()
    style = replace(SMOOTH, favoured=("float64", "complex128"), mixture=(("normal", "uniform"),))
    for number in range(40):
        case = seeded_case(7, number, 4, (*OPERATORS, "mul", "sum", "reshape", "exp", "concat"), style)
        dtypes = frozenset(leaf.type.dtype for leaf in gradient.differentiable_leaves(case.graph))
        if not dtypes or not dtypes <= {"float64", "complex128"}:
            continue
        back, ahead = gradient.expect(case), jvp.expect(case)
        with np.errstate(all="ignore"):
            slope = (along(case, 1e-6) - along(case, -1e-6)) / 2e-6
        bounds = (*back.values, *ahead.values)
        if not np.isfinite(slope) or any(b.undetermined.any() or (b.error > 1e-6).any() for b in bounds):
            continue
        tangents, weights = jvp.tangents(case.graph), gradient.weights(case.graph)
        terms = [parts_of(t) * parts_of(b.value) for t, b in zip(tangents.values(), back.values, strict=True)]
        outputs = [case.graph.outputs[i] for i in jvp.moved(case.graph)]
        others = [parts_of(weights[n]) * parts_of(b.value) for n, b in zip(outputs, ahead.values, strict=True)]
        for side in (terms, others):
            size = 1 + sum(float(np.sum(np.abs(term))) for term in side)
            assert abs(sum(float(np.sum(term)) for term in side) - slope) <= 1e-5 * size, case.graph
        kinds.add(dtypes)
    assert kinds == {frozenset(k) for k in (("float64",), ("complex128",), ("float64", "complex128"))}


def test_what_is_off_is_known_by_the_modulus() -> None:
    """However small a part is; and it does not grow where real numbers stand in for complex ones."""
    z = np.array([1e-3 + 40j, 25.0 + 0j], np.complex64)
    case = applied("complex_square", z)
    found = pulled(case)
    nudged = found.value + 3 * 2.0**-24 * np.abs(found.value) * np.array([1, 1j])
    assert (np.abs(nudged - found.value) <= found.error).all()
    parts = applied("complex", np.ones(3, np.float32), np.ones(3, np.float32))
    assert all((pulled(parts, i).error < 5e-6).all() for i in (0, 1))


def test_blocks_have_the_size_of_the_derivative() -> None:
    case = applied("complex_div", Z, Z[::-1].copy())
    slopes = node_jacobians(case.graph, gradient.evaluated(case))(0, 1)
    x, y = Z.astype(np.complex128), Z[::-1].astype(np.complex128)
    assert slopes.block == 4
    assert np.allclose(slopes.size, np.repeat(np.abs(x / y**2), 4), rtol=1e-9)
    marked = np.arange(16) == 6
    assert slopes.together(marked).tolist() == [False] * 4 + [True] * 4 + [False] * 8
    turn = applied("polar", np.array([2.0], np.float32), np.array([0.0], np.float32))
    assert np.allclose(node_jacobians(turn.graph, gradient.evaluated(turn))(0, 1).size, [2, 2])


# ---- what is left open --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("operator", "array", "open_"),
    [
        ("modulus", [0, 1j], [True, False]),
        ("phase", [0, -1, 1], [True, True, False]),
        ("complex_sign", [0, 1e-30, 1], [True, True, False]),
        ("complex_log", [-2, -2 + 1j, 2], [True, False, False]),
        ("complex_sqrt", [-2, 0, 2], [True, True, False]),
        ("complex_reciprocal", [0, 1e-30 + 0j, 1], [True, True, False]),
        ("complex_square", [1e25, 1e8j], [True, False]),
        ("complex_exp", [100, 1j], [True, False]),
    ],
)
def test_cuts_zeros_poles_and_overflow(operator: str, array: list[complex], open_: list[bool]) -> None:
    case = applied(operator, np.array(array, np.complex64))
    assert pulled(case).undetermined.tolist() == open_
    assert jvp.expect(case).values[0].undetermined.tolist() == open_


def test_a_part_that_is_not_finite_leaves_its_number_open() -> None:
    case = applied("conj", np.array([complex(np.inf, 1), 1], np.complex64))
    assert pulled(case).undetermined.tolist() == [True, False]


def test_second_derivatives_are_not_asked_for() -> None:
    graph = applied("complex_exp", Z).graph
    assert "complex" in (HESSIAN.unsupported(TARGETS["torch-eager"], graph) or "")


# ---- frameworks ---------------------------------------------------------------------------------------


def through_complex() -> Case:
    """|exp(a + b i) c|, of two real leaves and a complex one; and the product itself."""
    real, number = TensorType("float32", (4,)), TensorType("complex64", (4,))
    nodes = (
        Node("v0", "complex", ("a", "b"), (), number),
        Node("v1", "complex_exp", ("v0",), (), number),
        Node("v2", "complex_mul", ("v1", "c"), (), number),
        Node("v3", "modulus", ("v2",), (), real),
    )
    graph = check(Graph((Leaf("a", real), Leaf("b", real, "parameter"), Leaf("c", number)), nodes, ("v3", "v2")))
    return Case(graph, {"a": np.real(Z).copy(), "b": np.imag(Z).copy(), "c": Z[::-1].copy()})


@pytest.mark.parametrize("question", [GRADIENT, JVP], ids=lambda question: question.name)
def test_conventions(question: Question, pool: Pool) -> None:
    """PyTorch and JAX agree with the reference, and well inside the bound; JAX's own convention would not pass."""
    lab, case = Laboratory(pool, question), through_complex()
    names = ["torch-eager", "jax-eager"]
    seen = lab.judge(case, [TARGETS[name] for name in names], confirm=False)
    assert [seen.verdicts[name].status for name in names] == ["agree", "agree"]
    assert [str(b.dtype) for b in seen.expected.values][-1] == "complex64"
    outputs = seen.outcomes["torch-eager"].outputs  # type: ignore[union-attr]
    for output, bound in zip(outputs, seen.expected.values, strict=True):
        assert (np.abs(output - bound.value) <= 0.5 * bound.error).all()
        assert (bound.error <= 2e-4 * np.max(np.abs(bound.value))).all()


@pytest.mark.parametrize("conjugate", ["jnp.conj(found)", "jnp.conj(given[weight])"])
def test_a_conjugate_left_out_is_seen(conjugate: str, pool: Pool) -> None:
    target = TARGETS["jax-eager"]
    assert isinstance(target.gradient, str)
    assert conjugate in target.gradient
    inner = conjugate.removeprefix("jnp.conj(")[:-1]
    wrong = replace(target, name="planted", gradient=target.gradient.replace(conjugate, inner))
    seen = Laboratory(pool, GRADIENT).judge(through_complex(), [wrong], confirm=False)
    assert seen.verdicts["planted"].status == "mismatch"


PUSHED = [
    ("conjugate left in", "complex_mul", "lambda r, t, x, y: t[0].conj() * y + x * t[1]", 2),
    ("conjugate left out", "conj", "lambda r, t, x: t[0].clone()", 1),
    ("parts swapped", "complex_exp", "lambda r, t, x: torch.complex(r.imag, r.real)", 1),
    ("factor 2 in one part", "complex_reciprocal", "lambda r, t, x: torch.complex(r.real, 2 * r.imag)", 1),
    ("error of 1e-4", "complex_sqrt", "lambda r, t, x: r * 1.0001", 1),
    ("imaginary part stopped", "modulus", "lambda r, t, x: t[0].real * x.real / torch.abs(x)", 1),
]


@pytest.mark.parametrize(("name", "operator", "how", "count"), PUSHED, ids=[f"{f[1]}: {f[0]}" for f in PUSHED])
def test_faults_of_tangents_are_found(name: str, operator: str, how: str, count: int, pool: Pool) -> None:
    """Within 20 cases of the operator alone, in which PyTorch itself is right."""
    arguments = ", ".join(f"a{i}" for i in range(count))
    text = f"pushed(lambda {arguments}: {{alone}}, {how}, {', '.join(f'{{{i}}}' for i in range(count))})"
    lab, wrong, right = Laboratory(pool, JVP), planted(operator, text), TARGETS["torch-eager"]
    assert OPS[operator].family == "complex"
    for number in range(20):
        case = build_case(SeededDraw(f"40/{operator}/{number}"), 1, (operator,), SMOOTH)
        if lab.judge(case, [wrong], confirm=False).verdicts[wrong.name].status == "mismatch":
            assert lab.judge(case, [right], confirm=False).verdicts[right.name].status == "agree"
            return
    raise AssertionError(f"{operator}: {name} was not found")
