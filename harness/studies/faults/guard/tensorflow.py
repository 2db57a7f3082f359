"""A guard of training in TensorFlow, with Keras' optimisers and layers: as that of PyTorch.

    guard = Guard(variables, optimizer, norms)  # trained variables by name, layers of batch normalisation by name
    step = 0
    while step < last:
        guard.before(step)
        loss, gradients = train(step)  # gradients in the order of the variables
        step = guard.after(step, loss, gradients)

`after` returns the next step: one further, or, where something is wrong, the one before this one, with all variables as
they were then. What is wrong again when it is run again is believed. `alarms` lists steps and reasons, `repeated` those
of them that came again. What else steps change (other variables) is given as `others`."""

import tensorflow as tf

from harness.studies.faults.guard.bounds import BACK, Watch

RULES = {
    "Adam": {"_momentums": "mean", "_velocities": "square"},
    "AdamW": {"_momentums": "mean", "_velocities": "square"},
    "RMSprop": {"_velocities": "square"},
    "Adagrad": {"_accumulators": "sum"},
    "SGD": {"momentums": "momentum"},
}
"""What optimisers keep of gradients, and by which rule; Keras' SGD keeps steps: u = b u - r g, r being the rate."""


class Guard(Watch):
    def __init__(self, variables, optimizer, norms=None, bounds=None, others=()):
        self.variables, self.optimizer, self.norms = variables, optimizer, norms or {}
        if not optimizer.built:
            optimizer.build(list(variables.values()))
        moving = [v for norm in self.norms.values() for v in (norm.moving_mean, norm.moving_variance)]
        self.all = [*variables.values(), *(v.value for v in optimizer.variables), *(v.value for v in moving), *others]
        self.slots = {}  # by name: rule and variable
        for slot, rule in RULES[type(optimizer).__name__].items():
            for name, value in zip(variables, getattr(optimizer, slot, None) or ()):
                self.slots[f"{name}.{slot.strip('_')}"] = (rule, value.value)
        self.saved = []  # (step, copies)
        self.copied = tf.function(lambda: [tf.identity(v) for v in self.all])
        self.ranged = tf.function(_ranges)
        super().__init__(bounds)

    def before(self, step):
        """Keep a copy of all that the step changes."""
        self.saved = [*self.saved[1 - BACK :], (step, self.copied())]

    def after(self, step, loss, gradients):
        """The step to run next."""
        dense = {name: tf.convert_to_tensor(g) for name, g in zip(self.variables, gradients) if g is not None}
        found = dict(zip(dense, _pairs(self.ranged(list(dense.values())))))
        kept, statistics = self._with_before(self._kept()), self._statistics()
        loss = float(loss)
        reason = self.bounds.wrong(loss, found, kept, statistics)
        return self._next(step, reason, loss, found, kept, statistics)

    def _back(self):
        step, copies = self.saved[0]
        for variable, copy in zip(self.all, copies):
            variable.assign(copy)
        self.saved = []
        self.ranges = self._kept()
        return step

    def _kept(self):
        """By name: rule, least and greatest element of what the optimiser keeps."""
        pairs = _pairs(self.ranged([value for _, value in self.slots.values()]))
        return {name: (rule, *pair) for (name, (rule, _)), pair in zip(self.slots.items(), pairs)}

    def _with_before(self, kept):
        factor, rate = getattr(self.optimizer, "momentum", 0.0), float(self.optimizer.learning_rate)
        return {
            name: (rule, low, high, *self.ranges[name][1:], factor, rate, name.rpartition(".")[0])
            for name, (rule, low, high) in kept.items()
        }

    def _statistics(self):
        """Least and greatest element of the statistics of the batch, which moving ones show."""
        before = {id(v): copy for v, copy in zip(self.all, self.saved[-1][1])} if self.norms else {}
        found = {}
        for name, norm in self.norms.items():
            for key in ("moving_mean", "moving_variance"):
                now, part = getattr(norm, key).value, 1 - norm.momentum
                old = tf.cast(before[id(now)], tf.float64)
                found[f"{name}.{key}"] = (tf.cast(now, tf.float64) - (1 - part) * old) / part
        return dict(zip(found, _pairs(self.ranged(list(found.values())))))


def _ranges(values):
    """(least, greatest element) of each, NaN where one is not finite."""
    found = []
    for value in values:
        finite = tf.reduce_all(tf.math.is_finite(value))
        pair = tf.cast(tf.stack([tf.reduce_min(value), tf.reduce_max(value)]), tf.float64)
        found.append(tf.where(finite, pair, tf.constant(float("nan"), tf.float64)))
    return tf.stack(found) if found else tf.zeros((0, 2), tf.float64)


def _pairs(array):
    return [tuple(pair) for pair in array.numpy().tolist()]
