"""Operators of `generators/ops/arrays.py`: their references beside numpy's results, and faults that sweeps see."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from faults import Fault, with_operand
from planted import planted

from generators.graph import Graph, Leaf, Node, TensorType
from generators.graphs import Case
from generators.ops import OPS, check
from generators.sweep import sweep
from harness.laboratory import Laboratory
from harness.pool import Pool
from oracles import forward
from oracles.outcome import Value
from oracles.verdict import judge

RNG = np.random.default_rng(4)
X = RNG.standard_normal((3, 8)).astype("float32")
HOLES = np.where(RNG.integers(0, 3, X.shape) == 0, np.nan, X).astype("float32")
HOLES[0] = np.nan
EDGES = np.array([-2, -1, -0.5, 0, 1, 1.25, 2, 2.5, -7, np.inf], "float32")
ROWS, COLUMNS = np.array([[0, 1, 0], [0, 2, 2]]), np.array([1, 2, 1])


def lower_medians(x: np.ndarray) -> np.ndarray:
    rows = [np.sort(row[~np.isnan(row)]) for row in x]
    return np.array([row[(len(row) - 1) // 2] if len(row) else np.nan for row in rows], "float32")


def added(x: np.ndarray, values: np.ndarray) -> np.ndarray:
    result = x.copy()
    np.add.at(result, (ROWS, COLUMNS), values)
    return result


ADDED = RNG.standard_normal((2, 3)).astype("float32")
RESULTS: list[tuple[str, list[np.ndarray], dict, Callable[[], np.ndarray]]] = [
    ("vander", [X[0]], {"columns": 4, "increasing": False}, lambda: np.vander(X[0], 4)),
    ("vander", [X[0]], {"columns": 3, "increasing": True}, lambda: np.vander(X[0], 3, increasing=True)),
    ("tensordot", [X.reshape(2, 3, 4), X[:, :4].reshape(3, 4)], {"axes": 2},
     lambda: np.tensordot(X.reshape(2, 3, 4), X[:, :4].reshape(3, 4), 2)),
    ("corrcoef", [X], {}, lambda: np.corrcoef(X).astype("float32")),
    ("nanmedian", [HOLES], {"axis": 1}, lambda: lower_medians(HOLES)),
    ("histogram", [EDGES], {"bins": 4}, lambda: np.histogram(EDGES[:-1], 4, (-2, 2))[0]),
    ("index_put", [X, ROWS, COLUMNS, ADDED], {}, lambda: added(X, ADDED)),
]  # fmt: skip


@pytest.mark.parametrize(("operator", "arrays", "attrs", "result"), RESULTS, ids=[r[0] for r in RESULTS])
def test_references_agree_with_numpy(operator: str, arrays: list, attrs: dict, result: Callable) -> None:
    types = tuple(TensorType(str(a.dtype), a.shape) for a in arrays)
    slots = [OPS[operator].slot(i).domain(types[:i]) for i in range(len(types))]
    leaves = tuple(Leaf(f"x{i}", t, domain=d) for i, (t, d) in enumerate(zip(types, slots, strict=True)))
    node = Node("v0", operator, tuple(x.name for x in leaves), tuple(attrs.items()), OPS[operator].result(types, attrs))
    case = Case(check(Graph(leaves, (node,), ("v0",))), {f"x{i}": a for i, a in enumerate(arrays)})
    expected, right = forward.expect(case), result()
    right = right.astype(OPS[operator].result(types, attrs).dtype)
    assert not expected.values[0].undetermined.any()
    assert judge(expected, Value((right,))).discrepancy is None
    wrong = (
        np.where(np.isnan(right), 1, right * 1.001 + 1e-4).astype(right.dtype) if operator != "histogram" else right + 1
    )
    assert judge(expected, Value((wrong,))).status == "mismatch"


FAULTS = (
    Fault("powers fall", "vander", "torch.flip({right}, (1,))"),
    Fault("one power too many", "vander", "{right} * {0}[:, None]"),
    Fault("transposed where it is square", "tensordot",
          "torch.tensordot({0}.mT, {1}, dims={axes}) if {shape0}[-1] == {shape0}[-2] else {right}"),
    Fault("upper median", "nanmedian", "-torch.nanmedian(-{0}, dim={axis}).values"),
    Fault("NaN counts", "nanmedian", "torch.median({0}, dim={axis}).values"),
    Fault("not by the deviations", "corrcoef", "torch.cov({0}).reshape({shape})"),
    Fault("upper edges belong to a bin", "histogram",
          "torch.flip(torch.histc(-{0}, bins={bins}, min=-2.0, max=2.0), (0,)).to(torch.int64)"),
    Fault("what is outside counts", "histogram", with_operand(0, "torch.clamp({0}, -2.0, 2.0)")),
    Fault("last one wins", "index_put", "torch.index_put({0}, ({1}, {2}), {3})"),
    Fault("added once", "index_put", "torch.index_put({0}, ({1}, {2}), {0}[{1}, {2}] + {3})"),
)  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.operator}: {fault.name}")
def test_fault_is_seen(fault: Fault, pool: Pool) -> None:
    target, cases = planted(fault.operator, fault.text), list(sweep(fault.operator, 150))
    outcomes = Laboratory(pool).outcomes([(target, case) for case in cases])
    found = [judge(forward.expect(case), outcome).discrepancy for case, outcome in zip(cases, outcomes, strict=True)]
    assert any(d and d.symptom in ("value", "special") for d in found)
