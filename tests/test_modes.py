"""Other ways of running a model: forward-mode and second derivatives, a map over a new axis, writes to memory,
mixed precision."""

from __future__ import annotations

import pytest

from harness.backends import Target
from harness.questions.derivatives.hessian import HESSIAN
from harness.questions.derivatives.jvp import JVP
from harness.questions.derivatives.tangent_gradient import TANGENT_GRADIENT
from harness.questions.derivatives.tangent_tangent import TANGENT_TANGENT
from harness.questions.dtypes.autocast import AUTOCAST
from harness.questions.dtypes.policy import POLICY
from harness.questions.lanes.vmap import VMAP
from harness.questions.memory.state import STATE
from harness.questions.memory.writes import MEMORY
from harness.questions.question import Question
from harness.search.trial import Trial


@pytest.mark.slow(one_in=4)
@pytest.mark.parametrize(
    "question", [JVP, HESSIAN, TANGENT_GRADIENT, TANGENT_TANGENT, VMAP, MEMORY], ids=lambda question: question.name
)
def test_modes(fast_target: Target, question: Question, trial: Trial) -> None:
    """Each drawn case, its tangents, the change of its gradients along them, all its lanes, or what it writes."""
    if question.name not in fast_target.question_loads:
        pytest.skip(f"{fast_target.name}: no program of {question.name} is written")
    trial = trial.with_question(question, share=6 if question in (HESSIAN, TANGENT_GRADIENT, TANGENT_TANGENT) else 3)
    trial.run([fast_target], trial.examine_on(fast_target))


@pytest.mark.slow(one_in=4)
def test_state(fast_target: Target, trial: Trial) -> None:
    """Each drawn case with updates of its inputs, in steps."""
    trial = trial.with_question(STATE, share=3)
    trial.run([fast_target], trial.examine_on(fast_target))


def test_autocast(fast_target: Target, trial: Trial) -> None:
    """Each drawn case under autocast."""
    if fast_target.dialect.name != "torch" or fast_target.device != "cpu":
        pytest.skip(f"{fast_target.name}: autocast on the CPU is PyTorch's")
    trial = trial.with_question(AUTOCAST, share=3)
    trial.run([fast_target], trial.examine_on(fast_target))


def test_policy(fast_target: Target, trial: Trial) -> None:
    """Each drawn case as a layer with a mixed-precision policy."""
    if fast_target.dialect.name != "tensorflow":
        pytest.skip(f"{fast_target.name}: layers with a policy are Keras', written for TensorFlow")
    trial = trial.with_question(POLICY, share=3)
    trial.run([fast_target], trial.examine_on(fast_target))
