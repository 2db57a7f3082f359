"""Is a program that was compiled once, with a symbolic dimension, right at every size, and its gradients?"""

from __future__ import annotations

import pytest

from harness.backends import Target
from harness.questions.derivatives.dynamic import DYNAMIC_GRADIENT
from harness.questions.dynamic import DYNAMIC
from harness.search.trial import Trial


@pytest.mark.slow(one_in=4)
def test_dynamic_shapes(fast_target: Target, trial: Trial) -> None:
    """Each drawn case, compiled for one size and run at several, against the reference at each."""
    if not fast_target.symbolic:
        pytest.skip(f"{fast_target.name}: it has no way of compiling a symbolic dimension")
    trial = trial.with_question(DYNAMIC, share=3)
    trial.run([fast_target], trial.examine_on(fast_target))


@pytest.mark.slow(one_in=4)
def test_dynamic_gradients(fast_target: Target, trial: Trial) -> None:
    """The gradients of each drawn case, compiled for one size and run at several."""
    if DYNAMIC_GRADIENT.name not in fast_target.question_loads:
        pytest.skip(f"{fast_target.name}: no program of its gradients at several sizes is written")
    trial = trial.with_question(DYNAMIC_GRADIENT, share=3)
    trial.run([fast_target], trial.examine_on(fast_target))
