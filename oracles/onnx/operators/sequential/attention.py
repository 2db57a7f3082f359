"""Attention of the ONNX specification."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oracles.onnx.operators.arguments import integers, refuse
from oracles.onnx.rule import Call, Value


@dataclass(frozen=True)
class Attended:
    """Scores after each stage, and the result; (batch, head, query, ...)."""

    raw: np.ndarray
    capped: np.ndarray
    biased: np.ndarray
    weights: np.ndarray
    y: np.ndarray


def attend(
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    bias: np.ndarray | float,
    scale: float,
    cap: float = 0.0,
    sink: np.ndarray | None = None,
) -> Attended:
    """Softmax of scaled products by values, of (batch, head, sequence, size); heads of keys and values are shared by
    as many neighbouring heads of queries as there are more of them. A row of -inf alone gives zeros. sink: by head, one
    more score, which has no value."""
    share = q.shape[1] // k.shape[1]
    k, v = np.repeat(k, share, 1), np.repeat(v, share, 1)
    raw = np.matmul(q, k.swapaxes(-1, -2)) * scale
    capped = cap * np.tanh(raw / cap) if cap else raw
    biased = capped + bias
    top = np.max(biased, -1, keepdims=True, initial=-np.inf)
    if sink is not None:
        sink = sink.reshape(1, -1, 1, 1)
        top = np.maximum(top, sink)
    top = np.where(np.isneginf(top), 0, top)
    powers = np.exp(biased - top)
    total = powers.sum(-1, keepdims=True)
    if sink is not None:
        total = total + np.exp(sink - top)
    weights = np.where(total == 0, 0, powers / np.where(total == 0, 1, total))
    return Attended(raw, capped, biased, weights, np.matmul(weights, v))


def heads(x: np.ndarray, count: int) -> np.ndarray:
    """(batch, sequence, heads x size) as (batch, head, sequence, size)."""
    return x.reshape(*x.shape[:2], count, -1).transpose(0, 2, 1, 3)


def joined(x: np.ndarray) -> np.ndarray:
    """The reverse of `heads`."""
    return x.transpose(0, 2, 1, 3).reshape(x.shape[0], x.shape[2], -1)


def hidden(allowed: np.ndarray) -> np.ndarray:
    """A bias of 0 where a key may be attended and -inf elsewhere."""
    return np.where(allowed, 0.0, -np.inf)


def _bias(call: Call, q: np.ndarray, total: int, past: int) -> np.ndarray:
    """What is added to the scores, by the mask, the lengths, causality and the window."""
    mask, lengths = call.input(3), call.input(6) if call.version >= 24 else None
    bias = np.zeros((1, 1, 1, total))
    if mask is not None:
        mask = hidden(mask) if mask.dtype == np.bool_ else mask
        if mask.shape[-1] < total and mask.shape[-1] != 1:
            if call.version < 24:
                raise refuse(call, f"a mask of {mask.shape[-1]} keys for {total}")
            pads = [(0, 0)] * (mask.ndim - 1) + [(0, total - mask.shape[-1])]
            mask = np.pad(mask, pads, constant_values=-np.inf)
        bias = bias + mask
    offset = np.full(q.shape[0], past)
    if lengths is not None:
        known = np.array(integers(lengths))
        bias = bias + hidden(np.arange(total) < known[:, None])[:, None, None]
        offset = offset if past else known - q.shape[2]
    place = (offset[:, None] + np.arange(q.shape[2]))[:, None, :, None]
    keys = np.arange(total)
    if call.get("is_causal", 0):
        bias = bias + hidden(keys <= place)
    left, right = call.get("left_window_size", -1), call.get("right_window_size", -1)
    if left >= 0:
        bias = bias + hidden(keys >= place - left)
    return bias + hidden(keys <= place + right) if right >= 0 else bias


def _attention(call: Call) -> list[Value]:
    """The stages of the scores are the fourth output."""
    q, k, v, past_k, past_v = (call.input(place) for place in (0, 1, 2, 4, 5))
    flat = q.ndim == 3
    if flat:
        count, shared = call.get("q_num_heads", 0), call.get("kv_num_heads", 0)
        q, k, v = heads(q, count), heads(k, shared), heads(v, shared)
    past = 0 if past_k is None else past_k.shape[2]
    if past_k is not None:
        k, v = np.concatenate([past_k, k], 2), np.concatenate([past_v, v], 2)
    if past and call.input(6) is not None:
        raise refuse(call, "lengths beside a past")
    scale = call.get("scale", None)
    scale = 1 / np.sqrt(q.shape[-1]) if scale is None else scale
    found = attend(q, k, v, _bias(call, q, k.shape[2], past), scale, call.get("softcap", 0.0))
    stages = (found.raw, found.capped, found.biased, found.weights)
    mode = call.get("qk_matmul_output_mode", 0)
    if not 0 <= mode < len(stages):
        raise refuse(call, f"qk_matmul_output_mode {mode}")
    return [joined(found.y) if flat else found.y, k, v, np.broadcast_to(stages[mode], found.raw.shape)]


def rotated(x: np.ndarray, cos: np.ndarray, sin: np.ndarray, interleaved: bool) -> np.ndarray:
    """The first places of (batch, sequence, head, size) rotated in pairs, by (batch, sequence, pairs)."""
    size = 2 * cos.shape[-1]
    cos, sin = cos[:, :, None], sin[:, :, None]
    turned, rest = x[..., :size], x[..., size:]
    pairs = (turned[..., 0::2], turned[..., 1::2]) if interleaved else tuple(np.split(turned, 2, -1))
    real, imaginary = cos * pairs[0] - sin * pairs[1], sin * pairs[0] + cos * pairs[1]
    if interleaved:
        turned = np.stack([real, imaginary], -1).reshape(turned.shape)
    else:
        turned = np.concatenate([real, imaginary], -1)
    return np.concatenate([turned, rest], -1)


def _rotary(call: Call) -> list[Value]:
    x, cos, sin, places = (call.input(place) for place in range(4))
    flat = x.ndim == 3
    whole = x.reshape(*x.shape[:2], call.get("num_heads", 0), -1) if flat else x.transpose(0, 2, 1, 3)
    size = call.get("rotary_embedding_dim", 0) or whole.shape[-1]
    if places is not None:
        cos, sin = cos[places], sin[places]
    if cos.shape[-1] != size // 2 or sin.shape != cos.shape:
        raise refuse(call, f"angles of {cos.shape[-1]} pairs for {size} places")
    y = rotated(whole, cos, sin, bool(call.get("interleaved", 0)))
    return [y.reshape(x.shape) if flat else y.transpose(0, 2, 1, 3)]


RULES = {"Attention": _attention, "RotaryEmbedding": _rotary}
