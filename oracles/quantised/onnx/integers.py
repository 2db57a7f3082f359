"""What ONNX Runtime's quantised operators must return, by the documentation of ONNX and of its own operators
(https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from generators.bounds.bounded import Bounded
from oracles.quantised.integers import UNIT, Levels, along, dequantised, powers_of_two, quantised, rescaled, settled
from oracles.quantised.model import NotRecomputed, Operation, Real, Values
from oracles.quantised.onnx.operators import MOVES, REALS, joined, max_pool, moved, padded, window
from oracles.quantised.reference_operators import accumulated, applied, exactly, fixed, number, whole

Array = np.ndarray
Operands = Sequence[Real | None]

_TYPES = {1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64"}


BLOCKED = "com.microsoft.nchwc"
"""The domain of ONNX Runtime's convolutions and pooling of 8 or 16 channels side by side, from ORT_ENABLE_ALL on."""


def compute(node: Operation, operands: Operands, index: int, seen: Values) -> Real:
    """The result of one node. Raises NotRecomputed, for channels in blocks, too: their values lie in another order than
    their shape says."""
    if node.domain == BLOCKED:
        raise NotRecomputed(f"{node.op} of channels in blocks")
    if node.op == "DynamicQuantizeLinear":
        return _dynamic(node, operands, index, seen)
    if node.op in MOVES or node.op == "Split":
        return moved(node, operands, index)
    table = QUANTISED if node.op in QUANTISED else REALS if node.op in REALS else None
    if table is None or index:
        raise NotRecomputed(node.op)
    try:
        return table[node.op](node, operands)
    except (IndexError, KeyError) as error:
        raise NotRecomputed(f"{node.op} ({type(error).__name__})") from error


def compute_rewritten(node: Operation, operands: Operands, index: int, seen: Values) -> Real:
    """The same for nodes that a kernel of integers may stand for: it rescales levels as it likes, with the roundings of
    such a kernel, where the node dequantises and quantises."""
    found = compute(node, operands, index, seen)
    if node.op == "DequantizeLinear" and isinstance(found, Bounded):
        q, scale, zero = whole(operands[0]), fixed(operands[1]), _zero(_at(operands, 2))
        rank, axis = q.low.ndim, node.attrs.get("axis", 1)
        reach = (np.abs(q.middle) + np.abs(along(zero, rank, axis))) * along(scale, rank, axis)
        return Bounded(found.value, found.error + _ROUNDINGS * UNIT * reach, found.dtype)
    return found


def _at(operands: Operands, place: int) -> Real | None:
    return operands[place] if place < len(operands) else None


def _zero(operand: Real | None) -> Array:
    return np.zeros(()) if operand is None else fixed(operand)


def _quantize(node: Operation, operands: Operands) -> Levels:
    x, scale, axis = number(operands[0]), fixed(operands[1]), node.attrs.get("axis", 1)
    zero = _at(operands, 2)
    dtype = zero.dtype if isinstance(zero, Levels) else _TYPES[node.attrs.get("output_dtype", 2)]
    rank = x.value.ndim
    return quantised(x, along(scale, rank, axis), along(_zero(zero), rank, axis), dtype)


def _dequantize(node: Operation, operands: Operands) -> Bounded:
    q, scale, axis = whole(operands[0]), fixed(operands[1]), node.attrs.get("axis", 1)
    rank = q.low.ndim
    return dequantised(q, along(scale, rank, axis), along(_zero(_at(operands, 2)), rank, axis))


def _exact(scales: Sequence[Array], accumulator: Array) -> bool:
    return powers_of_two(*scales) and bool((np.abs(accumulator) < 2.0**24).all())


_ROUNDINGS = 5
"""Of a kernel that rescales in float32: two of the factor, the accumulator's conversion, the product, and the addition
of the zero point (MlasRequantizeOutput; measured: right for all of them)."""


def _exactly_known(q: Levels) -> Array:
    return fixed(q)


def _requantised(accumulator: Array, x_scale: Array, w_scale: Array, scale: Array, zero: Levels) -> Levels:
    """A sum of products becomes levels: what QLinearConv, QLinearMatMul and QGemm share."""
    position = np.abs(accumulator * (x_scale * w_scale / scale))
    z = fixed(zero)
    return rescaled(
        accumulator, x_scale * w_scale / scale, z, zero.dtype, _ROUNDINGS, position + np.abs(z),
        exact=_exact((x_scale, w_scale, scale), accumulator),
    )  # fmt: skip


def _conv(node: Operation, operands: Operands) -> Levels:
    """QLinearConv: x, its scale and zero point, the same of the weight and of the result, a bias of scale s_x s_w."""
    x, x_scale, x_zero, w, w_scale, w_zero, scale, zero = operands[:8]
    last = bool(node.attrs.get("channels_last"))
    image, weight = _exactly_known(whole(x)), _exactly_known(whole(w))
    image = np.moveaxis(image, -1, 1) if last else image
    rank = weight.ndim
    attrs = {**window(node, weight.shape[2:]), "groups": node.attrs.get("group", 1)}
    total = accumulated(f"conv{rank - 2}d", image - fixed(x_zero), weight - along(fixed(w_zero), rank, 0), attrs)
    bias = _at(operands, 8)
    if bias is not None:
        total = total + fixed(bias).reshape(-1, *[1] * (rank - 2))
    found = _requantised(total, fixed(x_scale), along(fixed(w_scale), rank, 1), fixed(scale), whole(zero))
    return found.map(lambda v: np.moveaxis(v, 1, -1)) if last else found


def _columns(parameter: Array, rank: int) -> Array:
    """A scale or zero point for each column of the second operand of a product."""
    return along(parameter, rank, -1) if parameter.ndim <= 1 else parameter


def _matmul(node: Operation, operands: Operands) -> Levels:
    a, a_scale, a_zero, b, b_scale, b_zero, scale, zero = operands
    left, right = _exactly_known(whole(a)), _exactly_known(whole(b))
    total = accumulated("matmul", left - fixed(a_zero), right - _columns(fixed(b_zero), right.ndim))
    factor = _columns(fixed(b_scale), total.ndim)
    return _requantised(total, fixed(a_scale), factor, fixed(scale), whole(zero))


def _qgemm(node: Operation, operands: Operands) -> Real:
    """QGemm: a, b, their scales and zero points, a bias of scale s_a s_b; levels, or real numbers without a scale."""
    a, a_scale, a_zero, b, b_scale, b_zero = operands[:6]
    left, right = _exactly_known(whole(a)) - fixed(a_zero), _exactly_known(whole(b))
    if node.attrs.get("alpha", 1.0) != 1.0:
        raise NotRecomputed("QGemm with a factor")
    left = left.T if node.attrs.get("transA") else left
    turned = bool(node.attrs.get("transB"))
    right = right - along(fixed(b_zero), 2, 0 if turned else 1)
    total = accumulated("matmul", left, right.T if turned else right)
    bias, scale, zero = _at(operands, 6), _at(operands, 7), _at(operands, 8)
    if bias is not None:
        total = total + fixed(bias)
    factor = along(fixed(b_scale), 2, 1)
    if scale is None:
        return _worth(total, fixed(a_scale) * factor, 0.0)
    return _requantised(total, fixed(a_scale), factor, fixed(scale), whole(zero))


def _worth(total: Array, factor: Array, bias: Array | float, loose: Array | float = 0.0) -> Bounded:
    """A sum of products as a real number, with a real bias. loose: what the sum may be off by."""
    value = total * factor
    error = loose * factor + 4 * UNIT * np.abs(value) + UNIT * (np.abs(value) + np.abs(bias))
    return Bounded(value + bias, error + np.finfo(np.float32).tiny, "float32")


def _matmul_integer(node: Operation, operands: Operands) -> Levels:
    a, b = _exactly_known(whole(operands[0])), _exactly_known(whole(operands[1]))
    a_zero, b_zero = _zero(_at(operands, 2)), _zero(_at(operands, 3))
    if a_zero.size > 1:
        raise NotRecomputed("MatMulInteger with a zero point a row")
    total = accumulated("matmul", a - a_zero, b - _columns(b_zero, b.ndim))
    return Levels(total, total, "int32")


def _conv_integer(node: Operation, operands: Operands) -> Levels:
    x, w = _exactly_known(whole(operands[0])), _exactly_known(whole(operands[1]))
    attrs = {**window(node, w.shape[2:]), "groups": node.attrs.get("group", 1)}
    x_zero, w_zero = _zero(_at(operands, 2)), along(_zero(_at(operands, 3)), w.ndim, 0)
    total = accumulated(f"conv{w.ndim - 2}d", x - x_zero, w - w_zero, attrs)
    return Levels(total, total, "int32")


def _cast(node: Operation, operands: Operands) -> Real:
    kind, x = _TYPES.get(node.attrs["to"]), operands[0]
    if kind == "float32" and isinstance(x, Levels):
        value = fixed(x).astype(np.float32).astype(np.float64)
        return Bounded(value, np.zeros(value.shape), kind)
    raise NotRecomputed("Cast to that type")


def _range_of(x: Array) -> tuple[Array, Array]:
    """Scale and zero point (a real number still) of DynamicQuantizeLinear, in float32."""
    low, high = np.float32(x.min(initial=0.0)), np.float32(x.max(initial=0.0))
    scale = np.float32(high - low) / np.float32(255)
    scale = np.float32(1.0) if scale == 0 else scale
    return np.asarray(scale, np.float64), np.asarray(np.float32(0 - low) / np.float32(scale), np.float64)


def _dynamic(node: Operation, operands: Operands, index: int, seen: Values) -> Real:
    """DynamicQuantizeLinear: levels by the scale and zero point that it returns itself; these by the range."""
    x = number(operands[0])
    if x.error.any():
        raise NotRecomputed("DynamicQuantizeLinear of what was not observed")
    scale, zero = _range_of(x.value)
    if index == 1:
        return Bounded(scale, 2 * UNIT * np.abs(scale), "float32")
    if index == 2:
        return settled(zero, 4 * UNIT * np.abs(zero), np.zeros(()), "uint8")
    if node.results[1] not in seen or node.results[2] not in seen:
        raise NotRecomputed("DynamicQuantizeLinear whose scale was not observed")
    own_scale, own_zero = (seen[name].astype(np.float64) for name in node.results[1:])
    return quantised(x, own_scale, own_zero, "uint8")


def _dynamic_matmul(node: Operation, operands: Operands) -> Bounded:
    """DynamicQuantizeMatMul: its first operand is quantised like DynamicQuantizeLinear, unseen."""
    x, b, b_scale = number(operands[0]), _exactly_known(whole(operands[1])), fixed(operands[2])
    scale, zero = _range_of(x.value)
    zero_point = settled(zero, 4 * UNIT * np.abs(zero), np.zeros(()), "uint8")
    q = quantised(Bounded(x.value, x.error + 2 * UNIT * np.abs(x.value), "float32"), scale, zero_point.middle, "uint8")
    right = b - _columns(_zero(_at(operands, 3)), b.ndim)
    total = applied("matmul", (exactly(q.middle - zero_point.middle), exactly(right))).value
    loose = applied("matmul", (exactly(q.reach + 2 * zero_point.reach), exactly(np.abs(right)))).value
    bias = _at(operands, 4)
    return _worth(total, scale * _columns(b_scale, total.ndim), 0.0 if bias is None else fixed(bias), loose)


def _to_float(node: Operation, operands: Operands) -> Bounded:
    """MatMulIntegerToFloat: a, b, their scales, their zero points, a real bias."""
    a, b = _exactly_known(whole(operands[0])), _exactly_known(whole(operands[1]))
    right = b - _columns(_zero(_at(operands, 5)), b.ndim)
    total = accumulated("matmul", a - _zero(_at(operands, 4)), right)
    factor = fixed(operands[2]) * _columns(fixed(operands[3]), total.ndim)
    bias = _at(operands, 6)
    return _worth(total, factor, 0.0 if bias is None else fixed(bias))


def _added(node: Operation, operands: Operands) -> Levels:
    """QLinearAdd: a kernel may take the zero points together first, which cancel later."""
    a, a_scale, a_zero, b, b_scale, b_zero, scale, zero = operands
    (p, pz), (q, qz) = ((_exactly_known(whole(v)), fixed(z)) for v, z in ((a, a_zero), (b, b_zero)))
    first, second, z = fixed(a_scale) / fixed(scale), fixed(b_scale) / fixed(scale), fixed(zero)
    position = (p - pz) * first + (q - qz) * second
    magnitude = (np.abs(p) + np.abs(pz)) * first + (np.abs(q) + np.abs(qz)) * second + np.abs(z)
    return settled(position, _ROUNDINGS * UNIT * magnitude, z, whole(zero).dtype)


def _multiplied(node: Operation, operands: Operands) -> Levels:
    a, a_scale, a_zero, b, b_scale, b_zero, scale, zero = operands
    product = (_exactly_known(whole(a)) - fixed(a_zero)) * (_exactly_known(whole(b)) - fixed(b_zero))
    factor, z = fixed(a_scale) * fixed(b_scale) / fixed(scale), fixed(zero)
    return rescaled(product, factor, z, whole(zero).dtype, _ROUNDINGS, np.abs(product * factor) + np.abs(z))


def _looked_up(op: str) -> Callable[[Operation, Operands], Levels]:
    """x, its scale and zero point, the result's: a function of real numbers between dequantising and quantising."""

    def compute(node: Operation, operands: Operands) -> Levels:
        x, x_scale, x_zero, scale, zero = operands
        real = dequantised(whole(x), fixed(x_scale), fixed(x_zero))
        return quantised(number(REALS[op](node, (real,))), fixed(scale), fixed(zero), whole(zero).dtype)

    return compute


def _joined(node: Operation, operands: Operands) -> Levels:
    """QLinearConcat: the result's scale and zero point, then each part with its own."""
    scale, zero = fixed(operands[0]), whole(operands[1])
    parts = []
    for part, part_scale, part_zero in zip(operands[2::3], operands[3::3], operands[4::3], strict=True):
        real = dequantised(whole(part), fixed(part_scale), fixed(part_zero))
        parts.append(quantised(real, scale, fixed(zero), zero.dtype))
        same = fixed(part_scale) == scale and fixed(part_zero) == fixed(zero)
        parts[-1] = whole(part) if same else parts[-1]
    found = joined(node, parts)
    return whole(found)


def _pooled(op: str) -> Callable[[Operation, Operands], Levels]:
    """Averages of levels, times the quotient of the scales."""

    def compute(node: Operation, operands: Operands) -> Levels:
        x, x_scale, x_zero, scale, zero = operands
        last = bool(node.attrs.get("channels_last"))
        image = _exactly_known(whole(x)) - fixed(x_zero)
        image = np.moveaxis(image, -1, 1) if last else image
        average = number(REALS[op](node, (exactly(image),)))
        factor, z = fixed(x_scale) / fixed(scale), fixed(zero)
        size = (np.abs(average.value) + np.abs(fixed(x_zero))) * factor + np.abs(z)
        found = rescaled(average.value, factor, z, whole(zero).dtype, _ROUNDINGS + 2, size)
        return found.map(lambda v: np.moveaxis(v, 1, -1)) if last else found

    return compute


def _nhwc_max_pool(node: Operation, operands: Operands) -> Real:
    x = whole(operands[0]).map(lambda v: np.moveaxis(v, -1, 1))
    return max_pool(node, (x,)).map(lambda v: np.moveaxis(v, 1, -1))


def _chosen(node: Operation, operands: Operands) -> Levels:
    """QLinearWhere: a condition, two operands with their scales and zero points, the result's."""
    condition = operands[0]
    x, x_scale, x_zero, y, y_scale, y_zero, scale, zero = operands[1:]
    there = fixed(condition).astype(bool)
    z = whole(zero)
    a, b = (
        quantised(dequantised(whole(v), fixed(s), fixed(p)), fixed(scale), fixed(z), z.dtype)
        for v, s, p in ((x, x_scale, x_zero), (y, y_scale, y_zero))
    )
    return Levels(np.where(there, a.low, b.low), np.where(there, a.high, b.high), z.dtype)


QUANTISED: dict[str, Callable[[Operation, Operands], Real]] = {
    "QuantizeLinear": _quantize,
    "DequantizeLinear": _dequantize,
    "QLinearConv": _conv,
    "QLinearMatMul": _matmul,
    "QGemm": _qgemm,
    "MatMulInteger": _matmul_integer,
    "ConvInteger": _conv_integer,
    "Cast": _cast,
    "DynamicQuantizeMatMul": _dynamic_matmul,
    "MatMulIntegerToFloat": _to_float,
    "QLinearAdd": _added,
    "QLinearMul": _multiplied,
    "QLinearSigmoid": _looked_up("Sigmoid"),
    "QLinearLeakyRelu": _looked_up("LeakyRelu"),
    "QLinearSoftmax": _looked_up("Softmax"),
    "QLinearConcat": _joined,
    "Concat": joined,
    "Pad": padded,
    "QLinearAveragePool": _pooled("AveragePool"),
    "QLinearGlobalAveragePool": _pooled("GlobalAveragePool"),
    "NhwcMaxPool": _nhwc_max_pool,
    "QLinearWhere": _chosen,
}
