"""Operators of single elements, and of pairs of them."""

from __future__ import annotations

from generators.ops.spec import Call, Spelling, Unsupported
from harness.dialects.keras.texts import attribute, pair, same, single

_SCALARS = {
    "add": "add", "sub": "subtract", "mul": "multiply", "div": "divide", "pow": "power", "remainder": "mod",
    "floor_divide": "floor_divide", "fmod": "fmod", "equal": "equal", "not_equal": "not_equal", "less": "less",
    "less_equal": "less_equal", "greater": "greater", "greater_equal": "greater_equal",
    "bitwise_and": "bitwise_and", "bitwise_or": "bitwise_or", "bitwise_xor": "bitwise_xor",
    "left_shift": "left_shift", "right_shift": "right_shift",
}  # fmt: skip
_FROM_SCALARS = {
    "sub": "subtract", "div": "divide", "pow": "power", "remainder": "mod", "bitwise_and": "bitwise_and",
    "bitwise_or": "bitwise_or", "bitwise_xor": "bitwise_xor", "left_shift": "left_shift", "right_shift": "right_shift",
}  # fmt: skip
_OF_INTEGERS = {
    "sqrt": "sqrt", "exp": "exp", "log": "log", "log2": "log2", "log1p": "log1p", "expm1": "expm1", "sin": "sin",
    "cos": "cos", "tan": "tan", "asin": "arcsin", "acos": "arccos", "atan": "arctan", "sinh": "sinh", "cosh": "cosh",
    "tanh": "tanh", "asinh": "arcsinh", "acosh": "arccosh",
}  # fmt: skip


def _of_integers(theirs: str) -> Spelling:
    """Keras makes integers floating."""

    def spell(call: Call) -> str | Unsupported:
        if call.operands[0].dtype == "bool":
            return Unsupported("Keras documents nothing of truth values here")
        return f"keras.ops.{theirs}({{0}})"

    return spell


def _hardtanh(call: Call) -> str:
    """An activation, where its limits are those."""
    usual = (call.attrs["min"], call.attrs["max"]) == (-1.0, 1.0)
    return "keras.ops.hard_tanh({0})" if usual else "keras.ops.clip({0}, {min}, {max})"


def _bitcast(call: Call) -> str | Unsupported:
    if call.operands[0].rank == 0:
        return Unsupported("a view has a last axis")
    return "keras.ops.view({0}, {dtype})"


SPELLINGS: dict[str, Spelling] = {
    **same("abs sign square reciprocal sqrt rsqrt exp expm1 log log1p log2 sin cos tan sinh cosh tanh erf floor ceil"),
    **same("trunc isnan isinf isfinite logical_not relu relu6 selu sigmoid silu softplus softsign log_sigmoid round"),
    **same("hard_sigmoid exp2 log10 erfc sinc deg2rad rad2deg signbit isposinf isneginf cbrt erfinv angle bitwise_not"),
    **single(neg="negative", asin="arcsin", acos="arccos", atan="arctan", asinh="arcsinh", acosh="arccosh"),
    **single(atanh="arctanh", hard_swish="hard_swish", tanhshrink="tanh_shrink", bessel_i0="i0", identity="copy"),
    **single(conj="conj", complex_neg="negative", complex_square="square", complex_exp="exp"),
    **single(complex_reciprocal="reciprocal", complex_log="log", complex_sqrt="sqrt", complex_sin="sin"),
    **single(complex_cos="cos", complex_tan="tan", complex_sinh="sinh", complex_cosh="cosh", complex_tanh="tanh"),
    **single(real_part="real", imaginary_part="imag", modulus="abs", phase="angle", complex_sign="sign"),
    **single(view_as_real="view_as_real", view_as_complex="view_as_complex", complex_rsqrt="rsqrt"),
    **pair(add="add", sub="subtract", mul="multiply", div="divide", maximum="maximum", minimum="minimum", pow="power"),
    **pair(logical_and="logical_and", logical_or="logical_or", logical_xor="logical_xor", equal="equal"),
    **pair(not_equal="not_equal", less="less", less_equal="less_equal", greater="greater", atan2="arctan2"),
    **pair(greater_equal="greater_equal", floor_divide="floor_divide", remainder="mod", fmod="fmod", hypot="hypot"),
    **pair(logaddexp="logaddexp", logaddexp2="logaddexp2", heaviside="heaviside", fmax="fmax", fmin="fmin", gcd="gcd"),
    **pair(lcm="lcm", ldexp="ldexp", nextafter="nextafter", bitwise_and="bitwise_and", bitwise_or="bitwise_or"),
    **pair(bitwise_xor="bitwise_xor", left_shift="left_shift", right_shift="right_shift", integer_pow="power"),
    **pair(complex_add="add", complex_sub="subtract", complex_mul="multiply", complex_div="divide", polar="polar"),
    **pair(complex_equal="equal", complex_pow="power", equal_truth_values="equal", not_equal_truth_values="not_equal"),
    **{f"{ours}_scalar": f"keras.ops.{theirs}({{0}}, {{scalar}})" for ours, theirs in _SCALARS.items()},
    **{f"scalar_{ours}": f"keras.ops.{theirs}({{scalar}}, {{0}})" for ours, theirs in _FROM_SCALARS.items()},
    **{f"{ours}_of_integers": _of_integers(theirs) for ours, theirs in _OF_INTEGERS.items()},
    "squared_difference": "keras.ops.square(keras.ops.subtract({0}, {1}))",
    "relu_squared": "keras.ops.square(keras.ops.relu({0}))",
    "mish": "keras.activations.mish({0})",
    "swish": attribute("alpha", 1.0, "keras.ops.swish has no slope", "keras.ops.swish({0})"),
    "elu": "keras.ops.elu({0}, alpha={alpha})",
    "celu": "keras.ops.celu({0}, alpha={alpha})",
    "gelu": "keras.ops.gelu({0}, approximate=False)",
    "gelu_tanh": "keras.ops.gelu({0}, approximate=True)",
    "leaky_relu": "keras.ops.leaky_relu({0}, negative_slope={alpha})",
    "thresholded_relu": "keras.ops.threshold({0}, {alpha}, 0.0)",
    "threshold": "keras.ops.threshold({0}, {threshold}, {value})",
    "softshrink": "keras.ops.soft_shrink({0}, {lambd})",
    "hardshrink": "keras.ops.hard_shrink({0}, {lambd})",
    "hardtanh": _hardtanh,
    "glu": "keras.ops.glu({0}, axis={axis})",
    "nan_to_num": "keras.ops.nan_to_num({0}, nan={nan}, posinf={posinf}, neginf={neginf})",
    "isclose": "keras.ops.isclose({0}, {1}, rtol={rtol}, atol={atol})",
    "round_decimals": "keras.ops.round({0}, decimals={decimals})",
    "lerp": "keras.ops.add({0}, keras.ops.multiply({2}, keras.ops.subtract({1}, {0})))",
    "addcmul": "keras.ops.add({0}, keras.ops.multiply(keras.ops.multiply({value}, {1}), {2}))",
    "cast": "keras.ops.cast({0}, {dtype})",
    "to_complex": "keras.ops.cast({0}, {dtype})",
    "complex_cast": "keras.ops.cast({0}, {dtype})",
    "where": "keras.ops.where({0}, {1}, {2})",
    "where_scalar": "keras.ops.where({0}, {1}, {scalar})",
    "scalar_where": "keras.ops.where({0}, {scalar}, {1})",
    "masked_fill": "keras.ops.where({1}, {value}, {0})",
    "clip": "keras.ops.clip({0}, {min}, {max})",
    "clip_tensors": "keras.ops.clip({0}, {1}, {2})",
    "bitcast": _bitcast,
    "zeros_like_to": "keras.ops.zeros_like({0}, dtype={dtype})",
    "ones_like_to": "keras.ops.ones_like({0}, dtype={dtype})",
    "zeros_like": "keras.ops.zeros_like({0})",
    "ones_like": "keras.ops.ones_like({0})",
}
