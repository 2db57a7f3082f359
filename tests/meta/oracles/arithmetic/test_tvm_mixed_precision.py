"""TVM's ToMixedPrecision: what is told of its casts is what the pass makes, what they allow is accepted, faults are
caught."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from examples.small_graphs import chain_case
from planted.targets import planted

from generators.graph import Graph, Leaf, Node, TensorType
from generators.graphs import Case, seeded_case
from generators.ops import DRAWN, OPS, check
from harness.backends import TARGETS, Target
from harness.backends.target.arithmetic import TVM_MIXED
from harness.backends.target.text import before
from harness.execute.pool import Pool
from harness.questions.forward import FORWARD
from harness.search.blame.culprit import diverging
from harness.search.campaign import Campaign
from harness.search.dtype_support import samples
from harness.search.hypothesis_profiles import nightly
from harness.search.laboratory import Laboratory
from oracles.arithmetic import fast_math, tvm_mixed_precision
from oracles.judge.outcome import Rejected, Value
from oracles.judge.verdict import Verdict, judge
from oracles.questions import forward

F = np.float32
SUMS = {"tvm-mixed": "float32", "tvm-mixed-half": "float16"}
MIXED = TARGETS["tvm-mixed"]


def graph_of(*nodes: tuple[str, tuple[str, ...]], **leaves: np.ndarray) -> Case:
    """Nodes v0, v1, … without attributes, the last one the output; leaves named w… are parameters."""
    types = {name: TensorType(str(array.dtype), array.shape) for name, array in leaves.items()}
    known = [Leaf(name, type_, "parameter" if name[0] == "w" else "input") for name, type_ in types.items()]
    made = []
    for i, (op, operands) in enumerate(nodes):
        types[f"v{i}"] = OPS[op].result(tuple(types[o] for o in operands), {})
        made.append(Node(f"v{i}", op, operands, (), types[f"v{i}"]))
    return Case(check(Graph(tuple(known), tuple(made), (made[-1].name,))), leaves)


def wide() -> Case:
    """A product of 3 x 40 by 40 x 2, then its hyperbolic tangent."""
    rng = np.random.default_rng(5)
    x, w = (rng.uniform(-0.5, 0.5, shape).astype(F) for shape in ((3, 40), (40, 2)))
    return graph_of(("matmul", ("x0", "w0")), ("tanh", ("v0",)), x0=x, w0=w)


def under(case: Case, output: np.ndarray, sums: str = "float32") -> Verdict:
    return judge(fast_math.expect(case, TVM_MIXED[sums]), Value((np.asarray(output, F),)))


# ---- what the pass does ------------------------------------------------------------------------------------

_LOOK = """
    steps = [relax.transform.BindParams("main", parameters), relax.transform.ToMixedPrecision()]
    module = tvm.transform.Sequential(steps)(bb.get())
    bindings = [binding for block in module["main"].body.blocks for binding in block.bindings]
    bound = {binding.var: binding.value for binding in bindings}

    def low(field):
        value = bound.get(field)
        cast = isinstance(value, relax.Call) and value.op.name == "relax.astype"
        return str(value.args[0].ty.dtype if cast else field.ty.dtype) == "float16"

    def run(*inputs):
        return [np.array([low(field) for field in bound[module["main"].body.body].fields])]

    return run
"""


def _made(pool: Pool, cases: Sequence[Case]) -> list[tuple[Case, list[bool]]]:
    """Of the cases that the pass takes, every node an output: which values it keeps in float16."""
    looking = replace(MIXED, load=before(MIXED.load, "    target = ") + _LOOK)
    every = [Case(replace(c.graph, outputs=tuple(n.name for n in c.graph.nodes)), c.arrays) for c in cases]
    every = [case for case in every if FORWARD.why_not(MIXED, case.graph) is None]
    outcomes = Laboratory(pool).outcomes([(looking, case) for case in every], confirm=False)
    assert all(isinstance(outcome, (Value, Rejected)) for outcome in outcomes)
    found = zip(every, outcomes, strict=True)
    return [(case, outcome.outputs[0].tolist()) for case, outcome in found if isinstance(outcome, Value)]


def test_values_have_the_dtypes_that_are_told(pool: Pool) -> None:
    """Every operator alone, and drawn graphs. Where a function of the dialect takes constants, only that a step may be
    of float16 is told. What casts itself, as identity does, back to float32, does not show its own dtype."""
    cases = [case for op in OPS for case in samples(op, "float32")[: 3 if nightly() else 1]]
    cases += [seeded_case(5, index, 6, DRAWN) for index in range(300 if nightly() else 40)]
    counted: dict[tuple[bool, bool], int] = {}
    for case, seen in _made(pool, cases):
        after = tvm_mixed_precision.casts(case.graph, case.arrays)
        assert isinstance(after, Case)
        for node, low in zip(case.graph.nodes, seen, strict=True):
            if node.op in ("cast", "identity", "positive"):
                continue
            told = after.graph.types[node.name].dtype == "float16"
            counted[told, low] = counted.get((told, low), 0) + 1
            assert told or not low, f"{node} in {case.graph}"
            if told and not low:
                assert not tvm_mixed_precision.certain(case.graph, node.name), f"{node} in {case.graph}"
    assert counted[True, True] > 80
    assert counted[False, False] > 60


_READ = """
def load(parameters):
    def policy(name):
        op = tvm.ir.Op.get(f"relax.{name}")
        found = op.get_attr("TMixedPrecisionPolicy")
        return 2 if found is None else int(found)

    known = set(tvm.ir.Op.list_op_names())

    def run(*inputs):
        return [np.array([policy(name) if f"relax.{name}" in known else -1 for name in NAMES])]

    return run
"""


def test_lists_are_what_the_operators_carry(pool: Pool) -> None:
    """MixedPrecisionPolicyKind: kAlways is 0, kFollow 1, kNever 2; what carries none is treated as never."""
    spelled = tvm_mixed_precision.spelled()
    names = sorted(spelled | tvm_mixed_precision.ALWAYS | tvm_mixed_precision.FOLLOW)
    reading = replace(MIXED, load=_READ.replace("NAMES", repr(names)))
    (outcome,) = Laboratory(pool).outcomes([(reading, chain_case())])
    assert isinstance(outcome, Value)
    policies = dict(zip(names, outcome.outputs[0].tolist(), strict=True))
    assert {name for name, kind in policies.items() if kind == 0} == tvm_mixed_precision.ALWAYS
    assert {name for name, kind in policies.items() if kind == 1} == tvm_mixed_precision.FOLLOW
    assert spelled > {"add", "nn.softmax", "sum"}


# ---- what is allowed ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "cases"), [("tvm-mixed", 10), ("tvm-mixed-half", 4)])
def test_correct_programs_are_accepted(name: str, cases: int, campaign: Campaign) -> None:
    """Drawn graphs with products, what is known of the pass apart; most of what they return is determined."""
    target = TARGETS[name]
    products = ("matmul", "linear", "conv2d", "conv1d", "addmm", "add", "exp", "softmax", "layer_norm", "sum", "where")
    drawn = [chain_case(), wide(), *(seeded_case(12, index, 5, products) for index in range(cases - 2))]
    agreeing = 0
    for case in drawn:
        verdict = campaign.lab.judge(case, [target]).verdicts[name]
        assert verdict.discrepancy is None or campaign.unexplained(target, case, verdict.discrepancy) is None
        agreeing += verdict.status == "agree"
    assert agreeing >= cases / 2


@pytest.mark.parametrize("name", SUMS)
def test_the_pass_is_on(name: str, pool: Pool) -> None:
    case = wide()
    outcomes = Laboratory(pool).outcomes([(TARGETS["tvm-O2"], case), (TARGETS[name], case)])
    full, low = (outcome.outputs[0] for outcome in outcomes if isinstance(outcome, Value))
    assert not np.array_equal(full, low)
    assert np.array_equal(low, low.astype(np.float16).astype(F))
    assert judge(forward.expect(case), Value((full,))).status == "agree"
    assert judge(forward.expect(case), Value((low,))).status == "mismatch"


def test_the_dtype_of_sums_is_judged() -> None:
    """A sum of 512 terms in float32, and in float16, one after the other."""
    term = np.float16(0.7)
    case = graph_of(("matmul", ("x0", "w0")), x0=np.full((1, 512), 1, F), w0=np.full((512, 1), 0.7, F))
    total, right = np.float16(0), np.float16(512 * float(term))
    for _ in range(512):
        total = np.float16(total + term)
    assert abs(total - right) > 2
    for sums, ends, status in (("float32", right, "agree"), ("float16", right, "agree"), ("float16", total, "agree")):
        assert under(case, np.array([[ends]]), sums).status == status
    assert under(case, np.array([[total]]), "float32").status == "mismatch"


def test_a_constant_that_float16_cannot_hold_stays() -> None:
    """Else, one that it holds is rounded before anything else is done with it, NaN among them."""
    for w, dtype in (([2049.0, np.nan], "float16"), ([2049.0, 65536.0], "float32"), ([2049.0, np.inf], "float32")):
        case = graph_of(("neg", ("w0",)), w0=np.array(w, F))
        (value,) = fast_math.expect(case, TVM_MIXED["float32"]).values
        assert value.dtype == "float32"
        assert (value.error[0] >= 1) == (dtype == "float16")
        assert under(case, -np.array(w, F)).status == "agree"
        assert under(case, -np.array([2048.0, w[1]], F)).status == ("agree" if dtype == "float16" else "mismatch")
    case = graph_of(("neg", ("x0",)), x0=np.array([2049.0], F))
    assert under(case, np.array([-2048.0])).status == "mismatch"


def test_what_overflows_float16_is_undetermined() -> None:
    case = graph_of(("matmul", ("x0", "w0")), x0=np.array([[300.0], [3.0]], F), w0=np.array([[300.0]], F))
    verdict = under(case, np.array([[np.inf], [900.0]]))
    assert (verdict.status, verdict.elements, verdict.undetermined) == ("agree", 2, 1)
    assert under(case, np.array([[np.inf], [901.0]])).status == "mismatch"


def test_an_operator_without_a_policy_computes_in_float32() -> None:
    """The mean of a product that float16 holds exactly, 4,000 and 4,002, is a number that it does not hold."""
    case = graph_of(("matmul", ("x0", "w0")), x0=np.eye(2, dtype=F), w0=np.array([[4000, 4002]] * 2, F))
    row = TensorType("float32", (2,))
    mean = Node("v1", "mean", ("v0",), (("axes", (1,)), ("keepdims", False)), row)
    case = Case(check(replace(case.graph, nodes=(*case.graph.nodes, mean), outputs=("v1",))), case.arrays)
    allowed = fast_math.expect(case, TVM_MIXED["float32"]).values[0].error
    after = tvm_mixed_precision.casts(case.graph, case.arrays)
    assert isinstance(after, Case)
    assert after.graph.types["v0"].dtype == "float16"
    assert after.graph.types["v1"].dtype == "float32"
    assert under(case, np.array([4001.0, 4001.0])).status == "agree"
    assert under(case, np.array([4001.0, 4001.0]) + 1.1 * allowed).status == "mismatch"


# ---- what is caught ----------------------------------------------------------------------------------------

_FEWER = 'relax.op.astype(relax.op.astype({%d}, "bfloat16"), "float32")'


@pytest.mark.parametrize(
    ("name", "operator", "text"),
    [
        ("tvm-mixed", "tanh", 'relax.op.multiply({right}, relax.const(1.01, "float32"))'),
        ("tvm-mixed-half", "tanh", "relax.op.nn.gelu({0})"),
        ("tvm-mixed", "matmul", 'relax.op.add({right}, relax.const(0.05, "float32"))'),
        ("tvm-mixed-half", "matmul", "relax.op.matmul({0}, relax.op.abs({1}))"),
    ],
)
def test_a_fault_is_found(name: str, operator: str, text: str, pool: Pool) -> None:
    target = planted(operator, text, name)
    assert Laboratory(pool).judge(wide(), [target]).verdicts[target.name].status == "mismatch"


def test_operands_of_fewer_bits_are_found(pool: Pool) -> None:
    """Where few terms are added, as in TF32."""
    x, w = (np.random.default_rng(seed).uniform(1, 2, shape).astype(F) for seed, shape in enumerate(((16, 1), (1, 16))))
    case = graph_of(("matmul", ("x0", "w0")), x0=x, w0=w)
    target = planted("matmul", f"relax.op.matmul({_FEWER % 0}, {_FEWER % 1})", "tvm-mixed")
    verdicts = Laboratory(pool).judge(case, [MIXED, target]).verdicts
    assert (verdicts["tvm-mixed"].status, verdicts[target.name].status) == ("agree", "mismatch")


def test_the_guilty_node_is_named_given_what_came_before(pool: Pool) -> None:
    target = planted("tanh", 'relax.op.multiply({right}, relax.const(1.01, "float32"))', "tvm-mixed")
    assert [node.op for node in diverging(Laboratory(pool), target, wide())] == ["tanh"]
    assert not diverging(Laboratory(pool), MIXED, wide())


@pytest.mark.parametrize(
    ("leaves", "why"),
    [
        ({"x0": np.zeros((2, 2)), "w0": np.zeros((2, 2))}, "for modules of float32"),
        ({"x0": np.zeros((2, 2), np.int32), "w0": np.zeros((2, 2), np.int32)}, "for modules of float32"),
    ],
)
def test_what_the_pass_is_not_for_is_refused(leaves: dict[str, np.ndarray], why: str) -> None:
    case = graph_of(("matmul", ("x0", "w0")), **leaves)
    assert why in (FORWARD.why_not(MIXED, case.graph) or "")


def _refusal(target: Target, operator: str) -> str:
    case = graph_of(("matmul", ("x0", "w0")), (operator, ("v0",)), x0=np.zeros((2, 2), F), w0=np.zeros((2, 2), F))
    return FORWARD.why_not(target, case.graph) or ""


def test_what_tvm_has_no_kernel_of_in_float16_is_refused() -> None:
    assert "acos" in _refusal(MIXED, "acos")
    assert not _refusal(MIXED, "cos")
    assert not _refusal(TARGETS["tvm-O2"], "acos")
