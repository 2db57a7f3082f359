"""TensorFlow: Keras' own loop, `Model.fit`, with `evaluate` and `predict`, under a strategy. Each step is an epoch of
its own, so that the loss of each is returned."""

from __future__ import annotations

from dataclasses import replace

from harness.strategies.strategy import WORLDS, Strategy, refuses
from harness.strategies.tensorflow.keras_reports import REPORTED, by_formula
from harness.strategies.tensorflow.mirrored import ONE_DEVICE, REDUCTION, SYNCHRONISED, one_process

_VARIABLES = '''
class Fitted(keras.Model):
    """The model for Keras: it has the weights and the layers of batch normalisation."""

    def __init__(self, norms, given):
        super().__init__(dtype=DTYPE)
        self.norms = norms
        self.kept = {
            name: self.add_weight(
                a.shape, keras.initializers.Constant(a), trainable=name not in FROZEN, name=name,
                regularizer=keras.regularizers.L2(PENALTY) if PENALTY else None,
            )
            for name, a in given.items()
        }

    def call(self, x, training=False):
        return model({name: kept.value for name, kept in self.kept.items()}, self.norms, x, training)


def variables(subject, given):
    subject.model = Fitted(subject.norms, given)
    subject.prefix = f"{subject.model.name}_"
    return {name: kept.value for name, kept in subject.model.kept.items()}
'''
_OPTIMIZER = '''
def optimizer_of(subject):
    """Keras' own, which does the clipping, too."""
    made = OPTIMIZER(**OPTIONS, global_clipnorm=CLIP)
    subject.model.compile(made, LOSS, metrics=[METRIC()])
    return made
'''
_FEED = """
def feed(strategy, arrays, rows):
    return [tuple(arrays[name][rows] for name in ("x", "y", "coefficient"))]
"""
_STEP = '''
def compile_step(subject, strategy):
    """A function that fits one batch. Gradients are worked out before the first one: `fit` shows none."""

    subject.first = None

    def step(parts):
        x, y, coefficient = parts[0]
        build(subject, x, y, coefficient)
        if subject.first is None:
            subject.first = gradients_of(subject, strategy, parts[0])
        history = subject.model.fit(x, y, len(x), sample_weight=coefficient, shuffle=False, verbose=0)
        return tf.constant(history.history["loss"][0], DTYPE), subject.first

    return step


def build(subject, x, y, coefficient):
    """What `fit` builds of a batch that the replicas share has to be even: one sample, outside of it, is enough."""
    subject.model.test_on_batch(x[:1], y[:1], coefficient[:1])


def gradients_of(subject, strategy, given):
    """The gradients of one batch, all replicas' together; running statistics are put back."""
    kept = [np.asarray(value) for value in subject.buffers.values()]
    _, found = strategy.run(lambda parts: replica(subject, parts), args=([tuple(map(tf.constant, given))],))
    for buffer, value in zip(subject.buffers.values(), kept):
        buffer.assign(value)
    return [g if g is None else strategy.reduce("MEAN", g, axis=None) for g in found]
'''
_SHARE = '''
def share(penalty):
    """All of it: each replica works out the gradients of all samples."""
    return penalty
'''
_SUMMED = '''
def summed(strategy, value):
    """Keras has added them up."""
    return value
'''
_PREDICT = """
def predict(strategy, subject, x):
    return subject.model.predict(x, len(x), verbose=0)
"""
_EVALUATE = '''
def evaluate(strategy, subject, x, y, coefficient):
    """The loss of all samples after training."""
    found = subject.model.evaluate(x, y, len(x), sample_weight=coefficient, verbose=0, return_dict=True)
    return tf.constant(found["loss"], DTYPE)
'''


UNFIT = refuses("parts", "Model.fit averages the gradients of a batch in parts")
"""Keras averages the gradients of parts (gradient_accumulation_steps) and counts them as steps."""


FIT = {
    "normalisation": SYNCHRONISED, "variables": _VARIABLES, "optimizer_of": _OPTIMIZER, "feed": _FEED,
    "compile_step": _STEP, "summed": _SUMMED, "predict": _PREDICT, "evaluate": _EVALUATE,
    "share": _SHARE, "reported": REPORTED,
}  # fmt: skip


def _fit(name: str, made: str, worlds: tuple[int, ...] = WORLDS, step: str = _STEP) -> Strategy:
    made_of = FIT | {"compile_step": step}
    return replace(one_process(name, made, made_of, worlds, shards=False, unsupported=UNFIT), reference=by_formula)


STRATEGIES = (
    _fit("tf-fit-one-device", ONE_DEVICE, (1,)),
    _fit("tf-fit-mirrored", REDUCTION),
    _fit("tf-fit-mirrored-unbuilt", REDUCTION, (2,), _STEP.replace("        build(subject, x, y, coefficient)\n", "")),
)
