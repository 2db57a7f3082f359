"""Training programs for JAX: the model and the optimiser as functions, compiled as one step over all devices of one
process."""

from __future__ import annotations

from collections.abc import Mapping

from generators.training.networks import Layer, Network, padding, ragged
from generators.training.runs import Training
from harness.execute.templates import render
from harness.strategies.strategy import Noise, Strategy, columns_of_samples

FRAMEWORK = "jax"
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
    "adamax": (
        's = s or {"step": jnp.zeros((), p.dtype), "first": jnp.zeros_like(p), "greatest": jnp.zeros_like(p)}',
        'g = g + OPTIONS["weight_decay"] * p',
        'n, first = s["step"] + 1, 0.9 * s["first"] + 0.1 * g',
        'greatest = jnp.maximum(0.999 * s["greatest"], jnp.abs(g) + OPTIONS["eps"])',
        'return p - rate / (1 - 0.9**n) * first / greatest, {"step": n, "first": first, "greatest": greatest}',
    ),
    "nadam": (
        's = s or {"step": jnp.zeros((), p.dtype), "product": jnp.ones((), p.dtype), "first": jnp.zeros_like(p), '
        '"second": jnp.zeros_like(p)}',
        'g, n = g + OPTIONS["weight_decay"] * p, s["step"] + 1',
        "now, later = (0.9 * (1 - 0.5 * 0.96 ** (m * 0.004)) for m in (n, n + 1))",
        'product, first, second = s["product"] * now, 0.9 * s["first"] + 0.1 * g, 0.999 * s["second"] + 0.001 * g * g',
        "mixed = (1 - now) * g / (1 - product) + later * first / (1 - product * later)",
        'scale = jnp.sqrt(second / (1 - 0.999**n)) + OPTIONS["eps"]',
        'return p - rate * mixed / scale, {"step": n, "product": product, "first": first, "second": second}',
    ),
    "lamb": (
        's = s or {"step": jnp.zeros((), p.dtype), "first": jnp.zeros_like(p), "second": jnp.zeros_like(p)}',
        'n, first, second = s["step"] + 1, 0.9 * s["first"] + 0.1 * g, 0.999 * s["second"] + 0.001 * g * g',
        'change = first / (1 - 0.9**n) / (jnp.sqrt(second / (1 - 0.999**n)) + OPTIONS["eps"])',
        'change = change + OPTIONS["weight_decay"] * p',
        "own, other = jnp.sqrt(jnp.sum(p * p)), jnp.sqrt(jnp.sum(change * change))",
        "trust = jnp.where((own > 0) & (other > 0), own / other, 1.0)",
        'return p - rate * trust * change, {"step": n, "first": first, "second": second}',
    ),
}
"""By the formulas of PyTorch's documentation, and LAMB by You et al., Large Batch Optimization for Deep Learning, 2020:
both sides of a comparison run the same text."""
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
_SHARED = '''
def gradient(p, trained, b, x, y, coefficient, *noise):
    """The loss of these samples with the running statistics after them, and its gradients by what is trained. Each of
    {shards} shares has statistics of its own; the running ones are those of the first."""
    found = []
    for number, rows in enumerate(np.array_split(np.arange(len(x)), {shards})):
        mine = slice(rows[0], rows[-1] + 1)
        given = [*noise[:1], *(next_key(key, number) for key in noise[1:])]
        part = lambda t: criterion({{**p, **t}}, b, x[mine], y[mine], coefficient[mine], *given)
        found.append(jax.value_and_grad(part, has_aux=True)(trained))
    ((_, after), _), *_ = found
    return (sum(loss for (loss, _), _ in found), after), jax.tree.map(lambda *g: sum(g), *(g for _, g in found))
'''
SINGLE_DEVICE: Mapping[str, str] = {
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
    "gradient": '''
def gradient(p, trained, b, x, y, coefficient, *noise):
    """The loss of these samples with the running statistics after them, and its gradients by what is trained."""
    return jax.value_and_grad(lambda t: criterion({**p, **t}, b, x, y, coefficient, *noise), has_aux=True)(trained)
''',
    "compile_step": """
def compile_step(world):
    return jax.jit(step)
""",
}
"""What a strategy may change, as it is on one device."""


def program(training: Training, strategy: Strategy, noise: Noise | None = None) -> str:
    """The text that the process runs: it defines `train(rank, world, arrays)`. noise: of the reference."""
    network, settings = training.network, training.settings
    pieces = {"adam": _ADAM, **SINGLE_DEVICE, **strategy.pieces}
    if settings.optimizer not in ("adam", "adamw"):
        del pieces["adam"]
    if noise:
        del pieces["compile_step"]
    return render(
        "strategies/jax/program.py.j2",
        imports=strategy.imports,
        settings=settings,
        batches=list(settings.batches),
        frozen=list(network.frozen),
        options=dict(settings.options),
        forward=forward(network, bool(noise)),
        kinds=network.kinds,
        loss=loss_of(training, noise),
        surprisal=bool(noise) and settings.loss == "cross_entropy",
        statistics=statistics_of(network),
        optimizer=OPTIMIZERS[settings.optimizer],
        pieces=[text.strip("\n") for text in pieces.values()],
        resumed="resumed" in pieces,
        noise=noise,
        cast=settings.dtype == "mixed" and not noise,
        coarse=noise.coarse / noise.unit if noise and noise.unit else 0.0,
    )


def single_device(shards: int, sent: bool = False) -> Strategy:
    """One device. Batch statistics are those of so many shares of each batch, and running statistics those of the
    first share, as devices have them."""
    pieces = {"gradient": _SHARED.format(shards=shards)} if shards > 1 else {}
    return Strategy("jax-alone", "jax", MODULES, (1,), pieces, policy="cast")


def loss_of(training: Training, noise: Noise | None) -> str:
    """The samples' losses, as source text."""
    surprisal = noise and training.settings.loss == "cross_entropy"
    return "surprisal(outputs, y, unit, key)" if surprisal else LOSSES[training.settings.loss]


def statistics_of(network: Network) -> dict[str, int]:
    """The running statistics of batch normalisation by name, and how many numbers each has."""
    normed = {layer.name: layer.shape[0] for layer in network.layers if layer.kind == "batch_norm"}
    return {f"{name}.{key}": size for name, size in normed.items() for key in ("mean", "variance")}


def forward(network: Network, noise: bool) -> list[str]:
    """Lines of the forward pass."""
    lines = []
    for number, layer in enumerate(network.layers):
        if layer.name not in network.idle:
            key = f"next_key(key, {number})"
            text = _expression(layer, network.shapes, f", unit, {key}" if noise else "")
            lines.append(f"{layer.name} = {f'rounded({text}, unit, {key})' if noise else text}")
    return [*lines, f"return {network.layers[-1].name}"]


def _expression(layer: Layer, shapes: Mapping[str, tuple[int, ...]], noise: str) -> str:
    """noise: what is given beside to functions that round within."""
    x, n, own = layer.inputs[0], layer.numbers, layer.name
    columns = columns_of_samples(layer, shapes)
    weight, bias = f'p["{layer.tied or own}.weight"]', f'p["{own}.bias"]'
    match layer.kind:
        case "linear":
            return f"{x} @ {weight}.T" + (f" + {bias}" if n["bias"] else "")
        case "conv2d":
            steps, pads = (n.get("stride", 1),) * 2, [(pad, pad) for pad in padding(layer)]
            more = f", feature_group_count={n['groups']}" if n.get("groups", 1) > 1 else ""
            made = f"jax.lax.conv_general_dilated({x}, {weight}, {steps}, {pads}{more})"
            return made + (f" + {bias}[:, None, None]" if n.get("bias", 1) else "")
        case "max_pool" | "avg_pool" as kind:
            window, steps = (1, 1, n["kernel"], n["kernel"]), (1, 1, n["stride"], n["stride"])
            pads = ((0, 0), (0, 0), *((pad, pad) for pad in padding(layer)))
            over = f"{window}, {steps}, {pads})"
            if kind == "max_pool":
                return f"jax.lax.reduce_window({x}, -jnp.inf, jax.lax.max, {over}"
            ones = f"jnp.ones((1, 1, *{x}.shape[2:]), {x}.dtype)"
            there = f"jax.lax.reduce_window({ones}, 0.0, jax.lax.add, {over}"
            return f"jax.lax.reduce_window({x}, 0.0, jax.lax.add, {over} / {there}"
        case "mean":
            return f"{x}.mean((2, 3))"
        case "layer_norm":
            centred = f"({x} - {x}.mean(-1, keepdims=True))"
            return f"{centred} / jnp.sqrt({x}.var(-1, keepdims=True) + 1e-5) * {weight} + {bias}"
        case "batch_norm":
            place = "" if len(layer.shape) == 1 else "[:, None, None]"
            return f'normalised(b, "{own}", {x}, training{noise}) * {weight}{place} + {bias}{place}'
        case "embedding":
            return f"{weight}[{x}]"
        case "flatten":
            return f"{x}.reshape(len({x}), -1)"
        case "embedding_bag":  # the data are floating numbers, with noise near integers only
            if ragged(layer):
                return f"bag({weight}, {columns}, {n['count']}, {bool(n['mean'])})"
            return f"{weight}[jnp.round({columns}).astype(int)].{'mean' if n['mean'] else 'sum'}(1)"
        case "columns":
            return f"{columns}.reshape({', '.join(map(str, (f'len({x})', *layer.shape)))})"
        case "dropout":
            return f"({x} * {columns}.reshape({x}.shape) if training else {x})"
        case "interaction":
            return f"interaction({', '.join(layer.inputs)})"
        case "attention":
            return f'attention(p, "{own}", {x}, {n["heads"]}{noise})'
        case "gru" | "lstm":
            return f'{layer.kind}(p, "{own}", {x}{noise})'
        case "add":
            return " + ".join(layer.inputs)
        case "concat":
            return f"jnp.concatenate(({', '.join(layer.inputs)}), 1)"
        case "scale":
            return f"{x} * {layer.inputs[1]}[:, :, None, None]"
        case kind:
            return ACTIVATIONS[kind].format(x)
