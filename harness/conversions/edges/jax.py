"""Between JAX and TensorFlow: jax2tf, and call_tf the other way."""

from __future__ import annotations

from harness.conversions.edges.edge import Edge
from harness.conversions.formats.savedmodel import NO_JAX_KERNEL, OLDER

_JAX2TF = """
def convert(source, target):
    from pathlib import Path

    import jax
    import tensorflow as tf
    from jax import export
    from jax.experimental import jax2tf

    jax.config.update("jax_enable_x64", True)
    exported = export.deserialize(bytearray(Path(source).read_bytes()))
    function = jax2tf.convert(exported.call, with_gradient=False)
    paths, _ = jax.tree_util.tree_flatten_with_path(jax.tree.unflatten(exported.in_tree, range(len(exported.in_avals))))
    names = [getattr(path[-1], "key", f"in{i}") for i, (path, _) in enumerate(paths)]
    specs = [
        tf.TensorSpec([dim if isinstance(dim, int) else None for dim in aval.shape], aval.dtype.name, name=name)
        for name, aval in zip(names, exported.in_avals)
    ]

    @tf.function(input_signature=specs, autograph=False)
    def serve(*flat):
        args, kwargs = jax.tree.unflatten(exported.in_tree, flat)
        returned = function(*args, **kwargs)
        if not isinstance(returned, dict):
            returned = {f"out{i:03}": value for i, value in enumerate(tf.nest.flatten(returned))}
        return {name: tf.identity(value) for name, value in returned.items()}

    module = tf.Module()
    module.serve = serve
    tf.saved_model.save(module, target, signatures=serve)
"""

_CALL_TF = """
def convert(source, target):
    from pathlib import Path

    import jax
    import tensorflow as tf
    from jax import export
    from jax.experimental import jax2tf

    jax.config.update("jax_enable_x64", True)
    loaded = tf.saved_model.load(source)
    function = loaded.signatures["serving_default"]
    inputs = function.structured_input_signature[1]

    def apply(**arrays):
        names = list(arrays)
        called = jax2tf.call_tf(lambda *values: function(**dict(zip(names, values))), has_side_effects=False)
        return called(*arrays.values())

    specs = {  # a dimension that varies is 1: what is exported has no symbol for it
        name: jax.ShapeDtypeStruct(
            [1 if dim is None else dim for dim in spec.shape.as_list()], spec.dtype.as_numpy_dtype
        )
        for name, spec in inputs.items()
    }
    exported = export.export(jax.jit(apply), platforms=["cpu"])(**specs)
    Path(target).write_bytes(exported.serialize())
"""

_UNCOMPILABLE = ((r"(?s)only with compilable functions.*No registered '(\w+)' OpKernel for XLA", "XLA has no {}"),)
_PACKAGES = {"jax": "0.5", "tensorflow-cpu|tensorflow": "2.16"}

EDGES = (
    Edge(
        "jax2tf",
        "stablehlo",
        "savedmodel",
        ("jax", "tensorflow"),
        _PACKAGES,
        _JAX2TF,
        inherits=("tf-xla",),  # TensorFlow compiles by it what the file holds
        refuses=(*OLDER, NO_JAX_KERNEL),
    ),
    Edge(
        "call-tf",
        "savedmodel",
        "stablehlo",
        ("jax", "tensorflow"),
        _PACKAGES,
        _CALL_TF,
        inherits=("tf-xla",),
        refuses=(*OLDER, *_UNCOMPILABLE),
    ),
)
