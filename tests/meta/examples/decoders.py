"""Small language models with random weights and a cache of keys and values, as ONNX: with plain operators, as exporters
write them, and with operators of ONNX Runtime; and a program that exports one from PyTorch."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

WORDS, PLACES, HEADS, SIZE, LAYERS = 40, 64, 2, 8, 2
WIDTH = HEADS * SIZE
Form = Literal["plain", "multi-head", "grouped"]
ELEMENTS = {np.dtype(np.float32): TensorProto.FLOAT, np.dtype(np.float16): TensorProto.FLOAT16}
UNSEEN = -10000.0
"""What is added to the scores of keys that are not to be seen."""


class _Nodes:
    def __init__(self, dtype: np.dtype) -> None:
        self.rng, self.dtype = np.random.default_rng(3), dtype
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def constant(self, array: np.ndarray) -> str:
        self.constants.append(numpy_helper.from_array(array, f"c{len(self.constants)}"))
        return self.constants[-1].name

    def weight(self, *shape: int, centre: float = 0.0) -> str:
        spread = (
            self.rng.normal(size=shape) / np.sqrt(shape[0]) if len(shape) > 1 else 0.1 * self.rng.normal(size=shape)
        )
        return self.constant((centre + spread).astype(self.dtype))

    def whole(self, *numbers: int) -> str:
        return self.constant(np.array(numbers, np.int64))

    def __call__(self, kind: str, *inputs: str, to: tuple[str, ...] = (), **attributes: Any) -> str:
        outputs = to or (f"v{len(self.nodes)}",)
        self.nodes.append(helper.make_node(kind, inputs, outputs, f"{kind}_{len(self.nodes)}", **attributes))
        return outputs[0]

    def norm(self, x: str) -> str:
        return self("LayerNormalization", x, self.weight(WIDTH, centre=1.0), self.weight(WIDTH), axis=-1)

    def dense(self, x: str, size: int, to: int) -> str:
        return self("Add", self("MatMul", x, self.weight(size, to)), self.weight(to))


def decoder(form: Form = "plain", dtype: type[np.floating] = np.float32, forgets: bool = False) -> onnx.ModelProto:
    """Names are those of Optimum's exports: input_ids, attention_mask, position_ids (but for `grouped`, which counts
    itself), past_key_values.N.key and .value; logits, present.N.key and .value. forgets: several tokens at once see all
    keys, also the later ones, so that it is another function of several tokens than of one."""
    g = _Nodes(np.dtype(dtype))
    element = ELEMENTS[g.dtype]
    x = g("Gather", g.weight(WORDS, WIDTH, centre=0.0), "input_ids")
    if form != "grouped":
        x = g("Add", x, g("Gather", g.weight(PLACES, WIDTH), "position_ids"))
    bias = lengths = total = ""
    if form == "grouped":
        count = g("ReduceSum", "attention_mask", g.whole(1), keepdims=0)
        lengths = g("Cast", g("Sub", count, g.whole(1)), to_=TensorProto.INT32)
        longest = g("Gather", g("Shape", "attention_mask"), g.constant(np.array(1, np.int64)))
        total = g("Cast", longest, to_=TensorProto.INT32)
    else:
        bias = _bias(g, forgets)
    for layer in range(LAYERS):
        past = [f"past_key_values.{layer}.{kind}" for kind in ("key", "value")]
        present = [f"present.{layer}.{kind}" for kind in ("key", "value")]
        normed = g.norm(x)
        q, k, v = (g.dense(normed, WIDTH, WIDTH) for _ in range(3))
        if form == "plain":
            y = _attention(g, (q, k, v), past, present, bias)
        elif form == "multi-head":
            y = f"attended{layer}"
            inputs = (q, k, v, "", "", bias, *past)
            g("MultiHeadAttention", *inputs, to=(y, *present), num_heads=HEADS, domain="com.microsoft")
        else:
            y = f"attended{layer}"
            inputs = (q, k, v, *past, lengths, total)
            settings = {"num_heads": HEADS, "kv_num_heads": HEADS, "domain": "com.microsoft"}
            g("GroupQueryAttention", *inputs, to=(y, *present), **settings)
        x = g("Add", x, g.dense(y, WIDTH, WIDTH))
        up = g("Relu", g.dense(g.norm(x), WIDTH, 2 * WIDTH))
        x = g("Add", x, g.dense(up, 2 * WIDTH, WIDTH))
    g("MatMul", g.norm(x), g.weight(WIDTH, WORDS), to=("logits",))
    return _model(g, form, element)


def _bias(g: _Nodes, forgets: bool) -> str:
    """(batch, 1, new, total): 0 where a key may be seen, from the mask and the order of tokens."""
    total, new = (
        g("Gather", g("Shape", name), g.constant(np.array(1, np.int64))) for name in ("attention_mask", "input_ids")
    )
    zero, one = (g.constant(np.array(number, np.int64)) for number in (0, 1))
    keys = g("Range", zero, total, one)
    own = g("Add", g("Range", zero, new, one), g("Sub", total, new))
    later = g("Greater", g("Unsqueeze", keys, g.whole(0)), g("Unsqueeze", own, g.whole(1)))
    gone = g("Unsqueeze", g("Equal", "attention_mask", zero), g.whole(1, 2))
    hidden = gone if forgets else g("Or", g("Unsqueeze", later, g.whole(0, 1)), gone)
    shape = g("Concat", g.whole(1, 1), g("Unsqueeze", new, g.whole(0)), g("Unsqueeze", total, g.whole(0)), axis=0)
    unseen, seen = (g.constant(np.array(value, g.dtype)) for value in (UNSEEN, 0.0))
    return g("Expand", g("Where", hidden, unseen, seen), shape)


def _attention(g: _Nodes, qkv: tuple[str, str, str], past: list[str], present: list[str], bias: str) -> str:
    q, k, v = (g("Transpose", g("Reshape", part, g.whole(0, 0, HEADS, SIZE)), perm=[0, 2, 1, 3]) for part in qkv)
    for old, new, name in zip(past, (k, v), present, strict=True):
        g("Concat", old, new, to=(name,), axis=2)
    products = g("MatMul", q, g("Transpose", present[0], perm=[0, 1, 3, 2]))
    scores = g("Add", g("Mul", products, g.constant(np.array(SIZE**-0.5, g.dtype))), bias)
    y = g("MatMul", g("Softmax", scores, axis=-1), present[1])
    return g("Reshape", g("Transpose", y, perm=[0, 2, 1, 3]), g.whole(0, 0, WIDTH))


def _model(g: _Nodes, form: Form, element: int) -> onnx.ModelProto:
    for node in g.nodes:
        for attribute in node.attribute:
            attribute.name = attribute.name.rstrip("_")  # `to` of a Cast
    value = helper.make_tensor_value_info
    parts = [f"{layer}.{kind}" for layer in range(LAYERS) for kind in ("key", "value")]
    inputs = [
        value("input_ids", TensorProto.INT64, ["batch_size", "sequence_length"]),
        value("attention_mask", TensorProto.INT64, ["batch_size", "total_sequence_length"]),
        *([] if form == "grouped" else [value("position_ids", TensorProto.INT64, ["batch_size", "sequence_length"])]),
        *(value(f"past_key_values.{p}", element, ["batch_size", HEADS, "past_sequence_length", SIZE]) for p in parts),
    ]
    outputs = [
        value("logits", element, ["batch_size", "sequence_length", WORDS]),
        *(value(f"present.{p}", element, ["batch_size", HEADS, "total_sequence_length", SIZE]) for p in parts),
    ]
    graph = helper.make_graph(g.nodes, "decoder", inputs, outputs, g.constants)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


EXPORT = f"""
import sys

import torch
from torch import nn

HEADS, SIZE, WORDS, PLACES = {HEADS}, {SIZE}, {WORDS}, {PLACES}
WIDTH = HEADS * SIZE


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.qkv, self.out = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.behind, self.up, self.down = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 32), nn.Linear(32, WIDTH)

    def forward(self, x, bias, key, value):
        parts = self.qkv(self.norm(x)).chunk(3, -1)
        q, k, v = (part.view(*x.shape[:2], HEADS, SIZE).transpose(1, 2) for part in parts)
        k, v = torch.cat([key, k], 2), torch.cat([value, v], 2)
        y = (q @ k.transpose(-1, -2) * SIZE**-0.5 + bias).softmax(-1) @ v
        x = x + self.out(y.transpose(1, 2).reshape(x.shape))
        return x + self.down(torch.nn.functional.gelu(self.up(self.behind(x)))), k, v


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(PLACES, WIDTH)
        self.layers = nn.ModuleList([Layer(), Layer()])
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WORDS)

    def forward(self, input_ids, position_ids, past_key_values):
        x = self.words(input_ids) + self.places(position_ids)
        new = input_ids.shape[1]
        total = new + past_key_values[0][0].shape[2]
        seen = torch.arange(total)[None, :] <= torch.arange(new)[:, None] + (total - new)
        bias, present = torch.where(seen, 0.0, {UNSEEN})[None, None], []
        for layer, (key, value) in zip(self.layers, past_key_values):
            x, key, value = layer(x, bias, key, value)
            present.append((key, value))
        return self.head(self.norm(x)), present


torch.manual_seed(0)
path, width = sys.argv[1], int(sys.argv[2])
ids = torch.zeros(1, width or 2, dtype=torch.int64)
past = [tuple(torch.randn(1, HEADS, 3, SIZE) for _ in range(2)) for _ in range(2)]
free = torch.export.Dim.DYNAMIC
new = {{}} if width else {{1: free}}
shapes = new, new, [({{2: free}}, {{2: free}}) for _ in past]
torch.export.save(torch.export.export(Decoder().eval(), (ids, ids, past), dynamic_shapes=shapes), path)
"""
"""A program that makes a .pt2 file: its path, and how many new tokens it fixes (0: any number)."""
