"""The tests of onnx are run, and what comes of them is told: passes, wrong results, refusals, crashes, hangs."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from syrupy.assertion import SnapshotAssertion
from typer.testing import CliRunner

from harness.commands import app
from harness.execute.pool import Limits, Pool
from harness.studies.conformance.collected import KINDS, Test, collect
from harness.studies.conformance.examine import STATUSES, Judged, examine
from harness.studies.conformance.page import html_of
from harness.studies.conformance.results import as_json, csv_of, failed_claims
from harness.studies.conformance.targets import REFERENCE, Tried, targets
from harness.studies.conformance.values import packed, unpacked

CLAIMED = 0.95
"""Least share of the tests that the reference has rules for."""
PLANTED = """
def open_model(path):
    import onnx
    from onnx.reference import ReferenceEvaluator

    model = onnx.load(path)
    evaluator = ReferenceEvaluator(model)
    ports = [(value.name, None, None) for value in model.graph.input]
    outputs = [(value.name, None, None) for value in model.graph.output]

    def call(*arrays):
        results = evaluator.run(None, {name: array for (name, _, _), array in zip(ports, arrays)})
        CHANGE
        return results

    return ports, outputs, call
"""
CHANGES = {
    "results = results": "pass",
    "results[0] = results[0] * np.float32(1.001)": "wrong",
    "results[0] = results[0][:0]": "wrong",
    "results = []": "wrong",
    "raise ValueError('no kernel')": "refused",
    "import time; time.sleep(60)": "hang",
    "import os; os._exit(3)": "crash",
}
LINES = [
    Judged("test_abs", "node", "Abs", 13, "reference", "1", "pass"),
    Judged("test_abs", "node", "Abs", 13, "other", "2", "wrong", "output 0: value: <b>"),
    Judged("test_add", "node", "Add", 14, "reference", "1", "wrong", "output 0: type"),
    Judged("test_add", "node", "Add", 14, "other", "2", "refused", "no kernel"),
    Judged("test_add_old", "node", "Add", 6, "reference", "1", "not judged", "in doubt"),
    Judged("test_add_old", "node", "Add", 6, "other", "2", "pass"),
]


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Pool, list[Test], Path]]:
    """The tests that lie in files, which cost little."""
    folder = tmp_path_factory.mktemp("tests")
    with Pool(Limits(seconds=120)) as pool:
        yield pool, collect(pool, KINDS[1:], folder), folder


def planted(change: str) -> Tried:
    text = targets()["ort-disable"].text.rpartition('"""Runs a test')
    return Tried("planted", "planted", ("onnx",), f"{PLANTED.replace('CHANGE', change)}\n\n{''.join(text[1:])}")


def test_values_come_back_as_they_were() -> None:
    values = [
        np.arange(6, dtype=np.int64).reshape(2, 3), None, [np.float32(1.5), [np.array(True)]],
        np.array(["é", b"x"], object), {"a": np.zeros((0, 2))}, {3: [np.ones(2, np.float16)]},
    ]  # fmt: skip
    again = unpacked(*packed(values))
    assert repr(again) == repr(unpacked(*packed(again)))
    assert [type(one) for one in again] == [np.ndarray, type(None), list, np.ndarray, dict, dict]
    assert (again[0].dtype, again[0].tolist()) == (np.int64, [[0, 1, 2], [3, 4, 5]])
    assert (again[3].tolist(), again[4]["a"].shape, list(again[5])) == (["é", "x"], (0, 2), [3])


def test_tests_are_collected(few: tuple[Pool, list[Test], Path]) -> None:
    tests = few[1]
    assert len(tests) > 130
    assert {test.kind for test in tests} == set(KINDS[1:])
    conv = next(test for test in tests if test.name == "test_Conv2d")
    assert (conv.operator, conv.opset, len(conv.inputs), conv.sets) == ("Conv", 6, 1, 1)


def test_the_reference_passes_what_lies_in_files(few: tuple[Pool, list[Test], Path]) -> None:
    pool, tests, folder = few
    found = [one for batch in examine(pool, tests[::4], [targets()[REFERENCE]], folder) for one in batch]
    assert failed_claims(found) == []
    assert sum(one.status == "pass" for one in found) >= CLAIMED * len(found)


@pytest.mark.slow(one_in=3)
@pytest.mark.parametrize("change", CHANGES)
def test_a_planted_fault_is_told(few: tuple[Pool, list[Test], Path], change: str) -> None:
    pool, tests, folder = few
    chosen = [test for test in tests if test.name in ("test_Linear", "test_Softplus")]
    pool.restart_worker("planted")
    pool.limits = Limits(seconds=8) if CHANGES[change] == "hang" else Limits(seconds=120)
    found = [one for batch in examine(pool, chosen, [planted(change)], folder) for one in batch]
    assert [one.status for one in found] == [CHANGES[change]] * 2
    assert all(bool(one.why) != (one.status == "pass") for one in found)


def test_a_wrong_reference_is_told_as_such(few: tuple[Pool, list[Test], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the reference itself it is a failed claim; others are then judged by nobody."""
    pool, tests, folder = few
    mine = targets()[REFERENCE]
    planted_run = (
        "exact_runs = noisy_runs\ndef noisy_runs(*given):\n"
        "    return [[y * 1.001 for y in one] for one in exact_runs(*given)]\n\n\n"
    )
    text = mine.text.replace("\ndef load(", f"\n{planted_run}def load(")
    wrong = {**targets(), REFERENCE: replace(mine, text=text)}
    monkeypatch.setattr("harness.studies.conformance.examine.targets", lambda: wrong)
    chosen = [test for test in tests if test.name == "test_Linear"]
    pairs = [wrong[REFERENCE], planted("results = results")]
    reference, other = (one for batch in examine(pool, chosen, pairs, folder) for one in batch)
    assert failed_claims([reference, other]) == [reference]
    assert (reference.status, other.status) == ("wrong", "not judged")
    assert "it agrees with expected values" in other.why


@pytest.mark.slow
def test_the_reference_passes_all_that_it_claims(tmp_path: Path) -> None:
    with Pool(Limits(seconds=240)) as pool:
        tests = collect(pool, KINDS, tmp_path)
        found = [one for batch in examine(pool, tests, [targets()[REFERENCE]], tmp_path) for one in batch]
    assert len(found) > 2000
    assert failed_claims(found) == []
    assert sum(one.status in ("pass", "not judged") for one in found) >= CLAIMED * len(found)


def test_the_tables(snapshot: SnapshotAssertion) -> None:
    page = html_of(LINES, "onnx 1")
    assert "<b>" not in page
    assert not re.search(r"https?://|<script", page)
    words = [line.strip() for line in re.sub(r"<[^>]*>", " ", page.split("<body>")[1]).splitlines()]
    assert "\n".join(filter(None, words)) == snapshot
    assert [row["status"] for row in csv.DictReader(io.StringIO(csv_of(LINES)))] == [one.status for one in LINES]
    assert as_json(LINES)["runners"][1] == {
        "runner": "other", **dict.fromkeys(STATUSES, 0), "pass": 1, "wrong": 1, "refused": 1, "tests": 3
    }  # fmt: skip
    assert [one.test for one in failed_claims(LINES)] == ["test_add"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("--targets nobody", "no target matches 'nobody'"),
        ("--kinds real", "no kind matches 'real'"),
        ("--kinds simple --tests nothing --targets reference", "no test matches 'nothing'"),
        ("--budget soon", "is not a duration"),
        ("--record {folder}/none/here.jsonl", "cannot use"),
    ],
)
def test_bad_input_is_one_line(arguments: str, said: str, tmp_path: Path) -> None:
    shown = CliRunner().invoke(app.app_of(), ["conformance", *arguments.format(folder=tmp_path).split()])
    assert shown.exit_code == 2
    (line,) = [line for line in shown.stderr.splitlines() if line.startswith("dissent:")]
    assert said in line


def test_a_record_is_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept, written = tmp_path / "kept.jsonl", tmp_path / "all.csv"
    arguments = ["conformance", "--kinds", "simple", "--targets", "reference", "--record", str(kept)]
    real = examine

    def interrupted(*given: Any) -> Iterator[list[Judged]]:
        yield next(real(*given))[:5]
        raise KeyboardInterrupt

    monkeypatch.setattr("harness.studies.conformance.examine.examine", interrupted)
    stopped = CliRunner().invoke(app.app_of(), arguments)
    assert (stopped.exit_code, len(kept.read_text(encoding="utf-8").splitlines())) == (130, 6)
    monkeypatch.setattr("harness.studies.conformance.examine.examine", real)
    ended = CliRunner().invoke(app.app_of(), [*arguments, "--csv", str(written)])
    assert ended.exit_code == 0
    names = [row["test"] for row in csv.DictReader(io.StringIO(written.read_text(encoding="utf-8")))]
    assert len(names) == len(set(names)) > 20


def test_two_processes_share_the_tests(tmp_path: Path) -> None:
    given = ["conformance", "--kinds", "simple", "--targets", "reference,ort-disable"]
    parts = []
    for name, how in (("one", []), ("two", ["--jobs", "2"])):
        kept, written = tmp_path / f"{name}.jsonl", tmp_path / f"{name}.csv"
        shown = CliRunner().invoke(app.app_of(), [*given, "--record", str(kept), "--csv", str(written), *how])
        assert shown.exit_code == 0, shown.output
        parts.append(sorted(written.read_text(encoding="utf-8").splitlines()))
    assert parts[0] == parts[1]
    assert len(parts[0]) > 40


def test_several_processes_need_a_record() -> None:
    shown = CliRunner().invoke(app.app_of(), ["conformance", "--kinds", "simple", "--jobs", "2"])
    assert shown.exit_code == 2
    assert "give --record" in shown.stderr
