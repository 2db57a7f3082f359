"""TensorFlow's SavedModel: a folder with a graph and its variables."""

from __future__ import annotations

from pathlib import Path

from harness.backends.target.text import swapped
from harness.conversions.formats.format import Format, Runner, Writer
from harness.dialects import JAX, TENSORFLOW

_WRITE = """
def write(parameters, path):{kept}
    specs = [tf.TensorSpec(shape, dtype, name=name) for name, (dtype, shape) in INPUTS.items()]

    @tf.function(input_signature=specs, autograph=False)
    def serve(*inputs):
        outputs = {model}(*inputs, *{given})
        # TensorFlow sorts them by name
        return {{f"out{{i:03}}": tf.identity(output) for i, output in enumerate(outputs)}}

    {module}module.serve = serve
    tf.saved_model.save(module, path, signatures=serve)
"""
_MODULE = "module = tf.Module()\n    "
_KEPT = f"""
    {_MODULE}module.kept = [tf.Variable(parameters[name]) for name in PARAMETERS]
"""
WRITE = _WRITE.format(
    kept="", model="model", given="[tf.constant(parameters[name]) for name in PARAMETERS]", module=_MODULE
)
_VARIABLES = _WRITE.format(kept=_KEPT, model="model", given="module.kept", module="")
"""Parameters are variables, as in a model that was trained, and no constants."""
_FROM_JAX = _WRITE.format(
    kept=f"""
    import tensorflow as tf
    from jax.experimental import jax2tf
{_KEPT}    function = jax2tf.convert(model, with_gradient=False)
""",
    model="function",
    given="module.kept",
    module="",
)
"""jax2tf of a function that takes its parameters, called with variables, as its documentation has it."""

_OPEN = """
def open_model(path):
    import tensorflow as tf

    loaded = tf.saved_model.load(path)
    names = list(loaded.signatures)
    if "serving_default" not in names and len(names) != 1:
        raise ValueError(f"no signature is called serving_default; there are {', '.join(names) or 'none'}")
    function = loaded.signatures["serving_default" if "serving_default" in names else names[0]]

    def ports(specs):
        return [
            (name, spec.dtype.name, None if spec.shape.rank is None else spec.shape.as_list())
            for name, spec in specs.items()
        ]

    inputs, outputs = ports(function.structured_input_signature[1]), ports(function.structured_outputs)

    def call(*arrays):
        given = {name: tf.constant(array) for (name, _, _), array in zip(inputs, arrays)}
        returned = function(**given)
        return [returned[name].numpy() for name, _, _ in outputs]

    call.keeps = loaded  # its variables go with it
    return inputs, outputs, call
"""


def check(path: Path) -> str | None:
    """A folder with the graph in it."""
    return None if (path / "saved_model.pb").is_file() else "saved_model.pb is not in the folder"


OLDER = ((r"(?s)failed to deserialize portable artifact using (StableHLO_v[\d.]+\d)", "TensorFlow reads {} only"),)
"""What jax2tf writes is of JAX' version of StableHLO, and loads all the same."""
NO_JAX_KERNEL = (r"NotImplementedError: .*Unsupported dtype (\w+)", "JAX has no kernel of {}")
NO_KERNEL = (
    (r"No OpKernel was registered to support Op '(\w+)'", "TensorFlow has no kernel of {} for this dtype"),
    (r"Value passed to parameter '\w+' has DataType (\w+) not in list of allowed values", "TensorFlow takes no {}"),
    (r"Tensor object has no attribute 'astype'", "tf.experimental.numpy has no bfloat16"),
    (r"Value for attr '\w+' of (\w+) is not in the list of allowed values", "TensorFlow takes no {}"),
    (r"RFFT requires tf\.float32 or tf\.float64 inputs", "TensorFlow transforms float32 and float64 alone"),
    (r"The `real` and `imag` components have incorrect types: (\w+)", "TensorFlow has no complex numbers of {}"),
)
"""What TensorFlow says of dtypes that an operator does not list, or has no kernel for."""
_NO_HANDLER = (r"No FFI handler registered for (\w+) on a platform Host", "TensorFlow has none of jaxlib's {}")
_PACKAGES = {"tensorflow-cpu|tensorflow": "2.16"}
FORMATS = (
    Format(
        "savedmodel",
        "",
        (),
        check,
        writers=(
            Writer(TENSORFLOW, WRITE, ("tensorflow",), _PACKAGES, ("tf-graph",)),
            Writer(
                TENSORFLOW,
                _VARIABLES,
                ("tensorflow",),
                _PACKAGES,
                ("tf-graph",),
                "tensorflow-variables",
                like="tensorflow",
            ),
            Writer(
                JAX,
                _FROM_JAX,
                ("jax", "jax.numpy", "tensorflow"),
                {"jax": "0.5", **_PACKAGES},
                ("jax-jit", "tf-xla"),
                "jax-variables",
                like="jax/jax2tf",
                refuses=OLDER,
            ),
        ),
        refuses=(*NO_KERNEL, NO_JAX_KERNEL),
    ),
)

_PLAIN = swapped(
    _OPEN,
    (
        "    loaded = ",
        '    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})\n    loaded = ',
    ),
)
_XLA = swapped(
    _OPEN,
    (
        "    def call(",
        "    def apply(**given):\n        return function(**given)\n\n"
        "    compiled = tf.function(apply, autograph=False, jit_compile=True)\n\n    def call(",
    ),
    ("returned = function(", "returned = compiled("),
)

_OWNER = "TensorFlow and Keras"

RUNNERS = (
    Runner(
        "tf-savedmodel",
        "savedmodel",
        "tensorflow",
        ("tensorflow",),
        _PACKAGES,
        _OPEN,
        level=1,
        refuses=(*NO_KERNEL, _NO_HANDLER),
        owner=_OWNER,
    ),
    # without Grappler, which is set for a whole process
    Runner(
        "tf-plain-savedmodel",
        "savedmodel",
        "tensorflow-plain",
        ("tensorflow",),
        _PACKAGES,
        _PLAIN,
        slow=True,
        owner=_OWNER,
    ),
    Runner(
        "tf-xla-savedmodel",
        "savedmodel",
        "tensorflow",
        ("tensorflow",),
        _PACKAGES,
        _XLA,
        level=2,
        slow=True,
        owner="XLA",
    ),
)
