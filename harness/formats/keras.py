"""Keras 3's archive (.keras)."""

from __future__ import annotations

from pathlib import Path

from harness.formats.archive import member
from harness.formats.format import Format, Runner

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

    def call(*arrays):
        returned = model(list(arrays) if len(arrays) > 1 else arrays[0], training=False)
        return [keras.ops.convert_to_numpy(output) for output in keras.tree.flatten(returned)]

    return inputs, outputs, call
"""


def check(path: Path) -> str | None:
    """A zip archive with the model's configuration."""
    return member(path, "config.json")


FORMAT = Format(
    "keras",
    ".keras",
    (".keras",),
    check,
    writers={"keras": WRITE},
    refuses=(("ValueError: a functional model", "an input is a scalar, or an output depends on no input"),),
)

RUNNERS = (
    Runner(
        "keras",
        "keras",
        "tensorflow",
        ("tensorflow", "keras"),
        {"keras": "3.0", "tensorflow-cpu|tensorflow": "2.16"},
        _OPEN,
    ),
)
