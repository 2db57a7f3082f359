"""Training programs for Keras on JAX: the model's formulas are JAX', the weights and the optimiser Keras'."""

from __future__ import annotations

from collections.abc import Mapping

from generators.training.runs import Training
from harness.execute.templates import render
from harness.strategies.jax.program import MODULES, forward, loss_of, statistics_of
from harness.strategies.strategy import Noise, Strategy
from harness.strategies.tensorflow.program import KERAS_LOSSES, optimizer_of

FRAMEWORK = "keras"
SINGLE_DEVICE: Mapping[str, str] = {
    "distribution_of": '''
def distribution_of(shapes):
    """How variables of these shapes are distributed: not at all."""
    return None
''',
    "compile_model": """
def compile_model(subject):
    subject.compile(OPTIMIZER(**OPTIONS))
""",
    "feed": '''
def feed(arrays):
    """Where the samples are."""
    return [jnp.asarray(array) for array in arrays]
''',
    "compile_step": '''
def compile_step(subject):
    """A function that takes the samples of one step, and keeps what comes of it in the variables."""
    compiled = jax.jit(step_of(subject))

    def step(parts, *noise):
        groups = subject.trainable_variables, subject.non_trainable_variables, subject.optimizer.variables
        before = [[variable.value for variable in group] for group in groups]
        loss, gradients, *after = compiled(*before, parts, *noise)
        for group, values in zip(groups, after):
            for variable, value in zip(group, values):
                variable.assign(value)
        return loss, gradients

    return step
''',
    "predict": """
def predict(subject, x):
    return subject(x, training=False)
""",
    "evaluate": '''
def evaluate(subject, x, y, coefficient):
    """The loss of all samples after training."""
    loss = criterion(predict(subject, x), y, coefficient)
    return loss + penalty_of([v.value for v in subject.trainable_variables]) if PENALTY else loss
''',
}
"""What a strategy may change, as it is on one device."""


def program(training: Training, strategy: Strategy, noise: Noise | None = None) -> str:
    """The text that the process runs: it defines `train(rank, world, arrays)`. noise: of the reference."""
    network, settings = training.network, training.settings
    pieces = {**SINGLE_DEVICE, **strategy.pieces}
    if noise:
        cheap = 'jax.jit(step_of(subject), compiler_options={"xla_backend_optimization_level": 0})'
        pieces["compile_step"] = pieces["compile_step"].replace("jax.jit(step_of(subject))", cheap)
    return render(
        "strategies/keras/program.py.j2",
        settings=settings,
        batches=list(settings.batches),
        frozen=list(network.frozen),
        statistics=statistics_of(network),
        optimizer=optimizer_of(training),
        forward=forward(network, bool(noise)),
        kinds=network.kinds,
        loss=loss_of(training, noise),
        surprisal=bool(noise) and settings.loss == "cross_entropy",
        keras_loss=KERAS_LOSSES[settings.loss],
        pieces=[text.strip("\n") for text in pieces.values()],
        noise=noise,
        more=", unit, key" if noise else "",
    )


def single_device(shards: int, sent: bool = False) -> Strategy:
    """One device. No strategy has batch statistics of shares of a batch."""
    return Strategy("keras-alone", "keras", MODULES, (1,), {})
