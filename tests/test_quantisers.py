"""Do models that frameworks' own quantisers write compute what their integers say?"""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.backends import Target, probe
from harness.execute.pool import Pool
from harness.findings.known import issues as known_issues
from harness.findings.store import Store
from harness.quantisers import QUANTISERS
from harness.questions.quantisers import QUANTISATION
from harness.questions.quantized import QUANTIZED
from harness.search.campaign import Campaign
from harness.search.laboratory import Laboratory
from harness.search.quantisation import Tally, examine
from harness.search.trial import Trial

FRAMEWORKS = sorted({path.framework for path in QUANTISERS.values()})


@pytest.mark.nightly
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_quantisers(framework: str, pool: Pool, tmp_path: Path) -> None:
    """Drawn graphs through every path of a framework. Kernels differ from processor to processor, so that this is a
    hunt, and no gate."""
    paths = [p for p in QUANTISERS.values() if p.framework == framework and probe.probe(p).available]
    if not paths:
        pytest.skip(f"{framework} is not available")
    campaign = Campaign(Laboratory(pool, QUANTISATION), paths, Store(tmp_path), known_issues.load())
    tally = Tally()
    for latest in examine(campaign, paths, 0, range(40 * len(paths)), 8):
        tally = latest
    assert all(row.tensors["judged"] for row in tally.rows.values())
    assert not tally.findings, "\n".join(finding.message for finding in tally.findings.values())


@pytest.mark.nightly
def test_quantized(fast_target: Target, trial: Trial) -> None:
    """Back ends that see quantised models, and make integer operators of them: each drawn case with its values
    quantised, by one of the schemes of quantisers. Integer kernels differ from processor to processor, so that this is
    a hunt, and no gate."""
    trial = trial.with_question(QUANTIZED, share=3)
    trial.run([fast_target], trial.examine_on(fast_target))
