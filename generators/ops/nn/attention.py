"""Scaled dot product attention over (batch, heads, length, features), with fewer heads of keys and values than of
queries where the latter share them: softmax(scale q k^T + mask) v."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from generators.bounds.bounded import PRECISION, Bounded, add
from generators.bounds.products import bilinear
from generators.graph import FLOATS, TensorType
from generators.ops.composed import compute, undetermined
from generators.ops.reduce.softmax import softmax
from generators.ops.slots import draw_dtype, one_of
from generators.ops.spec import AttrRule, Attrs, Call, Draw, OpSpec, Reference, Slot, Spelling, TypeRuleError, Types

Array = np.ndarray

# ---- references ---------------------------------------------------------------------------------------


def _scale(call: Call) -> float:
    """None means one by the root of the number of features."""
    return call.operands[0].shape[-1] ** -0.5 if call.attrs["scale"] is None else call.number("scale")


def _scores(q: Bounded, k: Bounded, scale: float) -> Bounded:
    """scale q k^T. The scale is taken into q, into the sums, or its root into both operands; or the sums are divided
    by the root of the number of features: at most 2.5 ulp and 3 ulp (OpenCL), which are 11 roundings. What of a scaled
    operand is flushed weighs the other operand."""
    p = PRECISION[q.dtype]
    with np.errstate(all="ignore"):
        scaled = Bounded(scale * q.value, scale * q.error, q.dtype)
        turned = k.map(lambda a: np.swapaxes(a, -1, -2))
        result = bilinear(np.matmul, scaled, turned, q.value.shape[-1] + 11)
        sizes = [np.where(np.isfinite(a.value), np.abs(a.value) + a.error, 0.0) for a in (q, turned)]
        flushed = np.sum(sizes[0], -1, keepdims=True) + np.sum(sizes[1], -2, keepdims=True)
        flushed = np.where((flushed > 0) & (result.error > 0), max(1.0, scale) * p.tiny * flushed, 0.0)
        over = np.matmul(*sizes) > p.largest / (2 * max(1.0, scale))
    return undetermined(Bounded(result.value, result.error + flushed, q.dtype), over)


def _attended(scores: Bounded, masked: Array, v: Bounded) -> Bounded:
    """softmax(scores) v, or the products of the exponentials with v, divided by the exponentials' sum.

    masked: what does not count. It becomes minus infinity by choice or by addition, or a large negative number, or
    its exponential is left out; so that a NaN or an infinity that is masked leaves its row undetermined, and so is
    a row of which nothing counts (NaN, zeros, or the mean of v)."""
    p = PRECISION[v.dtype]
    masked = np.broadcast_to(masked, scores.value.shape)
    with np.errstate(all="ignore"):
        gone = masked | (np.isneginf(scores.value) & ~scores.undetermined)
        wild = masked & ~(np.isfinite(scores.value) & ~scores.undetermined & (np.abs(scores.value) < p.largest / 4))
        loose = np.any(wild, -1, keepdims=True) | np.all(gone, -1, keepdims=True)
        hidden = Bounded(np.where(masked, -np.inf, scores.value), np.where(masked, 0.0, scores.error), v.dtype)
        weights = compute(softmax, hidden, axis=scores.value.ndim - 1)
        result = bilinear(np.matmul, weights, v, scores.value.shape[-1] + 1, hole=masked)
        sums = np.sum(np.where(np.isfinite(v.value), np.abs(v.value) + v.error, 0.0), -2, keepdims=True)
    return undetermined(result, loose | (sums > p.largest / 2))


def _heads(q: Bounded, x: Bounded) -> Bounded:
    """Heads of keys or values, repeated for the queries that share them."""
    return x.map(lambda a: np.repeat(a, q.value.shape[1] // a.shape[1], axis=1))


def _attention(args: Sequence[Bounded], call: Call) -> Bounded:
    q, k, v = args
    length, places = q.value.shape[-2], k.value.shape[-2]
    masked = ~np.tril(np.ones((length, places), bool)) if call.attrs["causal"] else np.zeros((length, places), bool)
    return _attended(_scores(q, _heads(q, k), _scale(call)), masked, _heads(q, v))


def _attention_masked(args: Sequence[Bounded], call: Call) -> Bounded:
    q, k, v, mask = args
    unknown = np.any(np.broadcast_to(mask.undetermined, (*q.value.shape[:3], k.value.shape[-2])), -1, keepdims=True)
    return undetermined(_attended(_scores(q, _heads(q, k), _scale(call)), ~mask.value, _heads(q, v)), unknown)


def _attention_biased(args: Sequence[Bounded], call: Call) -> Bounded:
    q, k, v, bias = args
    scores = add(_scores(q, _heads(q, k), _scale(call)), bias)
    return _attended(scores, np.zeros((), bool), _heads(q, v))


# ---- operands and types -------------------------------------------------------------------------------


def _fresh_queries(d: Draw, earlier: Types) -> TensorType:
    heads, length, features = d.choice((2, 1, 4, 3)), d.choice((3, 1, 2, 5, 17)), d.choice((4, 2, 1, 3, 8))
    return TensorType(draw_dtype(d, FLOATS), (d.choice((1, 2)), heads, length, features))


def _sharing(type_: TensorType, earlier: Types) -> bool:
    q = earlier[0]
    return type_.rank == 4 and type_.dtype == q.dtype and type_.shape[0] == q.shape[0] and type_.size > 0


def _accepts_keys(type_: TensorType, earlier: Types) -> bool:
    q = earlier[0]
    return _sharing(type_, earlier) and q.shape[1] % type_.shape[1] == 0 and type_.shape[3] == q.shape[3]


def _fresh_keys(d: Draw, earlier: Types) -> TensorType:
    batch, heads, length, features = earlier[0].shape
    shared = d.choice((heads, *(h for h in range(1, heads) if heads % h == 0)))
    return TensorType(earlier[0].dtype, (batch, shared, d.choice((length, 1, 4, 9)), features))


def _accepts_values(type_: TensorType, earlier: Types) -> bool:
    return _sharing(type_, earlier) and type_.shape[:3] == earlier[1].shape[:3]


def _fresh_values(d: Draw, earlier: Types) -> TensorType:
    return TensorType(earlier[0].dtype, (*earlier[1].shape[:3], d.choice((earlier[0].shape[3], 3, 1))))


def _scores_shape(earlier: Types) -> tuple[int, ...]:
    return (*earlier[0].shape[:3], earlier[1].shape[2])


def _mask(dtype: str | None) -> Slot:
    """What broadcasts to the scores and has their last two dimensions: of that dtype, or of the queries'."""

    def accepts(type_: TensorType, earlier: Types) -> bool:
        full = _scores_shape(earlier)
        if type_.dtype != (dtype or earlier[0].dtype) or type_.rank not in (2, 4) or type_.shape[-2:] != full[-2:]:
            return False
        return all(a in (1, b) for a, b in zip(type_.shape[:-2], full, strict=False))

    def fresh(d: Draw, earlier: Types) -> TensorType:
        full = _scores_shape(earlier)
        lead = d.choice(((), (1, 1), (full[0], 1), (1, full[1]), full[:2]))
        return TensorType(dtype or earlier[0].dtype, (*lead, *full[2:]))

    return Slot(accepts, fresh)


def _type(operands: Types, attrs: Attrs) -> TensorType:
    q, k, v = operands[:3]
    if q.rank != 4 or q.size == 0 or not _accepts_keys(k, (q,)) or not _accepts_values(v, (q, k)):
        raise TypeRuleError(f"{q} cannot attend to {k} and {v}")
    scale = attrs["scale"]
    if scale is not None and (not isinstance(scale, float) or scale <= 0):
        raise TypeRuleError(f"the scale {scale!r} is neither None nor a positive float")
    return TensorType(q.dtype, (*q.shape[:3], v.shape[3]))


QUERIES = Slot(lambda type_, earlier: type_.dtype in FLOATS and type_.rank == 4 and type_.size > 0, _fresh_queries)
KEYS, VALUES = Slot(_accepts_keys, _fresh_keys), Slot(_accepts_values, _fresh_values)
SCALES: AttrRule = one_of(None, 1.0, 0.25, 2.0)

# ---- spellings ----------------------------------------------------------------------------------------


def _torch(rest: str) -> Spelling:
    def spell(call: Call) -> str:
        grouped = ", enable_gqa=True" if call.operands[0].shape[1] != call.operands[1].shape[1] else ""
        return f"torch.nn.functional.scaled_dot_product_attention({{0}}, {{1}}, {{2}}, scale={{scale}}{rest}{grouped})"

    return spell


def _onnx(rest: str) -> Spelling:
    def spell(call: Call) -> str:
        scale = "" if call.attrs["scale"] is None else ", scale={scale}"
        return f'g.op("Attention", {{args}}{rest}{scale})'

    return spell


def _jax(rest: str) -> Spelling:
    return f"attention({{0}}, {{1}}, {{2}}, scale={{scale}}{rest})"


def _op(name: str, mask: Slot | None, reference: Reference, torch: str, eager: str, relax: str, onnx: str) -> OpSpec:
    """Of q, k, v and what masks them, if anything does."""
    causal: dict[str, AttrRule] = {} if mask else {"causal": one_of(True, False)}
    return OpSpec(
        name, "attention", (QUERIES, KEYS, VALUES, *((mask,) if mask else ())), _type, reference,
        attrs={"scale": SCALES, **causal},
        torch=_torch(torch), tensorflow=_jax(eager), jax=_jax(eager),
        relax=f"attention(bb, {{0}}, {{1}}, {{2}}, {{scale}}{relax})", onnx=_onnx(onnx),
    )  # fmt: skip


OPERATORS: tuple[OpSpec, ...] = (
    _op(
        "attention", None, _attention, ", is_causal={causal}", ", causal={causal}", ", causal={causal}",
        ", is_causal=int({causal})",
    ),
    _op(
        "attention_masked", _mask("bool"), _attention_masked, ", attn_mask={3}", ", mask={3}",
        ", bias=mask_bias(bb, {3}, {name})", "",
    ),
    _op("attention_biased", _mask(None), _attention_biased, ", attn_mask={3}", ", bias={3}", ", bias={3}", ""),
)  # fmt: skip
