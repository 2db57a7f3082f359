"""The search for the greatest errors: which points it looks at, and that errors planted in few numbers are found."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from generators.graph import Graph
from harness.backends import TARGETS, Target
from harness.commands.app import app_of
from harness.execute.pool import Pool
from harness.search.laboratory import Laboratory
from harness.studies.errors.measure import Cell, all_of, elementwise, searched
from harness.studies.errors.points import LAYOUTS, around, bits_of, block, numbers, stratified
from harness.studies.errors.report import csv_of, lines_of, page, told

_FAULT = """

plain = load


def load(parameters):
    compiled = plain(parameters)

    def run(*inputs):
        x, out = inputs[0], np.array(compiled(*inputs)[0])
        {fault}
        return [out]

    return run
"""


@pytest.fixture(scope="module")
def lab() -> Iterator[Laboratory]:
    with Pool() as pool:
        yield Laboratory(pool)


def planted(fault: str) -> Target:
    target = TARGETS["torch-eager"]
    return replace(target, load=target.load.rstrip("\n") + "\n" + _FAULT.format(fault=fault))


def graph(operator: str, dtype: str) -> Graph:
    found = elementwise(operator, dtype)
    assert found is not None
    return found


@pytest.mark.parametrize("dtype", list(LAYOUTS))
def test_every_sign_and_exponent_has_points(dtype: str) -> None:
    layout = LAYOUTS[dtype]
    points = stratified(dtype, 2, 1 << 14, np.random.default_rng(1))
    strata, counts = np.unique(points[0] >> layout.mantissa, return_counts=True)
    assert strata.tolist() == list(range(layout.strata))
    assert len(set(counts.tolist())) == 1
    assert sorted(points[0].tolist()) != points[1].tolist()
    each = points[0].reshape(layout.strata, -1) % (1 << layout.mantissa)
    assert (each[:, 0] == 0).all()
    assert (each[:, -1] == (1 << layout.mantissa) - 1).all()


def test_points_around_others_are_their_neighbours() -> None:
    centre = bits_of([-1.5], "float32")[None]
    near = around(centre, "float32", 1 << 12, np.random.default_rng(2))
    assert set(range(int(centre[0, 0]) - 64, int(centre[0, 0]) + 65)) <= set(near[0].tolist())
    assert (numbers(near, "float32") < 0).all()
    least = around(bits_of([0.0], "float16")[None], "float16", 1 << 10, np.random.default_rng(2))
    assert not np.signbit(numbers(least, "float16")).any()


def test_blocks_hold_every_number_once() -> None:
    assert len(np.unique(block("float16", 0, 1 << 16))) == 1 << 16


@pytest.mark.parametrize("operator", ["exp", "pow", "gelu", "lgamma", "isnan"])
def test_elementwise_operators(operator: str) -> None:
    assert elementwise(operator, "float32") is not None


@pytest.mark.parametrize("operator", ["softmax", "cumsum", "sort", "flip", "sum", "matmul", "where", "diagonal"])
def test_other_operators(operator: str) -> None:
    assert elementwise(operator, "float32") is None


def test_a_correct_target_is_accepted(lab: Laboratory) -> None:
    """All float16; a search through float32 that comes to the same each time."""
    half = searched(lab, TARGETS["torch-eager"], graph("exp", "float16"), 0, 1 << 14, 1)
    single = [searched(lab, TARGETS["torch-eager"], graph("exp", "float32"), 3, 1 << 14, 1) for _ in range(2)]
    total = lines_of([half])[0].total
    assert total
    assert (total.elements + total.undetermined, total.wrong) == (1 << 16, 0)
    assert 0.5 <= total.ulps < 1
    assert single[0] == single[1]
    assert lines_of(single[:1])[0].outside == 0


def test_one_wrong_float16_is_found(lab: Laboratory) -> None:
    wrong = planted("out[x == np.float16(3.25)] *= np.float16(1.01)")
    total = lines_of([searched(lab, wrong, graph("exp", "float16"), 0, 1 << 14, 0)])[0].total
    assert total
    assert total.wrong == 1
    assert told(total.first, "float16") == told(total.place, "float16") == "3.25"
    assert total.ulps > 5


def test_refinement_finds_the_worst_of_a_narrow_range(lab: Laboratory) -> None:
    """An error that grows up to one number, which few points of the first look are near to."""
    bump = "out *= (1 + 2.0**-20 * np.maximum(0, 1 - np.abs(x - np.float32(5.3)) * 10)).astype(np.float32)"
    plain, refined = (
        lines_of([searched(lab, planted(bump), graph("sqrt", "float32"), 0, 1 << 15, rounds)])[0].total
        for rounds in (0, 3)
    )
    assert plain
    assert refined
    assert refined.ulps > plain.ulps
    assert refined.ulps > 9  # 2**-20 of the root 2.3, whose ulp is 2**-22, is 9.2
    assert abs(float(told(refined.place, "float32")) - 5.3) < 1e-2


def test_wrong_kinds_are_found_and_shown(lab: Laboratory) -> None:
    """NaN instead of an infinity, among all numbers of a stratum; what a target cannot run has a reason."""
    wrong = planted("out[np.isinf(x)] = np.nan")
    cells = [all_of(lab, wrong, graph("exp", "bfloat16"), part) for part in (0, 255)]
    line = lines_of(cells)[0]
    assert line.outside == 1
    assert line.total
    assert told(line.total.first, "bfloat16") == "inf"
    none = searched(lab, TARGETS["ort-all"], graph("lgamma", "float32"), 0, 1 << 14, 0)
    assert none.why == "lgamma: ONNX has no such operator"
    lines = lines_of([*cells, none])
    rows = csv_of(lines).splitlines()
    assert len(rows) == 1 + 2
    html = page(lines, {"torch": "2"})
    assert "lgamma: ONNX has no such operator" in html
    assert "exp, bfloat16" in html


def test_the_command_goes_on_where_it_was(tmp_path: Path) -> None:
    arguments = ["errors", "exp", "--targets", "torch-eager", "--dtypes", "float16", "--out", str(tmp_path)]
    for _ in range(2):
        result = CliRunner().invoke(app_of(), arguments)
        assert result.exit_code == 0, result.output
    assert len((tmp_path / "search.jsonl").read_text().splitlines()) == 2
    assert (tmp_path / "report.html").exists()
    other = CliRunner().invoke(app_of(), [*arguments, "--seed", "4"])
    assert other.exit_code == 2
    assert "give these, or another file" in other.output
    none = CliRunner().invoke(app_of(), ["errors", "softmax", "--out", str(tmp_path)])
    assert none.exit_code == 2
    assert "no operator that matches 'softmax' is elementwise" in none.output


def test_a_cell_of_nothing_has_a_line() -> None:
    line = lines_of([Cell("exp", "float32", "t", "1", -1, why="off")])[0]
    assert line.total is None
    assert line.outside == 0
