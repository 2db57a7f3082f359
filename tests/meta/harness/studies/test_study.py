"""D3's protocol as a study: its models, its judgement, what is kept, what is shown, and faults that it must see."""

from __future__ import annotations

import csv
import errno
import io
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from planted.faults.strategies import FAULTS
from sqlalchemy import text
from typer import testing

from generators.training.d3 import QUARTERS, RATE, Protocol, quarter_of, study_arrays, study_training
from generators.training.networks import columns_of
from generators.training.runs import Training, valid
from harness.commands import app
from harness.execute.isolation.jobs import Numbers, Share
from harness.execute.ranks import RankPools
from harness.search.hypothesis_profiles import nightly
from harness.search.reduce import Budget
from harness.strategies import STRATEGIES
from harness.studies.distribution import share as study_share
from harness.studies.distribution.protocol import Found, Study, run_case
from harness.studies.distribution.report import STATES, clusters, csv_of, inconsistencies, page, state_of
from harness.studies.distribution.settings import BASE, PRESETS, why_not
from harness.studies.distribution.store import Result, Store, StoreError
from harness.training.findings import Deviation, investigate
from harness.training.judge import Judgement, TrainingJudge
from harness.training.programs import single_device
from oracles.judge.discrepancy import Discrepancy
from oracles.training import d3

Patch = pytest.MonkeyPatch
PROTOCOL = Protocol(seed=0, batch=8, image=6, freeze="parameter")
STUDY = Study("d3-pytorch", 2, 1, PROTOCOL)
ABOUT = STUDY.about
SOUND = Result(0, 0, "torch-ddp-2", "dlrm", "compared", "", True, 1e-7, True, "agree", "", 0.1, 0.0)
FAILED = Result(1, 0, "torch-ddp-2", "dlrm-frozen", "failed", "signal SIGSEGV: rank 1")
WRONG = replace(
    SOUND, model=1, setting="torch-ddp-3", close=False, largest=0.5, ours="deviates", cluster="linear + tanh"
)


# ---- models and inputs --------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", range(12))
def test_models_are_valid_and_the_same_every_time(number: int) -> None:
    training = study_training(PROTOCOL, number, 0)
    assert valid(training) == training == study_training(PROTOCOL, number, 0)
    assert dict(training.settings.options)["lr"] == RATE
    assert training.settings.steps == 1
    assert ("embedding" in training.traits) == quarter_of(number).startswith("dlrm")
    assert len(training.network.frozen) == quarter_of(number).endswith("frozen")
    layer = study_training(replace(PROTOCOL, freeze="layer"), number, 0).network
    assert sum(bool(one.frozen) for one in layer.layers) == quarter_of(number).endswith("frozen")


def test_quarters_are_quarters() -> None:
    assert [quarter_of(number) for number in range(8)] == [*QUARTERS, *QUARTERS]


@pytest.mark.parametrize("number", [0, 2])
def test_inputs_are_uniform_and_a_model_keeps_its_parameters(number: int) -> None:
    first, second = (study_training(replace(PROTOCOL, batch=400), number, data) for data in (0, 1))
    one, other = study_arrays(first), study_arrays(second)
    columns = np.ones(one["x"].shape[1])
    for bag in first.network.bags:
        columns[slice(*columns_of(bag, first.network.shapes))] = bag.numbers["vocabulary"]
    if first.network.bags:
        assert set(columns) != {1.0}
        assert (one["x"].max(0)[columns > 1] == columns[columns > 1] - 1).all()
    share = np.moveaxis(one["x"], 1, -1) / columns
    assert 0 <= share.min() <= share.max() < 1
    assert abs(np.where(columns > 1, share + 0.5 / columns, share).mean() - 0.5) < 0.06
    for name in one:
        assert np.array_equal(one[name], other[name]) == (name.startswith("initial.") or name == "coefficient")
        assert one[name].tobytes() == study_arrays(first)[name].tobytes()


def test_more_inputs_than_there_are() -> None:
    with pytest.raises(ValueError, match="not below 1000"):
        study_training(PROTOCOL, 0, 1000)


# ---- settings -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PRESETS)
def test_every_setting_is_run_or_has_a_reason(name: str) -> None:
    preset = PRESETS[name]()
    assert len({setting.name for setting in preset.settings}) == len(preset.settings)
    for setting in preset.settings:
        assert bool(setting.strategy) != bool(setting.why)
        if setting.strategy not in ("", BASE):
            assert max(1, setting.world) in STRATEGIES[setting.strategy].worlds
    study = Study(name, 1, 1, PROTOCOL)
    assert len(study.settings) + len(study.unavailable) == len(preset.settings)
    assert all(study.unavailable.values())


def test_there_are_as_many_as_d3_describes() -> None:
    assert len(PRESETS["d3-tensorflow"]().settings) == 24
    torch = PRESETS["d3-pytorch"]()
    assert sum(1 for setting in torch.settings if setting.own) == torch.described == 92
    assert {why_not(torch, setting) for setting in torch.settings if not setting.strategy} >= {
        setting.why for setting in torch.settings if setting.why
    }


# ---- what is kept -------------------------------------------------------------------------------------------


def test_a_store_keeps_results_and_goes_on(tmp_path: Path) -> None:
    store = Store(tmp_path / "s.sqlite", ABOUT)
    every = len(list(STUDY.cases()))
    for result in (SOUND, FAILED, replace(WRONG, largest=float("inf"))):
        store.add(result)
    with pytest.raises(StoreError, match="another process is writing to it"):
        Store(tmp_path / "s.sqlite", ABOUT)
    store.close()
    again = Store(tmp_path / "s.sqlite", ABOUT)
    assert set(again.results()) == {SOUND, FAILED, replace(WRONG, largest=float("inf"))}
    assert len(STUDY.missing(again)) == every - 3
    assert STUDY.within([*again.results(), replace(SOUND, model=2), replace(SOUND, setting="gone")]) == again.results()


def test_files_that_are_no_store_of_this_study(tmp_path: Path) -> None:
    Store(tmp_path / "s.sqlite", ABOUT).close()
    with pytest.raises(StoreError, match="of another study: seed 0, not 1"):
        Store(tmp_path / "s.sqlite", ABOUT | {"seed": "1"})
    (tmp_path / "text.sqlite").write_text("nothing of the kind, and long enough to be read as a header " * 20)
    with pytest.raises(StoreError, match="file is not a database"):
        Store(tmp_path / "text.sqlite", ABOUT)
    with pytest.raises(StoreError, match="No such file or directory"):
        Store(tmp_path / "no" / "s.sqlite", ABOUT)


def test_a_full_disk_loses_nothing(tmp_path: Path) -> None:
    store = Store(tmp_path / "s.sqlite", ABOUT)
    store.add(SOUND)
    with store._engine.connect() as connection:
        connection.execute(text("PRAGMA max_page_count = 1"))  # as many as there are: what a full disk says
    with pytest.raises(StoreError, match="database or disk is full"):
        store.add(replace(SOUND, model=1, reason="x" * 100_000))
    store.close()
    assert SOUND in Store(tmp_path / "s.sqlite", ABOUT).results()


# ---- what is shown ------------------------------------------------------------------------------------------


def test_a_missing_result_is_a_failure() -> None:
    assert [state_of(r) for r in (SOUND, FAILED, WRONG)] == ["consistent", "no result", "both"]
    assert inconsistencies([SOUND, FAILED, WRONG]) == [FAILED, WRONG]
    assert FAILED.inconsistent
    assert FAILED.deviates


@pytest.mark.parametrize(
    ("close", "ours", "state"),
    [
        (True, "undetermined", "undetermined"), (True, "known", "known"), (True, "deviates", "ours only"),
        (False, "agree", "D3 only"), (False, "undetermined", "D3 only"), (False, "known", "both"),
    ],
)  # fmt: skip
def test_both_judgements_stand_side_by_side(close: bool, ours: str, state: str) -> None:
    assert state_of(replace(SOUND, close=close, ours=ours)) == state
    assert state in [name for name, _, _ in STATES]


def test_the_list_and_the_clusters() -> None:
    rows = list(csv.DictReader(io.StringIO(csv_of(STUDY, [SOUND, FAILED, WRONG]))))
    assert [row["d3"] for row in rows] == ["no result", "inconsistent"]
    assert rows[1]["l_infinity"] == "0.5"
    assert rows[1]["cluster"] == "linear + tanh"
    assert rows[0]["reason"] == "signal SIGSEGV: rank 1"
    found = clusters([SOUND, FAILED, WRONG])
    assert [(name, count) for name, count, *_ in found] == [
        ("linear + tanh", 1), ("no result: signal SIGSEGV: rank 1", 1),
    ]  # fmt: skip


def test_the_page_is_whole_and_needs_no_network() -> None:
    odd = replace(WRONG, part="<script>alert(1)</script>")
    html = page(STUDY, [SOUND, FAILED, odd], {"torch": "2.13.0"})
    own = re.sub(r"<script.*?</script>", "", html, flags=re.DOTALL)
    assert not re.search(r"<(script|link|img|iframe)[^>]*(src|href)=", html)
    assert "<script" not in own
    assert "Plotly.newPlot" in html
    assert f"3 of {2 * len(STUDY.settings)} results" in own
    for words in ("torch-ddp-3", "linear + tanh", "signal SIGSEGV", "of the 92 settings", "NCCL"):
        assert words in own, words


# ---- the command --------------------------------------------------------------------------------------------


class Counted:
    """In place of `run_case`: results at once, and something else after so many."""

    def __init__(self, most: int = 10**9, then: BaseException | None = None) -> None:
        self.most, self.then, self.calls = most, then, 0

    def __call__(self, judge: TrainingJudge, study: Study, case: tuple, found: object = None) -> Result:
        if self.calls == self.most and self.then:
            raise self.then
        self.calls += 1
        return replace(SOUND, model=case[0], input=case[1], setting=case[2].name)


def study(*arguments: str) -> testing.Result:
    return testing.CliRunner().invoke(app.app_of(), ["study", "distribution", *arguments])


@pytest.mark.slow
def test_an_interruption_keeps_all_and_the_same_command_goes_on(tmp_path: Path, monkeypatch: Patch) -> None:
    arguments = ("--preset", "d3-pytorch", "--models", "2", "--out", str(tmp_path))
    monkeypatch.setattr(study_share, "run_case", Counted(7, KeyboardInterrupt()))
    first, planned = study(*arguments), 2 * len(STUDY.settings)
    assert first.exit_code == 130
    assert "interrupted; the same command goes on" in first.stdout
    assert f"7 of {planned} results" in (tmp_path / "report.html").read_text()
    rest = Counted()
    monkeypatch.setattr(study_share, "run_case", rest)
    assert study(*arguments).exit_code == 0
    assert rest.calls == planned - 7
    assert f"{planned} of {planned} results" in (tmp_path / "report.html").read_text()
    more = Counted()
    monkeypatch.setattr(study_share, "run_case", more)
    assert study(*arguments, "--inputs", "2").exit_code == 0
    assert more.calls == planned
    other = study(*arguments, "--seed", "1")
    assert other.exit_code == 2
    assert "is of another study: seed 0, not 1" in other.stderr


def test_shares_do_all_together_and_one_that_was_lost_is_gone_on_with(tmp_path: Path, monkeypatch: Patch) -> None:
    cases, told, numbers = list(STUDY.cases()), [], Numbers()
    Store(tmp_path / "study.sqlite", ABOUT).close()
    way = study_share.Way(STUDY, tmp_path, False, 60.0, float("inf"))
    monkeypatch.setattr(study_share, "run_case", Counted(3, OSError("killed")))
    with pytest.raises(OSError, match="killed"):
        study_share.do_share(
            way, ABOUT, cases, Share(1, lambda done: told.append(replace(done)), take=partial(numbers.take, 1))
        )
    monkeypatch.setattr(study_share, "run_case", Counted(2, OSError("killed")))
    first: list[study_share.Done] = []
    with pytest.raises(OSError, match="killed"):
        study_share.do_share(
            way, ABOUT, cases, Share(0, lambda done: first.append(replace(done)), take=partial(numbers.take, 0))
        )
    monkeypatch.setattr(study_share, "run_case", Counted())
    second = study_share.do_share(way, ABOUT, cases, Share(1, told.append, told[-1], partial(numbers.take, 1)))
    assert (first[-1].cases, second.cases) == (2, len(cases) - 3)  # the one that the first was killed at is left to it
    third = study_share.do_share(way, ABOUT, cases, Share(0, told.append, first[-1], partial(numbers.take, 0)))
    assert study_share.together({0: third, 1: second}).cases == len(cases)
    assert not STUDY.missing(Store(tmp_path / "study.sqlite", ABOUT))


@pytest.mark.parametrize(
    "trouble", [OSError(errno.ENOSPC, "No space left on device", "x"), StoreError("database or disk is full")]
)
def test_trouble_is_one_clear_line_and_all_is_kept(trouble: Exception, tmp_path: Path, monkeypatch: Patch) -> None:
    monkeypatch.setattr(study_share, "run_case", Counted(3, trouble))
    done = study("--preset", "d3-pytorch", "--models", "1", "--out", str(tmp_path))
    assert done.exit_code == 2
    assert len(done.stderr.strip().splitlines()) == 1
    assert "results so far are kept in" in done.stderr
    assert len(Store(tmp_path / "study.sqlite", {}).results()) == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--preset", "d3-mxnet"), "no preset is called 'd3-mxnet'; there are d3-tensorflow, d3-pytorch"),
        (("--preset", "d3-pytorch", "--budget", "soon"), "'soon' is not a duration"),
        (("--preset", "d3-pytorch", "--out", "/proc/nowhere"), "cannot use /proc/nowhere: "),
    ],
)
def test_bad_input_is_one_clear_line(arguments: tuple[str, ...], message: str) -> None:
    done = study(*arguments)
    assert done.exit_code == 2
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


# ---- with ranks ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def judge() -> Iterator[TrainingJudge]:
    with RankPools() as pools:
        yield TrainingJudge(pools, (), study_arrays)


def results_of(judge: TrainingJudge, study: Study, setting: str) -> list[Result]:
    return [run_case(judge, study, case) for case in study.cases() if case[2].name == setting]


@pytest.mark.distributed
@pytest.mark.parametrize("framework", ["torch", "tensorflow"])
def test_layers_are_computed_as_the_framework_does(framework: str, judge: TrainingJudge) -> None:
    if framework == "tensorflow" and not nightly():
        pytest.skip("runs with --hypothesis-profile=nightly only")
    for number in (0, *range(2, 30, 4)):
        training: Training = study_training(PROTOCOL, number, 0)
        run = judge.returned(training, single_device(framework, 1), 1)
        last = d3.activations(training.network, run, judge.arrays(training)["x"])[training.network.layers[-1].name]
        np.testing.assert_allclose(last, run["prediction"], rtol=1e-3, atol=1e-3 * np.abs(last).max())


@pytest.mark.distributed
def test_a_sound_setting_is_consistent_and_a_fault_is_not(
    judge: TrainingJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert {state_of(r) for r in results_of(judge, STUDY, BASE)} == {"consistent"}
    assert {state_of(r) for r in results_of(judge, STUDY, "torch-ddp-2")} == {"consistent"}
    for name in ("each rank divides by its own samples", "all ranks see the first share"):
        fault = next(fault for fault in FAULTS if fault.name == name)
        monkeypatch.setitem(STRATEGIES, fault.strategy, fault.planted())
        found = results_of(judge, STUDY, "torch-ddp-2")
        assert {state_of(r) for r in found} == {"both"}, name
        assert all(r.cluster not in ("", d3.INFERENCE) and (r.largest or 0) > 1e-3 for r in found)
    fault = next(fault for fault in FAULTS if fault.name == "gradients travel as bfloat16")
    monkeypatch.setitem(STRATEGIES, "torch-ddp", fault.planted())
    assert {r.ours for r in results_of(judge, STUDY, "torch-ddp-2")} == {"deviates"}


@pytest.mark.distributed
def test_quantised_tables_are_compared_with_quantised_tables(judge: TrainingJudge) -> None:
    training, strategy = study_training(PROTOCOL, 0, 0), STRATEGIES["torchrec-devices-int8-float32"]
    plain, quantised = (
        judge.on_one_device(training, single_device("torch", 1), 1),
        judge.on_one_device(training, strategy, 2),
    )
    assert 1e-6 < np.abs(plain["prediction"] - quantised["prediction"]).max() < 0.1
    np.testing.assert_allclose(quantised["parameter.l1.weight"], plain["parameter.l1.weight"], rtol=1e-5, atol=1e-6)


@pytest.mark.distributed
@pytest.mark.parametrize("setting", ["EmbeddingBagCollection-row-wise-fused-gloo-2", "quantised-float16-2"])
def test_settings_of_torchrec_are_consistent(setting: str, judge: TrainingJudge) -> None:
    if setting in STUDY.unavailable:
        pytest.skip(STUDY.unavailable[setting])
    (first, _) = results_of(judge, STUDY, setting)
    assert (state_of(first), first.ours) == ("consistent", "agree")


@pytest.mark.distributed
def test_a_rank_that_dies_is_no_result(judge: TrainingJudge, monkeypatch: pytest.MonkeyPatch) -> None:
    sound = STRATEGIES["torch-ddp"]
    dies = sound.pieces["distribute"].replace("    start(rank, world)", "    os._exit(3)")
    monkeypatch.setitem(STRATEGIES, "torch-ddp", replace(sound, pieces={**sound.pieces, "distribute": dies}))
    (first, _) = results_of(judge, STUDY, "torch-ddp-2")
    assert (first.outcome, state_of(first)) == ("failed", "no result")
    assert "exit 3" in first.reason


@pytest.mark.slow
def test_the_first_deviation_of_a_kind_is_made_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    training, kept = study_training(PROTOCOL, 0, 0), []
    wrong = Judgement("mismatch", Discrepancy("value", "wrong by 1"), "loss.0")

    def deviating(judge: TrainingJudge, study: Study, case: tuple, found: Found | None = None) -> Result:
        if found:
            found(training, STRATEGIES["torch-ddp"], 2, wrong)
        return Counted()(judge, study, case)

    def small(judge: TrainingJudge, folder: Path, *_: object) -> Deviation:
        kept.append(folder)
        return Deviation("f", "value", "torch-ddp", 2, "loss.0", "wrong by 1", None, (), {}, "somewhere")

    monkeypatch.setattr(study_share, "run_case", deviating)
    monkeypatch.setattr(study_share, "investigate", small)
    done = study("--preset", "d3-pytorch", "--models", "1", "--out", str(tmp_path / "a"))
    assert kept == [tmp_path / "a" / "findings"]
    assert "ValueMismatch  loss.0   torch-ddp on 2 ranks vs one device\nwrong by 1" in done.stdout
    none = study("--preset", "d3-pytorch", "--models", "1", "--no-minimise", "--out", str(tmp_path / "b"))
    assert (none.exit_code, len(kept)) == (0, 1)


@pytest.mark.nightly
@pytest.mark.distributed
def test_what_is_made_small_runs_on_the_arrays_of_the_study(judge: TrainingJudge, tmp_path: Path) -> None:
    fault = next(fault for fault in FAULTS if fault.name == "all ranks see the first share")
    training, strategy = study_training(PROTOCOL, 0, 0), fault.planted()
    found = investigate(judge, tmp_path, training, strategy, 2, judge.examine(training, strategy, 2), Budget(60, 60))
    script = Path(found.path) / "reproducer.py"
    assert subprocess.run([sys.executable, str(script)], capture_output=True, timeout=200).returncode == 1
