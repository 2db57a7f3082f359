"""The text that makes an ONNX model of a graph, for all that takes one."""

from __future__ import annotations

PROTO = """
    def element(dtype):
        return helper.np_dtype_to_tensor_dtype(np.dtype(dtype))

    g = Builder()
    results = model(g, *{inputs}, *PARAMETERS)
    proto = g.model(
        {{name: (element(dtype), shape) for name, (dtype, shape) in {inputs}.items()}},
        parameters,
        [(element(dtype), shape) for dtype, shape in {outputs}],
        results,
    )
"""
"""Binds `proto`; part of a `load(parameters)`. Fields: inputs and outputs, the names of the program's types of them."""
