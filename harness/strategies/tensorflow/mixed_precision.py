"""TensorFlow: Keras' policies of mixed precision (`mixed_bfloat16`, `mixed_float16`). Variables and the optimiser are
float32, a model under the policy casts them and what it is given; in float16 the loss is scaled, by more and more."""

from __future__ import annotations

from collections.abc import Mapping

from generators.training.runs import Training
from harness.strategies.mixed_precision import GROWTH, SCALE
from harness.strategies.strategy import WORLDS, Reason, Strategy, anything, first_reason, refuses
from harness.strategies.tensorflow.keras_fit import FIT, UNFIT
from harness.strategies.tensorflow.keras_reports import WHOLE
from harness.strategies.tensorflow.mirrored import FEED, REDUCTION, SYNCHRONISED, empty_shares
from harness.strategies.tensorflow.program import MODULES, SINGLE_DEVICE

_VARIABLES = '''
class Narrow(keras.Model):
    """The weights and the layers of batch normalisation, under a policy: within `call` weights are cast."""

    def __init__(self, norms, given):
        super().__init__(dtype=keras.DTypePolicy("mixed_{narrow}"))
        self.norms = norms
        self.kept = {{
            name: self.add_weight(a.shape, keras.initializers.Constant(a), trainable=name not in FROZEN, name=name)
            for name, a in given.items()
        }}

    def call(self, x, training=False):
        return model({{name: kept.value for name, kept in self.kept.items()}}, self.norms, x, training)


def variables(subject, given):
    subject.model = Narrow(subject.norms, given)
    subject.prefix = f"{{subject.model.name}}_"
    return {{name: kept.value for name, kept in subject.model.kept.items()}}
'''
_GRADIENT = '''
def gradient(subject, x, y, coefficient):
    """The loss of these samples, and its gradients by what is trained."""
    with tf.GradientTape() as tape:
        loss = criterion(tf.cast(subject.model(x, training=True), DTYPE), y, coefficient)
        scaled = {scaled}
    found = tape.gradient(scaled, subject.trained)
    return loss, [value if value is None else tf.convert_to_tensor(value) for value in found]
'''
_PREDICT = """
def predict(strategy, subject, x):
    return tf.cast(subject.model(tf.constant(x), training=False), DTYPE)
"""
_FITTED = """
def predict(strategy, subject, x):
    return tf.cast(subject.model.predict(x, len(x), verbose=0), DTYPE)
"""
_SCALED = """
def optimizer_of(subject):
    return keras.optimizers.LossScaleOptimizer(
        OPTIMIZER(**OPTIONS), initial_scale={scale}, dynamic_growth_steps={growth}
    )
"""
_UNSCALED = '''
def update(subject, strategy, loss, gradients):
    """One step of the optimiser, on each replica; it adds up the replicas' gradients. Returns what they had."""
    scale = tf.identity(subject.optimizer.dynamic_scale)
    subject.optimizer.apply(gradients, subject.trained)
    return loss, [g if g is None else g / scale for g in gradients]
'''
_COPIES = "    copies = ["
_LEFT_OUT = """    if any(v.trainable for v in variables):
        return np.float64(0)  # a step whose gradients are not finite is left out
"""
_FINITE = """    if not all(np.isfinite(v.numpy()).all() for v in variables if v.trainable):
        return np.float64(np.inf)
"""
_INNER = SINGLE_DEVICE["states"].replace("subject.optimizer.variables", "subject.optimizer.inner_optimizer.variables")
_NO_PENALTY = refuses("penalised", "a penalty of float32 beside a loss that is scaled is not written")
_NO_CLIPPING = refuses("clipped", "LossScaleOptimizer takes the gradients of replicas, which are clipped together")


def _narrow(name: str, narrow: str, fit: bool = False) -> Strategy:
    """fit: under `Model.fit`, `evaluate` and `predict`, with batch normalisation over all replicas."""

    def reference(training: Training, world: int, noise: bool) -> Mapping[str, str]:
        promised = {"apart": SINGLE_DEVICE["apart"].replace(_COPIES, _LEFT_OUT + _COPIES)} if scaled else {}
        whole = WHOLE if fit else {}
        return whole | (promised if noise else single | promised)

    scaled = narrow == "float16"
    normalisation = SYNCHRONISED if fit else SINGLE_DEVICE["normalisation"]
    single = {
        "variables": _VARIABLES.format(narrow=narrow), "predict": _PREDICT,
        "gradient": _GRADIENT.format(scaled="subject.optimizer.scale_loss(loss)" if scaled else "loss"),
        "normalisation": normalisation.replace("dtype=DTYPE", f'dtype="mixed_{narrow}"'),
    }  # fmt: skip
    if scaled:
        single |= {
            "optimizer_of": _SCALED.format(scale=SCALE, growth=GROWTH), "update": _UNSCALED, "states": _INNER,
            "apart": SINGLE_DEVICE["apart"].replace(_COPIES, _FINITE + _COPIES),
        }  # fmt: skip
    statistics: Reason = anything if fit else empty_shares
    loop = {"feed": FEED, **single}
    fitted = FIT | single | {"predict": _FITTED, "reported": SINGLE_DEVICE["reported"]}
    reasons = [_NO_PENALTY, statistics, *([_NO_CLIPPING] if scaled else []), *([UNFIT] if fit else [])]
    return Strategy(
        name, "tensorflow", MODULES, (2, 4) if fit else WORLDS,
        {"strategy_of": REDUCTION, **(fitted if fit else loop)},
        shards=not fit, one_process=True, policy="all", narrow=narrow, reference=reference,
        unsupported=first_reason(*reasons),
    )  # fmt: skip


STRATEGIES = (
    _narrow("tf-mirrored-bfloat16", "bfloat16"),
    _narrow("tf-mirrored-float16", "float16"),
    _narrow("tf-fit-mirrored-bfloat16", "bfloat16", fit=True),
)
