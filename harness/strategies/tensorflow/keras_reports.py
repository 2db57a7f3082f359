"""What Keras' own loop reports over several batches: the loss and a metric, of `evaluate` and of one epoch of `fit`.
Both are held against one device, where they are worked out by their formulas: the loss is the mean of the batches',
each by its number of samples; a metric is the mean over all samples (`keras.metrics.Mean`)."""

from __future__ import annotations

from collections.abc import Mapping

from generators.training.runs import Training
from harness.strategies.tensorflow.program import LOSSES

_OF_SAMPLES = {
    "mse": "tf.reduce_mean(tf.abs(outputs - y), axis=1)",
    "smooth_l1": LOSSES["mse"],
    "cross_entropy": LOSSES["cross_entropy"],
}
"""What `METRICS` are the means of."""
WHOLE = {"shards": "\nSHARDS, FIRST = 1, True\n"}
"""Batch statistics of the whole batch, as synchronised layers have them, on any number of replicas."""
REPORTED = '''
def reported(strategy, subject, step, arrays):
    """What Keras reports of all samples in batches, first without training."""
    x, y, coefficient = (arrays[name] for name in ("x", "y", "coefficient"))
    size, told = EPOCH[0][1], {}
    found = subject.model.evaluate(x, y, size, sample_weight=coefficient, verbose=0, return_dict=True)
    told |= {f"report.evaluate.{name}": np.asarray(value, DTYPE) for name, value in found.items()}
    history = subject.model.fit(x, y, size, sample_weight=coefficient, shuffle=False, verbose=0).history
    return told | {f"report.fit.{name}": np.asarray(values[0], DTYPE) for name, values in history.items()}
'''
_FORMULA = '''
def reported(strategy, subject, step, arrays):
    """The same by formulas."""
    told, total = {{}}, len(arrays["x"])
    for kind, training in (("evaluate", False), ("fit", True)):
        losses, errors = [], []
        for first, last in EPOCH:
            x, y, coefficient = (tf.constant(arrays[name][first:last]) for name in ("x", "y", "coefficient"))
            outputs = model(subject.p, subject.norms, x, training)
            errors.append(tf.reduce_sum({error}))
            if training:
                loss, _ = step(feed(strategy, arrays, np.arange(first, last)))
{rounding}
            else:
                loss = criterion(outputs, y, coefficient)
                loss = loss + penalty_of(subject.trained) if PENALTY else loss
            losses.append(summed(strategy, loss) * (last - first))
        told[f"report.{{kind}}.loss"] = tf.add_n(losses) / total
        told[f"report.{{kind}}.error"] = tf.add_n(errors) / total
    return told
'''
_ROUNDING = """
                for value in subject.trained:
                    value.assign(rounded(value, 1))
"""


def by_formula(training: Training, world: int, noise: bool) -> Mapping[str, str]:
    """The piece of the run on one device."""
    error, rounding = _OF_SAMPLES[training.settings.loss], _ROUNDING.strip("\n") if noise else ""
    return WHOLE | {"reported": _FORMULA.format(error=f"rounded({error}, 1)" if noise else error, rounding=rounding)}
