"""Functions that spellings of Keras models may call whose products are layers, and what records how Keras quantised
them. Read as text; a program carries the source of what it uses."""

import keras
import numpy as np


def keras_dense(x, weight, bias=None, turned=False):
    """A product with a constant matrix as a Dense layer, which Keras can quantise, and any other as an operation.
    turned: the weight is out x in"""
    constant = isinstance(weight, np.ndarray) and weight.ndim == 2
    if not constant or not isinstance(x, keras.KerasTensor) or len(x.shape) < 2:
        y = keras.ops.matmul(x, keras.ops.transpose(weight) if turned else weight)
        return y if bias is None else keras.ops.add(y, bias)
    kernel, own = (weight.T if turned else weight), isinstance(bias, np.ndarray)
    layer = keras.layers.Dense(kernel.shape[1], use_bias=own)
    y = layer(x)
    layer.set_weights([kernel, bias] if own else [kernel])
    return y if own or bias is None else keras.ops.add(y, bias)


def keras_layer(layer):
    """A quantised Dense layer as a node, and its arrays by name: input, kernel, scales, zero points, bias."""
    name, mode = layer.name, layer.quantization_mode
    arrays = {f"{name}.kernel": np.array(layer._kernel)}
    if mode == "float8":
        arrays[f"{name}.scale"] = np.array([layer.inputs_scale, layer.kernel_scale], np.float32)
    else:
        arrays[f"{name}.scale"] = np.array(layer.kernel_scale)
    if mode == "int4":
        packed = layer._kernel
        arrays[f"{name}.kernel"] = np.array(keras.quantizers.unpack_int4(packed, layer._orig_output_dim, axis=-1))
    zero = getattr(layer, "kernel_zero", None)
    if zero is not None:
        arrays[f"{name}.zero"] = np.array(zero)
    if layer.bias is not None:
        arrays[f"{name}.bias"] = np.array(layer.bias)
    parts = [f"{name}.{part}" if f"{name}.{part}" in arrays else "" for part in ("kernel", "scale", "zero", "bias")]
    attrs = {
        "limits": [-8, 7] if mode == "int4" else [-127, 127],
        "activation": getattr(layer, "inputs_quantizer", None) is not None,
        "block": getattr(layer, "_int4_block_size", None),
    }
    return [mode, "keras", [f"{name}.input", *parts], [f"{name}.output"], attrs], arrays
