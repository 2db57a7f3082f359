"""Training programs for TensorFlow: the model as operations on variables, a Keras optimiser, and a loop of steps, all
under a `tf.distribute` strategy, which on one device is the default one."""

from __future__ import annotations

from collections.abc import Mapping

from generators.training.networks import Layer, Network, padding, ragged, same
from generators.training.runs import Training
from harness.execute.templates import render
from harness.strategies.mixed_precision import GROWTH, SCALE
from harness.strategies.strategy import Noise, Strategy, columns_of_samples

FRAMEWORK = "tensorflow"
MODULES = ("tensorflow", "keras")
"""Imported before a process is forked, which is safe as long as no operation has run."""
KERAS_LOSSES = {
    "mse": 'keras.losses.MeanSquaredError(reduction="sum")',
    "smooth_l1": 'keras.losses.Huber(reduction="sum")',
    "cross_entropy": 'keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="sum")',
}
"""The same for `Model.compile`; coefficients are weights of samples."""
METRICS = {
    "mse": 'keras.metrics.MeanAbsoluteError(name="error")',
    "smooth_l1": 'keras.metrics.MeanSquaredError(name="error")',
    "cross_entropy": 'keras.metrics.SparseCategoricalCrossentropy(name="error", from_logits=True)',
}
"""By the loss, a metric of another kind where there is one; it moves little where what it is given does."""
LOSSES = {
    "mse": "tf.reduce_mean((outputs - y) ** 2, axis=1)",
    "smooth_l1": "tf.reduce_mean(tf.where(tf.abs(outputs - y) < 1, 0.5 * (outputs - y) ** 2, tf.abs(outputs - y) - "
    "0.5), axis=1)",
    "cross_entropy": "tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=outputs)",
}
ACTIVATIONS = {
    "tanh": "tf.tanh({0})",
    "gelu": "tf.nn.gelu({0})",
    "sigmoid": "tf.sigmoid({0})",
    "silu": "tf.nn.silu({0})",
    "relu": "tf.nn.relu({0})",
}
OPTIMIZERS = {
    "sgd": "SGD", "adam": "Adam", "adamw": "AdamW", "rmsprop": "RMSprop", "adagrad": "Adagrad",
    "adamax": "Adamax", "nadam": "Nadam", "lamb": "Lamb",
}  # fmt: skip
NAMES = {"lr": "learning_rate", "eps": "epsilon"}
"""What Keras calls an option; others have the same name in PyTorch. weight_decay is Keras' own: apart from the
gradient, as AdamW has it, with every optimiser that takes one."""

_GRADIENT = '''
def gradient(subject, x, y, coefficient):
    """The loss of these samples, and its gradients by what is trained."""
    with tf.GradientTape() as tape:
        loss = criterion(model({p}, subject.norms, x, True), y, coefficient)
    found = tape.gradient(loss, subject.trained)
    return loss, [value if value is None else tf.convert_to_tensor(value) for value in found]
'''
_NORMALISED = '''
class Normalised(keras.layers.BatchNormalization):
    """By its formula, everything within off by a random part of a unit roundoff: where samples are nearly alike,
    what is left of a gradient is what rounding leaves of terms that cancel."""

    def call(self, x, training=None, mask=None):
        axes = [0, *range(2, len(x.shape))]
        across = [-1, *[1] * (len(x.shape) - 2)]
        mean, variance = self.moving_mean.value, self.moving_variance.value
        if training:
            mean = rounded(tf.reduce_mean(x, axes))
        centred = rounded(x - tf.reshape(mean, across))
        if training:
            variance = rounded(tf.reduce_mean(centred * centred, axes))
            for kept, new in ((self.moving_mean, mean), (self.moving_variance, variance)):
                kept.assign(kept * self.momentum + new * (1.0 - self.momentum))
        return rounded(centred * tf.reshape(rounded(tf.math.rsqrt(variance + self.epsilon)), across))


def normalisation():
    return Normalised(1, 0.9, 1e-5, center=False, scale=False, dtype=DTYPE)
'''

SINGLE_DEVICE: Mapping[str, str] = {
    "shards": """
SHARDS = 1  # of the samples of a batch, whose own statistics batch normalisation uses on one device
FIRST = True  # running statistics are those of the first share; else each share moves them, one after the other
""",
    "strategy_of": '''
def strategy_of(rank, world):
    """The strategy that there is where nobody has asked for one: one device."""
    return tf.distribute.get_strategy()
''',
    "variables": """
def variables(subject, given):
    return {name: tf.Variable(a, name not in FROZEN, name=name, dtype=DTYPE) for name, a in given.items()}
""",
    "optimizer_of": """
def optimizer_of(subject):
    return OPTIMIZER(**OPTIONS)
""",
    "normalisation": """
def normalisation():
    return keras.layers.BatchNormalization(1, 0.9, 1e-5, center=False, scale=False, dtype=DTYPE)
""",
    "feed": '''
def feed(strategy, arrays, rows):
    """The samples in these rows: a tuple for each share of them."""
    shares = np.array_split(rows, SHARDS)
    return [tuple(tf.constant(arrays[name][mine]) for name in ("x", "y", "coefficient")) for mine in shares]
''',
    "gradient": _GRADIENT.format(p="subject.p"),
    "update": '''
def update(subject, strategy, loss, gradients):
    """One step of the optimiser, on each replica; it adds up the replicas' gradients. Returns what they had."""
    subject.optimizer.apply(gradients, subject.trained)
    return loss, gradients
''',
    "compile_step": """
def compile_step(subject, strategy):
    return tf.function(step_of(subject, strategy), autograph=False, reduce_retracing=True)
""",
    "share": '''
def share(penalty):
    """A replica's part of it."""
    return tf.nn.scale_regularization_loss(penalty)
''',
    "summed": '''
def summed(strategy, value):
    """The sum over all replicas."""
    return strategy.reduce("SUM", value, axis=None)
''',
    "predict": """
def predict(strategy, subject, x):
    return model(subject.p, subject.norms, tf.constant(x), False)
""",
    "evaluate": '''
def evaluate(strategy, subject, x, y, coefficient):
    """The loss of all samples after training."""
    loss = criterion(predict(strategy, subject, x), tf.constant(y), tf.constant(coefficient))
    return loss + penalty_of(subject.trained) if PENALTY else loss
''',
    "reported": '''
def reported(strategy, subject, step, arrays):
    """A loop of one's own reports nothing."""
    return {}
''',
    "parts_of": '''
def parts_of(variable):
    """The variables that one is made of."""
    return [variable]
''',
    "states": '''
def states(subject):
    """What the optimiser keeps."""
    kept = {v.path.split("/", 1)[-1]: v.value for v in subject.optimizer.variables}
    named = {"product" if name.startswith("variable") else name: value for name, value in kept.items()}  # of Nadam
    named = {name.removeprefix(subject.prefix): value for name, value in named.items()}
    return {name.replace("_0_", "."): value for name, value in named.items()}
''',
    "apart": '''
def apart(strategy, variables):
    """The greatest difference between what two replicas have of the same variable."""
    copies = [[np.asarray(copy) for copy in strategy.experimental_local_results(v)] for v in variables]
    gaps = [np.abs(copy - all_of[0]) for all_of in copies for copy in all_of]
    return np.float64(max((gap.max() for gap in gaps if gap.size), default=0))
''',
}
"""What a strategy may change, as it is on one device."""

_STEP = '''
def step_of(subject, strategy):
    """A function that takes the samples of one step: every replica's part, then the optimiser."""

    def mine(parts):
        return update(subject, strategy, *replica(subject, parts))

    return lambda parts: strategy.run(mine, args=(parts,))
'''
_CLIPPED = '''
def step_of(subject, strategy):
    """A function that takes the samples of one step. Gradients are added up before they are clipped; Keras' optimisers
    would clip those of each replica."""

    def step(parts):
        loss, gradients = strategy.run(lambda parts: replica(subject, parts), args=(parts,))
        there = [(g, v) for g, v in zip(gradients, subject.trained) if g is not None]
        sums = [summed(strategy, g) for g, _ in there]
        clipped, _ = tf.clip_by_global_norm(sums, CLIP)
        subject.optimizer.apply(clipped, [v for _, v in there])
        return loss, gradients

    return step
'''


def program(training: Training, strategy: Strategy, noise: Noise | None = None) -> str:
    """The text that the process runs: it defines `train(rank, world, arrays)`. noise: of the reference."""
    network, settings = training.network, training.settings
    normed = {layer.name: network.shapes[layer.inputs[0]] for layer in network.layers if layer.kind == "batch_norm"}
    surprisal = bool(noise) and settings.loss == "cross_entropy"
    step = _CLIPPED if settings.clip else _STEP
    pieces = {**SINGLE_DEVICE, "step_of": step, **strategy.pieces}
    if settings.clip:
        del pieces["update"]
    if noise:
        pieces["normalisation"] = _NORMALISED
        pieces["gradient"] = _GRADIENT.format(p="{name: rounded(v) for name, v in subject.p.items()}")
    return render(
        "strategies/tensorflow/program.py.j2",
        imports=strategy.imports,
        settings=settings,
        batches=list(settings.batches),
        frozen=list(network.frozen),
        optimizer=optimizer_of(training),
        forward=forward(network, bool(noise)),
        kinds=network.kinds,
        loss="surprisal(outputs, y)" if surprisal else LOSSES[settings.loss],
        surprisal=surprisal,
        keras_loss=KERAS_LOSSES[settings.loss],
        epoch=list(settings.batches_of_an_epoch),
        metric=METRICS[settings.loss],
        norms={name: (None, *shape) for name, shape in normed.items()},
        pieces=[text.strip("\n") for text in pieces.values()],
        resumed="resumed" in pieces,
        noise=noise,
        coarse=noise.coarse / noise.unit if noise and noise.unit else 0.0,
        half=noise is not None and noise.coarse == 2.0**-11,
        scales=(SCALE, SCALE * 2 ** (settings.steps // GROWTH)),
    )


def single_device(shards: int, sent: bool = False) -> Strategy:
    """One device. Batch statistics are those of so many shares of each batch, and running statistics those of the
    first share, as replicas have them."""
    pieces = {"shards": SINGLE_DEVICE["shards"].replace("1", str(shards), 1)}
    return Strategy("tf-alone", "tensorflow", MODULES, (1,), pieces)


def forward(network: Network, noise: bool) -> list[str]:
    """Lines of the forward pass."""
    lines = []
    for layer in network.layers:
        if layer.name not in network.idle:
            text = _expression(layer, network.shapes)
            lines.append(f"{layer.name} = {f'rounded({text})' if noise else text}")
    return [*lines, f"return {network.layers[-1].name}"]


def _expression(layer: Layer, shapes: Mapping[str, tuple[int, ...]]) -> str:
    x, n, own = layer.inputs[0], layer.numbers, layer.name
    columns = columns_of_samples(layer, shapes)
    weight, bias = f'p["{layer.tied or own}.weight"]', f'p["{own}.bias"]'
    match layer.kind:
        case "linear":
            return f"tf.matmul({x}, {weight}, transpose_b=True)" + (f" + {bias}" if n["bias"] else "")
        case "conv2d":
            made = f"convolved({x}, {weight})"
            if n.get("groups", 1) == shapes[x][0] > 1:
                made = f"depthwise({x}, {weight}, {n.get('stride', 1)}, {padding(layer)})"
            elif not same(layer):
                made = f"strided({x}, {weight}, {n.get('stride', 1)}, {padding(layer)})"
            return made + (f" + {bias}[:, None, None]" if n.get("bias", 1) else "")
        case "max_pool":
            return f"greatest({x}, {n['kernel']}, {n.get('stride', 1)}, {padding(layer)})"
        case "avg_pool":
            return f'average({x}, {n["kernel"]}, {n["stride"]}, "{"SAME" if same(layer) else "VALID"}")'
        case "mean":
            return f"tf.reduce_mean({x}, (2, 3))"
        case "layer_norm":
            centred = f"({x} - tf.reduce_mean({x}, -1, keepdims=True))"
            return f"{centred} / tf.sqrt(tf.math.reduce_variance({x}, -1, keepdims=True) + 1e-5) * {weight} + {bias}"
        case "batch_norm":
            place = "" if len(layer.shape) == 1 else "[:, None, None]"
            return f'norms["{own}"]({x}, training=training) * {weight}{place} + {bias}{place}'
        case "embedding":
            return f"tf.nn.embedding_lookup({weight}, {x})"
        case "flatten":
            return f"tf.reshape({x}, (-1, {layer.shape[0]}))"
        case "embedding_bag":  # the data are floating numbers, with noise near integers only
            if ragged(layer):
                return f"bag({weight}, {columns}, {n['count']}, {bool(n['mean'])})"
            rows = f"tf.nn.embedding_lookup({weight}, tf.cast(tf.round({columns}), tf.int32))"
            return f"tf.reduce_{'mean' if n['mean'] else 'sum'}({rows}, 1)"
        case "columns":
            return f"tf.reshape({columns}, {(-1, *layer.shape)})" if len(layer.shape) > 1 else columns
        case "dropout":
            return f"masked({x}, {columns}, training)"
        case "interaction":
            return f"interaction({', '.join(layer.inputs)})"
        case "attention":
            return f'attention(p, "{own}", {x}, {n["heads"]})'
        case "gru" | "lstm":
            return f'{layer.kind}(p, "{own}", {x}, {n["features"]})'
        case "add":
            return " + ".join(layer.inputs)
        case "concat":
            return f"tf.concat(({', '.join(layer.inputs)}), 1)"
        case "scale":
            return f"{x} * {layer.inputs[1]}[:, :, None, None]"
        case kind:
            return ACTIVATIONS[kind].format(x)


def optimizer_of(training: Training) -> str:
    """Class and options. A decay of 0 is none: Keras' AdamW wants a number."""
    flags = {"nesterov", "amsgrad"}
    options = {NAMES.get(k, k): bool(v) if k in flags else v for k, v in training.settings.options}
    options |= {"rho": 0.99} if training.settings.optimizer == "rmsprop" else {}
    return f"{OPTIMIZERS[training.settings.optimizer]}, {options!r}"
