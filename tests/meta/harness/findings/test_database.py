"""The store: nothing that was told to it is lost, whoever else writes and however a writer ends."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import typer
from sqlalchemy import inspect, select
from typer.testing import CliRunner

from harness.commands import app
from harness.commands.shared import earlier
from harness.commands.shared.recorded import recorded
from harness.findings.database import kept, opened
from harness.findings.database.migrations.upgrade import upgrade
from harness.findings.database.recorder import Recorder, begin
from harness.findings.database.tables import EXAMINED, METADATA, RUN
from harness.search import coverage
from harness.search.coverage import Coverage

WRITER = """
import sys
from pathlib import Path
from harness.findings.database.opened import url_of
from harness.findings.database.recorder import begin
folder, name, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
run = begin(url_of(folder), name, folder, 1, {}, "")
for number in range(count):
    run.case("forward", {"agree": 1}, 0.0, number=number)
    run.finding(f"value-{name}-{number}", ["torch-eager"], "value")
    assert run.failure is None, run.failure
    print(number, flush=True)
"""
ROOT = Path(__file__).parents[4]


def writer(folder: Path, name: str, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, str(folder), name, str(count)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def begun(folder: Path, run: str = "") -> Recorder:
    return begin(opened.url_of(folder), "hunt --seed 3", folder, 3, {"numpy": "2"}, "a processor", run)


def db(*arguments: str | Path) -> tuple[int, str]:
    result = CliRunner().invoke(app.app_of(), ["db", *map(str, arguments)])
    return result.exit_code, result.output


def test_two_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    writers = [writer(tmp_path, name, 200) for name in ("one", "two")]  # both make the store
    assert [(len(one.communicate(timeout=60)[0].split()), one.returncode) for one in writers] == [(200, 0)] * 2
    url = opened.url_of(tmp_path)
    assert [
        (row.command, cases, states) for row, cases, states in sorted(kept.runs(url), key=lambda r: r[0].command)
    ] == [(name, 200, {"found": 200}) for name in ("one", "two")]


@pytest.mark.parametrize("moments", [4, pytest.param(50, marks=pytest.mark.nightly)])
def test_what_was_told_is_there_after_a_kill(tmp_path: Path, moments: int) -> None:
    moment = random.Random(moments)
    for number in range(moments):
        process = writer(tmp_path, f"w{number}", 1 << 20)
        assert process.stdout
        process.stdout.readline()
        time.sleep(moment.random() * 0.3)
        process.send_signal(signal.SIGKILL)
        told = [0, *(int(line) for line in process.communicate()[0].split())]
        (row,) = [row for row, _, _ in kept.runs(opened.url_of(tmp_path)) if row.command == f"w{number}"]
        assert (row.ended, row.status) == (None, None)
        names = {one["fingerprint"] for one in kept.rows(opened.url_of(tmp_path), "finding", row.id)}
        assert {f"value-w{number}-{one}" for one in told} <= names
        assert len(kept.rows(opened.url_of(tmp_path), "examined", row.id)) >= max(told) + 1


def test_counts_add_up_and_findings_change_their_state(tmp_path: Path) -> None:
    run = begun(tmp_path)
    run.finding("value-tvm-add-1", ["tvm-O3"], "value")
    run.again("value-tvm-add-1", "tvm-O3", "value")
    run.finding("value-tvm-add-1", ["tvm-O3"], "value", "FuseOps")  # it was reduced
    run.finding("crash-tvm-sub-2", ["tvm-O0"], "crash")
    run.dropped("crash-tvm-sub-2")
    run.known({"tf-x": 2})
    run.known({"tf-x": 3})
    run.timings({"judge": 1.5})
    run.timings({"judge": 0.25})
    run.end(1)
    assert run.failure is None
    found = {row["fingerprint"]: row for row in kept.rows(run.url, "finding")}
    told = {name: (row["state"], row["cause"], row["count"]) for name, row in found.items()}
    assert told == {
        "value-tvm-add-1": ("found", "FuseOps", 2),
        "crash-tvm-sub-2": ("dropped", "", 1),
        "tf-x": ("known", "", 5),
    }
    assert [row["count"] for row in kept.rows(run.url, "timing")] == [1.75]
    ((row, _, _),) = kept.runs(run.url)
    assert (row.status, row.seed, row.versions) == (1, 3, {"numpy": "2"})
    assert row.started <= row.ended


def test_a_case_that_is_examined_once_more_stands_once(tmp_path: Path) -> None:
    run, other = begun(tmp_path), begun(tmp_path)
    for came in ({"agree": 2}, {"agree": 1, "mismatch": 1}):  # a task that was lost, and gone on with
        run.case("forward", came, 0.5, number=7)
    run.case("forward", {"agree": 1}, 0.5, number=7, subject="torch-eager")
    for one in (run, other):
        one.case("forward", {"agree": 3}, 0.25)  # what has no number is counted each time
        one.case("forward", {"agree": 3}, 0.25)
    other.case("forward", {"agree": 4}, 0.25, number=7)
    assert (run.failure, other.failure) == (None, None)
    told = [(row["number"], row["outcomes"]) for row in kept.rows(run.url, "examined", run.run)]
    assert told == [(7, {"agree": 1, "mismatch": 1}), (7, {"agree": 1}), (None, {"agree": 3}), (None, {"agree": 3})]
    assert [row["number"] for row in kept.rows(run.url, "examined", other.run)] == [None, None, 7]


@pytest.mark.parametrize("before", [None, "1", "2"])
def test_the_schema_is_brought_up_to_date(tmp_path: Path, before: str | None) -> None:
    url = opened.url_of(tmp_path)
    if before:
        with opened.writing(url).begin() as connection:
            upgrade(connection, before)
            names = "id, command, folder, seed, versions, machine, started"
            connection.exec_driver_sql(f"INSERT INTO run ({names}) VALUES ('a', 'hunt', '', 3, '{{}}', '', '2026')")
            for number, seconds in ((7, 1), (7, 2), (8, 1), ("NULL", 1), ("NULL", 1)):
                values = f"'a', 'forward', {number}, '', '{{}}', {seconds}"
                names = "run, kind, number, subject, outcomes, seconds"
                connection.exec_driver_sql(f"INSERT INTO examined ({names}) VALUES ({values})")
        assert opened.revision(url) == before
    opened.opened(url)
    assert opened.revision(url) == opened.NEWEST
    with opened.reading(url).connect() as connection:
        about = inspect(connection)
        for table in METADATA.sorted_tables:  # what revisions make is what is used
            assert {c["name"]: c["nullable"] for c in about.get_columns(table.name)} == {
                c.name: bool(c.nullable) for c in table.columns
            }
            assert about.get_pk_constraint(table.name)["constrained_columns"] == [c.name for c in table.primary_key]
            indices = {i["name"]: (i["column_names"], bool(i["unique"])) for i in about.get_indexes(table.name)}
            assert (
                indices.items()
                >= {i.name: ([c.name for c in i.columns], bool(i.unique)) for i in table.indexes}.items()
            )
        assert list(connection.execute(select(RUN.c.id)).scalars()) == (["a"] if before else [])
        cases = connection.execute(select(EXAMINED.c.number, EXAMINED.c.seconds).order_by(EXAMINED.c.id)).all()
        assert list(map(tuple, cases)) == ([(7, 2.0), (8, 1.0), (None, 1.0), (None, 1.0)] if before else [])


def _newer(path: Path) -> None:
    opened.opened(f"sqlite:///{path}")
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '99'")
    connection.close()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: path.write_bytes(b"no database " * 100), "file is not a database"),
        (_newer, "has a schema of revision 99, and this Dissent knows 3 at most"),
        (lambda path: path.mkdir(), "unable to open database file"),
    ],
)
def test_a_store_that_cannot_be_used_is_one_line(tmp_path: Path, make: Callable[[Path], object], message: str) -> None:
    make(tmp_path / opened.FILE)
    arguments = ["hunt", "--findings", str(tmp_path), "--targets", "torch-eager", "--cases", "1"]
    for words in (arguments, ["coverage", "--findings", str(tmp_path)], ["db", "show", "--findings", str(tmp_path)]):
        result = CliRunner().invoke(app.app_of(), words)
        assert result.exit_code == 2, words
        (line,) = result.stderr.splitlines()
        assert str(tmp_path / opened.FILE) in line
        assert message in line or words[0] != "hunt"


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ("mysql://me:secret@there/dissent", "a store is sqlite or postgresql, not mysql"),
        ("://", "is no URL of a store"),
        ("postgresql://me:secret@localhost:1/dissent", "cannot use postgresql+psycopg://me:***@localhost:1/dissent"),
    ],
)
def test_a_url_that_cannot_be_used_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str, message: str
) -> None:
    monkeypatch.setenv(opened.VARIABLE, named)
    status, told = db("show", "--findings", tmp_path)
    assert status == 2
    assert message in told
    assert "secret" not in told
    assert len(told.splitlines()) == 1


def test_a_hunt_goes_on_without_its_store_and_says_so(tmp_path: Path) -> None:
    """The folder of a finding is there all the same; the next run writes into the store what this one could not."""
    run = begun(tmp_path)
    opened.writing(run.url).dispose()  # lets go of the file
    (tmp_path / opened.FILE).rename(tmp_path / "whole")
    (tmp_path / opened.FILE).write_bytes(b"no database " * 1000)
    run.finding("value-a-b", ["torch-eager"], "value")
    assert run.failure
    assert str(tmp_path / opened.FILE) in run.failure
    (tmp_path / "whole").rename(tmp_path / opened.FILE)
    opened.writing(run.url).dispose()
    (tmp_path / "value-a-b").mkdir()
    record = {"fingerprint": "value-a-b", "symptom": "value", "targets": ["torch-eager"]}
    (tmp_path / "value-a-b" / "finding.json").write_text(json.dumps(record))
    for _ in range(2):  # once
        earlier.take_over(tmp_path)
    found = kept.rows(opened.url_of(tmp_path), "finding")
    assert [(row["fingerprint"], row["target"], row["state"]) for row in found] == [
        ("value-a-b", "torch-eager", "found")
    ]


def test_counts_of_an_earlier_dissent_are_taken_over_once(tmp_path: Path) -> None:
    opened.opened(opened.url_of(tmp_path))
    old = Coverage()
    old.cells["add", "float32", "torch-eager", "agree"] = 3
    old.elements["add"] = 7
    file = tmp_path / coverage.FILE
    text = json.dumps({"forward": old.to_json()})
    file.write_text(text)
    assert coverage.load(tmp_path) == {"forward": old}
    earlier.take_over(tmp_path)
    assert not file.exists()
    file.write_text(text)  # a process was killed before it removed the file
    earlier.take_over(tmp_path)
    assert coverage.load(tmp_path) == {"forward": old}


def test_the_commands_on_the_store(tmp_path: Path) -> None:
    run = begun(tmp_path / "a", "a" * 32)
    run.finding("value-x", ["torch-eager"], "value")
    run.case("forward", {"agree": 1}, 0.5, number=4)
    run.covered("forward", {("add", "float32", "torch-eager", "agree"): 3}, {}, {"add": 7}, {"add": 0})
    run.end(0)
    begun(tmp_path / "b", "b" * 32).end(0)
    assert db("merge", tmp_path / "a", "--findings", tmp_path / "b")[0] == 0
    assert db("merge", tmp_path / "a", "--findings", tmp_path / "b") == (
        0,
        f"0 runs of {tmp_path}/a/store.sqlite are new\n",
    )
    for name in ("finding", "examined", "cell"):
        there, here = (kept.rows(opened.url_of(tmp_path / one), name) for one in "ab")
        assert here == there
    status, told = db("show", "--findings", tmp_path / "b", "--run", "aaa")
    assert status == 0
    assert "value-x" in told
    assert db("show", "--findings", tmp_path / "b", "--run", "c")[0] == 2
    assert (
        db("export", "--findings", tmp_path / "b", "--csv", tmp_path / "x.csv", "--json", tmp_path / "x.json")[0] == 0
    )
    assert "value-x" in (tmp_path / "x.csv").read_text()
    assert [row["id"][0] for row in json.loads((tmp_path / "x.json").read_text())["run"]] == ["a", "b"]
    assert db("export", "--findings", tmp_path / "b")[0] == 2
    before = coverage.load(tmp_path / "b")
    assert before
    assert db("prune", "--days", "1", "--findings", tmp_path / "b") == (0, "0 runs left out\n")
    assert db("prune", "--days", "0", "--findings", tmp_path / "b") == (0, "2 runs left out\n")
    assert coverage.load(tmp_path / "b") == before
    assert kept.rows(opened.url_of(tmp_path / "b"), "finding") == []


POSTGRES = shutil.which("initdb") or next(iter(map(str, Path("/usr/lib/postgresql").glob("*/bin/initdb"))), "")


@pytest.mark.skipif(not POSTGRES or os.getuid() == 0, reason="needs PostgreSQL's initdb, and is not for root")
def test_postgresql(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    postgres(tmp_path, monkeypatch)


def postgres(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same in PostgreSQL: two writers at once, and the commands."""
    data, tools = tmp_path / "data", Path(POSTGRES).parent
    subprocess.run([POSTGRES, "-D", data, "-U", "me", "-A", "trust"], check=True, capture_output=True)
    options = f"-c listen_addresses='' -k {tmp_path}"
    subprocess.run([tools / "pg_ctl", "-D", data, "-w", "-l", tmp_path / "log", "-o", options, "start"], check=True)
    try:
        url = f"postgresql://me@/postgres?host={tmp_path}"
        monkeypatch.setenv(opened.VARIABLE, url)
        test_two_writers_at_once_lose_nothing(tmp_path)
        run = begun(tmp_path)
        run.covered("forward", {("add", "float32", "torch-eager", "agree"): 3}, {}, {"add": 7}, {"add": 0})
        assert run.failure is None
        assert coverage.load(tmp_path)["forward"].elements["add"] == 7
        assert db("show")[0] == 0
    finally:
        subprocess.run([tools / "pg_ctl", "-D", data, "-w", "-m", "immediate", "stop"], check=True)


def test_what_could_not_be_written_is_a_line_and_exit_status_2(tmp_path: Path) -> None:
    command = typer.Typer()

    @command.command()
    def found(status: int) -> None:
        recorded(tmp_path, 5).failure = "cannot write the store: disk full"
        raise typer.Exit(status)

    line = "dissent: cannot write the store: disk full"
    for status, ended in ((0, 2), (1, 2), (130, 130)):
        result = CliRunner().invoke(command, [str(status)])
        assert result.exit_code == ended
        assert result.stderr.splitlines() == [line]
    assert [row.status for row, _, _ in kept.runs(opened.url_of(tmp_path))] == [2, 2, 130]
