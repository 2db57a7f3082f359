"""TensorFlow: meshes of DTensor (tf.experimental.dtensor) over virtual devices of one process. Samples are spread over
one dimension of a mesh, weights over another. Keras' optimisers know no meshes: theirs are copies on one device."""

from __future__ import annotations

from harness.strategies.strategy import WORLDS, Reason, Strategy, even_parts, first_reason, refuses
from harness.strategies.tensorflow.program import MODULES

_MESH = '''
MESH = dtensor.create_mesh([("batch", {groups}), ("model", len(DEVICES) // {groups})], devices=DEVICES)


def on_mesh(value, *axes):
    """The value on the mesh, these axes spread where they are even."""
    value = tf.convert_to_tensor(value)
    spread = [dtensor.UNSHARDED] * len(value.shape)
    for i, axis in enumerate(axes):
        if axis and MESH.dim_size(axis) > 1 and value.shape[i] % MESH.dim_size(axis) == 0:
            spread[i] = axis
    copies = dtensor.copy_to_mesh(value, dtensor.Layout.replicated(MESH, len(value.shape)))
    return dtensor.relayout(copies, dtensor.Layout(spread, MESH))


def whole(value):
    """All of a value on the mesh, as a tensor of one device."""
    return dtensor.unpack(dtensor.relayout(value, dtensor.Layout.replicated(MESH, len(value.shape))))[0]


def weight(value):
    """A parameter on the mesh, the second dimension of matrices spread."""
    return on_mesh(value, *((None, "model") if len(value.shape) == 2 else ()))
'''
_VARIABLES = '''
def variables(subject, given):
    """Those of one device, which the optimiser has; what the mesh has of them is `spread`."""
    subject.spread = {name: dtensor.DVariable(weight(a), name=name) for name, a in given.items()}
    return {name: tf.Variable(a, name not in FROZEN, name=name, dtype=DTYPE) for name, a in given.items()}
'''
_NORMALISED = '''
class OnMesh:
    """Batch normalisation by its formula: of all samples of the mesh, which has its running statistics, too."""

    def build(self, shape):
        self.kept = [dtensor.DVariable(on_mesh(tf.fill(shape[1:2], tf.constant(v, DTYPE)))) for v in (0.0, 1.0)]

    def __call__(self, x, training):
        axes = [0, *range(2, len(x.shape))]
        across = [-1, *[1] * (len(x.shape) - 2)]
        mean, variance = self.kept
        if training:
            mean = tf.reduce_mean(x, axes)
        centred = x - tf.reshape(mean, across)
        if training:
            variance = tf.reduce_mean(centred * centred, axes)
            for kept, new in zip(self.kept, (mean, variance)):
                kept.assign(kept * 0.9 + new * 0.1)
        return centred * tf.reshape(tf.math.rsqrt(variance + 1e-5), across)

    moving_mean = property(lambda self: types.SimpleNamespace(value=whole(self.kept[0])))
    moving_variance = property(lambda self: types.SimpleNamespace(value=whole(self.kept[1])))


def normalisation():
    return OnMesh()
'''
_FEED = '''
def feed(strategy, arrays, rows):
    """The samples in these rows, spread over the mesh."""
    return [tuple(on_mesh(arrays[name][rows], "batch") for name in ("x", "y", "coefficient"))]
'''
_STEP = '''
def compile_step(subject, strategy):
    """A function that takes the samples of one step: the mesh has losses and gradients, a device the optimiser."""
    names = [name for name in subject.p if name not in FROZEN]

    @tf.function(autograph=False)
    def gradient_of(x, y, coefficient):
        with tf.GradientTape() as tape:
            loss = criterion(model(subject.spread, subject.norms, x, True), y, coefficient)
        found = tape.gradient(loss, [subject.spread[name] for name in names])
        return loss, {name: tf.convert_to_tensor(g) for name, g in zip(names, found) if g is not None}

    def step(parts):
        found = [gradient_of(*part) for part in parts]
        loss = sum(whole(one) for one, _ in found)
        gradients = {name: sum(whole(g[name]) for _, g in found) for name in found[0][1]}
        given = list(gradients.values())
        if CLIP:
            given, _ = tf.clip_by_global_norm(given, CLIP)
        subject.optimizer.apply(given, [subject.p[name] for name in gradients])
        for name, variable in subject.p.items():
            subject.spread[name].assign(weight(variable))
        return loss, [gradients.get(name) for name in names]

    return step
'''
_SUMMED = '''
def summed(strategy, value):
    """The mesh has added them up."""
    return value
'''
_PREDICT = '''
def predict(strategy, subject, x):
    """On the mesh, all of the samples on each device."""
    return whole(tf.function(model, autograph=False)(subject.spread, subject.norms, on_mesh(x), False))
'''
_NO_PENALTY = refuses("penalised", "losses are of the mesh, and regularisers of Keras' variables")
_UNEVEN = even_parts("DTensor spreads a batch evenly only")
_BATCH_PARALLEL = refuses("conv2d", "DTensor's convolutions only support batch parallel layouts")


def _mesh(name: str, groups: str, unsupported: Reason, worlds: tuple[int, ...] = WORLDS) -> Strategy:
    pieces = {
        "mesh": _MESH.format(groups=groups), "variables": _VARIABLES, "normalisation": _NORMALISED, "feed": _FEED,
        "compile_step": _STEP, "summed": _SUMMED, "predict": _PREDICT,
    }  # fmt: skip
    return Strategy(
        name, "tensorflow", MODULES, worlds, pieces,
        imports=("import types", "from tensorflow.experimental import dtensor"), shards=False, one_process=True,
        apart=True, unsupported=first_reason(_NO_PENALTY, unsupported),
    )  # fmt: skip


STRATEGIES = (
    _mesh("tf-dtensor-data", "len(DEVICES)", _UNEVEN),
    _mesh("tf-dtensor-model", "1", _BATCH_PARALLEL),
    _mesh(
        "tf-dtensor-data-model", "2",
        first_reason(_BATCH_PARALLEL, lambda training, world: _UNEVEN(training, 2)), (2, 4, 8),
    ),
)  # fmt: skip
