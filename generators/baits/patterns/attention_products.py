"""Attention whose steps are functions of their own: products of batches of matrices, scales that are tensors, and what
PyTorch takes its own attention apart into."""

from __future__ import annotations

from typing import Any

from generators.baits.bait import Bait, Guard, Pattern, limit
from generators.baits.patterns.attention import HEADS, LENGTH, WIDTH

_RULE = "torch-inductor/_sfdp_pattern_"
_HALVES = Guard(("float32", "float16"), ("float64", "bfloat16"))
PLAIN, TURNED = "none", "right"


def _batches(p: Pattern, mask: str, turned: str, axis: int) -> str:
    """softmax(Q K') V of batches of matrices; with a mask, heads stand beside samples."""
    rows = 2 * HEADS if mask != "none" else 3
    shape = (2, HEADS, LENGTH, WIDTH) if mask != "none" else (rows, LENGTH, WIDTH)
    q, k, v = (p.input(*shape) for _ in range(3))
    if mask != "none":
        q, k, v = (p.reshape(x, shape=(rows, LENGTH, WIDTH)) for x in (q, k, v))
    k = p.transpose(k, perm=(0, 2, 1)) if turned == "before" else k
    scores = p.batch_matmul(q, k, form=PLAIN if turned == "before" else TURNED, last=3)
    if mask != "none":
        own = {"heads": (1, 1, LENGTH, LENGTH), "rows": (2, 1, 1, LENGTH)}[mask]
        scores = p.add(p.reshape(scores, shape=(2, HEADS, LENGTH, LENGTH)), p.input(*own))
        scores = p.reshape(scores, shape=(rows, LENGTH, LENGTH))
    found = p.batch_matmul(p.softmax(scores, axis=axis), v, form=PLAIN, last=3)
    return found if mask == "none" else p.reshape(found, shape=(2, HEADS, LENGTH, WIDTH))


def _by_tensor(p: Pattern, scale: float, least: str, layout: str, mask: str, made: str) -> str | tuple[str, ...]:
    """A scale that is made in the program; what is hidden gets the least number."""
    moved = layout == "moved"
    shape = (2, LENGTH, HEADS, WIDTH) if moved else (2, HEADS, LENGTH, WIDTH)
    q, k, v = (p.input(*shape) for _ in range(3))
    if moved:
        q, k, v = (p.transpose(x, perm=(0, 2, 1, 3)) for x in (q, k, v))
    size = p.mul_scalar(p.ones_like(p.input()), scalar=scale) if made == "inside" else p.constant(scale)
    scores = p.div(p.matmul(q, p.transpose(k, perm=(0, 1, 3, 2))), size)
    hidden = limit(p.dtype, "min") if least == "least" else -65504.0
    scores = p.where_scalar(p.input(1, 1, LENGTH, LENGTH, dtype="bool"), scores, scalar=hidden)
    if mask == "added":
        scores = p.add(scores, p.input(1, 1, LENGTH, LENGTH))
    found = p.matmul(p.softmax(scores, axis=-1), v)
    return (found, k, v) if moved else found


def _own(p: Pattern, scale: Any, features: int, mask: str, layout: str) -> str:
    """PyTorch's attention, which it takes apart where values have other features than keys."""
    moved = layout == "moved"
    sizes = (WIDTH, WIDTH, features)
    if moved:
        q, k, v = (p.transpose(p.input(2, LENGTH, HEADS, size), perm=(0, 2, 1, 3)) for size in sizes)
    else:
        q, k, v = (p.input(2, HEADS, LENGTH, size) for size in sizes)
    if mask == "none":
        return p.attention(q, k, v, scale=scale, causal=False)
    lead = {"full": (), "alike": (1, 1), "each": (2, HEADS)}[mask]
    return p.attention_biased(q, k, v, p.input(*lead, LENGTH, LENGTH), scale=scale)


BAITS = (
    Bait("attention-of-batches", (_RULE + "13", _RULE + "24"), _batches,
         {"mask": Guard(("none", "heads"), ("rows",)), "turned": Guard(("before",), ("within",)),
          "axis": Guard((-1,), (1,))}, _HALVES),
    Bait("attention-by-tensor", (_RULE + "18", _RULE + "19"), _by_tensor,
         {"scale": Guard((2.8284271247461903,), (1.0, -1.0)), "least": Guard(("least",), ("less",)),
          "layout": Guard(("moved", "heads")), "mask": Guard(("none", "added")),
          "made": Guard(("inside",), ("outside",))}, _HALVES),
    Bait("attention-taken-apart", (_RULE + "29", _RULE + "30"), _own,
         {"scale": Guard((None, 0.5), (1.0,)), "features": Guard((4,), (WIDTH,)),
          "mask": Guard(("none", "full", "alike"), ("each",)),
          "layout": Guard(("moved",), ("heads",))}, _HALVES),
)  # fmt: skip
