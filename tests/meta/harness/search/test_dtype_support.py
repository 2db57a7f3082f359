"""Every operator x dialect cell that claims to be supported is compiled, run and judged, for every dtype; what is
recorded as refused is refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from examples.one_node import applied

from generators.graph import COMMON, COMPLEX, MEASURED
from generators.graphs import Case
from generators.ops import OPS
from harness.backends import TARGETS, Target
from harness.backends.target import refusals
from harness.commands.shared import refusal_files
from harness.dialects import DIALECTS
from harness.search import dtype_support
from harness.search.campaign import Campaign
from harness.search.dtype_support import dtypes_of, involved, measure, refusals_of, representatives, samples
from harness.search.hypothesis_profiles import looked_at, nightly
from harness.search.laboratory import Laboratory
from oracles.judge.discrepancy import Discrepancy
from oracles.judge.outcome import Outcome, Rejected, Unsupported, Value

SIMPLEST = {
    "torch": "torch-eager",
    "tensorflow": "tf-eager",
    "jax": "jax-eager",
    "relax": "tvm-O0",
    "onnx": "ort-disable",
}
RECORDS = representatives(TARGETS.values())


def test_every_dialect_has_a_simplest_target() -> None:
    assert set(SIMPLEST) == set(DIALECTS)
    assert all(TARGETS[name].dialect is DIALECTS[dialect] for dialect, name in SIMPLEST.items())


@pytest.mark.slow(one_in=5)
@pytest.mark.parametrize("operator", looked_at())
def test_drawn_dtypes_are_those_of_the_record(operator: str) -> None:
    cases = [case for dtype in involved(operator) for case in samples(operator, dtype)]
    drawn = {case.graph.types[case.graph.nodes[0].operands[0]].dtype for case in cases}
    assert drawn == set(dtypes_of(OPS[operator]))


def _cells(targets: Mapping[str, Target]) -> list[tuple[str, str]]:
    """(operator, key of `targets`). Where programs are slow to compile, each operator has its turn on one target in
    three only, except in the nightly profile."""
    everything = nightly()
    return [
        (operator, key)
        for i, operator in enumerate(looked_at())
        for j, (key, target) in enumerate(targets.items())
        if everything or target.sample_every == 1 or (i + j) % 3 == 0
    ]


@pytest.mark.slow(one_in=11, ci=11)
@pytest.mark.parametrize(("operator", "dialect"), _cells({d: TARGETS[name] for d, name in SIMPLEST.items()}))
def test_cell(operator: str, dialect: str, campaign: Campaign) -> None:
    target = TARGETS[SIMPLEST[dialect]]
    expressed = 0
    dtypes = next(some for some in (COMMON, COMPLEX, MEASURED) if any(samples(operator, dtype) for dtype in some))
    for case in (case for dtype in dtypes for case in samples(operator, dtype)[:2]):
        examination = campaign.lab.examine(case, [target])
        verdict = examination.verdicts[target.name]
        if isinstance(examination.outcomes[target.name], Unsupported):
            continue
        expressed += 1
        if verdict.discrepancy and campaign.unexplained(target, case, verdict.discrepancy):
            pytest.fail(f"{target.name}: {verdict.discrepancy.message}\n{case.graph}", pytrace=False)
    spelling = getattr(OPS[operator], dialect)
    if isinstance(spelling, str):
        refused = any(name == operator for name, _ in target.refuses)
        assert expressed or refused, f"{operator} is spelled in {dialect}, yet none of its cases could be run"
    elif not callable(spelling):
        assert not expressed
        assert len(spelling.why) > 10


# ---- what is recorded of the rare dtypes ---------------------------------------------------------------


def disagreements(target: Target, found: list[dtype_support.SupportCell]) -> list[str]:
    """Where a target's record and what was measured differ, and what is wrong beside."""
    lines = []
    for cell in found:
        name = f"{cell.operator} of {cell.dtype}"
        recorded = refusals.why(target.refusals_file, cell.operator, cell.dtype)
        if cell.wrong:
            lines.append(f"{name}: {cell.wrong}")
        if cell.refused and not recorded:
            lines.append(f"{name} is not in the record and is refused: {cell.refused}")
        if recorded and cell.expressed and not cell.refused:
            lines.append(f"{name} is in the record and is not refused any more")
    return [f"{target.name}: {line}" for line in lines]


def rare_dtypes(operator: str, target: Target) -> tuple[str, ...]:
    """All; where programs are slow to compile, a different one for each operator, except in the nightly profile."""
    rare = tuple(dtype for dtype in MEASURED if dtype in involved(operator))
    if target.sample_every == 1 or nightly() or not rare:
        return rare
    return (rare[list(OPS).index(operator) % len(rare)],)


@pytest.mark.slow(one_in=37, ci=12)
@pytest.mark.parametrize(("operator", "record"), _cells(RECORDS))
def test_recorded_cell(operator: str, record: str, campaign: Campaign) -> None:
    target = RECORDS[record]

    def known(subject: Target, case: Case, discrepancy: Discrepancy) -> bool:
        return campaign.unexplained(subject, case, discrepancy) is None

    found = measure(campaign.lab, target, known, (operator,), rare_dtypes(operator, target))
    lines = disagreements(target, found)
    assert not lines, "\n".join(["`python -m harness cells --update` renews the records", *lines])


@pytest.mark.slow
def test_every_recorded_cell_exists() -> None:
    for record in RECORDS:
        for operator, dtype in refusals.load(record):
            assert dtype in MEASURED
            assert operator == "*" or dtype in involved(operator), f"{record}: {operator} of {dtype}"


class _Answering(Laboratory):
    """A laboratory in which every target gives the same answer."""

    def __init__(self, answer: Outcome) -> None:
        self.answer = answer

    def outcomes(self, runs: Sequence[tuple[Target, Case]], confirm: bool = True) -> list[Outcome]:
        return [self.answer] * len(runs)


@pytest.mark.parametrize(
    ("answer", "recorded", "line"),
    [
        (Rejected("TypeError", "no uint8 here"), {}, "is not in the record and is refused: TypeError: no # here"),
        (Rejected("TypeError", "no uint8 here"), {("neg", "uint8"): "no"}, None),
        (Value(()), {}, "neg of uint8: outputs: 0 outputs instead of 1"),
        (Value(()), {("neg", "uint8"): "no"}, "is in the record and is not refused any more"),
    ],
)
def test_a_record_that_is_wrong_is_seen(
    monkeypatch: pytest.MonkeyPatch, answer: Outcome, recorded: dict[tuple[str, str], str], line: str | None
) -> None:
    monkeypatch.setattr(refusals, "load", lambda record: recorded if record else {})
    target = TARGETS["torch-eager"]
    found = measure(_Answering(answer), target, lambda *_: False, ("neg",), ("uint8",))
    lines = disagreements(target, found)
    assert any(line in text for text in lines) if line else not lines


def test_a_record_makes_a_cell_unsupported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refusals, "load", lambda record: {("neg", "uint8"): "no kernel"} if record else {})
    graph = samples("neg", "uint8")[0].graph
    target = TARGETS["torch-eager"]
    assert target.unsupported(graph) == "neg of uint8: no kernel"
    assert replace(target, refusals_file="").unsupported(graph) is None
    assert target.unsupported(samples("neg", "int8")[0].graph) is None
    assert dtype_support.claim(target, "neg", "uint8") == ("refused", "neg of uint8: no kernel")
    assert dtype_support.claim(target, "neg", "int8") == ("runs", None)


def test_a_dtype_that_nothing_takes_is_one_entry() -> None:
    found = [dtype_support.SupportCell("neg", d, 1, "no", None) for d in ("uint8", "uint16")]
    found += [
        dtype_support.SupportCell("abs", "uint8", 1, "no", None),
        dtype_support.SupportCell("abs", "uint16", 1, None, None),
    ]
    refused = refusal_files.grouped(found, refusals_of(found))
    assert refused == {("*", "uint8"): "no", ("neg", "uint16"): "no"}


def test_a_record_survives_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refusals, "FOLDER", tmp_path)
    refused = {("neg", "uint8"): "no kernel", ("neg", "uint16"): "no kernel", ("abs", "uint8"): "another"}
    refusals.save("some", refused)
    assert refusals.load("some") == refused
    assert (tmp_path / "some.json").read_text().count("no kernel") == 1
    refusals.load.cache_clear()


def test_a_renewed_part_leaves_the_rest_of_a_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refusals, "FOLDER", tmp_path)
    monkeypatch.setattr(
        refusal_files,
        "measure",
        lambda *_: [dtype_support.SupportCell("neg", d, 1, "new", None) for d in ("uint8", "int8")],
    )
    rest = {("*", "int8"): "all", ("abs", "uint8"): "old"}
    refusals.save("torch", {**rest, ("neg", "uint8"): "old"})
    refusal_files.update(TARGETS["torch-eager"], (), ("neg",), ("uint8", "int8"))
    assert refusals.load("torch") == {**rest, ("neg", "uint8"): "new"}
    refusals.load.cache_clear()


def test_what_is_promoted_is_refused_as_the_operator_of_that_dtype() -> None:
    """x + y of bfloat16 and a float32 number is an addition of bfloat16, which ONNX Runtime has no kernel of."""
    narrow, number = np.zeros((2, 2), ml_dtypes.bfloat16), np.zeros((), np.float32)
    added, less = (applied(operator, narrow, number).graph for operator in ("add_mixed", "less_mixed"))
    why = TARGETS["ort-disable"].refused(added)
    assert why is not None
    assert why.startswith("add_mixed, which is add of bfloat16: ")
    assert "less of bfloat16" in (TARGETS["ort-disable"].refused(less) or "")
    assert TARGETS["torch-eager"].refused(added) is None
