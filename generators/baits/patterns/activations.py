"""Activations written with simpler operators, as exporters write them: constants a little off among them."""

from __future__ import annotations

from generators.baits.bait import Bait, Guard, Pattern
from generators.ops.elementwise.scalars import NEAR

_FLOATS = Guard(("float32",), ("float64", "float16"))
_ORT, _GRAPPLER, _XLA = "onnxruntime/", "grappler/", "xla/algsimp"
FACTOR = Guard((1.0,), (NEAR, 1.001, 2.0))
"""By which a constant of a formula is off."""
BIAS = Guard(("none", "row"), ("full", "scalar"))


def _biased(p: Pattern, bias: str, order: str = "right") -> str:
    x = p.input(2, 3, 8)
    shapes = {"row": (8,), "full": (2, 3, 8), "scalar": ()}
    if bias == "none":
        return x
    b = p.weight(*shapes[bias])
    return p.add(*((x, b) if order == "right" else (b, x)))


def _gelu(p: Pattern, form: str, root: float, half: float, one: float, bias: str, order: str) -> str:
    """x / 2 (1 + erf(x / sqrt 2)), in the orders in which exporters write it."""
    x = _biased(p, bias)
    quotient = p.div(x, p.constant(1.4142135623730951 * root))
    if form == "times":
        quotient = p.mul(x, p.constant(0.7071067811865476 * root))
    grown = p.add(p.erf(quotient), p.constant(one))
    c = p.constant(0.5 * half)
    if form == "half first":
        return p.mul(p.mul(x, c), grown)
    whole = p.mul(x, grown) if order == "right" else p.mul(grown, x)
    return p.mul(whole, c) if form != "half last" else p.mul(c, whole)


def _fast_gelu(p: Pattern, form: str, cubic: float, root: float, exponent: float, bias: str) -> str:
    """x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))."""
    x = _biased(p, bias)
    a, b = p.constant(0.044715 * cubic), p.constant(0.7978845608028654 * root)
    one, half = p.constant(1.0), p.constant(0.5)
    if form == "power":
        inner = p.mul(p.add(x, p.mul(p.pow(x, p.constant(exponent)), a)), b)
        return p.mul(p.mul(x, half), p.add(p.tanh(inner), one))
    if form == "power last":
        inner = p.mul(p.add(x, p.mul(p.pow(x, p.constant(exponent)), a)), b)
        return p.mul(p.mul(x, p.add(p.tanh(inner), one)), half)
    scaled = p.mul(x, b)
    inner = p.mul(scaled, p.add(p.mul(p.mul(x, a), x), one))
    return p.mul(p.mul(x, half), p.add(p.tanh(inner), one))


def _quick_gelu(p: Pattern, alpha: float, order: str, another: str) -> str:
    """x sigmoid(1.702 x), and silu where the factor is 1."""
    x = p.input(2, 3, 8)
    inner = p.mul(x, p.constant(alpha)) if alpha != 1.0 else x
    gate, value = p.sigmoid(inner), p.input(2, 3, 8) if another == "another" else x
    return p.mul(*((value, gate) if order == "right" else (gate, value)))


def _bias_gelu(p: Pattern, bias: str, order: str, kind: str) -> str:
    return p.apply(kind, _biased(p, bias, order))


def _sigmoid(p: Pattern, one: float, sign: str, form: str) -> str:
    """1 / (1 + exp(-x)); x times it."""
    x = p.input(2, 3)
    e = p.exp(p.neg(x) if sign == "negative" else x)
    total = p.add(p.constant(1.0), e)
    return p.div(p.constant(one) if form == "sigmoid" else x, total)


def _hard(p: Pattern, three: float, six: float, form: str) -> str:
    """x clip(x + 3, 0, 6) / 6."""
    x = p.input(2, 3)
    clipped = p.clip(p.add(x, p.constant(3.0 * three)), min=0.0, max=6.0)
    if form == "relu6":
        clipped = p.relu6(p.add(x, p.constant(3.0 * three)))
    product = p.mul(x, clipped) if form != "sigmoid" else clipped
    return p.div(product, p.constant(6.0 * six)) if form != "times" else p.mul(product, p.constant(six / 6.0))


def _softplus(p: Pattern, one: float, form: str, then: str) -> str:
    """log(1 + exp(x)), which overflows where softplus does not; mish."""
    x = p.input(2, 3)
    e = p.exp(x)
    value = p.log1p(e) if form == "log1p" else p.log(p.add(e, p.constant(one)))
    return p.mul(x, p.tanh(value)) if then == "mish" else value


def _rectified(p: Pattern, form: str, zero: float) -> str:
    """max(x, 0), x where it is positive: not for NaN, nor for -0."""
    x, c = p.input(2, 3), p.constant(zero)
    return {
        "maximum": lambda: p.maximum(x, c),
        "reversed": lambda: p.maximum(c, x),
        "where": lambda: p.where(p.greater(x, c), x, c),
        "where or equal": lambda: p.where(p.greater_equal(x, c), x, c),
        "product": lambda: p.mul(x, p.cast(p.greater(x, c), to=p.dtype)),
        "halved": lambda: p.mul(p.add(x, p.abs(x)), p.constant(0.5)),
    }[form]()


def _leaky(p: Pattern, slope: float, form: str) -> str:
    """max(x, a x), which is another function for a > 1."""
    x = p.input(2, 3)
    scaled = p.mul(x, p.constant(slope))
    return p.maximum(x, scaled) if form == "maximum" else p.where(p.greater(x, p.constant(0.0)), x, scaled)


def _elu(p: Pattern, alpha: float, form: str) -> str:
    x = p.input(2, 3)
    grown = p.expm1(x) if form == "expm1" else p.sub(p.exp(x), p.constant(1.0))
    return p.where(p.greater(x, p.constant(0.0)), x, p.mul(grown, p.constant(alpha)))


def _tanh(p: Pattern, form: str, two: float) -> str:
    """(e^2x - 1) / (e^2x + 1), which is NaN where tanh is 1; 2 sigmoid(2x) - 1."""
    x, one = p.input(2, 3), p.constant(1.0)
    if form == "sigmoid":
        return p.sub(p.mul(p.sigmoid(p.mul(x, p.constant(two))), p.constant(2.0)), one)
    e = p.exp(p.mul(x, p.constant(two)))
    return p.div(p.sub(e, one), p.add(e, one))


def _exp_minus(p: Pattern, form: str) -> str:
    """exp(x) - 1, log(1 + x): better by functions of their own."""
    x, one = p.input(2, 3), p.constant(1.0)
    return {
        "expm1": lambda: p.sub(p.exp(x), one),
        "log1p": lambda: p.log(p.add(x, one)),
        "log1p reversed": lambda: p.log(p.add(one, x)),
        "one minus": lambda: p.sub(one, p.exp(x)),
        "erfc": lambda: p.sub(one, p.erf(x)),
        "log sigmoid": lambda: p.log(p.sigmoid(x)),
        "log of softmax": lambda: p.log(p.softmax(x, axis=-1)),
        "tan": lambda: p.div(p.sin(x), p.cos(x)),
        "hypot": lambda: p.sqrt(p.add(p.square(x), one)),
    }[form]()


def _between(p: Pattern, order: str, low: float, high: float, shape: tuple[int, ...]) -> str:
    """Between two limits, or above one, which other operators are made of where they are 0 and 6, -1 and 1, or 0."""
    x = p.input(1, 3)
    if order == "above":
        return p.maximum(x, p.constant(low, *shape))
    if order == "low first":
        return p.minimum(p.maximum(x, p.constant(low, *shape)), p.constant(high, *shape))
    return p.maximum(p.minimum(x, p.constant(high, *shape)), p.constant(low, *shape))


BAITS = (
    Bait("gelu-by-erf",
         (_ORT + "GeluFusionL1", _ORT + "GeluFusionL2", _ORT + "BiasGeluFusion", _GRAPPLER + "remapping"), _gelu,
         {"form": Guard(("plain", "half first", "half last"), ("times",)), "root": FACTOR, "half": FACTOR,
          "one": Guard((1.0,), (NEAR, 2.0)), "bias": BIAS, "order": Guard(("right", "left"))}, _FLOATS),
    Bait("gelu-by-tanh", (_ORT + "FastGeluFusion", _GRAPPLER + "remapping"), _fast_gelu,
         {"form": Guard(("power", "square", "power last")), "cubic": FACTOR, "root": FACTOR,
          "exponent": Guard((3.0,), (3.0 * NEAR, 2.0)), "bias": BIAS}, _FLOATS),
    Bait("gelu-by-sigmoid", (_ORT + "QuickGeluFusion", _GRAPPLER + "remapping"), _quick_gelu,
         {"alpha": Guard((1.702, 1.0), (NEAR, 0.0, -1.702, 1e20)), "order": Guard(("right", "left")),
          "another": Guard(("same",), ("another",))}, _FLOATS),
    Bait("bias-gelu", (_ORT + "BiasGeluFusion", _ORT + "FastGeluFusion"), _bias_gelu,
         {"bias": Guard(("row",), ("full", "scalar", "none")), "order": Guard(("right", "left")),
          "kind": Guard(("gelu", "gelu_tanh"), ("silu",))}, _FLOATS),
    Bait("sigmoid-by-exp", (_XLA, _GRAPPLER + "remapping"), _sigmoid,
         {"one": Guard((1.0,), (NEAR, -1.0)), "sign": Guard(("negative",), ("positive",)),
          "form": Guard(("sigmoid", "silu"))}),
    Bait("hard-swish", (_ORT + "HardSigmoid", _XLA), _hard,
         {"three": FACTOR, "six": FACTOR, "form": Guard(("clip", "relu6", "sigmoid", "times"))}),
    Bait("softplus-by-log", (_GRAPPLER + "remapping", _XLA), _softplus,
         {"one": Guard((1.0,), (NEAR, 0.0)), "form": Guard(("log", "log1p")), "then": Guard(("nothing", "mish"))}),
    Bait("relu-by-parts", (_XLA, "tvm/StmtSimplify", "xnnpack/clamp"), _rectified,
         {"form": Guard(("maximum", "reversed", "where", "where or equal", "product", "halved")),
          "zero": Guard((0.0,), (-0.0, 1.0, "tiny"))}),
    Bait("leaky-relu-by-parts", (_GRAPPLER + "remapping", _XLA, "torch-inductor/mkldnn leaky_relu"), _leaky,
         {"slope": Guard((0.125, 0.01), (1.0, 2.0, -0.5, 0.0)), "form": Guard(("maximum", "where"))}),
    Bait("elu-by-parts", (_XLA,), _elu,
         {"alpha": Guard((1.0,), (NEAR, 0.5, 0.0)), "form": Guard(("exp", "expm1"))}),
    Bait("tanh-by-exp", (_XLA,), _tanh,
         {"form": Guard(("quotient", "sigmoid")), "two": Guard((2.0,), (2.0 * NEAR, 1.0))}),
    Bait("limits-by-parts", ("tflite/relu6", "xnnpack/clamp", "openvino/ClampFusion"), _between,
         {"order": Guard(("low first", "high first", "above")), "low": Guard((0.0, -1.0), (2.0,)),
          "high": Guard((6.0, 1.0), (20.0,)), "shape": Guard(((), (3,)), ((1, 1, 1), (2, 3)))},
         Guard(("float32", "int32", "int64"), ("float64", "int8", "uint8", "int16", "float16"))),
    Bait("functions-by-parts", (_XLA, _GRAPPLER + "ConvertExpm1", _GRAPPLER + "ConvertLog1p"), _exp_minus,
         {"form": Guard(("expm1", "log1p", "log1p reversed", "erfc", "log sigmoid", "log of softmax", "tan", "hypot"),
                        ("one minus",))}),
)  # fmt: skip
