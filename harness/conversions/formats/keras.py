"""Keras 3's archive (.keras)."""

from __future__ import annotations

from pathlib import Path

from harness.backends.target.text import swapped
from harness.conversions.formats.archive import member
from harness.conversions.formats.format import Format, Runner, Writer
from harness.conversions.formats.savedmodel import NO_KERNEL
from harness.dialects.keras import KERAS_FILES

WRITE = """
def write(parameters, path):
    if () in [shape for _, shape in INPUTS.values()]:
        raise ValueError("a functional model takes batches, no scalars")
    given = [keras.Input(batch_shape=shape, dtype=dtype, name=name) for name, (dtype, shape) in INPUTS.items()]
    bound = [keras.ops.convert_to_tensor(parameters[name]) for name in PARAMETERS]
    outputs = model(*given, *bound)
    if not all(isinstance(output, keras.KerasTensor) for output in outputs):
        raise ValueError("a functional model has no output that depends on no input")
    keras.Model(given, list(outputs)).save(path)
"""

_OPEN = """
def open_model(path):
    import keras

    model = keras.saving.load_model(path, compile=False, safe_mode=not TRUST)

    def ports(values):
        return [(value.name, keras.backend.standardize_dtype(value.dtype), list(value.shape)) for value in values]

    inputs, outputs = ports(model.inputs), ports(model.outputs)

    def apply(*arrays):
        return model(list(arrays) if len(arrays) > 1 else arrays[0], training=False)

    def call(*arrays):
        returned = apply(*arrays)
        return [keras.ops.convert_to_numpy(output) for output in keras.tree.flatten(returned)]

    return inputs, outputs, call
"""


def check(path: Path) -> str | None:
    """A zip archive with the model's configuration."""
    return member(path, "config.json")


_TENSORFLOW = {"keras": "3.0", "tensorflow-cpu|tensorflow": "2.16"}
FORMATS = (
    Format(
        "keras",
        ".keras",
        (".keras",),
        check,
        writers=(
            Writer(
                KERAS_FILES,
                WRITE,
                ("tensorflow", "keras"),
                _TENSORFLOW,
                ("tf-graph", "keras-tensorflow"),
                narrows={"uint64": "uint32"},
            ),
        ),
        refuses=(
            ("ValueError: a functional model", "an input is a scalar, or an output depends on no input"),
            # eager tensors it takes, though the documentation says that the channels are those of the kernel
            ("number of input channels must match the kernel's", "no groups of channels in keras.ops.conv"),
            *NO_KERNEL,
        ),
    ),
)


def _function(options: str) -> str:
    """The model as one tf.function."""
    compiled = f"""
    import tensorflow as tf

    function = tf.function(apply, {options})

    def call(*arrays):
        returned = function(*[tf.constant(array) for array in arrays])
"""
    return swapped(_OPEN, ("\n    def call(*arrays):\n        returned = apply(*arrays)\n", compiled))


def _backend(name: str) -> str:
    """Keras reads which back end it has when it is imported."""
    return swapped(
        _OPEN,
        ("    import keras\n", f'    import os\n\n    os.environ["KERAS_BACKEND"] = "{name}"\n    import keras\n'),
    )


_OWNER = "TensorFlow and Keras"
"""On other back ends, too: what a layer is made of is Keras' own."""

RUNNERS = (
    Runner(
        "keras", "keras", "tensorflow", ("tensorflow", "keras"), _TENSORFLOW, _OPEN, owner=_OWNER, refuses=NO_KERNEL
    ),
    *(
        Runner(
            f"keras-{name}",
            "keras",
            "tensorflow",
            ("tensorflow", "keras"),
            _TENSORFLOW,
            _function(options),
            level=level,
            slow=True,
            owner=_OWNER,
        )
        for level, name, options in (
            (1, "function", "autograph=False"),
            (2, "xla", "autograph=False, jit_compile=True"),
        )
    ),
    *(
        # a worker of its own, and no import of Keras before the back end is named
        Runner(
            f"{name}-keras",
            "keras",
            f"keras-{name}",
            (name,),
            {"keras": "3.0", name: least},
            _backend(name),
            slow=True,
            owner=_OWNER,
        )
        for name, least in (("jax", "0.5"), ("torch", "2.9"))
    ),
)
