"""Questions beside the forward one: planted faults are found and handed over small, correct programs are accepted, and
relations hold between references."""

from __future__ import annotations

import numpy as np
import pytest
from examples.small_graphs import chain_case
from planted.faults.questions import QUESTION_FAULTS
from planted.question_sensitivity import drawn

from generators.graph import FLOATS, Graph, Leaf, Node, TensorType
from generators.graphs import Case
from generators.ops import check
from generators.sweep import sweep
from harness.backends import TARGETS
from harness.execute.pool import Pool
from harness.questions import QUESTIONS
from harness.questions.dynamic import DYNAMIC
from harness.questions.memory.layouts import LAYOUTS
from harness.questions.memory.repeat import REPEAT
from harness.search.campaign import Campaign
from harness.search.laboratory import Laboratory
from oracles.decompositions import composite
from oracles.judge.outcome import Rejected
from oracles.questions import dynamic, forward, layouts, metamorphic


def vector(*nodes: Node) -> Case:
    """Nodes on a vector of five numbers."""
    type_ = TensorType("float32", (5,))
    graph = check(Graph((Leaf("x0", type_),), nodes, (nodes[-1].name,)))
    return Case(graph, {"x0": np.array([0.5, -1.5, 3.0, 0.25, -2.0], "float32")})


def test_there_are_enough_faults() -> None:
    names = [planted_fault.question.name for planted_fault in QUESTION_FAULTS]
    assert names.count("dynamic") >= 12
    assert len(names) - names.count("dynamic") >= 12
    assert len(set(QUESTION_FAULTS)) == len(QUESTION_FAULTS)


@pytest.mark.parametrize("name", ["dynamic", "layouts", "repeat", "metamorphic"])
def test_correct_programs_are_accepted(name: str, campaign: Campaign) -> None:
    """What is known of PyTorch apart."""
    questioned, target = campaign.with_question(QUESTIONS[name]), TARGETS["torch-eager"]
    verdicts = []
    for case in (drawn(name, index) for index in range(12)):
        verdict = questioned.lab.examine(case, [target]).verdicts[target.name]
        assert verdict.discrepancy is None or questioned.unexplained(target, case, verdict.discrepancy) is None
        verdicts.append(verdict)
    assert [v.status for v in verdicts].count("agree") >= 8


def test_a_chain_is_right_wherever_it_is_compiled(pool: Pool) -> None:
    """One case with a symbolic dimension on one target of each framework."""
    names = ("torch-aot-eager", "tf-graph", "jax-jit", "ort-all", "tvm-O2")
    lab = Laboratory(pool, DYNAMIC)
    verdicts = lab.examine(chain_case(), [TARGETS[name] for name in names]).verdicts
    assert {name: verdict.status for name, verdict in verdicts.items()} == dict.fromkeys(names, "agree")


# ---- dynamic --------------------------------------------------------------------------------------------


def test_a_contraction_changes_on_both_sides() -> None:
    found = dynamic.plan(chain_case().graph)
    assert found
    assert found.sizes[:2] in ((3, 4), (2, 3))
    square = Graph(
        (Leaf("x0", TensorType("float32", (4, 3))), Leaf("w0", TensorType("float32", (3, 1)), "parameter")),
        (Node("v0", "matmul", ("x0", "w0"), (), TensorType("float32", (4, 1))),),
        ("v0",),
    )
    rows = dynamic.plan(square)
    assert rows
    assert rows.places == (("x0", 0),)
    assert rows.sizes == (4, 5, 8, 1, 0)
    assert [leaf.name for leaf in rows.first.parameters] == ["w0"]
    inner = (("x0", 1), ("w0", 0))
    assert dynamic.resized(square, (("x0", 1),), 5) is None
    assert dynamic.resized(square, inner, 5)


def test_what_states_its_size_is_not_asked() -> None:
    fixed = vector(Node("v0", "reshape", ("x0",), (("shape", (5, 1)),), TensorType("float32", (5, 1))))
    assert dynamic.plan(fixed.graph) is None
    assert DYNAMIC.unsupported(TARGETS["torch-eager"], fixed.graph) == "no dimension of the graph can change"

    broadcast = vector(Node("v0", "neg", ("x0",), (), TensorType("float32", (5,))))
    assert DYNAMIC.unsupported(TARGETS["torch-eager"], broadcast.graph) is None
    assert DYNAMIC.unsupported(TARGETS["torch-cuda-tf32"], broadcast.graph) is not None


def test_arrays_of_other_sizes_are_made_of_the_same_rows() -> None:
    case = vector(Node("v0", "neg", ("x0",), (), TensorType("float32", (5,))))
    arrays = dynamic.arrays(case)
    assert [a.shape for a in arrays.values()] == [(5,), (6,), (10,), (1,), (0,)]
    assert all(np.isin(a, case.arrays["x0"]).all() for a in arrays.values())
    assert np.array_equal(arrays["x0_at_5"], case.arrays["x0"])
    expected = dynamic.expect(case)
    assert [t.shape for t in expected.types] == [(5,), (6,), (10,), (1,), (0,)]
    assert np.array_equal(expected.values[1].value, -arrays["x0_at_6"])


def test_only_documented_refusals_are_excused() -> None:
    specialised = Rejected("ConstraintViolationError", "Constraints violated (n)! You marked it as dynamic")
    assert DYNAMIC.refusal(TARGETS["torch-inductor"], specialised)
    assert DYNAMIC.refusal(TARGETS["tvm-O0"], specialised) is None
    assert DYNAMIC.refusal(TARGETS["torch-inductor"], Rejected("RuntimeError", "shape mismatch")) is None


# ---- relations ------------------------------------------------------------------------------------------


@pytest.mark.slow(one_in=4)
@pytest.mark.parametrize("operator", [*composite.COMPOSITES, *composite.SPLITS])
def test_a_decomposition_means_the_same(operator: str) -> None:
    rules = {**composite.COMPOSITES, **composite.SPLITS}
    held = 0
    for case in list(sweep(operator))[::9]:
        finite = all(np.isfinite(a).all() for a in case.arrays.values() if str(a.dtype) in FLOATS)
        other = composite.rewritten(case, rules) if finite else None
        if other:
            check(other.graph)
            assert all(map(metamorphic.agree, forward.expect(case).values, forward.expect(other).values)), case.graph
            held += 1
    assert held


def test_rows_are_told_from_what_mixes_them() -> None:
    type_ = TensorType("float32", (5,))
    alone = metamorphic.batch(vector(Node("v0", "exp", ("x0",), (), type_)))
    assert alone
    assert len(alone.graph.outputs) == 4
    check(alone.graph)
    mixed = Node("v0", "cumsum", ("x0",), (("axis", 0),), type_)
    assert metamorphic.batch(vector(mixed)) is None
    assert metamorphic.batch(vector(Node("v0", "flip", ("x0",), (("axes", (0,)),), type_))) is None


def test_sharing_returns_inputs_and_an_output_twice() -> None:
    case = chain_case()
    shared = metamorphic.sharing(case)
    assert shared
    assert shared.graph.outputs == ("v2", "v0", "x0", "w0", "v2")


def test_prepared_cases_are_valid_and_the_same_every_time() -> None:
    for index in range(20):
        case = drawn("metamorphic", index)
        check(case.graph)
        assert all(case.arrays[leaf.name].shape == leaf.type.shape for leaf in case.graph.leaves)
    assert metamorphic.prepare(chain_case()).graph == metamorphic.prepare(chain_case()).graph


# ---- layouts and repetition -----------------------------------------------------------------------------


def test_views_hold_the_same_values_in_other_memory() -> None:
    text = LAYOUTS.program(TARGETS["tf-eager"], chain_case().graph)
    namespace: dict = {"np": np, "load": None, "OUTPUTS": []}
    exec(text[text.index("def viewed") : text.rindex("def load")], namespace)
    array = np.arange(12.0).reshape(3, 4)
    strides = {}
    for layout in layouts.LAYOUTS:
        given = np.broadcast_to(array[:1], array.shape) if layout == "expanded" else array
        view = namespace["viewed"](given.copy(), layout)
        assert np.array_equal(view, given)
        strides[layout] = view.strides
    assert strides["transposed"] == (8, 24)
    assert strides["strided"] == (64, 16)
    assert strides["expanded"] == (0, 8)
    assert strides["reversed"] == (32, -8)
    assert "reversed" not in set(_layouts_of(LAYOUTS.program(TARGETS["torch-eager"], chain_case().graph)))


def test_a_result_is_that_of_what_the_program_is_given() -> None:
    """What a known issue says of operands is asked of those that are expanded, too, not of those that were drawn."""
    type_ = TensorType("float32", (3, 2))
    graphs = {x: check(Graph((Leaf(x, type_),), (Node("v0", "neg", (x,), (), type_),), ("v0",))) for x in "abcdefgh"}
    name, graph = next(one for one in graphs.items() if layouts.layouts(one[1])[one[0]] == "expanded")
    case = Case(graph, {name: np.arange(6, dtype=np.float32).reshape(3, 2)})
    (part,) = LAYOUTS.parts(case, 1)
    assert np.array_equal(part.arrays[name], [[0, 1]] * 3)
    assert np.array_equal(LAYOUTS.expect(case).values[1].value, -part.arrays[name])


def _layouts_of(program: str) -> list[str]:
    (line,) = (line for line in program.splitlines() if line.startswith("LAYOUTS ="))
    return list(eval(line.removeprefix("LAYOUTS = ")).values())


def test_a_repetition_demands_bits() -> None:
    expected = REPEAT.expect(chain_case())
    flags = expected.values[2:]
    assert len(flags) == 5
    assert all(flag.value == np.array(True) and flag.error == 0 for flag in flags)
