"""Products of matrices and what is made of them."""

from __future__ import annotations

import numpy as np

from oracles.onnx.rule import Call, Value


def _matmul(call: Call) -> list[Value]:
    return [np.asarray(np.matmul(call.input(0), call.input(1)))]


def _gemm(call: Call) -> list[Value]:
    """alpha A B + beta C, in whole numbers where the tensors are."""
    a, b, c = call.input(0), call.input(1), call.input(2)
    a = a.T if call.get("transA", 0) else a
    b = b.T if call.get("transB", 0) else b
    alpha, beta = call.get("alpha", 1.0), call.get("beta", 1.0)
    whole = a.dtype.kind in "iu"
    y = np.matmul(a, b) if alpha == 1 else alpha * np.matmul(a, b)
    if c is not None and (beta != 0 or whole):
        y = y + (c if beta == 1 else beta * c)
    return [y.astype(a.dtype)]


def _einsum(call: Call) -> list[Value]:
    """numpy's, whose implicit form sorts upper case before lower case as well."""
    equation = call.get("equation", "").replace(" ", "")
    return [np.asarray(np.einsum(equation, *map(np.asarray, call.inputs), optimize=len(call.inputs) > 1))]


def _determinant(call: Call) -> list[Value]:
    return [np.asarray(np.linalg.det(call.input(0)))]


RULES = {"Det": _determinant, "Einsum": _einsum, "Gemm": _gemm, "MatMul": _matmul}
