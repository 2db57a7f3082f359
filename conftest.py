"""pytest's face: options, profiles, fixtures and the header. The work is done in harness/."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import psutil
import pytest
from _pytest.mark.structures import ParameterSet
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from generators import caseio
from harness.backends import TARGETS, Target, probe, select
from harness.commands.shared import earlier
from harness.commands.shared.recorded import started
from harness.conversions.admit import admit
from harness.conversions.formats import RUNNERS
from harness.conversions.model_file import FormatError
from harness.execute.globs import matching
from harness.execute.isolation import signals
from harness.execute.pool import Pool
from harness.execute.reading import FileError, read_by
from harness.findings.known import issues as known_issues
from harness.findings.known.entry import FOLDER
from harness.findings.store import Store
from harness.models.convert import DEPTH
from harness.models.examine import Options, examine
from harness.models.given.factories import DIGITS, NAME
from harness.models.results import Results
from harness.search import coverage, hypothesis_profiles
from harness.search.campaign import Campaign
from harness.search.laboratory import Laboratory
from harness.search.trial import Trial

hypothesis_profiles.register()

NIGHTLY_SECONDS = 4 * 3600.0
"""That a test of the nightly profile may take, before it counts as one that hangs."""

ONE_PROCESS = (
    "tests/test_model.py",
    "tests/meta/harness/backends/test_cuda.py",
    "tests/meta/harness/findings/test_site.py",
    "tests/meta/oracles/quantised/test_quantised_layers.py",
)
"""Files whose tests share what takes long to make: one process of pytest-xdist runs them."""


def _option(config: pytest.Config, name: str) -> Any:
    return config.getoption(name)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("dissent")
    group.addoption("--targets", default="*", metavar="GLOB", help="comma-separated globs of target names")
    group.addoption("--max-nodes", type=int, default=8, metavar="N", help="most nodes of a drawn graph")
    group.addoption("--replay", type=Path, metavar="FILE", help="run this stored case instead of drawn ones")
    group.addoption(
        "--model",
        metavar="PATH",
        help="a model of your own, for tests/test_model.py, where --targets are globs of runners then; default: digits",
    )
    group.addoption(
        "--inputs", type=Path, metavar="FILE|DIR", help="what --model is run on: .npz, images or recordings"
    )
    group.addoption("--labels", type=Path, metavar="FILE", help="names of the classes of --model")
    group.addoption("--trust", action="store_true", help="open a --model that runs code of its own (pickle)")
    group.addoption("--findings", type=Path, default=Path("findings"), metavar="DIR", help="where findings go")
    group.addoption("--known-issues", type=Path, default=FOLDER, metavar="DIR", help="what is known already")


def scope_of(nodeid: str) -> str:
    """Tests of one scope run in one process: a file of ONE_PROCESS, or a test alone."""
    file = nodeid.partition("::")[0]
    return file if file in ONE_PROCESS else nodeid


class _ByScope(LoadScopeScheduling):
    """The mark `xdist_group` would say so in each file, but pytest-xdist 3.8.0 tells it by `_nodeid`, which pytest 9.2
    no longer reads."""

    def _split_scope(self, nodeid: str) -> str:
        return scope_of(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling:
    return _ByScope(config, log)


def pytest_keyboard_interrupt() -> None:
    """Let the processes of pytest-xdist end at once, too: it waits for their tests."""
    for process in psutil.Process().children():
        process.terminate()


def pytest_configure(config: pytest.Config) -> None:
    # what runs in the background is started with it ignored, and tests send it to what they start
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if hasattr(config, "workerinput"):
        signals.end_with(os.getppid())
    else:
        signals.heed()
    if not _option(config, "--hypothesis-profile"):
        hypothesis_profiles.choose()
    given = _option(config, "--model")
    try:
        if given:
            matching(_runners(config), RUNNERS, "runner")
        _chosen(config)
        known_issues.load(_option(config, "--known-issues"))
        earlier.check(_option(config, "--findings"))
    except ValueError as error:
        raise pytest.UsageError(str(error)) from error
    if _option(config, "--max-nodes") < 1:
        raise pytest.UsageError("--max-nodes must be at least 1")
    if given and given != DIGITS and not NAME.fullmatch(given) and not hasattr(config, "workerinput"):
        try:
            admit(Path(given), _option(config, "--trust"))
        except FormatError as error:
            raise pytest.UsageError(f"--model: {error}") from error
    for name in ("--inputs", "--labels", "--trust"):
        if _option(config, name) and not given:
            raise pytest.UsageError(f"{name} is of a --model")
    replay = _option(config, "--replay")
    if replay is not None:
        try:
            read_by(replay, caseio.loads)
        except FileError as error:
            raise pytest.UsageError(f"--replay: {error}") from error


def _chosen(config: pytest.Config) -> list[Target]:
    """The targets of --targets. Beside --model its globs may be of runners instead, and choose no targets then."""
    globs = _option(config, "--targets")
    if _option(config, "--model"):
        globs = ",".join(glob for glob in globs.split(",") if _any(glob, TARGETS) or not _any(glob, RUNNERS))
    return select(globs) if globs else []


def _runners(config: pytest.Config) -> str:
    """Those of its globs that are of runners; all where none is, so that this is told."""
    globs = _option(config, "--targets")
    return ",".join(glob for glob in globs.split(",") if _any(glob, RUNNERS) or not _any(glob, TARGETS)) or globs


def _any(glob: str, names: Iterable[str]) -> bool:
    return any(fnmatchcase(name, glob.strip()) for name in names)


def pytest_report_header(config: pytest.Config) -> list[str]:
    chosen = [probe.probe(target) for target in _chosen(config)]
    versions = probe.versions(list(TARGETS.values()))
    return [
        "versions: " + ", ".join(f"{name} {version}" for name, version in versions.items()),
        f"devices: {probe.cpu()}; " + (", ".join(probe.gpus()) or "no GPU"),
        "targets on: " + (", ".join(s.name for s in chosen if s.available) or "none"),
        *(f"target off: {s.name} ({s.reason})" for s in chosen if not s.available),
    ]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("gpu") and not probe.gpus():
            item.add_marker(pytest.mark.skip(reason="no CUDA device (nvidia-smi lists none)"))
        if item.get_closest_marker("nightly") and not hypothesis_profiles.nightly():
            item.add_marker(pytest.mark.skip(reason="runs with --hypothesis-profile=nightly only"))
        if hypothesis_profiles.nightly():  # pytest.ini's limit is for tests with fewer examples
            item.add_marker(pytest.mark.timeout(NIGHTLY_SECONDS))
    share = hypothesis_profiles.share()
    if share and not config.getoption("keyword"):  # who asks for tests by name gets them
        left_out = set(_left_out(items, share))
        items[:] = [item for item in items if item not in left_out]
        config.hook.pytest_deselected(items=left_out)


def _left_out(items: Iterable[pytest.Item], share: str) -> Iterator[pytest.Item]:
    """What a profile does without: items of slow tests, but for a sample of those that are not skipped. share: the
    mark's argument that says one in how many; of a test without it the quick profile runs nothing, `ci` all. A test
    with a snapshot stays: one that nobody looks at is a failure."""
    default = 0 if share == "one_in" else 1
    numbers: Counter[str] = Counter()
    for item in items:
        slow = item.get_closest_marker("slow")
        if slow and not item.get_closest_marker("skip") and "snapshot" not in getattr(item, "fixturenames", ()):
            test = item.nodeid.partition("[")[0]
            one_in = slow.kwargs.get(share, default)
            if not one_in or numbers[test] % one_in:
                yield item
            numbers[test] += 1


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """`target`, `swept`, `fast_target` and `compiler` are parametrised over what --targets selects; what is off is
    skipped, with why. Sweeps leave slow targets to the nightly profile, and `fast_target` the slowest ones."""
    chosen = _chosen(metafunc.config)
    nightly = hypothesis_profiles.nightly()
    if "swept" in metafunc.fixturenames:
        swept = [t for t in chosen if nightly or (t.sample_every == 1 and t.device == "cpu")]
        metafunc.parametrize("swept", [_parameter(t.name, [t]) for t in swept], indirect=True, scope="session")
    if "fast_target" in metafunc.fixturenames:
        fast_target = [t for t in chosen if nightly or t.sample_every <= 4]
        metafunc.parametrize(
            "fast_target", [_parameter(t.name, [t]) for t in fast_target], indirect=True, scope="session"
        )
    if "runner" in metafunc.fixturenames:
        metafunc.parametrize("runner", list(RUNNERS))
    if "target" in metafunc.fixturenames:
        metafunc.parametrize("target", [_parameter(t.name, [t]) for t in chosen], indirect=True, scope="session")
    if "compiler" in metafunc.fixturenames:
        compilers: dict[str, list[Target]] = {}
        for t in chosen:
            compilers.setdefault(t.level.compiler, []).append(t)
        several = [_parameter(name, members) for name, members in compilers.items() if len(members) > 1]
        metafunc.parametrize("compiler", several, indirect=True, scope="session")


def _parameter(name: str, members: list[Target]) -> ParameterSet:
    reasons = [s.reason for s in map(probe.probe, members) if not s.available]
    marks = [pytest.mark.skip(reason=f"{name}: {reasons[0]}")] if reasons else []
    if any(t.device == "cuda" for t in members):
        marks.append(pytest.mark.gpu)
    return pytest.param(tuple(members), id=name, marks=marks)


@pytest.fixture(scope="session")
def target(request: pytest.FixtureRequest) -> Target:
    """One target."""
    return request.param[0]


@pytest.fixture(scope="session")
def swept(request: pytest.FixtureRequest) -> Target:
    """One target, of those that sweeps run on."""
    return request.param[0]


@pytest.fixture(scope="session")
def fast_target(request: pytest.FixtureRequest) -> Target:
    """One target, of those that do not take many seconds a program."""
    return request.param[0]


@pytest.fixture(scope="session")
def compiler(request: pytest.FixtureRequest) -> tuple[Target, ...]:
    """The targets that are levels of one compiler."""
    return request.param


@pytest.fixture(scope="session")
def pool() -> Iterator[Pool]:
    """Worker processes, shared by all tests of this process."""
    with Pool() as shared:
        yield shared


@pytest.fixture(scope="session")
def examined(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Results:
    """What is made of the model that --model names, in all formats; of the embedded one in a few, except at night."""
    given, nightly = _option(request.config, "--model"), hypothesis_profiles.nightly()
    out = tmp_path_factory.mktemp("model")
    try:
        if given or nightly:
            config = request.config
            what = _option(config, "--inputs"), None, _runners(config) if given else "*"
            trust, labels = _option(config, "--trust"), _option(config, "--labels")
            options = Options(given or DIGITS, out, *what, depth=DEPTH, iterations=4, trust=trust, labels=labels)
            return examine(options).results
        few = "torch-exported,ort-*,onnx-reference"
        return examine(Options(DIGITS, out, targets=few, depth=1, edges="torch-onnx")).results
    except FormatError as error:
        raise pytest.UsageError(str(error)) from error


@pytest.fixture(scope="session")
def campaign(request: pytest.FixtureRequest, pool: Pool) -> Iterator[Campaign]:
    """Where discrepancies become findings. What was examined is written into the findings folder's store."""
    available = [t for t in select("*") if probe.probe(t).available]
    issues = known_issues.load(_option(request.config, "--known-issues"))
    folder, lab = _option(request.config, "--findings"), Laboratory(pool)
    folder.mkdir(parents=True, exist_ok=True)
    record = started(folder)
    found = Campaign(lab, available, Store(folder, record=record), issues)
    yield found
    coverage.save(record, lab.coverage)
    record.known(found.excused)
    record.timings(lab.seconds)
    record.end(int(request.session.testsfailed > 0))
    if record.failure:
        pytest.fail(record.failure, pytrace=False)


@pytest.fixture
def trial(request: pytest.FixtureRequest, campaign: Campaign, record_property: Callable[[str, object], None]) -> Trial:
    """Runs one question over drawn (or replayed) cases."""
    config = request.config
    return Trial(campaign, _option(config, "--max-nodes"), _option(config, "--replay"), record_property)
