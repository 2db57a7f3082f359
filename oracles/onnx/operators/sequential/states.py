"""Operators that carry a state along a sequence: linear attention, causal convolutions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from oracles.onnx.operators.arguments import refuse
from oracles.onnx.operators.elementwise.functions import sigmoid
from oracles.onnx.operators.sequential.attention import heads, joined
from oracles.onnx.rule import Call, Rule, Value


def _linear_attention(call: Call) -> list[Value]:
    """Token by token: the state decays, and the key's outer product with the value, or with what the state lacks of
    it, is added; heads of keys are shared by neighbouring heads of queries."""
    q, k, v, state, decay, beta = (call.input(place) for place in range(6))
    how, count, shared = call.get("update_rule", "gated_delta"), call.get("q_num_heads", 0), call.get("kv_num_heads", 0)
    if how not in ("linear", "gated", "delta", "gated_delta"):
        raise refuse(call, f"update_rule {how!r}")
    q, k, v = heads(q, count), heads(k, shared), heads(v, shared)
    scale = call.get("scale", 0.0) or 1 / np.sqrt(q.shape[-1])
    state = np.zeros((q.shape[0], shared, k.shape[-1], v.shape[-1])) if state is None else state
    if "gated" in how:
        decay = heads(decay, shared)
    if "delta" in how:
        beta = heads(beta, beta.shape[-1])
    outputs = []
    for time in range(q.shape[2]):
        key, value = k[:, :, time, :, None], v[:, :, time, None]
        if "gated" in how:
            state = np.exp(decay[:, :, time, :, None]) * state
        if "delta" in how:
            value = beta[:, :, time, :, None] * (value - (state * key).sum(2, keepdims=True))
        state = state + key * value
        outputs.append(scale * np.matmul(q[:, :, time, None], np.repeat(state, count // shared, 1)))
    y = np.concatenate(outputs, 2) if outputs else np.zeros((*q.shape[:3], v.shape[-1]))
    return [joined(y), state]


def _causal_conv(call: Call) -> list[Value]:
    """Each channel by its own kernel, over the state and what came so far; the last places are the new state."""
    x, w, bias, past = (call.input(place) for place in range(4))
    reach = w.shape[-1] - 1
    whole = np.concatenate([np.zeros((*x.shape[:2], reach)) if past is None else past, x], -1)
    y = sum((whole[..., k : k + x.shape[-1]] * w[:, 0, k, None] for k in range(w.shape[-1])), np.zeros(x.shape))
    y = y if bias is None else y + bias[:, None]
    how = call.get("activation", "none")
    if how not in ("none", "silu", "swish"):
        raise refuse(call, f"activation {how!r}")
    return [y if how == "none" else y * sigmoid(y), whole[..., whole.shape[-1] - reach :]]


def _of_runtime(rule: Rule) -> Rule:
    """ONNX Runtime's, in the form that ONNX has taken over."""

    def same(call: Call) -> Sequence[Value]:
        plain = {"state_window": 0, "channels_last": 0, "dilation": 1, "ndim": 1}
        for name, value in plain.items():
            if call.get(name, value) != value:
                raise refuse(call, f"{name} {call.get(name, value)}")
        return rule(call)

    return same


RULES = {
    "CausalConvWithState": _causal_conv,
    "LinearAttention": _linear_attention,
    "com.microsoft:CausalConvWithState": _of_runtime(_causal_conv),
    "com.microsoft:LinearAttention": _of_runtime(_linear_attention),
}
