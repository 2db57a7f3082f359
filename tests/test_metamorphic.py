"""Does what has to agree agree: a graph with its edits, contiguous arrays with views, one run with the next?"""

from __future__ import annotations

import pytest

from harness.backends import Target
from harness.questions.memory.layouts import LAYOUTS
from harness.questions.memory.repeat import REPEAT
from harness.questions.metamorphic import METAMORPHIC
from harness.questions.question import Question
from harness.search.trial import Trial


@pytest.mark.slow(one_in=3, ci=2)
@pytest.mark.parametrize("question", [METAMORPHIC, LAYOUTS, REPEAT], ids=lambda question: question.name)
def test_metamorphic(fast_target: Target, question: Question, trial: Trial) -> None:
    """Each drawn case beside its edit, as views, or twice."""
    trial = trial.with_question(question, share=3)
    trial.run([fast_target], trial.examine_on(fast_target))
