"""Attention written with products and softmax, and with functions of its steps: products of batches of matrices, scales
that are tensors, what PyTorch takes its own attention apart into; embeddings that are added and normalised."""

from __future__ import annotations

from typing import Any

from generators.baits.bait import Bait, Guard, Pattern, limit

_FLOATS = Guard(("float32",), ("float64", "float16"))
_HALVES = Guard(("float32", "float16"), ("float64", "bfloat16"))
_ORT, _INDUCTOR, _XLA = "onnxruntime/", "torch-inductor/_sfdp_pattern_", "xla/algsimp"
HEADS, LENGTH, WIDTH = 2, 4, 8
PLAIN, TURNED = "none", "right"


def _scores(p: Pattern, q: str, k: str, scale: float, operator: str) -> str:
    turned = p.transpose(k, perm=(0, 1, 3, 2) if len(p.shape(k)) == 4 else (0, 2, 1))
    if operator == "query":
        return p.matmul(p.div(q, p.constant(scale)), turned)
    scores = p.matmul(q, turned)
    if operator == "none":
        return scores
    return p.apply(operator, scores, p.constant(scale))


def _masked(p: Pattern, scores: str, mask: str) -> str:
    shape = p.shape(scores)
    if mask == "added":
        return p.add(scores, p.input(*shape[:1], *(1,) * (len(shape) - 3), *shape[-2:]))
    if mask == "row":
        return p.add(scores, p.input(shape[0], *(1,) * (len(shape) - 2), shape[-1]))
    if mask == "full":
        return p.add(scores, p.input(*shape))
    if mask == "filled":
        condition = p.equal(p.input(shape[0], *(1,) * (len(shape) - 2), shape[-1]), p.constant(0))
        return p.masked_fill(scores, condition, value=-1e9)
    if mask == "where":
        condition = p.input(shape[-2], shape[-1], dtype="bool")
        return p.where(condition, scores, p.constant(-float("inf")))
    return scores


def _attention(
    p: Pattern, scale: float, operator: str, mask: str, layout: str, axis: int, cast: str, value: str
) -> str:
    """softmax(Q K' / s + M) V, with heads first, or moved there."""
    shape = {"heads": (2, HEADS, LENGTH, WIDTH), "moved": (2, LENGTH, HEADS, WIDTH), "three": (2, LENGTH, WIDTH),
             "one": (1, HEADS, LENGTH, WIDTH)}[layout]  # fmt: skip
    q, k, v = (p.input(*shape) for _ in range(3))
    k = q if value == "shared" else k
    v = k if value == "shared" else v
    if layout == "moved":
        q, k, v = (p.transpose(x, perm=(0, 2, 1, 3)) for x in (q, k, v))
    return _weighted(p, _masked(p, _scores(p, q, k, scale, operator), mask), v, axis, cast)


def _weighted(p: Pattern, scores: str, v: str, axis: int, cast: str) -> str:
    """The values by their weights, which are worked out in the dtype, or in float32."""
    scores = p.cast(scores, to="float32") if cast == "float32" else scores
    weights = p.softmax(scores, axis=axis)
    weights = p.cast(weights, to=p.dtype) if cast == "float32" else weights
    return p.matmul(weights, v)


WRITTEN = {
    "divided": ("heads", "div_scalar", "none", "alone"),
    "multiplied": ("heads", "mul_scalar", "none", "alone"),
    "masked": ("heads", "div_scalar", "full", "alone"),
    "moved": ("moved", "div_scalar", "none", "alone"),
    "moved and multiplied": ("moved", "mul_scalar", "none", "alone"),
    "query": ("moved", "query", "none", "alone"),
    "three": ("three", "none", "none", "alone"),
    "row": ("moved", "div_scalar", "row", "alone"),
    "row of one": ("one moved", "div_scalar", "row", "alone"),
    "kept": ("moved", "div_scalar", "kept", "alone"),
    "kept of query": ("moved", "query", "kept", "alone"),
    "causal": ("moved", "div_scalar", "causal", "returned"),
    "causal and row": ("heads", "div_scalar", "causal row", "alone"),
    "added": ("moved", "none", "full", "alone"),
    "added of one": ("one moved", "none", "full", "alone"),
    "added, returned": ("moved", "none", "full", "returned"),
    "returned": ("moved", "none", "none", "returned"),
    "joined": ("heads", "none", "joined", "alone"),
}
"""Attention as models write it, which torch/_inductor/fx_passes/fuse_attention.py looks for: where heads are, what is
scaled by a number, what masks, and whether keys and values are returned, too."""


def _as_written(p: Pattern, written: str, scale: float, cast: str) -> str | tuple[str, ...]:
    layout, operator, mask, returned = WRITTEN[written]
    batch = 1 if layout.startswith("one") else 2
    shape = (batch, LENGTH, HEADS, WIDTH) if layout.endswith("moved") else (batch, HEADS, LENGTH, WIDTH)
    q, k, v = (p.input(*((batch, LENGTH, WIDTH) if layout == "three" else shape)) for _ in range(3))
    if layout.endswith("moved"):
        q, k, v = (p.transpose(x, perm=(0, 2, 1, 3)) for x in (q, k, v))
    if mask == "joined":
        return _joined(p, q, k, v)
    q = p.div_scalar(q, scalar=scale) if operator == "query" else q
    scores = p.matmul(q, p.transpose(k, perm=(0, 2, 1) if layout == "three" else (0, 1, 3, 2)))
    scores = p.apply(operator, scores, scalar=scale) if operator.endswith("_scalar") else scores
    if mask == "full":
        scores = p.add(scores, p.input(1, 1, LENGTH, LENGTH))
    if mask.startswith("causal"):
        scores = p.where_scalar(p.input(1, 1, LENGTH, LENGTH, dtype="bool"), scores, scalar=-65504.0)
    if mask.endswith("row"):
        scores = p.add(scores, p.input(batch, 1, 1, LENGTH))
    if mask == "kept":
        kept = p.reshape(p.equal_scalar(p.input(batch, LENGTH), scalar=0), shape=(batch, 1, 1, LENGTH))
        kept = p.broadcast_to(kept, shape=(batch, HEADS, LENGTH, LENGTH))
        scores = p.masked_fill(scores, kept, value=-65504.0)
    found = _weighted(p, scores, v, -1, cast)
    return (found, k, v) if returned == "returned" else found


def _joined(p: Pattern, q: str, k: str, v: str) -> str:
    """Heads beside samples, but for the mask."""
    q, k, v = (p.reshape(x, shape=(2 * HEADS, LENGTH, WIDTH)) for x in (q, k, v))
    scores = p.reshape(p.matmul(q, p.transpose(k, perm=(0, 2, 1))), shape=(2, HEADS, LENGTH, LENGTH))
    scores = p.add(scores, p.input(2, 1, LENGTH, LENGTH))
    weights = p.softmax(p.reshape(scores, shape=(2 * HEADS, LENGTH, LENGTH)), axis=-1)
    return p.reshape(p.matmul(weights, v), shape=(2, HEADS, LENGTH, WIDTH))


def _projected(p: Pattern, mask: str, scale: float, skip: str, joined: str) -> str:
    """A layer of BERT: projections, heads, attention, projection, sum and normalisation."""
    x = p.input(2, LENGTH, HEADS * WIDTH)
    x = p.layer_norm(x, p.weight(16), p.weight(16), epsilon=0.0009765625)
    heads = []
    for number in range(3):
        one = p.add(p.matmul(x, p.weight(16, 16)), p.weight(16))
        one = p.reshape(one, shape=(2, LENGTH, HEADS, WIDTH))
        heads.append(p.transpose(one, perm=(0, 2, 3, 1) if number == 1 and joined == "once" else (0, 2, 1, 3)))
    q, k, v = heads
    k = k if joined == "once" else p.transpose(k, perm=(0, 1, 3, 2))
    scores = p.div(p.matmul(q, k), p.constant(scale))
    if mask == "bert":
        given = p.input(2, LENGTH, dtype="int64", domain=(0, 1))
        row = p.cast(p.unsqueeze(p.unsqueeze(given, axis=1), axis=2), to=p.dtype)
        scores = p.add(scores, p.mul(p.sub(p.constant(1.0), row), p.constant(-10000.0)))
    else:
        scores = _masked(p, scores, mask)
    context = p.transpose(p.matmul(p.softmax(scores, axis=3), v), perm=(0, 2, 1, 3))
    result = p.add(p.matmul(p.reshape(context, shape=(2, LENGTH, 16)), p.weight(16, 16)), p.weight(16))
    return p.add(result, x) if skip == "skip" else result


def _embedded(p: Pattern, tables: int, order: str, bias: str, index: str) -> str:
    """Words, positions and segments: looked up, added, normalised."""
    found = []
    for number in range(tables):
        rows = 3 if number == 2 else 6
        table = p.weight(rows, WIDTH)
        if number == 1:
            indices = p.constant([[0, 1, 2, 3]] if bias == "row" else [[3, 1, 2, 0]], dtype=index, domain=(0, 5))
        else:
            indices = p.input(2, LENGTH, dtype=index, domain=(0, rows - 1))
        found.append(p.embedding(table, indices))
    total = found[0] if order == "words first" else found[-1]
    for one in found[1:] if order == "words first" else found[-2::-1]:
        total = p.add(total, one)
    return p.layer_norm(total, p.weight(WIDTH), p.weight(WIDTH), epsilon=0.0009765625)


def _fused_already(p: Pattern, scale: Any, causal: bool, after: str) -> str:
    x = p.attention(*(p.input(1, 2, 3, 4) for _ in range(3)), scale=scale, causal=causal)
    return p.reshape(p.transpose(x, perm=(0, 2, 1, 3)), shape=(1, 3, 8)) if after == "joined" else x


def _rotated(p: Pattern, half: int, order: str) -> str:
    """x cos + rotate(x) sin: embeddings of positions."""
    x = p.input(1, 2, 3, 8)
    first = p.slice(x, starts=(0, 0, 0, 0), stops=(1, 2, 3, half), steps=(1, 1, 1, 1))
    rest = p.slice(x, starts=(0, 0, 0, half), stops=(1, 2, 3, 8), steps=(1, 1, 1, 1))
    turned = p.concat(*((p.neg(rest), first) if order == "negated first" else (rest, p.neg(first))), axis=3)
    return p.add(p.mul(x, p.weight(3, 8)), p.mul(turned, p.weight(3, 8)))


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
    Bait("attention-by-parts", tuple(f"{_INDUCTOR}{n}" for n in (1, 2, 5, 8, 10, 11, 14, 15, 24, 28)), _attention,
         {"scale": Guard((2.8284271247461903, 8.0), (1.0, -1.0, 0.0, 1e-30)),
          "operator": Guard(("div", "mul", "none", "query"), ("add",)),
          "mask": Guard(("none", "added", "filled", "full"), ("row", "where")),
          "layout": Guard(("heads", "moved", "three"), ("one",)), "axis": Guard((-1,), (-2,)),
          "cast": Guard(("none", "float32")), "value": Guard(("three",), ("shared",))},
         Guard(("float32", "float16"), ("float64", "bfloat16"))),
    Bait("attention-as-written", tuple(f"{_INDUCTOR}{n}" for n in range(1, 29)), _as_written,
         {"written": Guard(tuple(WRITTEN)), "scale": Guard((2.8284271247461903,), (1.0, -1.0, 1e-30)),
          "cast": Guard(("none", "float32"))},
         Guard(("float32", "float16"), ("float64", "bfloat16"))),
    Bait("attention-of-bert", (_ORT + "AttentionFusion", _ORT + "MatMulAddFusion", _ORT + "SkipLayerNormFusion"),
         _projected,
         {"mask": Guard(("bert", "none"), ("row", "added")), "scale": Guard((2.8284271247461903,), (3.0, 1.0)),
          "skip": Guard(("skip",), ("none",)), "joined": Guard(("once",), ("twice",))}, _FLOATS),
    Bait("embeddings-normalised", (_ORT + "EmbedLayerNormFusion",), _embedded,
         {"tables": Guard((3, 2), (1,)), "order": Guard(("words first",), ("words last",)),
          "bias": Guard(("row",), ("shuffled",)), "index": Guard(("int64", "int32"))}, _FLOATS),
    Bait("attention-joined", (_XLA, "tvm/FuseOps", _INDUCTOR + "1"), _fused_already,
         {"scale": Guard((None, 0.5), (1.0,)), "causal": Guard((False, True)), "after": Guard(("joined",), ("alone",))},
         _FLOATS),
    Bait("rotary-embedding", (_XLA, "tvm/FuseOps"), _rotated,
         {"half": Guard((4,), (3,)), "order": Guard(("negated first",), ("negated last",))}, _FLOATS),
    Bait("attention-of-batches", (_INDUCTOR + "13", _INDUCTOR + "24"), _batches,
         {"mask": Guard(("none", "heads"), ("rows",)), "turned": Guard(("before",), ("within",)),
          "axis": Guard((-1,), (1,))}, _HALVES),
    Bait("attention-by-tensor", (_INDUCTOR + "18", _INDUCTOR + "19"), _by_tensor,
         {"scale": Guard((2.8284271247461903,), (1.0, -1.0)), "least": Guard(("least",), ("less",)),
          "layout": Guard(("moved", "heads")), "mask": Guard(("none", "added")),
          "made": Guard(("inside",), ("outside",))}, _HALVES),
    Bait("attention-taken-apart", (_INDUCTOR + "29", _INDUCTOR + "30"), _own,
         {"scale": Guard((None, 0.5), (1.0,)), "features": Guard((4,), (WIDTH,)),
          "mask": Guard(("none", "full", "alike"), ("each",)),
          "layout": Guard(("moved",), ("heads",))}, _HALVES),
)  # fmt: skip
