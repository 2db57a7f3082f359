"""StableHLO as jax.export writes it: a portable, versioned artefact with the signature."""

from __future__ import annotations

from harness.conversions.formats.format import Format, Runner, Writer, not_empty
from harness.conversions.formats.savedmodel import NO_JAX_KERNEL
from harness.dialects import JAX

WRITE = """
def write(parameters, path):
    from pathlib import Path

    from jax import export

    @jax.jit
    def apply(*inputs):
        return model(*inputs, *[jnp.asarray(parameters[name]) for name in PARAMETERS])

    specs = [jax.ShapeDtypeStruct(shape, np.dtype(dtype)) for dtype, shape in INPUTS.values()]
    Path(path).write_bytes(export.export(apply, platforms=["cpu"])(*specs).serialize())
"""

_OPEN = """
def open_model(path):
    from pathlib import Path

    import jax
    from jax import export

    jax.config.update("jax_enable_x64", True)
    exported = export.deserialize(bytearray(Path(path).read_bytes()))

    def ports(kind, avals, tree):
        # keyword arguments have names, and so have results in a dict
        paths, _ = jax.tree_util.tree_flatten_with_path(jax.tree.unflatten(tree, range(len(avals))))
        return [
            (
                getattr(path[-1], "key", f"{kind}{i}") if path else f"{kind}{i}",
                aval.dtype.name,
                [dim if isinstance(dim, int) else None for dim in aval.shape],
            )
            for i, (aval, (path, _)) in enumerate(zip(avals, paths))
        ]

    def call(*arrays):
        args, kwargs = jax.tree.unflatten(exported.in_tree, arrays)
        with jax.default_device(jax.devices("cpu")[0]):
            return [np.asarray(output) for output in jax.tree.leaves(exported.call(*args, **kwargs))]

    inputs = ports("in", exported.in_avals, exported.in_tree)
    return inputs, ports("out", exported.out_avals, exported.out_tree), call
"""

FORMATS = (
    Format(
        "stablehlo",
        ".stablehlo",
        (".stablehlo",),
        not_empty,
        writers=(Writer(JAX, WRITE, ("jax", "jax.numpy"), {"jax": "0.5"}, ("jax-jit",)),),
        refuses=(NO_JAX_KERNEL,),
    ),
)

RUNNERS = (
    Runner("jax-exported", "stablehlo", "jax", ("jax",), {"jax": "0.5"}, _OPEN, inherits=("jax-jit",), owner="XLA"),
)
