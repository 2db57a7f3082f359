"""How programs of any dialect run a session of ONNX Runtime. Read as text, as basic.py is."""

import numpy as np


def run_by_value(session, inputs):
    """InferenceSession.run, for bfloat16, too: its arrays are passed as what lies in memory, and read from there."""
    import ctypes
    import math

    from onnxruntime import OrtValue

    def value(array):
        if array.dtype != "bfloat16":
            return OrtValue.ortvalue_from_numpy(array)
        return OrtValue.ortvalue_from_numpy_with_onnx_type(array.view("uint16"), 16)  # TensorProto.BFLOAT16

    def array(value):
        if value.data_type() != "tensor(bfloat16)":
            return value.numpy()
        words = (ctypes.c_uint16 * math.prod(value.shape())).from_address(value.data_ptr())
        return np.array(words, "uint16").view("bfloat16").reshape(value.shape())

    given = {name: np.array(one, order="C") for name, one in inputs.items()}  # values refer to them
    return [array(one) for one in session.run_with_ort_values(None, {name: value(one) for name, one in given.items()})]
