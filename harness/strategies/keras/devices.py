"""Keras on JAX: one process and several devices, virtual ones on a CPU. `keras.distribution` with DataParallel and
ModelParallel, under a loop of one's own (stateless_call, stateless_apply) and under `Model.fit`."""

from __future__ import annotations

from collections.abc import Mapping

from generators.training.runs import Training
from harness.strategies.jax.program import MODULES
from harness.strategies.strategy import WORLDS, Reason, Strategy, anything, even_parts, first_reason
from harness.strategies.tensorflow.keras_fit import UNFIT

_DATA = '''
def distribution_of(shapes):
    """A copy of each variable on each device, and a share of the samples."""
    devices = keras.distribution.list_devices()
    return keras.distribution.DataParallel(devices=devices, auto_shard_dataset=False)
'''
_MODEL = '''
def distribution_of(shapes):
    """The second dimension of weights spread over devices where it is even, {groups} of which share the samples."""
    devices = keras.distribution.list_devices()
    mesh = keras.distribution.DeviceMesh(({groups}, len(devices) // {groups}), ("batch", "model"), devices)
    layouts = keras.distribution.LayoutMap(mesh)
    for name, shape in shapes.items():
        if len(shape) > 1 and shape[1] % mesh.shape[1] == 0:
            layouts[f"subject/{{name}}"] = (None, "model", *[None] * (len(shape) - 2))
    return keras.distribution.ModelParallel(layout_map=layouts, batch_dim_name="batch", auto_shard_dataset=False)
'''
_FEED = '''
def feed(arrays):
    """The samples where the distribution has them."""
    layout = keras.distribution.distribution().get_data_layout
    return [keras.distribution.distribute_tensor(jnp.asarray(array), layout(array.shape)) for array in arrays]
'''
_AS_IT_IS = '''
def feed(arrays):
    """As it is: `fit` distributes the samples."""
    return arrays
'''
_COMPILED = '''
def compile_model(subject):
    """The optimiser does the clipping, too."""
    subject.compile(OPTIMIZER(**OPTIONS, global_clipnorm=CLIP), LOSS)
'''
_FIT = '''
def compile_step(subject):
    """A function that fits one batch. Gradients are worked out before the first one: `fit` shows none."""
    subject.first = None

    def step(parts):
        ((x, y, coefficient),) = parts
        if subject.first is None:
            groups = subject.trainable_variables, subject.non_trainable_variables
            before = [[variable.value for variable in group] for group in groups]
            _, found = gradient(subject, *before, *map(jnp.asarray, parts[0]))
            subject.first = [np.asarray(value) for value in found]
        history = subject.fit(x, y, len(x), sample_weight=coefficient, shuffle=False, verbose=0)
        return np.asarray(history.history["loss"][0], DTYPE), subject.first

    return step
'''
_PREDICT = """
def predict(subject, x):
    return subject.predict(x, len(x), verbose=0)
"""
_EVALUATE = '''
def evaluate(subject, x, y, coefficient):
    """The loss of all samples after training."""
    return np.asarray(subject.evaluate(x, y, len(x), sample_weight=coefficient, verbose=0), DTYPE)
'''
_UNEVEN = "Keras on JAX spreads batches evenly only"


def _all_even(training: Training, world: int) -> str | None:
    """`predict` and `evaluate` get all samples as one batch."""
    return _UNEVEN if training.settings.samples % world else even_parts(_UNEVEN)(training, world)


def _keras(name: str, pieces: Mapping[str, str], unsupported: Reason, worlds: tuple[int, ...] = WORLDS) -> Strategy:
    return Strategy(
        name, "keras", MODULES, worlds, {"feed": _FEED, **pieces}, shards=False, one_process=True,
        unsupported=unsupported,
    )  # fmt: skip


def _fit(name: str, made: str, unsupported: Reason) -> Strategy:
    pieces = {
        "distribution_of": made, "feed": _AS_IT_IS, "compile_model": _COMPILED, "compile_step": _FIT,
        "predict": _PREDICT, "evaluate": _EVALUATE,
    }  # fmt: skip
    return _keras(name, pieces, first_reason(UNFIT, unsupported), WORLDS[1:])


STRATEGIES = (
    _keras("keras-data", {"distribution_of": _DATA}, even_parts(_UNEVEN)),
    _keras("keras-model", {"distribution_of": _MODEL.format(groups=1)}, anything),
    _keras(
        "keras-model-data", {"distribution_of": _MODEL.format(groups=2)},
        lambda training, world: even_parts(_UNEVEN)(training, 2), (2, 4, 8),
    ),
    _fit("keras-fit-data", _DATA, _all_even),
    _fit("keras-fit-model", _MODEL.format(groups=1), anything),
)  # fmt: skip
