"""Values that make only sizes and choices are not disturbed, all others are."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import parser

from oracles.onnx.exact import exact_values
from oracles.onnx.model import read
from oracles.onnx.noise import monte_carlo

SIZES = """agraph (float[1, 1, 10, 10] x) => (float[1, 1, a, b] y, float[1, 1, 10, 10] z) {
    s = Shape (x)
    f = Cast <to = 1> (s)
    k = Constant <value = float[4] {1.0, 1.0, 0.7, 0.7}> ()
    m = Mul (f, k)
    r = Floor (m)
    n = Cast <to = 7> (r)
    zero = Constant <value_ints = [0, 0, 0, 0]> ()
    y = Slice (x, zero, n)
    z = Exp (x)
}"""


def parsed(body: str) -> onnx.ModelProto:
    return parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {body}')


def test_arithmetic_on_shapes_is_that_of_its_own_dtype() -> None:
    """10 times the float32 next to 0.7 is less than 7, and 7 when it is rounded to float32."""
    model = parsed(SIZES)
    exact = exact_values(read(model))
    assert {"s", "f", "m", "r", "n"} <= exact
    assert not {"x", "y", "z"} & exact
    x = np.ones((1, 1, 10, 10), np.float32)
    y, runs, z, noisy = monte_carlo(model, (x,), 2, 0)
    assert y.shape == (1, 1, 7, 7)
    assert (runs == y).all()
    assert (noisy != z).any()


def test_what_is_a_number_as_well_is_disturbed() -> None:
    model = parsed(
        """agraph (float[2, 3] x, float[1] scale) => (float[k, 3] y, float[1] z) {
        third = Constant <value = float[1] {0.3}> ()
        ten = Mul (scale, third)
        z = Sqrt (ten)
        whole = Round (ten)
        n = Cast <to = 7> (whole)
        zero = Constant <value_ints = [0]> ()
        y = Slice (x, zero, n)
        }"""
    )
    graph = read(model)
    assert {"whole", "n"} <= exact_values(graph)
    assert not {"ten", "z"} & exact_values(graph)


def test_choices_made_of_data_follow_the_noise() -> None:
    model = parsed(
        """agraph (float[2, 3] x, float[3, 3] w, float[3] names) => (float[2] y) {
        p = MatMul (x, w)
        i = ArgMax <axis = 1, keepdims = 0> (p)
        y = Gather (names, i)
        }"""
    )
    assert not {"p", "i"} & exact_values(read(model))
    x, w = np.ones((2, 3), np.float32) / 3, np.eye(3, dtype=np.float32)
    y, runs = monte_carlo(model, (x, w, np.arange(3, dtype=np.float32)), 16, 0)
    assert y.tolist() == [0.0, 0.0]
    assert (runs != y).any()  # a tie, which rounding decides


def test_a_size_made_of_data_is_that_of_the_exact_run() -> None:
    model = parsed(
        """agraph (float[2, 3] x) => (float[k] y) {
        s = ReduceSum <keepdims = 0> (x)
        one = Constant <value_ints = [1]> ()
        c = Ceil (s)
        n = Cast <to = 7> (c)
        m = Reshape (n, one)
        y = ConstantOfShape (m)
        }"""
    )
    x = np.full((2, 3), 0.5, np.float32)
    y, runs = monte_carlo(model, (x,), 16, 0)
    assert y.shape == (3,)
    assert runs.shape == (16, 3)
    assert np.isfinite(runs).all()


def test_a_value_inside_of_a_loop_is_judged_by_its_uses_there() -> None:
    model = parsed(
        """agraph (int64 n, float[2, 2] x, float scale) => (float[2, 2] y) {
        k = Exp (scale)
        c = Sqrt (scale)
        y = Loop (n, , x) <body = step (int64 i, bool going, float[2, 2] s) => (bool go, float[2, 2] next) {
            next = Mul (s, k)
            go = Greater (c, scale)
        }>
        }"""
    )
    exact = exact_values(read(model))
    assert {"c", "go"} <= exact
    assert not {"k", "next", "s"} & exact
