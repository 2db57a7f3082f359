"""Severity, reach and causes: the rules, on instances made for them and on all that is known."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from examples.small_graphs import chain_case
from syrupy.assertion import SnapshotAssertion

from generators.graphs import Case
from harness.commands.findings.gather import entries
from harness.findings.known.entry import FOLDER
from harness.findings.triage.causes import causes_of
from harness.findings.triage.instance import Instance
from harness.findings.triage.reach import reach_of, trigger_of
from harness.findings.triage.severity import SEVERITIES, severity_of
from harness.findings.triage.words import LONGEST, headline


def instance(name: str, **facts: Any) -> Instance:
    """One of an issue of torch."""
    given: dict[str, Any] = {
        "framework": "torch", "kind": "issue", "subjects": ("torch-eager",), "reach": 1, "asked": 3,
        "symptoms": ("value",), "folder": Path(name), "question": "forward", "operators": ("exp",),
    }  # fmt: skip
    return Instance(name, **{**given, **facts})


def groups(*instances: Instance) -> list[list[str]]:
    """Ids by cause."""
    return sorted(sorted(one.id for one in cause.instances) for cause in causes_of(instances))


@pytest.mark.parametrize(
    ("symptoms", "reason", "severity"),
    [
        (("rejected",), "", "rejection"),
        (("rejected", "value"), "", "silent wrong value"),
        (("special",), "NaN is lost", "silent wrong value"),
        (("crash",), "", "crash"),
        (("value", "crash"), "memory outside is overwritten", "memory damage"),
        (("value",), "the result is what lay in memory", "memory damage"),
        (("timeout", "rejected"), "", "hang"),
        (("outputs",), "", "wrong type"),
        (("level",), "", "inconsistency"),
    ],
)
def test_severity(symptoms: tuple[str, ...], reason: str, severity: str) -> None:
    assert severity_of(symptoms, reason) == severity


@pytest.mark.parametrize(
    ("reason", "folded"),
    [
        ("As an-entry: more of it.", True),
        ("A consequence of an-entry: it spreads.", True),
        ("Vectors lose digits (as an-entry, in less).", True),
        ("an-entry, of further operators.", True),
        ("It loses digits. See an-entry.", False),
        ("Compare an-entry.", False),
        ("As an-entry-of-others: something else.", False),
    ],
)
def test_reasons_that_name_another_entry(reason: str, folded: bool) -> None:
    found = causes_of([instance("an-entry"), instance("z", reason=reason, operators=("log",))])
    assert len(found) == (1 if folded else 2)
    if folded:
        assert found[0].id == "an-entry"
        assert [fold.rule for fold in found[0].folds] == ["reference"]


def test_a_thread_is_one_cause_where_operator_symptom_and_question_are() -> None:
    first = instance("a", upstream="https://github.com/x/y/issues/1")
    assert groups(first, replace(first, id="b")) == [["a", "b"]]
    for other in ({"operators": ("log",)}, {"symptoms": ("crash",)}, {"question": "vmap"}, {"framework": "tvm"}):
        assert groups(first, replace(first, id="b", **other)) == [["a"], ["b"]]
    any_operator = replace(first, id="b", operators=("*",))
    assert groups(first, any_operator) == [["a"], ["b"]]


def test_the_same_words_are_one_cause_of_an_operator() -> None:
    first = instance("a", symptoms=("rejected",), message="no kernel for")
    assert groups(first, replace(first, id="b")) == [["a", "b"]]
    assert groups(first, replace(first, id="b", operators=("log",))) == [["a"], ["b"]]
    nothing_said = replace(first, message="")
    assert groups(nothing_said, replace(nothing_said, id="b")) == [["a"], ["b"]]


def test_findings_say_the_same_with_other_numbers() -> None:
    first = instance("a", kind="finding", symptoms=("rejected",), message="TypeError: 3 of 4 operands")
    assert groups(first, replace(first, id="b", message="TypeError: 1 of 2 operands")) == [["a", "b"]]
    assert groups(first, replace(first, id="b", message="ValueError: 1 of 2 operands")) == [["a"], ["b"]]
    guilty = replace(first, passes=("FuseOps",), operators=("sum",), message="one")
    assert groups(guilty, replace(guilty, id="b", operators=("exp",), message="two")) == [["a", "b"]]


def test_structure_needs_the_size_of_the_error() -> None:
    first = instance("a", case=chain_case(), where="abs(got - expected) <= 16 * unit")
    assert groups(first, replace(first, id="b", question="vmap")) == [["a", "b"]]
    for where in ("isnan(expected)", "isnan(x0)", ""):
        vague = replace(first, where=where)
        assert groups(vague, replace(vague, id="b")) == [["a"], ["b"]]
    assert groups(first, replace(first, id="b", conditions=("a processor with avx512f",))) == [["a"], ["b"]]


def test_what_triggers_it_is_what_the_smallest_case_holds() -> None:
    plain = {name: np.ones_like(array) for name, array in chain_case().arrays.items()}
    ordinary = Case(chain_case().graph, plain)
    assert trigger_of(instance("a", case=ordinary)) == "ordinary numbers"
    name = next(iter(plain))
    for value, trigger in ((np.nan, "NaN or infinity"), (-np.inf, "NaN or infinity"), (1e30, "extreme numbers")):
        array = plain[name].copy()
        array.flat[0] = value
        assert trigger_of(instance("a", case=Case(ordinary.graph, {**plain, name: array}))) == trigger
    assert trigger_of(instance("a", case=ordinary, empty=True)) == "empty tensors"


def test_reach_counts_what_narrows_it() -> None:
    plain = {name: np.ones_like(array) for name, array in chain_case().arrays.items()}
    wide = instance("a", case=Case(chain_case().graph, plain))
    assert reach_of(wide).level == "wide"
    assert reach_of(replace(wide, dtypes=("float32", "float64"))).level == "wide"
    assert reach_of(replace(wide, dtypes=("float64",))).level == "medium"
    assert reach_of(replace(wide, question="gradient")).level == "medium"
    assert reach_of(replace(wide, question="gradient", conditions=("2 threads or more",))).level == "narrow"
    assert reach_of(replace(wide, empty=True)).level == "narrow"


@pytest.fixture(scope="module")
def known() -> list[Instance]:
    return entries(FOLDER)


def test_known_entries_fold_into_causes_that_were_looked_at(known: list[Instance], snapshot: SnapshotAssertion) -> None:
    """A fold that is not in the snapshot has to be looked at before it is taken into it: no cause may hold two
    faults."""
    found = causes_of(known)
    assert sorted(one.id for cause in found for one in cause.instances) == sorted(one.id for one in known)
    folds = [f"{fold.first} with {fold.second}, by {fold.rule}" for cause in found for fold in cause.folds]
    assert len(folds) == len(known) - len(found)
    assert sorted(folds) == snapshot
    assert all({one.framework for one in cause.instances} == {cause.first.framework} for cause in found)


def test_causes_are_the_same_in_any_order(known: list[Instance]) -> None:
    shuffled = list(known)
    random.Random(3).shuffle(shuffled)
    assert causes_of(shuffled) == causes_of(known)


def test_every_known_entry_has_a_severity_and_a_headline(known: list[Instance]) -> None:
    for one in known:
        assert severity_of(one.symptoms, one.reason) in SEVERITIES
        line = headline(one)
        assert 15 <= len(line) <= LONGEST + 2, one.id
        assert "\n" not in line
        assert not line.startswith(("As ", "A consequence of ")), one.id
