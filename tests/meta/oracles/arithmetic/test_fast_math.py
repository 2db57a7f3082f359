"""Fast math and TF32: what the modes allow is accepted, what they do not is caught, and each mode is really on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from examples.elementwise import applied, ordinarily, under
from examples.small_graphs import chain_case
from planted.targets import planted

from generators.bounds.bounded import Bounded
from generators.graph import Graph, Leaf, Node, TensorType
from generators.graphs import Case, seeded_case
from generators.ops import DRAWN, OPS, check
from harness.backends import TARGETS
from harness.backends.target.arithmetic import INDUCTOR_FAST, TORCH_TF32, TVM_CUDA, TVM_FAST, XLA_FAST, XLA_FASTEST
from harness.execute.pool import Pool
from harness.questions.derivatives.gradient import GRADIENT
from harness.questions.forward import FORWARD
from harness.search.campaign import Campaign
from harness.search.dtype_support import samples
from harness.search.laboratory import Laboratory
from oracles.arithmetic import fast_math
from oracles.judge.outcome import Outcome, Value
from oracles.questions import forward

F = np.float32


def value_of(pool: Pool, name: str, case: Case) -> np.ndarray:
    outcome: Outcome = Laboratory(pool).outcomes([(TARGETS[name], case)])[0]
    assert isinstance(outcome, Value), outcome
    return outcome.outputs[0]


@pytest.mark.parametrize(
    ("name", "cases"),
    [
        ("tvm-fast", 13),
        ("xla-fast", 13),
        ("xla-fastest", 13),
        pytest.param("torch-inductor-fast", 3, marks=pytest.mark.slow),
    ],
)
def test_correct_programs_are_accepted(name: str, cases: int, campaign: Campaign) -> None:
    """Drawn graphs, what is known of the back end apart; most of what they return is determined."""
    target = TARGETS[name]
    drawn = [chain_case(), *(seeded_case(11, index, 6, DRAWN) for index in range(12))]
    agreeing = 0
    for case in drawn[:cases]:
        verdict = campaign.lab.judge(case, [target]).verdicts[name]
        assert verdict.discrepancy is None or campaign.unexplained(target, case, verdict.discrepancy) is None
        agreeing += verdict.status == "agree"
    assert agreeing >= cases / 2
    assert target.arithmetic
    values = [value for case in drawn for value in fast_math.expect(case, target.arithmetic).values]
    assert sum(value.undetermined.sum() for value in values) < 0.2 * sum(value.value.size for value in values)


# ---- approximated functions --------------------------------------------------------------------------------

X = np.array([-87.0, -3.3, -0.34571975, 0.0, 1e-3, 1.0, 20.7, 57.88375, 71.7467, 88.0])


def test_the_polynomials_of_tvm_are_used(pool: Pool) -> None:
    case = applied(("exp", ("x",)), x=X)
    assert not np.array_equal(value_of(pool, "tvm-O2", case), value_of(pool, "tvm-fast", case))


def test_an_approximated_exponential_owes_what_was_measured() -> None:
    case = applied(("exp", ("x",)), x=X)
    right = np.exp(X.astype(F).astype(np.float64))
    assert under(TVM_FAST, case, right * (1 + 4e-6)).status == "agree"
    assert under(TVM_FAST, case, right * (1 + 9e-6)).status == "mismatch"
    assert ordinarily(case, right * (1 + 4e-6)).status == "mismatch"
    shares = applied(("exp", ("x",)), ("neg", ("v0",)), x=X)
    assert under(TVM_FAST, shares, -right * (1 - 4e-6)).status == "agree"


def test_beyond_its_clamp_it_is_undetermined_and_counted() -> None:
    case = applied(("exp", ("x",)), x=np.array([89.0, np.inf, np.nan, -100.0, 1.0]))
    verdict = under(TVM_FAST, case, np.array([2.4e38, np.inf, np.nan, 0.0, np.e]))
    assert (verdict.status, verdict.elements, verdict.undetermined) == ("agree", 5, 2)
    assert under(TVM_FAST, case, np.array([0.0, 0.0, np.nan, 1e-30, np.e])).status == "mismatch"
    assert under(TVM_FAST, case, np.array([0.0, 0.0, 1.0, 0.0, np.e])).status == "mismatch"


@pytest.mark.parametrize("text", ["relax.op.multiply({right}, relax.const(1.00002, {name}))", "relax.op.sigmoid({0})"])
def test_a_fault_of_the_approximation_is_found(text: str, pool: Pool) -> None:
    target, case = planted("exp", text, "tvm-fast"), applied(("exp", ("x",)), x=X)
    assert Laboratory(pool).judge(case, [target]).verdicts[target.name].status == "mismatch"


def test_what_is_composed_of_it_is_refused_with_the_reason() -> None:
    case = next(c for c in (seeded_case(0, i, 1, ("elu",)) for i in range(40)) if "float32" in str(c.graph))
    assert "composed" in (TARGETS["tvm-fast"].unsupported(case.graph) or "")


@pytest.mark.parametrize("name", ["xla-fast", "xla-fastest", "torch-inductor-fast"])
def test_what_is_reassociated_inside_an_operator_is_not_asked(name: str) -> None:
    """exp(s - max) of scores that are rounded once in one place and twice in another may overflow."""
    case = next(c for c in (seeded_case(0, i, 1, ("attention",)) for i in range(40)) if "float32" in str(c.graph))
    assert "reassociation" in (FORWARD.why_not(TARGETS[name], case.graph) or "")


def test_every_composition_of_it_is_listed() -> None:
    """Whatever says relax.op.exp or relax.op.nn.softmax in its program has a figure or is refused."""
    target = TARGETS["tvm-fast"]
    for operator in OPS:
        for case in samples(operator, "float32"):
            if target.unsupported(case.graph) is None and (operator, "float32") not in TVM_FAST.functions:
                assert not {"relax.op.exp(", "relax.op.nn.softmax("} & _calls(target.program(case.graph)), operator


def _calls(program: str) -> set[str]:
    return {text for text in ("relax.op.exp(", "relax.op.nn.softmax(") if text in program}


# ---- reassociation -----------------------------------------------------------------------------------------

A, B = np.array([1e8, 3.0, -7.25, 1.5]), np.array([1.0, 1e-3, 1e-9, 4.0])


def test_fast_math_is_on(pool: Pool) -> None:
    case = applied(("add", ("x", "y")), ("sub", ("v0", "x")), x=A, y=B)
    assert np.array_equal(value_of(pool, "xla-fast", case), B.astype(F))
    assert not np.array_equal(value_of(pool, "jax-jit", case), B.astype(F))
    nan = applied(("sub", ("x", "y")), ("maximum", ("v0", "y")), x=np.full(4, np.nan), y=B)
    assert np.isnan(value_of(pool, "xla-fast", nan)).all()
    assert not np.isnan(value_of(pool, "xla-fastest", nan)).all()


@pytest.mark.slow
def test_unsafe_math_is_on(pool: Pool) -> None:
    """GCC cancels x, and makes the quotients by one divisor products by its reciprocal."""
    case = applied(("add", ("x", "y")), ("sub", ("v0", "x")), x=A, y=B)
    assert np.array_equal(value_of(pool, "torch-inductor-fast", case), B.astype(F))
    assert not np.array_equal(value_of(pool, "torch-inductor", case), B.astype(F))


def test_one_operator_alone_keeps_its_bound() -> None:
    case = applied(("mul", ("x", "y")), x=A, y=B)
    ordinary, allowed = forward.expect(case).values[0], fast_math.expect(case, XLA_FAST).values[0]
    assert np.array_equal(ordinary.error, allowed.error)
    assert ordinary.zero_sign
    assert not allowed.zero_sign


@pytest.mark.parametrize("text", ["{right} * 1.0001", "{right} + 1e-3 * {0}", "jnp.where({0} > 3, 0, {right})"])
def test_a_fault_under_fast_math_is_found(text: str, pool: Pool) -> None:
    for name in ("xla-fast", "xla-fastest"):
        target = planted("add", text, name)
        case = applied(("add", ("x", "y")), ("mul", ("v0", "y")), x=np.abs(A), y=B)
        assert Laboratory(pool).judge(case, [target]).verdicts[target.name].status == "mismatch"


def test_what_is_not_honoured_is_undetermined() -> None:
    x = np.array([np.nan, np.inf, -np.inf, 2.0])
    case = applied(("neg", ("x",)), x=x)
    assert under(XLA_FAST, case, -x).undetermined == 0
    assert under(XLA_FAST, case, np.array([0.0, -np.inf, np.inf, -2.0])).status == "mismatch"
    verdict = under(XLA_FASTEST, case, np.array([0.0, 1.0, 2.0, -2.0]))
    assert (verdict.status, verdict.undetermined) == ("agree", 3)
    assert under(XLA_FASTEST, case, np.array([0.0, 1.0, 2.0, -3.0])).status == "mismatch"


def test_an_exponential_that_overflows_on_the_way_is_an_infinity() -> None:
    case = applied(("silu", ("x",)), x=np.array([-100.0, -80.0, 100.0]))
    assert fast_math.expect(case, XLA_FASTEST).values[0].undetermined.tolist() == [True, False, True]
    assert not fast_math.expect(case, XLA_FAST).values[0].undetermined.any()


def test_a_reciprocal_may_overflow_where_the_quotient_does_not() -> None:
    """Of softsign, that of 1 + |x|."""
    x = np.array([3e38, 3.0])
    for case in (applied(("div", ("x", "y")), x=np.array([1e38, 1.0]), y=x), applied(("softsign", ("x",)), x=-x)):
        assert fast_math.expect(case, XLA_FAST).values[0].undetermined.sum() == 0
        assert fast_math.expect(case, XLA_FASTEST).values[0].undetermined.tolist() == [True, False]


def test_the_rest_of_an_estimated_quotient_may_underflow() -> None:
    """Numbers below 2^-102 lose up to the estimate's error, greater ones nothing."""
    x = np.array([2.0**-120, 2.0**-115, 2.0**-60])
    lost = [np.array([1 + 3e-4, 1 + 1e-4, 1.0]), np.array([1.0, 1.0, 1 + 3e-5])]
    for case in (applied(("div", ("x", "x")), x=x), applied(("sinc", ("x",)), x=x)):
        assert [under(XLA_FASTEST, case, output).status for output in lost] == ["agree", "mismatch"]
        assert [under(XLA_FAST, case, output).status for output in lost] == ["mismatch", "mismatch"]


def test_arguments_may_be_taken_for_valid() -> None:
    """GCC makes x of sqrt(x) ** 2 under -funsafe-math-optimizations; a NaN that is given stays one."""
    case = applied(("sqrt", ("x",)), ("square", ("v0",)), x=np.array([-103.0, 4.0]))
    assert under(INDUCTOR_FAST, case, np.array([-103.0, 4.0])).status == "agree"
    assert under(INDUCTOR_FAST, case, np.array([-103.0, 5.0])).status == "mismatch"
    assert under(XLA_FAST, applied(("sqrt", ("x",)), x=np.array([-103.0])), np.array([-103.0])).status == "mismatch"
    given = applied(("sqrt", ("x",)), x=np.array([np.nan]))
    assert under(INDUCTOR_FAST, given, np.array([1.0])).status == "mismatch"


def test_a_quotient_by_an_infinity_that_is_open_is_open() -> None:
    """Whoever is the greatest, its sum may be infinite or not: nothing is said of the quotient, and nothing warned."""
    divisor = Bounded(np.array([np.inf, 4.0]), np.array([np.inf, 0.0]), "float32")
    x = Bounded(np.array([1.0, 1.0]), np.array([1e-9, 1e-9]), "float32")
    found = fast_math._uncorrected(x, divisor)
    assert found.error[0] == np.inf
    assert 0 < found.error[1] < 1e-8


def test_other_questions_are_not_asked() -> None:
    graph = chain_case().graph
    for name in ("tvm-fast", "xla-fast", "torch-cuda-tf32"):
        assert FORWARD.why_not(TARGETS[name], graph) is None
        assert "derived" in (GRADIENT.why_not(TARGETS[name], graph) or "")


def test_rules_of_functions_leave_what_has_none_to_other_questions() -> None:
    sums = applied(("add", ("x", "x")), ("neg", ("v0",)), x=np.ones(3, F))
    assert not TVM_CUDA.concerns(sums.graph)
    assert TVM_CUDA.concerns(applied(("exp", ("x",)), x=np.ones(3, F)).graph)
    assert TVM_CUDA.concerns(applied(("div", ("x", "x")), x=np.ones(3, F)).graph)
    for rules in (XLA_FAST, XLA_FASTEST, INDUCTOR_FAST, TORCH_TF32):
        assert rules.concerns(sums.graph)
    assert GRADIENT.why_not(TARGETS["tvm-cuda"], sums.graph) is None


# ---- CUDA --------------------------------------------------------------------------------------------------


def test_functions_of_cuda_may_be_as_far_off_as_documented_and_no_farther() -> None:
    """2 + floor(|1.173 x|) ulp of exp; absolute errors of the others on their intervals."""
    x = np.array([-60.0, -3.0, 0.5, 20.0, 80.0], F)
    case, exact = applied(("exp", ("x",)), x=x), np.exp(x.astype(np.float64))
    off = (2 + np.floor(np.abs(1.173 * x))) * 2.0**-23
    assert under(TVM_CUDA, case, (exact * (1 + 0.9 * off)).astype(F)).status == "agree"
    assert under(TVM_CUDA, case, (exact * (1 + 8 * off)).astype(F)).status == "mismatch"
    assert under(XLA_FAST, case, (exact * (1 + 0.9 * off)).astype(F)).status == "mismatch"  # 93 ulp at 80

    for name, least in (("sin", 2.0**-21.41), ("cos", 2.0**-21.19)):
        x = np.array([-3.1, 0.1, 1.5, 3.0], F)
        case, exact = applied((name, ("x",)), x=x), getattr(np, name)(x.astype(np.float64))
        assert under(TVM_CUDA, case, (exact + 0.9 * least).astype(F)).status == "agree"
        assert under(TVM_CUDA, case, (exact + 4 * least).astype(F)).status == "mismatch"
        beyond = applied((name, ("x",)), x=np.array([-4.0, 4.0], F))
        assert under(TVM_CUDA, beyond, np.array([0.5, 0.5], F)).status == "undetermined"


def test_a_subnormal_is_zero_to_functions_of_cuda() -> None:
    case = applied(("log", ("x",)), x=np.array([1e-40, 0.75], F))
    assert under(TVM_CUDA, case, np.array([-np.inf, np.log(0.75)], F)).status == "agree"
    assert under(TVM_CUDA, case, np.array([-np.inf, -np.inf], F)).status == "mismatch"


# ---- TF32 --------------------------------------------------------------------------------------------------


def rounded(x: np.ndarray, bits: int) -> np.ndarray:
    """float32 with so many bits of mantissa, to nearest, ties to even."""
    gone = 23 - bits
    raw = np.ascontiguousarray(x, F).view(np.int32)
    raw = raw + np.int32((1 << (gone - 1)) - 1) + ((raw >> gone) & 1)
    return (raw >> gone << gone).astype(np.int32).view(F)


def truncated_sum(terms: np.ndarray) -> np.ndarray:
    """Along the last axis in float32, each addition rounded towards zero, as tensor cores do."""
    total = np.zeros(terms.shape[:-1], F)
    for i in range(terms.shape[-1]):
        exact = total.astype(np.float64) + terms[..., i]
        near = exact.astype(F)
        total = np.where(np.abs(near) > np.abs(exact), np.nextafter(near, F(0)), near)
    return total


def product_case(inner: int, seed: int = 0) -> Case:
    rng = np.random.default_rng(seed)
    a, b = (rng.uniform(1, 2, shape).astype(F) for shape in ((16, inner), (inner, 16)))
    leaves = (Leaf("x0", TensorType("float32", a.shape)), Leaf("w0", TensorType("float32", b.shape), "parameter"))
    node = Node("v0", "matmul", ("x0", "w0"), (), TensorType("float32", (16, 16)))
    return Case(check(Graph(leaves, (node,), ("v0",))), {"x0": a, "w0": b})


@pytest.mark.parametrize("inner", [1, 2, 16, 257])
def test_a_product_in_tf32_is_accepted(inner: int) -> None:
    case = product_case(inner)
    a, b = (rounded(case.arrays[name], 10).astype(np.float64) for name in ("x0", "w0"))
    terms = a[:, None, :] * b.T[None, :, :]
    outputs = [truncated_sum(terms), np.sum(terms, -1, dtype=np.float64)]
    assert all(under(TORCH_TF32, case, output).status == "agree" for output in outputs)
    assert ordinarily(case, outputs[1]).status == "mismatch"


@pytest.mark.parametrize("bits", [9, 7])
@pytest.mark.parametrize("inner", [1, 2])
def test_operands_of_fewer_bits_are_caught(inner: int, bits: int) -> None:
    """Where few terms are added: the errors of many average out, which no bound can count on."""
    case = product_case(inner)
    a, b = (rounded(case.arrays[name], bits).astype(np.float64) for name in ("x0", "w0"))
    assert under(TORCH_TF32, case, a @ b).status == "mismatch"


def test_sums_in_bfloat16_are_caught() -> None:
    case = product_case(16)
    a, b = (rounded(case.arrays[name], 10) for name in ("x0", "w0"))
    assert under(TORCH_TF32, case, rounded(a @ b, 7)).status == "mismatch"


@pytest.mark.parametrize("operator", ["matmul", "linear", "conv2d", "addmm"])
def test_programs_whose_operands_are_rounded(operator: str, pool: Pool) -> None:
    """torch-eager, the operands of one operator rounded to 10 bits or to fewer: accepted under the rules of TF32, and
    caught; caught under the ordinary ones."""
    lab = Laboratory(pool)
    first = 1 if operator == "addmm" else 0  # the matrix that is added is no factor
    statuses: dict[tuple[int, bool], set[str]] = {}
    for bits in (10, 7):
        names = f"{{{first}}}", f"{{{first + 1}}}"
        text = "(lambda {}, {}: {{right}})(kept_bits({}, {bits}), kept_bits({}, {bits}))".format(*names * 2, bits=bits)
        for index in range(12):
            case = seeded_case(3, index, 1, (operator,))
            operands = case.graph.nodes[0].operands
            if len(set(operands)) < len(operands) or any(x.type.dtype != "float32" for x in case.graph.leaves):
                continue
            for tf32 in (True, False):
                target = replace(planted(operator, text), arithmetic=TORCH_TF32 if tf32 else None)
                verdict = lab.judge(case, [target]).verdicts[target.name]
                statuses.setdefault((bits, tf32), set()).add(verdict.status)
    assert "mismatch" not in statuses[10, True]
    assert "agree" in statuses[10, True]
    assert "mismatch" in statuses[10, False]
    assert "mismatch" in statuses[7, True]


def test_other_operators_stay_float32() -> None:
    case = applied(("mul", ("x", "y")), x=A, y=B)
    assert np.array_equal(forward.expect(case).values[0].error, fast_math.expect(case, TORCH_TF32).values[0].error)
