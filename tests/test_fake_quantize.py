"""Do back ends that see quantised models, and make integer operators of them, compute what these say?"""

from __future__ import annotations

import pytest

from harness.backends import Target
from harness.questions.quantized import QUANTIZED
from harness.search.trial import Trial


@pytest.mark.nightly
def test_quantized(fast_target: Target, trial: Trial) -> None:
    """Each drawn case with its values quantised, by one of the schemes of quantisers. Integer kernels differ
    from processor to processor, so that this is a hunt, and no gate."""
    trial = trial.with_question(QUANTIZED, share=3)
    trial.run([fast_target], trial.examine_on(fast_target))
