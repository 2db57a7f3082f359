"""Prints a loop as a program."""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping
from dataclasses import replace

from generators.training.networks import Network, parameters_of
from harness.execute.templates import render
from harness.strategies.jax import program as jax
from harness.strategies.tensorflow import program as tensorflow
from harness.strategies.torch import program as torch
from harness.studies.loops.loop import CURVES, TESTED, Loop

MODULES = {"torch": torch.MODULES[:1], "tensorflow": tensorflow.MODULES, "jax": jax.MODULES}
"""What a worker imports before its first program."""
_TORCH = {
    "sgd": "SGD", "momentum": "SGD", "adam": "Adam", "rmsprop": "RMSprop", "adagrad": "Adagrad",
}  # fmt: skip
_TORCH_OPTIONS = {
    "momentum": "momentum={momentum}",
    "adam": "betas=({beta1}, {beta2}), eps={eps}",
    "rmsprop": "alpha={rho}, eps={eps}",
    "adagrad": "eps={eps}",
}
_TORCH_SLOTS = {"momentum": "momentum_buffer", "first": "exp_avg", "second": "exp_avg_sq", "square": "square_avg",
                "total": "sum"}  # fmt: skip
_KERAS_OPTIONS = {
    "momentum": "momentum={momentum}",
    "adam": "beta_1={beta1}, beta_2={beta2}, epsilon={eps}",
    "rmsprop": "rho={rho}, epsilon={eps}",
    "adagrad": "initial_accumulator_value={initial}, epsilon={eps}",
}
_KERAS_SLOTS = {"momentum": "momentum", "first": "momentum", "second": "velocity", "square": "velocity",
                "total": "accumulator"}  # fmt: skip
_JAX: Mapping[str, tuple[str, ...]] = {
    "sgd": ("return p - rate * g, {{}}",),
    "momentum": (
        'v = {momentum} * s["momentum"] + g',
        'return p - rate * v, {{"momentum": v}}',
    ),
    "adam": (
        'first = {beta1} * s["first"] + (1 - {beta1}) * g',
        'second = {beta2} * s["second"] + (1 - {beta2}) * g * g',
        "scale = jnp.sqrt(second / (1 - {beta2}**step)) + {eps}",
        'return p - rate * first / (1 - {beta1}**step) / scale, {{"first": first, "second": second}}',
    ),
    "rmsprop": (
        'square = {rho} * s["square"] + (1 - {rho}) * g * g',
        'return p - rate * g / (jnp.sqrt(square) + {eps}), {{"square": square}}',
    ),
    "adagrad": (
        'total = s["total"] + g * g',
        'return p - rate * g / (jnp.sqrt(total) + {eps}), {{"total": total}}',
    ),
}  # PyTorch's formulas: JAX has no optimisers of its own


def program(loop: Loop) -> str:
    """The text that a worker runs. Its function takes the state, `x` (n, channels, rows, columns) and `y` in the order
    in which batches are cut from them, `rates` (a learning rate a step), `test_x`, `test_y` and what probe is given;
    it returns the state after them, CURVES, TESTED and what the loop has more, in this order."""
    options = loop.settings
    lines = forward_lines(loop)
    text = render(
        f"studies/loops/{loop.framework}.py.j2",
        loop=loop,
        inputs=[*loop.state, "x", "y", "rates", "test_x", "test_y", *loop.given],
        outputs=[*loop.state, *CURVES, *TESTED, *loop.more],
        names=list(loop.network.parameters),
        forward=probed(loop.network, lines) if loop.probe else lines,
        probe=loop.probe.strip("\n"),
        steps=loop.stepping.strip("\n"),
        definition=torch.definition(loop.network),
        kinds=loop.network.kinds,
        norms={name.rsplit(".", 1)[0]: (None, *_shape(loop.network, name)) for name in loop.statistics},
        slots=list(loop.slots),
        torch_optimizer=f"torch.optim.{_TORCH[loop.optimizer]}",
        torch_options=_TORCH_OPTIONS.get(loop.optimizer, "").format(**options),
        torch_slots=[(slot, _TORCH_SLOTS[slot]) for slot in loop.slots],
        keras_optimizer=f"keras.optimizers.{_TORCH[loop.optimizer]}",
        keras_options=_KERAS_OPTIONS.get(loop.optimizer, "").format(**options),
        keras_slots=[(slot, _KERAS_SLOTS[slot]) for slot in loop.slots],
        update=[line.format(**options) for line in _JAX[loop.optimizer]],
        noise=False,
        surprisal=False,
    )
    plain = program(replace(loop, stepping="", more=(), given=())) if loop.stepping else text  # its step is the same
    return text.replace("KEY_OF_THIS_TEXT", f"{zlib.crc32(plain.encode()):08x}")


def forward_lines(loop: Loop) -> list[str]:
    """The lines of the model's forward pass, one a layer, and what it returns."""
    lines = _LINES[loop.framework](loop.network)
    if not loop.compute or loop.framework not in _CASTS:
        return lines
    cast, sources = _CASTS[loop.framework], {la.name: la.inputs[0] for la in loop.network.layers}
    norms = {layer.name for layer in loop.network.layers if layer.kind == "batch_norm"}
    found = []
    for line in lines:
        name, _, text = line.partition(" = ")
        if name in norms:
            text = _once(sources[name], cast.format(sources[name], "DTYPE"), text)
            line = f"{name} = {cast.format(text, 'COMPUTE')}"
        found.append(line)
    return found


def _once(name: str, new: str, text: str) -> str:
    """An expression with the first use of this variable as another expression."""
    return re.sub(rf'(?<![\w."]){name}(?![\w."])', lambda _: new, text, count=1)


_CASTS = {"tensorflow": "tf.cast({}, {})", "jax": "({}).astype({})"}
"""PyTorch's normalisation takes 16 bits beside parameters of 32 by itself."""


_LINES = {
    "torch": torch.forward,
    "tensorflow": lambda network: tensorflow.forward(network, False),
    "jax": lambda network: jax.forward(network, False),
}


def _shape(network: Network, statistic: str) -> tuple[int, ...]:
    return network.shapes[statistic.rsplit(".", 1)[0]]


def probed(network: Network, lines: list[str]) -> list[str]:
    """The forward pass with what layers with parameters take and give going through `probe`; parameters go there before
    it."""
    layers = {layer.name: layer for layer in network.layers}
    found = []
    for line in lines:
        name, _, text = line.partition(" = ")
        layer = layers.get(name)
        if layer and parameters_of(layer, network.shapes[layer.inputs[0]]):
            source = layer.inputs[0]
            inside = _once(source, f'probe("{name}.input", {source}, given)', text)
            found.append(f'{name} = probe("{name}.result", {inside}, given)')
        else:
            found.append(line)
    return found
