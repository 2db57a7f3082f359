"""Keras' own quantisation of its layers, `Model.quantize`, on TensorFlow."""

from __future__ import annotations

from generators.ops.spec import Unsupported
from harness.backends.target.target import Level
from harness.dialects.keras import KERAS_LAYERS
from harness.quantisers.quantiser import Quantiser
from oracles.quantised import keras as keras_quantiser

_LOAD = """
def load(parameters):
    import tensorflow as tf

    keras.utils.clear_session()  # so that layers have the same names each time
    given = [keras.Input(batch_shape=shape, dtype=dtype, name=name) for name, (dtype, shape) in INPUTS.items()]
    outputs = list(model(*given, *[parameters[name] for name in PARAMETERS]))
    whole = keras.Model(given, outputs)

    def run(*inputs):
        exact = keras.tree.flatten(whole(list(inputs)))
        dense = [layer for layer in whole.layers if isinstance(layer, keras.layers.Dense)]
        weights = {f"{layer.name}.output": np.array(layer.kernel) for layer in dense}
        %quantise
        ends = {f"{layer.name}.{side}": getattr(layer, side) for layer in dense for side in ("input", "output")}
        shown = keras.Model(given, [*outputs, *ends.values()])
        layers = [keras_layer(layer) for layer in dense]
        names = [*(f"output {i}" for i in range(len(outputs))), *ends]
        constants = {name: array for _, arrays in layers for name, array in arrays.items()}
        groups = {"weights": weights, "float": {f"output {i}": np.array(value) for i, value in enumerate(exact)}}
        for group, call in {"eager": shown, "graph": tf.function(lambda given: shown(given))}.items():
            values = keras.tree.flatten(call([tf.constant(x) for x in inputs]))
            groups[group] = {**constants, **{name: np.array(value) for name, value in zip(names, values)}}
        nodes = [node for node, _ in layers]
        return recorded({"nodes": {"eager": nodes, "graph": nodes}}, groups)

    return run
"""

_INT4 = "whole.quantize(config=keras.quantizers.Int4QuantizationConfig({}))"
_WAYS = {
    "keras-int8": 'whole.quantize("int8")',
    "keras-int4": 'whole.quantize("int4")',
    "keras-int4-blocks": _INT4.format("block_size=4"),
    "keras-int4-channels": _INT4.format("block_size=None"),
    "keras-float8": 'whole.quantize("float8")',
}
_ALLOWS = (
    "real numbers: what float32 loses, and with int8 a level of the operand where that lies at a tie, since its levels "
    "are not shown"
)
_DECLINES = {
    "No layers were quantized": "the model has no layer that Keras quantises",
    "input channels must match the kernel's input channels": "keras.ops.conv documents no groups, and takes none here",
}

QUANTISERS = tuple(
    Quantiser(
        name, "keras", ("tensorflow", "keras"), KERAS_LAYERS, _LOAD.replace("%quantise", quantise),
        {"keras": "3.12", "tensorflow-cpu|tensorflow": "2.18"}, Level(name, 0), sample_every=2,
        gradient=Unsupported("a quantised model"), judge=keras_quantiser.judge, declines=_DECLINES, allows=_ALLOWS,
        takes=("linear", "matmul"),
    )
    for name, quantise in _WAYS.items()
)  # fmt: skip
