"""Training programs for Keras 2 (tf_keras) with tfmot's fake quantisation: quantisation-aware training, in which
weights and activations have 8 bits. They run in the environment `tfmot` of environments.toml.

The reference is the same model on one device, with tfmot's own functions replaced where they matter: in float64, with
noise before each quantiser, and with the ranges that replicas have. tfmot's moving averages are assigned by
`assign_moving_average`, which takes the mean over the replicas of the new value, so that a range moves by the mean of
the shares' least and greatest elements, not by those of the whole batch."""

from __future__ import annotations

from collections.abc import Mapping

from generators.training.networks import Layer, Network
from generators.training.runs import Training
from harness.execute.templates import render
from harness.strategies.strategy import Noise, Strategy
from harness.strategies.tensorflow.program import LOSSES

FRAMEWORK = "tf_keras"
MODULES = ("tensorflow", "tf_keras", "tensorflow_model_optimization")
ENVIRONMENT = "tfmot"
LAYERS: Mapping[str, str] = {
    "conv2d": 'Conv2D({channels}, {kernel}, padding="same", name="{own}")({0})',
    "batch_norm": 'BatchNormalization(momentum=0.9, epsilon=1e-5, name="{own}")({0})',
    "relu": 'ReLU(name="{own}")({0})',
    "tanh": 'Activation("tanh", name="{own}")({0})',
    "sigmoid": 'Activation("sigmoid", name="{own}")({0})',
    "gelu": 'Activation("gelu", name="{own}")({0})',
    "add": 'Add(name="{own}")([{0}, {1}])',
    "flatten": 'Flatten(name="{own}")({0})',
    "linear": 'Dense({features}, use_bias=bool({bias}), name="{own}")({0})',
}
"""What tf_keras calls layers that tfmot's default 8-bit scheme takes."""

SINGLE_DEVICE: Mapping[str, str] = {
    "shards": """
SHARDS = 1  # of a batch, each of which has its own range, and its own statistics for batch normalisation
""",
    "strategy_of": '''
def strategy_of(rank, world):
    """The strategy that there is where nobody has asked for one: one device."""
    return tf.distribute.get_strategy()
''',
    "feed": '''
def feed(strategy, arrays, rows):
    """The samples in these rows."""
    return [tuple(tf.constant(arrays[name][rows]) for name in ("x", "y", "coefficient"))]
''',
    "gradient": '''
def gradient(subject, x, y, coefficient):
    """The loss of these samples, and its gradients by what is trained."""
    with tf.GradientTape() as tape:
        loss = criterion(subject.model(x, training=True), y, coefficient)
    return loss, tape.gradient(loss, subject.trained)
''',
    "update": '''
def update(subject, loss, gradients):
    """One step of the optimiser, on each replica; it adds up the replicas' gradients. Returns what they had."""
    subject.optimizer.apply_gradients(zip(gradients, subject.trained))
    return loss, gradients
''',
}
"""What a strategy may change, as it is on one device."""


def program(training: Training, strategy: Strategy, noise: Noise | None = None) -> str:
    """The text that the process runs: it defines `train(rank, world, arrays)`. noise: of the reference."""
    network, settings = training.network, training.settings
    pieces = {**SINGLE_DEVICE, **strategy.pieces}
    options = {"learning_rate": 0.0, "momentum": 0.0, "nesterov": False}
    given = {"learning_rate" if key == "lr" else key: value for key, value in settings.options}
    options = {key: type(value)(given[key]) for key, value in options.items()}
    surprisal = bool(noise) and settings.loss == "cross_entropy"
    return render(
        "strategies/tensorflow/tfmot_program.py.j2",
        settings=settings,
        batches=list(settings.batches),
        frozen=list(network.frozen),
        orders={f"{layer.name}.weight": order for layer in network.layers if (order := _order(layer))},
        options=options,
        network=network,
        shape=(*network.shape[1:], network.shape[0]) if len(network.shape) == 3 else network.shape,
        layers=_layers(network),
        loss="surprisal(outputs, y)" if surprisal else LOSSES[settings.loss],
        surprisal=surprisal,
        kinds=(),
        forward=(),
        pieces=[text.strip("\n") for text in pieces.values()],
        noise=noise,
        derived=noise is not None or "SHARDS = 1 " not in pieces["shards"],
    )


def single_device(shards: int, sent: bool = False) -> Strategy:
    """One device. Ranges and batch statistics are those of so many shares of each batch; of one share, they are tfmot's
    and tf_keras' own."""
    pieces = {"shards": SINGLE_DEVICE["shards"].replace("1", str(shards), 1)}
    return Strategy("tfmot-alone", "tf_keras", MODULES, (1,), pieces, ranges=True, environment=ENVIRONMENT)


def _layers(network: Network) -> list[str]:
    """Lines that make the layers; images have their channels last, and are flattened with their channels first."""
    lines, shapes = [], network.shapes
    for layer in network.layers:
        given = list(layer.inputs)
        if layer.kind == "flatten" and len(shapes[given[0]]) == 3:
            given = [f'tf_keras.layers.Permute((3, 1, 2), name="{layer.name}_order")({given[0]})']
        text = LAYERS[layer.kind].format(*given, own=layer.name, **layer.numbers)
        lines.append(f"{layer.name} = tf_keras.layers.{text}")
    return lines


def _order(layer: Layer) -> tuple[int, ...]:
    """The axes of Keras' kernel that make it the parameter; () where they are the same."""
    return {"conv2d": (3, 2, 0, 1), "linear": (1, 0)}.get(layer.kind, ())
