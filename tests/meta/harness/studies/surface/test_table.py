"""The table of the surface, by planted registries: what is reached, what is missing, what is out of scope."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.execute.reading import FileError
from harness.search.coverage import Coverage
from harness.studies.surface import scope
from harness.studies.surface.cell import Cell, Observation
from harness.studies.surface.registry import Registry, Tracer
from harness.studies.surface.scope import Rule
from harness.studies.surface.table import Surface, joined, missing, plain
from harness.studies.surface.trace import Calls

REGISTRY = Registry("planted", (), (), (), Tracer("planted", "torch-eager", (), ()), "torch-*")
LISTED = {
    "Add": ["type T=float32", "type T=int32", "attribute axis=default", "attribute axis=given", "operand B=absent"],
    "Lost": ["type T=float32"],
    "Random": ["is stateful", "type T=float32"],
}
CALLS = Calls(
    [
        Observation("Add", frozenset({"type T=float32", "attribute axis=given"}), frozenset({"add"})),
        Observation("Add", frozenset({"type T=int32", "attribute axis=default"}), frozenset({"sub", "add"})),
        Observation("Unlisted", frozenset(), frozenset({"add"})),
    ]
)
RULES = [Rule("it draws numbers", tags=("stateful",))]


def surface(rules: list[Rule] = RULES, calls: Calls = CALLS) -> Surface:
    return joined(REGISTRY, LISTED, calls, rules)


def test_what_is_called_is_reached_and_by_whom() -> None:
    rows = {str(row.cell): row for row in surface().rows}
    assert rows["Add"].reached == ("add", "sub")
    assert rows["Add attribute axis=given"].reached == ("add",)
    assert rows["Add attribute axis=given type T=float32"].reached == ("add",)
    assert rows["Add attribute axis=given type T=int32"].reached == ()  # each was met, but never both in one call
    assert rows["Add operand B=absent"].reached == ()


def test_an_operator_that_nothing_reaches_is_listed_missing() -> None:
    assert [str(row.cell) for row in missing([surface()])] == [
        "Lost",
        "Add operand B=absent",
        "Add attribute axis=default type T=float32",
        "Add attribute axis=given type T=int32",
    ]


def test_what_other_registries_have_too_is_listed_first() -> None:
    other = joined(REGISTRY, {"aten.also_lost.default": [], "only_here": []}, Calls(), [])
    more = joined(REGISTRY, {"AlsoLost": []}, Calls(), [])
    assert [str(row.cell) for row in missing([other, more])] == ["aten.also_lost.default", "AlsoLost", "only_here"]
    assert plain("aten.also_lost.default") == plain("AlsoLost") == plain("vision.also_lost") == "alsolost"


def test_shares_leave_out_what_is_out_of_scope() -> None:
    shares = surface().shares()
    assert (shares["operator"].reached, shares["operator"].cells, shares["operator"].out) == (1, 2, 1)
    assert (shares["all"].cells, shares["all"].out) == (12, 2)
    assert surface(rules=[]).shares()["operator"].share == pytest.approx(1 / 3)
    assert {row.out for row in surface().rows if row.cell.operator == "Random"} == {"it draws numbers"}


def test_a_rule_of_features_leaves_the_operator_in() -> None:
    rows = surface([Rule("no integers", operators=("Add",), features=("type *=int*",))]).rows
    assert {str(row.cell) for row in rows if row.out} == {
        "Add type T=int32",
        "Add attribute axis=given type T=int32",
        "Add attribute axis=default type T=int32",
    }


def test_what_a_framework_accepts_are_cells_too() -> None:
    rows = surface(calls=Calls(CALLS.observations, {"Lost": ["type T=int8"], "Unlisted": ["type T=int8"]})).rows
    assert Cell("planted", "Lost", ("type T=int8",)) in [row.cell for row in rows]
    assert all(row.cell.operator != "Unlisted" for row in rows)


def test_judged_nodes_are_counted_on_the_targets_of_the_registry() -> None:
    counted = Coverage()
    counted.cells["add", "float32", "torch-eager", "agree"] = 3
    counted.cells["sub", "float32", "torch-inductor", "mismatch"] = 2
    counted.cells["add", "float32", "torch-eager", "unsupported"] = 7
    counted.cells["add", "float32", "jax-jit", "agree"] = 11
    rows = joined(REGISTRY, LISTED, CALLS, RULES, {"forward": counted}).rows
    assert {str(row.cell): row.ran for row in rows}["Add"] == 5
    assert {str(row.cell): row.ran for row in rows}["Lost"] == 0


def test_a_wrong_rule_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "rules.toml").write_text('[[out]]\nregistry = ["onnx"]\nwhy = "it"\n')
    with pytest.raises(FileError, match=r"rules\.toml: \$\.out|rules\.toml: .*registry") as raised:
        scope.load(tmp_path / "rules.toml")
    assert "\n" not in str(raised.value)
