"""Operators that array libraries have and few frameworks (norms, histograms, grids, mantissas and others): their
references beside numpy's results, and faults that sweeps see."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from planted.faults.forward import Fault, with_operand
from planted.targets import planted

from generators.bounds.bounded import leaf
from generators.graph import Graph, Leaf, Node, TensorType
from generators.graphs import Case
from generators.ops import OPS, check
from generators.ops.composed import compute
from generators.ops.spec import Call, TypeRuleError
from generators.sweep import sweep
from harness.execute.pool import Pool
from harness.search.laboratory import Laboratory
from oracles.judge.outcome import Value
from oracles.judge.verdict import judge
from oracles.questions import forward

RNG = np.random.default_rng(4)
X = RNG.standard_normal((3, 8)).astype("float32")
HOLES = np.where(RNG.integers(0, 3, X.shape) == 0, np.nan, X).astype("float32")
HOLES[0] = np.nan
EDGES = np.array([-2, -1, -0.5, 0, 1, 1.25, 2, 2.5, -7, np.inf], "float32")
ROWS, COLUMNS = np.array([[0, 1, 0], [0, 2, 2]]), np.array([1, 2, 1])
PLACES = RNG.integers(-20, 20, (3, 8)).astype("int32")
GRID = RNG.standard_normal((1, 2, 6, 6)).astype("float32")
LOW_RANK = np.zeros((4, 3, 3), "float32")
LOW_RANK[1], LOW_RANK[2, :2, :2], LOW_RANK[3] = 1, [[1, 2], [2, 1]], np.eye(3)


def lower_medians(x: np.ndarray) -> np.ndarray:
    rows = [np.sort(row[~np.isnan(row)]) for row in x]
    return np.array([row[(len(row) - 1) // 2] if len(row) else np.nan for row in rows], "float32")


def added(x: np.ndarray, values: np.ndarray) -> np.ndarray:
    result = x.copy()
    np.add.at(result, (ROWS, COLUMNS), values)
    return result


ADDED = RNG.standard_normal((2, 3)).astype("float32")
RESULTS: list[tuple[str, list[np.ndarray], dict, Callable[[], Any]]] = [
    ("vander", [X[0]], {"columns": 4, "increasing": False}, lambda: np.vander(X[0], 4)),
    ("vander", [X[0]], {"columns": 3, "increasing": True}, lambda: np.vander(X[0], 3, increasing=True)),
    ("tensordot", [X.reshape(2, 3, 4), X[:, :4].reshape(3, 4)], {"axes": 2},
     lambda: np.tensordot(X.reshape(2, 3, 4), X[:, :4].reshape(3, 4), 2)),
    ("corrcoef", [X], {}, lambda: np.corrcoef(X).astype("float32")),
    ("nanmedian", [HOLES], {"axis": 1}, lambda: lower_medians(HOLES)),
    ("histogram", [EDGES], {"bins": 4}, lambda: np.histogram(EDGES[:-1], 4, (-2, 2))[0]),
    ("index_put", [X, ROWS, COLUMNS, ADDED], {}, lambda: added(X, ADDED)),
    ("vector_norm", [X], {"ord": "3", "axes": (1,), "keepdims": False}, lambda: np.linalg.norm(X, 3, 1)),
    ("l0_norm", [EDGES], {"axes": (0,), "keepdims": True}, lambda: np.linalg.norm(EDGES, 0, 0, True)),
    ("l2_norm_to", [X], {"to": "float64", "axes": (1,), "keepdims": False},
     lambda: np.linalg.norm(X.astype("float64"), 2, 1)),
    ("prod_to", [PLACES[:, :3]], {"to": "int64", "axes": (1,), "keepdims": False},
     lambda: np.prod(PLACES[:, :3], 1, "int64")),
    ("masked_infinity", [X, X > 0], {"fill": "-inf"}, lambda: np.where(X > 0, -np.inf, X).astype("float32")),
    ("clip_crossed", [X], {"min": 0.5, "max": -0.5}, lambda: np.clip(X, 0.5, -0.5)),
    ("trunc_divide_scalar", [PLACES], {"scalar": -3}, lambda: np.trunc(PLACES / -3).astype("int32")),
    ("ones_like_to", [X], {"to": "bool"}, lambda: np.ones_like(X, "bool")),
    ("full_like_to", [X], {"to": "bool", "value": 0.5}, lambda: np.full_like(X, 0.5, "bool")),
    ("full_like_to", [X], {"to": "int32", "value": -1.5}, lambda: np.full_like(X, -1.5, "int32")),
    ("full_like_to", [X], {"to": "float64", "value": 1.5}, lambda: np.full_like(X, 1.5, "float64")),
    ("vector_norm", [X], {"ord": "-2", "axes": (0,), "keepdims": True}, lambda: np.linalg.norm(X, -2, 0, True)),
    ("vector_norm", [X], {"ord": "-inf", "axes": (0,), "keepdims": True}, lambda: np.abs(X).min(0, keepdims=True)),
    *(("matrix_norm", [X.reshape(2, 3, 4)], {"ord": order, "keepdims": keepdims}, partial(
        np.linalg.norm, X.reshape(2, 3, 4), order if order == "fro" else float(order), (-2, -1), keepdims))
      for order in ("fro", "1", "-1", "inf", "-inf") for keepdims in (False, True)),
    *(("spectral_norm", [X[:, :3]], {"ord": order, "form": "tamed"}, partial(
        np.linalg.norm, X[:, :3], order if order == "nuc" else int(order))) for order in ("2", "-2", "nuc")),
    ("matrix_rank", [LOW_RANK], {"rtol": 0.01, "form": "tamed"}, lambda: np.array([0, 1, 2, 3])),
    ("nansum", [HOLES], {"axes": (1,), "keepdims": False}, lambda: np.nansum(HOLES, 1)),
    ("nanmean", [HOLES[1:]], {"axes": (1,), "keepdims": True}, lambda: np.nanmean(HOLES[1:], 1, keepdims=True)),
    ("frexp_mantissa", [X], {}, lambda: np.frexp(X)[0]),
    ("frexp_exponent", [X], {}, lambda: np.frexp(X)[1]),
    ("ldexp", [X, PLACES], {}, lambda: np.ldexp(X, PLACES)),
    ("gcd", [PLACES, PLACES[0]], {}, lambda: np.gcd(PLACES, PLACES[0])),
    ("lcm", [PLACES, PLACES[0]], {}, lambda: np.lcm(PLACES, PLACES[0])),
    ("cbrt", [X], {}, lambda: np.cbrt(X)),
    ("logaddexp2", [X, X[0]], {}, lambda: np.logaddexp2(X, X[0])),
    ("meshgrid", [X[0], X[1, :5]], {"indexing": "xy", "pick": 0}, lambda: np.meshgrid(X[0], X[1, :5])[0]),
    ("meshgrid", [X[0], X[1, :5]], {"indexing": "ij", "pick": 1},
     lambda: np.meshgrid(X[0], X[1, :5], indexing="ij")[1]),
    ("isin", [PLACES, PLACES[1, :4]], {"invert": True}, lambda: np.isin(PLACES, PLACES[1, :4], invert=True)),
    ("unique_inverse", [PLACES], {}, lambda: np.unique(PLACES, return_inverse=True)[1]),
    ("unstack", [X], {"axis": -1, "pick": 3}, lambda: X[:, 3]),
    ("cumulative_sum", [X], {"axis": 1}, lambda: np.cumulative_sum(X, axis=1, include_initial=True)),
    ("resize_area", [GRID], {"factor": 2}, lambda: GRID.reshape(1, 2, 3, 2, 3, 2).mean((3, 5))),
    ("to_complex", [X], {"to": "complex128"}, lambda: X.astype("complex128")),
    ("complex_cast", [X + 1j * X[::-1]], {"to": "float32"}, lambda: X),
    ("clip_one_side", [X], {"min": None, "max": 0.5}, lambda: np.minimum(X, 0.5)),
    ("clip_one_side", [PLACES], {"min": 1, "max": None}, lambda: np.maximum(PLACES, 1)),
    ("slice_update_front", [X, X[:, :2]], {"axis": 1, "step": 2, "start": None},
     lambda: np.concatenate([X[:, :2], X[:, 1:2], X[:, 3:]], 1)[:, [0, 2, 1, *range(3, X.shape[1])]]),
]  # fmt: skip


@pytest.mark.parametrize(("operator", "arrays", "attrs", "result"), RESULTS, ids=[r[0] for r in RESULTS])
def test_references_agree_with_numpy(operator: str, arrays: list, attrs: dict, result: Callable) -> None:
    types = tuple(TensorType(str(a.dtype), a.shape) for a in arrays)
    slots = [OPS[operator].slot(i).domain(types[:i]) for i in range(len(types))]
    leaves = tuple(Leaf(f"x{i}", t, domain=d) for i, (t, d) in enumerate(zip(types, slots, strict=True)))
    node = Node("v0", operator, tuple(x.name for x in leaves), tuple(attrs.items()), OPS[operator].result(types, attrs))
    case = Case(check(Graph(leaves, (node,), ("v0",))), {f"x{i}": a for i, a in enumerate(arrays)})
    expected, right = forward.expect(case), result()
    right = np.asarray(right).astype(OPS[operator].result(types, attrs).dtype)
    assert not expected.values[0].undetermined.any()
    assert judge(expected, Value((right,))).discrepancy is None
    if right.dtype.kind in "fc":
        wrong = np.where(np.isnan(right), 1, right * 1.001 + 1e-4).astype(right.dtype)
    else:
        wrong = np.logical_not(right) if right.dtype == bool else right + 1
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
    Fault("order 2 for any", "vector_norm", "torch.linalg.vector_norm({0}, dim={axes}, keepdim={keepdims})"),
    Fault("power left out", "vector_norm", "torch.sum(torch.abs({0}) ** float({ord}), dim={axes}, keepdim={keepdims})"),
    Fault("columns for rows", "matrix_norm", "torch.linalg.matrix_norm({0}.mT, ord=1, keepdim={keepdims})"),
    Fault("Frobenius for spectral", "spectral_norm", "torch.linalg.matrix_norm(formed({0}, {form}))"),
    Fault("full rank", "matrix_rank", "{right} * 0 + {0}.shape[-1]"),
    Fault("an absolute tolerance", "matrix_rank",
          "torch.linalg.matrix_rank(formed({0}, {form}), atol={rtol}, rtol=0.0)"),
    Fault("NaN counts", "nansum", "torch.sum({0}, dim={axes}, keepdim={keepdims})"),
    Fault("divided by all", "nanmean", "torch.nan_to_num({0}).mean(dim={axes}, keepdim={keepdims})"),
    Fault("a mantissa from 1 to 2", "frexp_mantissa", "{right} * 2"),
    Fault("an exponent of 1 to 2", "frexp_exponent", "{right} - 1"),
    Fault("by the opposite power", "ldexp", "torch.ldexp({0}, -{1})"),
    Fault("negative divisors", "gcd", "torch.sign({0}) * {right}"),
    Fault("product for multiple", "lcm", "torch.abs({0} * {1})"),
    Fault("natural base", "logaddexp2", "torch.logaddexp({0}, {1})"),
    Fault("xy for ij", "meshgrid", "({right}).mT.contiguous() if {0}.shape == {1}.shape else {right}"),
    Fault("never inverted", "isin", "torch.isin({0}, {1})"),
    Fault("in order of appearance", "unique_inverse", "{right}.max() - {right}"),
    Fault("next piece", "unstack", "torch.unbind({0}, {axis})[({pick} + 1) % {0}.shape[{axis}]]"),
    Fault("first sum before the zero", "cumulative_sum", "torch.roll({right}, 1, {axis})"),
    Fault("nearest for area", "resize_area",
          "torch.nn.functional.interpolate({0}, scale_factor=1.0 / {factor}, mode='nearest')"),
    Fault("imaginary parts for real ones", "complex_cast",
          "({0} * -1j).to({dtype}) if not {dtype}.is_complex else {right}"),
    Fault("an imaginary part", "to_complex", "({right}) * (1 + 1e-3j)"),
    Fault("last one wins", "index_put", "torch.index_put({0}, ({1}, {2}), {3})"),
    Fault("added once", "index_put", "torch.index_put({0}, ({1}, {2}), {0}[{1}, {2}] + {3})"),
)  # fmt: skip


@pytest.mark.slow(one_in=6, ci=3)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.operator}: {fault.name}")
def test_fault_is_seen(fault: Fault, pool: Pool) -> None:
    most = 2400 if fault.operator == "nansum" else 150  # NaN comes late to operators of many attributes
    target, cases = planted(fault.operator, fault.text), list(sweep(fault.operator, most))
    outcomes = Laboratory(pool).outcomes([(target, case) for case in cases])
    found = [judge(forward.expect(case), outcome).discrepancy for case, outcome in zip(cases, outcomes, strict=True)]
    assert any(d and d.symptom in ("value", "special") for d in found)


@pytest.mark.parametrize(("attrs", "free"), [({"min": None, "max": 1.0}, 0), ({"min": 1.0, "max": None}, 2)])
def test_an_infinity_on_the_side_without_a_limit_is_undetermined(attrs: dict, free: int) -> None:
    """By ONNX the greatest finite number is the limit there; what has a limit is determined."""
    x = TensorType("float32", (3,))
    found = OPS["clip_one_side"].reference([leaf(np.array([-np.inf, 3, np.inf], "float32"))], Call((x,), attrs, x))
    assert np.flatnonzero(found.undetermined).tolist() == [free]


@pytest.mark.parametrize(("operator", "attrs"), [("clip_one_side", {"min": 0.0, "max": 1.0})])
def test_what_may_be_left_out_is_left_out(operator: str, attrs: dict) -> None:
    with pytest.raises(TypeRuleError, match="with all arguments is clip"):
        OPS[operator].result((TensorType("float32", (2,)),), attrs)


def test_places_that_are_bytes_count_along_longer_axes() -> None:
    x, places = np.arange(300, dtype="float32"), np.array([-1, 127, -128], "int8")
    assert compute(OPS["take_signed_bytes"], leaf(x), leaf(places)).value.tolist() == [299, 127, 172]
    update = np.array([5, 7], "float32")
    found = compute(OPS["write_bytes"], leaf(x), leaf(np.array([255, 2], "uint8")), leaf(update)).value
    assert np.flatnonzero(found != x).tolist() == [2, 255]
    with pytest.raises(TypeRuleError, match="no rows"):
        OPS["take_bytes"].result((TensorType("float32", (5,)), TensorType("uint8", (2,))), {})


def test_places_beyond_the_end_are_the_last_one() -> None:
    x, places = np.array([1.0, 2.0, 3.0, 4.0]), np.array([0, 6])
    assert compute(OPS["take_clipped"], leaf(x), leaf(places), axis=0).value.tolist() == [1, 4]
    found = compute(OPS["scatter_max_clipped"], leaf(x), leaf(places), leaf(np.array([0.5, 9.0])), axis=-1).value
    assert found.tolist() == [1, 2, 3, 9]


@pytest.mark.parametrize("places", [(3, 1), (2, 9), (-2,), (-9, 2), (4, 4, 0)])
def test_a_split_at_any_places_is_numpys(places: tuple[int, ...]) -> None:
    x = RNG.standard_normal((2, 6))
    for index, piece in enumerate(np.split(x, places, axis=1)):
        found = compute(OPS["split_at"], leaf(x), axis=-1, boundaries=places, index=index)
        assert found.value.tolist() == piece.tolist()
    with pytest.raises(TypeRuleError, match="cannot split"):
        OPS["split_at"].result(
            (TensorType("float32", (6,)),), {"axis": 0, "boundaries": places, "index": len(places) + 1}
        )
