"""TensorFlow's converter to TFLite."""

from __future__ import annotations

from harness.conversions.edges.edge import Edge
from harness.conversions.formats.savedmodel import NO_KERNEL

_SAVED_MODEL = """
def convert(source, target):
    from pathlib import Path

    import tensorflow as tf

    converter = tf.lite.TFLiteConverter.from_saved_model(source)
    converter.canonicalizing_inf_as_min_max_float = False  # else infinities are replaced on purpose
    Path(target).write_bytes(converter.convert())
"""

CALLED = """\
    model = keras.saving.load_model(source, compile=False, safe_mode=not TRUST)
    zeros = [keras.ops.zeros([1 if dim is None else dim for dim in one.shape], one.dtype) for one in model.inputs]
    model(zeros if len(zeros) > 1 else zeros[0])  # an exporter wants a model that was called
"""
"""Keras' model, which says itself what TensorFlow has no kernel for: the converter does not."""

_KERAS = f"""
def convert(source, target):
    from pathlib import Path

    import keras
    import tensorflow as tf

{CALLED}\
    converter = tf.lite.TFLiteConverter.from_keras_model(model)
    converter.canonicalizing_inf_as_min_max_float = False  # else infinities are replaced on purpose
    Path(target).write_bytes(converter.convert())
"""

SELECT = (
    (r"failed to legalize operation 'tfl\.(\w+)' that was explicitly marked illegal", "TFLite has no {} of this dtype"),
    ("(?s)ERROR_NEEDS_FLEX_OPS.*?TF Select ops: ([^\n]+)", "{}: only with TensorFlow's own kernels (TF Select)"),
    (r"'tf\.(\w+)' op is neither a custom op nor a flex op", "{}: only with TensorFlow's own kernels (TF Select)"),
    (r"Unsupported TensorFlow type `<dtype: '(\w+)'>` provided for the input", "the converter takes no inputs of {}"),
    ("ERROR_NEEDS_CUSTOM_OPS", "TFLite has no such operator"),
    ("Lowering tensor list ops is failed. Please consider using Select TF ops", "lists need TensorFlow's own kernels"),
    ("ERROR_NEEDS_FLEX_OPS", "an operator needs TensorFlow's own kernels (TF Select)"),
)
_PACKAGES = {"tensorflow-cpu|tensorflow": "2.16"}

EDGES = (
    Edge("tflite", "savedmodel", "tflite", ("tensorflow",), _PACKAGES, _SAVED_MODEL, refuses=SELECT),
    Edge(
        "tflite-keras",
        "keras",
        "tflite",
        ("tensorflow", "keras"),
        {**_PACKAGES, "keras": "3.0"},
        _KERAS,
        refuses=(*SELECT, *NO_KERNEL),
    ),
)
