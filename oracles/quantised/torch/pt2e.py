"""Models that PT2E (torchao) wrote: a graph of aten operators on real numbers between quantising and dequantising. Are
scales and zero points those that its observers ask for, are weights the nearest levels, does the graph compute what it
says node by node, and does what inductor makes of it return the same?"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from generators.bounds.bounded import Bounded
from oracles.quantised.integers import UNIT, Levels, Quantisation, along, dequantised, quantised, settled
from oracles.quantised.model import (
    Judgement,
    NotRecomputed,
    Operation,
    Real,
    RecordedModel,
    Values,
    check_called,
    evaluator,
    follow,
    judge_tensor,
    loss,
    observed,
    skipped,
)
from oracles.quantised.reference_operators import applied, fixed, number, whole
from oracles.quantised.torch.operators import FLOATS, SHARED, Call
from oracles.quantised.torch.quantiser import check_observer, check_used, parameters

Array = np.ndarray
_GROUP = "converted"


def judge(record: RecordedModel) -> Judgement:
    """All nodes, then the quantiser's numbers, then a plain call and what inductor compiled."""
    found = Judgement()
    values, nodes = record.groups[_GROUP], record.nodes[_GROUP]
    done = follow(found, record, _GROUP, computer())
    skipped(found, nodes, values, done)
    for name, observer in record.header["observers"].items():
        check_observer(found, name, observer, record.header["engine"])
    tensors, weights = quantisations(nodes, values)
    check_used(found, record, tensors, weights)
    check_called(found, record, _GROUP)
    _compiled(found, record)
    if record.header["share"] == 1:
        found.loss = loss(record.groups["float"], record.groups["inductor"])
    return found


def _compiled(found: Judgement, record: RecordedModel) -> None:
    """Inductor shows nothing but outputs: they are worked out from inputs and constants alone. Its kernels of integers
    rescale sums of products where the graph dequantises operands first."""
    values, nodes = record.groups[_GROUP], record.nodes[_GROUP]
    made = {name for node in nodes for name in node.results}
    given = {name: array for name, array in values.items() if name not in made}
    given.update(_chosen(nodes, given, values))
    value = evaluator(nodes, given, values, computer(fused=True))
    for place, name in enumerate(record.header["outputs"]):
        got = record.groups["inductor"][str(place)]
        told = f"inductor: output {place}, {name}"
        try:
            right = value(name)
        except NotRecomputed as error:
            found.skipped[f"inductor ({str(error).split(',')[0]})"] += 1
            continue
        judge_tensor(found, got, right, told, record.places["inductor", str(place)])


def _chosen(nodes: Sequence[Operation], given: Values, values: Values) -> Values:
    """Scales and zero points of inputs that the graph chooses as it runs, where there is one right zero point: inductor
    has to choose the same, but for roundings of the scale."""
    found: dict[str, Array] = {}
    for node in nodes:
        if node.op == "choose_qparams" and node.operands[0] in given:
            zero = _choose(node, [observed(given[node.operands[0]])], 1, False, values)
            if isinstance(zero, Levels) and not zero.reach.any():
                found.update({name: values[name] for name in node.results})
    return found


def quantisations(nodes: Sequence[Operation], values: Values) -> tuple[dict[str, Quantisation], list[str]]:
    """How the nodes quantise with constants, by the name of the levels; and which of these are of weights."""
    tensors, weights = {}, []
    for node in nodes:
        args = node.attrs.get("args", [])
        if node.op in ("quantize_per_tensor", "dequantize_per_tensor") and len(node.operands) == 1:
            name = node.results[0] if node.op.startswith("q") else node.operands[0]
            tensors[name] = Quantisation(np.array([args[1]], np.float64), np.array([args[2]], np.float64), 0)
        elif node.op == "dequantize_per_channel":
            name, scale, zero = node.operands
            if scale in values and zero in values:
                numbers = [np.asarray(values[place], np.float64) for place in (scale, zero)]
                tensors[name] = Quantisation(numbers[0], numbers[1], args[3])
                weights.append(name)
    return tensors, weights


def computer(fused: bool = False) -> Callable:
    """What a node returns (`quantised_model.Compute`). fused: where a kernel may stand for several nodes."""

    def compute(node: Operation, operands: Sequence[Real | None], index: int, seen: Values) -> Real:
        name = node.results[index]
        if node.domain == "quantized_decomposed":
            if node.op not in _DECOMPOSED:
                raise NotRecomputed(node.op)
            return _DECOMPOSED[node.op](node, operands, index, fused, seen)
        call = Call(node, operands, [None] * len(operands), None, seen[name], False, index)
        known = {**SHARED, **FLOATS, **_ATEN}
        if node.op not in known or node.domain not in ("aten", ""):
            raise NotRecomputed(node.op)
        return known[node.op](call)

    return compute


# ---- quantised_decomposed ------------------------------------------------------------------------------


def _place(node: Operation, operands: Sequence[Real | None], rank: int) -> tuple[Array, Array, str]:
    """Scale, zero point and dtype of the levels of a node: constants among its arguments, or operands."""
    args = node.attrs["args"]
    dtype = str(args[-1]).removeprefix("torch.")
    if len(operands) == 1:
        return np.asarray(float(args[1])), np.asarray(float(args[2])), dtype
    scale, zero = fixed(operands[1]), fixed(operands[2])
    axis = args[3] if node.op.endswith("per_channel") else 0
    return along(scale.reshape(-1), rank, axis), along(zero.reshape(-1), rank, axis), dtype


def _quantize(node: Operation, operands: Sequence[Real | None], index: int, fused: bool, seen: Values) -> Levels:
    """By the reciprocal of the scale, rounded half to even; where a kernel may choose the scale itself, four roundings
    more."""
    x = number(operands[0])
    scale, zero, dtype = _place(node, operands, x.value.ndim)
    if fused and len(operands) > 1:
        x = Bounded(x.value, x.error + 4 * UNIT * np.abs(x.value), x.dtype)
    return quantised(x, scale, zero, dtype, reciprocal=True)


def _dequantize(node: Operation, operands: Sequence[Real | None], index: int, fused: bool, seen: Values) -> Bounded:
    """One product of float32. A kernel of integers loses 5 roundings of its own: of the accumulator, the scales'
    product (twice), the product and the bias."""
    q = whole(operands[0])
    scale, zero, _ = _place(node, operands, q.low.ndim)
    found = dequantised(q, scale, zero)
    free = 5 * UNIT * (np.abs(q.middle) + np.abs(zero)) * scale if fused else 0.0
    return Bounded(found.value, found.error + free, found.dtype)


def _choose(node: Operation, operands: Sequence[Real | None], index: int, fused: bool, seen: Values) -> Real:
    """Scale and zero point by the least and the greatest element, each rounded a few times in float32."""
    x, args = number(operands[0]), node.attrs["args"]
    if x.error.any():
        raise NotRecomputed("choose_qparams of what was not observed")
    limits, smallest = (int(args[1]), int(args[2])), float(args[3])
    low, high = (np.asarray(bound, np.float64) for bound in (x.value.min(), x.value.max()))
    scale, position = parameters(low, high, limits, False, smallest)
    if index == 0:
        return Bounded(scale.reshape(1), 4 * UNIT * scale.reshape(1), str(seen[node.results[0]].dtype))
    free = 4 * UNIT * (np.abs(position) + limits[1])
    return settled(position.reshape(1), free.reshape(1), np.zeros(()), "int64")


_DECOMPOSED: dict[str, Callable[[Operation, Sequence[Real | None], int, bool, Values], Real]] = {
    "quantize_per_tensor": _quantize,
    "quantize_per_channel": _quantize,
    "dequantize_per_tensor": _dequantize,
    "dequantize_per_channel": _dequantize,
    "choose_qparams": _choose,
}


# ---- aten ----------------------------------------------------------------------------------------------


def _batch_norm(call: Call) -> Bounded:
    """aten takes weight and bias before mean and variance, PyTorch's function after them."""
    if len(call.operands) != 5 or call.argument(5, "training", False):
        raise NotRecomputed("batch_norm by the batch")
    return applied("batch_norm", [number(o) for o in call.operands], {"epsilon": call.argument(7, "eps")})


def _slice(call: Call) -> Real:
    axis, start, end, step = (call.argument(i, "", default) for i, default in ((1, 0), (2, None), (3, None), (4, 1)))
    x = call.operands[0]
    if x is None:
        raise NotRecomputed("slice of nothing")
    return x.map(lambda v: v[(slice(None),) * (axis % v.ndim) + (slice(start, end, step),)])


def _enlarged(call: Call) -> Real:
    """The nearest pixel: times whole numbers."""
    x, (height, width) = number(call.operands[0]), call.seen.shape[2:]
    factors = [size // old for size, old in zip((height, width), x.value.shape[2:], strict=True)]
    if [f * old for f, old in zip(factors, x.value.shape[2:], strict=True)] != [height, width]:
        raise NotRecomputed("upsample_nearest2d by another factor")
    return x.map(lambda v: v.repeat(factors[0], 2).repeat(factors[1], 3))


def _global_pool(call: Call) -> Bounded:
    if call.argument(1, "output_size") not in (1, [1, 1]):
        raise NotRecomputed("adaptive_avg_pool2d to more than one place")
    return applied("mean", [number(call.operands[0])], {"axes": (2, 3), "keepdims": True})


_ATEN: dict[str, Callable[[Call], Real]] = {
    "batch_norm": _batch_norm,
    "slice": _slice,
    **dict.fromkeys(("view", "contiguous", "clone", "alias", "flatten", "unflatten"), SHARED["reshape"]),
    "split_with_sizes": SHARED["split"],
    "upsample_nearest2d": _enlarged,
    "adaptive_avg_pool2d": _global_pool,
    "hardtanh": lambda call: applied(
        "clip", [number(call.operands[0])], {"min": call.argument(1, "", -1), "max": call.argument(2, "", 1)}
    ),
}
