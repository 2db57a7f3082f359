"""Attention of ONNX Runtime, by its documentation (docs/ContribOperators.md)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from oracles.onnx.kinds import floating
from oracles.onnx.operators.arguments import integer, integers, refuse, single
from oracles.onnx.operators.quantised.integers import product
from oracles.onnx.operators.sequential.attention import attend, heads, hidden, joined, rotated
from oracles.onnx.rule import Call, Value


def _masked(call: Call, mask: np.ndarray | None, batch: int, queries: int, total: int) -> np.ndarray:
    """A bias of `mask_filter_value` where the mask hides a key: lengths, lengths and starts, or zeros by key or by
    query and key."""
    if mask is None:
        return np.zeros((1, 1, 1, 1))
    keys = np.arange(total)
    if mask.ndim == 1 and mask.size == batch:
        shown = (keys < mask[:, None])[:, None, None]
    elif mask.ndim == 1 and mask.size == 2 * batch:
        shown = ((keys < mask[:batch, None]) & (keys >= mask[batch:, None]))[:, None, None]
    elif mask.shape == (batch, total):
        shown = (mask != 0)[:, None, None]
    elif mask.shape == (batch, queries, total):
        shown = (mask != 0)[:, None]
    else:
        raise refuse(call, f"a mask of {mask.shape}")
    return np.where(shown, 0.0, call.get("mask_filter_value", -10000.0))


def _causal(call: Call, queries: int, total: int) -> np.ndarray | float:
    """Each token attends those up to itself."""
    if not call.get("unidirectional", 0):
        return 0.0
    return hidden(np.arange(total) <= np.arange(queries)[:, None] + total - queries)


def _scale(call: Call, size: int) -> float:
    stated = call.get("scale", 0.0)
    return stated if stated else 1 / np.sqrt(size)


def _projected(
    call: Call, parts: Sequence[np.ndarray], mask: np.ndarray | None, past: np.ndarray | None, extra: Any
) -> list[Any]:
    """What Attention and QAttention have in common, after the projection."""
    count = call.get("num_heads", 0)
    if call.get("do_rotary", 0) or call.get("past_present_share_buffer", 0):
        raise refuse(call, "rotation, or a buffer that is shared")
    q, k, v = (heads(part, count) for part in parts)
    if past is not None:
        k, v = np.concatenate([past[0], k], 2), np.concatenate([past[1], v], 2)
    batch, queries, total = q.shape[0], q.shape[2], k.shape[2]
    bias = _masked(call, mask, batch, queries, total) + _causal(call, queries, total)
    bias = bias if extra is None else bias + extra
    found = attend(q, k, v, bias, _scale(call, q.shape[-1]))
    return [joined(found.y), np.stack([k, v]) if k.shape == v.shape else None]


def _attention(call: Call) -> list[Value]:
    x, w, bias, mask, past, extra = (call.input(place) for place in range(6))
    sizes = call.get("qkv_hidden_sizes", None) or [w.shape[1] // 3] * 3
    whole = x @ w if bias is None else x @ w + bias
    return _projected(call, np.split(whole, np.cumsum(sizes)[:2], -1), mask, past, extra)


def _quantised_attention(call: Call) -> list[Value]:
    """The projection is a product of whole numbers."""
    x, w, bias, x_scale, w_scale, mask, x_zero, w_zero, past = (call.input(place) for place in range(9))
    whole = product(x, w, x_zero, w_zero) * (x_scale * w_scale) + bias
    return _projected(call, np.split(whole, 3, -1), mask, past, None)


def _multi_head(call: Call) -> list[Value]:
    """Queries, keys and values apart, packed, or keys and values that are split into heads already."""
    q, k, v, bias, mask, extra, past_k, past_v = (call.input(place) for place in range(8))
    count = call.get("num_heads", 0)
    if call.input(8) is not None or call.input(9) is not None or "".join(call.outputs[3:]):
        raise refuse(call, "a buffer that is shared, or the products as an output")
    if q.ndim == 5 or (k is not None and k.ndim == 5):
        if bias is not None:
            raise refuse(call, "a bias of what is packed")
        packed = [q[:, :, :, part] for part in range(3)] if q.ndim == 5 else []
        if not packed:
            packed = [q.reshape(*q.shape[:2], count, -1), k[:, :, :, 0], k[:, :, :, 1]]
        q, k, v = (part.transpose(0, 2, 1, 3) for part in packed)
    elif k is None or v is None:
        raise refuse(call, "no keys or values")
    else:
        parts = [0.0] * 3 if bias is None else list(np.split(bias, [q.shape[-1], 2 * q.shape[-1]]))
        if k.ndim == 4:
            parts = [parts[0], 0.0, 0.0]
        q = heads(q + parts[0], count)
        k, v = (x if x.ndim == 4 else heads(x + part, count) for x, part in zip((k, v), parts[1:], strict=True))
    if past_k is not None:
        k, v = np.concatenate([past_k, k], 2), np.concatenate([past_v, v], 2)
    queries, total = q.shape[2], k.shape[2]
    if mask is not None and mask.ndim == 2 and past_k is not None and mask.shape[1] != total:
        raise refuse(call, "a mask of the new keys alone")
    bias = _masked(call, mask, q.shape[0], queries, total) + _causal(call, queries, total)
    bias = bias if extra is None else bias + extra
    return [joined(attend(q, k, v, bias, _scale(call, q.shape[-1])).y), k, v]


def _normed(call: Call, x: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    """The root mean square norm of each head."""
    if weight is None:
        return x
    square = (x * x).mean(-1, keepdims=True)
    return x / np.sqrt(square + call.get("qk_norm_epsilon", single(1e-6))) * weight


def _grouped(call: Call) -> list[Value]:
    """GroupQueryAttention where all samples have the same length and the past is no larger than what it holds."""
    q, k, v, past_k, past_v, lengths, _, cos, sin, places, extra, sink = (call.input(place) for place in range(12))
    count, shared = call.get("num_heads", 0), call.get("kv_num_heads", 0)
    if {call.get("k_quant_type", "NONE"), call.get("v_quant_type", "NONE")} != {"NONE"}:
        raise refuse(call, "a cache that is quantised")
    if call.get("sliding_window_cache", 0) or "".join(call.outputs[3:]):
        raise refuse(call, "a cache of the window's size, or the products as an output")
    if k is None:
        size = q.shape[-1] // (count + 2 * shared)
        q, k, v = np.split(q, [count * size, (count + shared) * size], -1)
    q, k, v = heads(q, count), heads(k, shared), heads(v, shared)
    q, k = (_normed(call, x, call.input(place)) for x, place in ((q, 14), (k, 15)))
    past, queries = 0 if past_k is None else past_k.shape[2], q.shape[2]
    if set(integers(lengths)) != {past + queries - 1}:
        raise refuse(call, "samples of several lengths, or a cache that is larger than what it holds")
    if call.get("do_rotary", 0):
        where = np.broadcast_to(past + np.arange(queries), (q.shape[0], queries)) if places is None else places
        turned = bool(call.get("rotary_interleaved", 0))
        q, k = (rotated(x.transpose(0, 2, 1, 3), cos[where], sin[where], turned).transpose(0, 2, 1, 3) for x in (q, k))
    if past_k is not None:
        k, v = np.concatenate([past_k, k], 2), np.concatenate([past_v, v], 2)
    own, keys = (past + np.arange(queries))[:, None], np.arange(k.shape[2])
    bias = hidden(keys <= own) if call.get("causal", 1) else np.zeros((1, 1))
    window = call.get("local_window_size", -1)
    if window >= 0:
        bias = bias + hidden(keys > own - window)
    bias = bias if extra is None else bias + extra
    if sink is None and call.get("smooth_softmax", -1) > 0:
        sink = np.zeros(count)
    found = attend(q, k, v, bias, _scale(call, q.shape[-1]), call.get("softcap", 0.0), sink)
    return [joined(found.y), k, v]


def _rotary(call: Call) -> list[Value]:
    """A single position is that of the first token."""
    x, places, cos, sin = (call.input(place) for place in range(4))
    if call.get("is_packed_batching", 0) or call.get("scale", 1.0) != 1:
        raise refuse(call, "packed samples, or a scale")
    size, count = call.get("rotary_embedding_dim", 0), call.get("num_heads", 0)
    if not size and x.ndim == 3:
        count = x.shape[-1] // (2 * cos.shape[-1])
    whole = x.reshape(*x.shape[:2], count, -1) if x.ndim == 3 else x.transpose(0, 2, 1, 3)
    if places.ndim == 1:
        places = np.broadcast_to(integer(places) + np.arange(whole.shape[1]), whole.shape[:2])
    y = rotated(whole, cos[places], sin[places], bool(call.get("interleaved", 0)))
    return [y.reshape(x.shape) if x.ndim == 3 else y.transpose(0, 2, 1, 3)]


def _layer(x: np.ndarray, epsilon: float, scale: np.ndarray, bias: np.ndarray | float) -> np.ndarray:
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(-1, keepdims=True) + epsilon) * scale + bias


def _embedded(call: Call) -> list[Value]:
    """The sum of all embeddings, normalised; the number of words of each sample."""
    words, segments, by_word, by_place, by_segment, scale, bias, mask, places = (call.input(k) for k in range(9))
    where = np.arange(words.shape[1])[None] if places is None else places
    total = by_word[words] + by_place[where]
    if segments is not None and by_segment is not None:
        total = total + by_segment[segments]
    if mask is not None and not floating(mask) and (np.diff(mask, axis=1) > 0).any():
        raise refuse(call, "a mask that starts with padding")
    found = np.zeros(len(words), np.int32) if mask is None else (mask != 0).sum(1).astype(np.int32)
    return [_layer(total, call.get("epsilon", single(1e-12)), scale, bias), found, total]


RULES = {
    "com.microsoft:Attention": _attention,
    "com.microsoft:EmbedLayerNormalization": _embedded,
    "com.microsoft:GroupQueryAttention": _grouped,
    "com.microsoft:MultiHeadAttention": _multi_head,
    "com.microsoft:QAttention": _quantised_attention,
    "com.microsoft:RotaryEmbedding": _rotary,
}
