"""Connectionist temporal classification: the negative logarithm of the probability of all alignments of labels with a
sequence of scores (Graves et al., ICML 2006)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from generators.bounds.bounded import Bounded, add
from generators.graph import TensorType
from generators.ops.composed import compute, stacked, undetermined
from generators.ops.reduce.reductions import OPERATORS as REDUCTIONS
from generators.ops.reduce.softmax import log_softmax
from generators.ops.slots import draw_dim, draw_dtype, ints_of
from generators.ops.spec import Attrs, Call, Domain, Draw, OpSpec, Slot, TypeRuleError, Types, unsupported

Array = np.ndarray

_FLOATS = ("float32", "float64")
BLANK = 0
_LOG_SUM = next(spec for spec in REDUCTIONS if spec.name == "logsumexp")

# ---- operands and types -------------------------------------------------------------------------------


def _scores() -> Slot:
    """(steps, batch, classes), the first class the blank."""

    def accepts(type_: TensorType, earlier: Types) -> bool:
        if type_.dtype not in _FLOATS or type_.rank != 3:
            return False
        steps, batch, classes = type_.shape
        return 1 <= steps <= 33 and 1 <= batch <= 5 and 2 <= classes <= 9

    def fresh(d: Draw, earlier: Types) -> TensorType:
        shape = (d.choice((4, 2, 1, 7, 12, 33)), draw_dim(d, 4, zero=False), d.choice((3, 2, 5, 9)))
        return TensorType(draw_dtype(d, _FLOATS), shape)

    return Slot(accepts, fresh)


def _labels() -> Slot:
    """(batch, most labels), none of them the blank."""

    def accepts(type_: TensorType, earlier: Types) -> bool:
        fits = type_.dtype == "int32" and type_.rank == 2 and type_.shape[0] == earlier[0].shape[1]
        return fits and 1 <= type_.shape[1] <= 9

    def fresh(d: Draw, earlier: Types) -> TensorType:
        return TensorType("int32", (earlier[0].shape[1], d.choice((2, 1, 3, 5))))

    def domain(earlier: Types) -> Domain:
        return 1, earlier[0].shape[2] - 1

    return Slot(accepts, fresh, domain)


def _steps(d: Draw, operands: Types, attrs: Attrs) -> tuple[int, ...]:
    """How many count, for each of the batch."""
    steps, batch, _ = operands[0].shape
    return tuple(d.choice((steps, steps, max(1, steps - 1), 1)) for _ in range(batch))


def _sizes(d: Draw, operands: Types, attrs: Attrs) -> tuple[int, ...]:
    most = operands[1].shape[1]
    return tuple(d.choice((most, most, max(0, most - 1), 0)) for _ in range(operands[0].shape[1]))


def _type(operands: Types, attrs: Attrs) -> TensorType:
    scores, labels = operands
    if not _scores().accepts(scores, ()) or not _labels().accepts(labels, (scores,)):
        raise TypeRuleError(f"{labels} holds no labels for {scores}")
    steps, batch, _ = scores.shape
    lengths, sizes = ints_of(attrs, "steps", batch, 1), ints_of(attrs, "sizes", batch, 0)
    if max(lengths) > steps or max(sizes) > labels.shape[1]:
        raise TypeRuleError(f"{sizes} labels of {labels}, {lengths} steps of {scores}")
    return TensorType(scores.dtype, (batch,))


# ---- reference ----------------------------------------------------------------------------------------


def _shifted(x: Bounded, by: int, inside: Array) -> Bounded:
    """Places moved to the right; what comes in, and what the mask leaves out, is the logarithm of 0."""
    size = x.value.size
    value, error = (np.pad(a, (by, 0), constant_values=c)[:size] for a, c in ((x.value, -np.inf), (x.error, 0.0)))
    return Bounded(np.where(inside, value, -np.inf), np.where(inside, error, 0.0), x.dtype)


def _loss_of(scores: Bounded, labels: Array) -> Bounded:
    """Of one sequence: scores (steps, classes) are logarithms of probabilities, labels that count. Forward: the
    logarithm of what arrives at each place of blank, label, blank, … is that of three before, summed, times the
    probability of its class. TensorFlow and PyTorch go the same way, in logarithms."""
    places = np.full(2 * labels.size + 1, BLANK)
    places[1::2] = labels
    skips = np.zeros(places.size, bool)
    skips[2:] = (places[2:] != BLANK) & (places[2:] != places[:-2])
    emitted = scores.map(lambda x: x[:, places])
    arrived = _shifted(emitted.map(lambda x: x[0]), 0, np.arange(places.size) < 2)
    for step in range(1, scores.value.shape[0]):
        before = stacked(arrived, _shifted(arrived, 1, np.array(True)), _shifted(arrived, 2, skips), axis=0)
        arrived = add(_log_sum(before), emitted.map(lambda x, step=step: x[step]))
    return _log_sum(arrived.map(lambda x: x[-2:]))


def _log_sum(x: Bounded) -> Bounded:
    return compute(_LOG_SUM, x, axes=(0,), keepdims=False)


def _ctc(args: Sequence[Bounded], call: Call) -> Bounded:
    """Labels without an alignment, for want of steps, are open: an infinity, or a great number in its place; and so are
    scores that are not finite, or so far apart that a probability is 0."""
    logarithms, labels = compute(log_softmax, args[0], axis=-1), np.asarray(args[1].value)
    lengths, sizes = ints_of(call.attrs, "steps"), ints_of(call.attrs, "sizes")
    losses = [
        _loss_of(logarithms.map(lambda x, n=n: x[: lengths[n], n]), labels[n, : sizes[n]]) for n in range(len(sizes))
    ]
    found = stacked(*losses, axis=0)
    wild = ~np.isfinite(args[0].value).all((0, 2)) | ~np.isfinite(logarithms.value).all((0, 2))
    open_ = wild | ~np.isfinite(found.value)
    return undetermined(Bounded(np.where(open_, 0.0, -found.value), found.error, found.dtype), open_)


_NONE = unsupported("it has no such loss")

ctc_loss = OpSpec(
    "ctc_loss", "loss", (_scores(), _labels()), _type, _ctc, attrs={"steps": _steps, "sizes": _sizes},
    torch="torch.nn.functional.ctc_loss(torch.log_softmax({0}, -1), {1}, {steps}, {sizes}, reduction='none')",
    tensorflow="tf.nn.ctc_loss({1}, {0}, list({sizes}), list({steps}), blank_index=0)",
    jax=_NONE, relax=_NONE, onnx=_NONE,
)  # fmt: skip

OPERATORS: tuple[OpSpec, ...] = (ctc_loss,)
