"""Does training spread over ranks give what training on one device gives?"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from generators.training.runs import Training, loads, trainings
from harness.execute.ranks import RankPools
from harness.findings.known.deviations import KnownDeviation, load
from harness.search.hypothesis_profiles import nightly
from harness.search.reduce import Budget
from harness.strategies import STRATEGIES
from harness.training.findings import investigate, text_of
from harness.training.judge import Judgement, TrainingJudge, adapted, available, version_of
from oracles.judge.discrepancy import SYMPTOMS

KNOWN = load()
COSTLY = {"tensorflow": (2, 16, 2), "jax": (2, 16, 2), "keras": (1, 32, 1), "tf_keras": (1, 32, 1)}
"""Frameworks that take seconds for a run: the least number of runs, of how many examples one, and blocks of layers."""


@pytest.fixture(scope="session")
def judge() -> Iterator[TrainingJudge]:
    with RankPools() as pools:
        yield TrainingJudge(pools, KNOWN)


@pytest.mark.slow(one_in=47, ci=8)
@pytest.mark.parametrize("name", STRATEGIES)
def test_strategy(name: str, judge: TrainingJudge, pytestconfig: pytest.Config) -> None:
    """Drawn runs, on so many ranks as the strategy takes (outside the nightly profile: four at most)."""
    strategy = STRATEGIES[name]
    why = available(strategy)
    if why:
        pytest.skip(f"{name}: {why}")
    worlds = [world for world in strategy.worlds if world <= 4 or nightly()]
    last: list[tuple[Training, int, Judgement]] = []

    def check(drawn: Training, world: int) -> None:
        training = adapted(drawn, strategy, world)
        judgement = judge.examine(training, strategy, world)
        if judgement.discrepancy:
            last.append((training, world, judgement))
            raise SYMPTOMS[judgement.discrepancy.symptom](judgement.discrepancy.message)

    # reduction is the reducer's work: ranks are slow, and what compiles takes seconds for a run
    least, part, blocks = COSTLY.get(strategy.framework, (3, 4, 4))
    examples = max(least, settings().max_examples // part)
    limited = settings(phases=(Phase.explicit, Phase.generate), max_examples=examples)
    try:
        limited(given(trainings(blocks), st.sampled_from(worlds))(check))()
    except tuple(SYMPTOMS.values()):
        training, world, judgement = last[-1]
        folder = Path(str(pytestconfig.getoption("--findings")))
        found = investigate(judge, folder, training, strategy, world, judgement, Budget())
        pytest.fail(text_of(found), pytrace=False)


@pytest.mark.slow(one_in=31, ci=12)
@pytest.mark.parametrize("known", KNOWN, ids=lambda known: known.id)
def test_known_deviation(known: KnownDeviation, judge: TrainingJudge) -> None:
    """It still shows itself on every strategy that it names: one that does not is fixed, or worded too widely."""
    if "timeout" in known.symptoms and not nightly():
        pytest.skip("a hang costs a minute: looked at with --hypothesis-profile=nightly only")
    training = loads(known.case.read_text(encoding="utf-8"))
    blind = TrainingJudge(judge.pools)
    here = [(strategy, version_of(strategy)) for strategy in STRATEGIES.values() if not available(strategy)]
    named = [strategy for strategy, version in here if known.concerns(strategy.name, training.traits, version)]
    if not named:
        globs = [s for s in STRATEGIES.values() if any(fnmatchcase(s.name, glob) for glob in known.strategies)]
        why = {available(strategy) for strategy in globs}
        assert None not in why, "no strategy that is available here, in a version that is named"
        pytest.skip(f"{known.id}: {', '.join(sorted(filter(None, why)))}")
    for strategy in named:
        world = next(w for w in strategy.worlds if w >= known.world)
        found = blind.examine(adapted(training, strategy, world), strategy, world)
        assert found.discrepancy is not None, f"{strategy.name} on {world} ranks looks fixed"
        assert known.covers(found.part, found.discrepancy), (
            f"{strategy.name}: {found.part}: {found.discrepancy.message}"
        )


SHOWN = [known for known in KNOWN if known.reproducer.exists() and (nightly() or "timeout" not in known.symptoms)]


@pytest.mark.slow(one_in=17, ci=5)
@pytest.mark.parametrize("known", SHOWN if nightly() else SHOWN[::4], ids=lambda known: known.id)
def test_reproducer_of_a_known_deviation(known: KnownDeviation, tmp_path: Path) -> None:
    """As a person would run it. Outside the nightly profile every eighth, and none that hangs: each starts ranks of its
    own."""
    result = subprocess.run(
        [sys.executable, str(known.reproducer)], capture_output=True, text=True, timeout=300, cwd=tmp_path, check=False
    )
    last = result.stdout.strip().splitlines()[-1:] or [""]
    if result.returncode == 77:
        pytest.skip(f"{known.id}: {last[0]}")
    assert result.returncode == 1, result.stdout + result.stderr
    assert last[0].startswith("reproduced")
