"""Training programs for JAX: the model and the optimiser as functions, compiled as one step over all devices of one
process."""

from __future__ import annotations

from collections.abc import Mapping

from generators.networks import Layer, Network
from generators.training import Training
from harness.strategies.strategy import TEMPLATES, Noise, Strategy

MODULES = ("jax", "jax.numpy")
LOSSES = {
    "mse": "jnp.mean((outputs - y) ** 2, axis=1)",
    "smooth_l1": "jnp.mean(jnp.where(jnp.abs(outputs - y) < 1, 0.5 * (outputs - y) ** 2, jnp.abs(outputs - y) - 0.5), "
    "axis=1)",
    "cross_entropy": "-jnp.take_along_axis(jax.nn.log_softmax(outputs), y[:, None], axis=1)[:, 0]",
}
ACTIVATIONS = {
    "tanh": "jnp.tanh({0})",
    "gelu": "jax.nn.gelu({0}, approximate=False)",
    "sigmoid": "jax.nn.sigmoid({0})",
    "silu": "jax.nn.silu({0})",
    "relu": "jax.nn.relu({0})",
}
OPTIMIZERS: Mapping[str, tuple[str, ...]] = {
    "sgd": (
        'g = g + OPTIONS["weight_decay"] * p',
        'if not OPTIONS["momentum"]:',
        "    return p - rate * g, {}",
        'v = OPTIONS["momentum"] * s["momentum"] + g if s else g',
        'return p - rate * (g + OPTIONS["momentum"] * v if OPTIONS["nesterov"] else v), {"momentum": v}',
    ),
    "adam": ('return adam(p, g + OPTIONS["weight_decay"] * p, s, rate)',),
    "adamw": ('return adam(p * (1 - rate * OPTIONS["weight_decay"]), g, s, rate)',),
    "rmsprop": (
        's = s or {"square": jnp.zeros_like(p), "momentum": jnp.zeros_like(p)}',
        'square = 0.99 * s["square"] + 0.01 * g * g',
        'v = OPTIONS["momentum"] * s["momentum"] + g / (jnp.sqrt(square) + OPTIONS["eps"])',
        'return p - rate * v, {"square": square, "momentum": v}',
    ),
    "adagrad": (
        'total = (s["sum"] if s else jnp.full_like(p, OPTIONS["initial_accumulator_value"])) + g * g',
        'return p - rate * g / (jnp.sqrt(total) + OPTIONS["eps"]), {"sum": total}',
    ),
}
"""By the formulas of PyTorch's documentation: both sides of a comparison run the same text."""
_ADAM = """
def adam(p, g, s, rate):
    s = s or {"step": jnp.zeros((), p.dtype), "first": jnp.zeros_like(p), "second": jnp.zeros_like(p)}
    n, first, second = s["step"] + 1, 0.9 * s["first"] + 0.1 * g, 0.999 * s["second"] + 0.001 * g * g
    kept = {"step": n, "first": first, "second": second}
    if OPTIONS.get("amsgrad"):
        second = kept["greatest"] = jnp.maximum(s.get("greatest", jnp.zeros_like(p)), second)
    scale = jnp.sqrt(second) / jnp.sqrt(1 - 0.999**n) + OPTIONS["eps"]
    return p - rate / (1 - 0.9**n) * first / scale, kept
"""
_GRADIENT = '''
def gradient(p, trained, x, y, coefficient{more}):
    """The loss of these samples, and its gradients by what is trained."""
    return jax.value_and_grad(lambda t: criterion({{**p, **t}}, x, y, coefficient{more}))(trained)
'''
ALONE: Mapping[str, str] = {
    "spread": '''
def spread(parameters):
    """Where the parameters are."""
    return {name: jnp.asarray(value) for name, value in parameters.items()}
''',
    "feed": '''
def feed(arrays):
    """Where the samples are."""
    return [jnp.asarray(array) for array in arrays]
''',
    "gradient": _GRADIENT.format(more=""),
    "compile_step": """
def compile_step(world):
    return jax.jit(step)
""",
}
"""What a strategy may change, as it is on one device."""


def program(training: Training, strategy: Strategy, noise: Noise | None = None) -> str:
    """The text that the process runs: it defines `train(rank, world, arrays)`. noise: of the reference."""
    network, settings = training.network, training.settings
    pieces = {"adam": _ADAM, **ALONE, **strategy.pieces}
    if not settings.optimizer.startswith("adam"):
        del pieces["adam"]
    if noise:
        pieces["gradient"] = _GRADIENT.format(more=", unit, key")
        del pieces["compile_step"]
    return TEMPLATES.get_template("train_jax.py.j2").render(
        settings=settings,
        batches=list(settings.batches),
        frozen=list(network.frozen),
        options=dict(settings.options),
        forward=forward(network, bool(noise)),
        loss=LOSSES[settings.loss],
        optimizer=OPTIMIZERS[settings.optimizer],
        pieces=[text.strip("\n") for text in pieces.values()],
        noise=noise,
    )


def alone(shards: int, sent: bool = False) -> Strategy:
    """One device."""
    return Strategy("jax-alone", "jax", MODULES, (1,), {})


def forward(network: Network, noise: bool) -> list[str]:
    """Lines of the forward pass."""
    lines = []
    for number, layer in enumerate(network.layers):
        if layer.name not in network.idle:
            text = _expression(layer, network.shapes)
            key = f"next_key(key, {number})"
            lines.append(f"{layer.name} = {f'rounded({text}, unit, {key})' if noise else text}")
    return [*lines, f"return {network.layers[-1].name}"]


def _expression(layer: Layer, shapes: Mapping[str, tuple[int, ...]]) -> str:
    x, n, own = layer.inputs[0], layer.numbers, layer.name
    weight, bias = f'p["{layer.tied or own}.weight"]', f'p["{own}.bias"]'
    match layer.kind:
        case "linear":
            return f"{x} @ {weight}.T" + (f" + {bias}" if n["bias"] else "")
        case "conv2d":
            pad = n["kernel"] // 2
            return f"jax.lax.conv_general_dilated({x}, {weight}, (1, 1), [({pad}, {pad})] * 2) + {bias}[:, None, None]"
        case "layer_norm":
            centred = f"({x} - {x}.mean(-1, keepdims=True))"
            return f"{centred} / jnp.sqrt({x}.var(-1, keepdims=True) + 1e-5) * {weight} + {bias}"
        case "embedding":
            return f"{weight}[{x}]"
        case "flatten":
            return f"{x}.reshape(len({x}), -1)"
        case "add":
            return " + ".join(layer.inputs)
        case kind:
            return ACTIVATIONS[kind].format(x)
