"""Gradient programs that are compiled once, with a symbolic dimension: those of `gradient.py` with inputs of several
sizes. Each `compile_once(parameters)` returns a function from a size, the inputs and the weights at that size to the
gradients."""

from __future__ import annotations

from harness.backends.programs import gradient
from harness.backends.target.text import renamed, swapped


def _once(load: str, *changes: tuple[str, str]) -> str:
    """The `load` of a gradient program as one that takes the arguments of any size."""
    runs = swapped(
        load,
        ("def load(parameters):", "def compile_once(parameters):"),
        ("def run(*inputs):", "def run(size, *inputs):"),
    )
    return swapped(renamed(runs, "INPUTS", "ARGUMENTS"), *changes)


_LEAVES = "            values[name].requires_grad_()\n"
_MARKED = (
    _LEAVES
    + """\
        if size > 1:  # 0 and 1 are compiled for themselves, as documented
            for name, (_, shape) in ARGUMENTS.items():
                for axis, dim in enumerate(shape):
                    if dim == "n":
                        torch._dynamo.mark_dynamic(values[name], axis)
"""
)
TORCH_EAGER = _once(gradient.TORCH_EAGER)
TENSORFLOW_EAGER = _once(gradient.TENSORFLOW_EAGER)
JAX_EAGER = _once(gradient.JAX_EAGER)

_EXPORTED = """\
    from jax import export

    scope = export.SymbolicScope()
    specs = {
        name: jax.ShapeDtypeStruct(export.symbolic_shape(", ".join(map(str, shape)), scope=scope), dtype)
        for name, (dtype, shape) in {**ARGUMENTS, **PARAMETERS}.items()
    }
    compiled = jax.jit(gradients)
    exported = export.export(compiled, platforms=["cpu"])(specs)
"""
JAX_JIT = _once(
    gradient.JAX_JIT,
    ("    compiled = jax.jit(gradients)\n", _EXPORTED),
    # dimension variables are at least 1, as documented
    ("found = compiled({", "found = (exported.call if size else compiled)({"),
)


def torch_compiled(expression: str) -> str:
    """The model as this expression compiles it."""
    return _once(gradient.torch_compiled(expression), (_LEAVES, _MARKED))


def tensorflow_function(options: str) -> str:
    """The whole computation of the gradients as one tf.function of one signature."""
    signature = """\
    signature = {
        name: tf.TensorSpec([None if isinstance(dim, str) else dim for dim in shape], dtype)
        for name, (dtype, shape) in {**ARGUMENTS, **PARAMETERS}.items()
    }

    @tf.function(input_signature=[signature], """
    return _once(gradient.tensorflow_function(f"({options})"), ("    @tf.function(", signature))


def tvm(symbolic: str) -> str:
    """The text of a TVM target's `compile_once`, with the adjoint of the weighted sum in place of the model."""
    load = swapped(renamed(symbolic, "arrays", "inputs"), ("[n if dim == 'n' else dim for dim in shape]", _DIMS))
    return renamed(gradient.tvm(load), "INPUTS", "ARGUMENTS")


_DIMS = '[eval(dim, {"n": n}) if isinstance(dim, str) else dim for dim in shape]'
