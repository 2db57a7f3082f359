"""Operators that move elements, and that write them to places."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

from generators.ops.shape.pad_repeat import pairs
from generators.ops.spec import Call, Spelling, Unsupported
from harness.dialects.keras.texts import as_numpy, attribute, placed, where


def _split(call: Call) -> str:
    sizes: Any = call.attrs["sizes"]
    places = list(accumulate(sizes))[:-1]
    return f"keras.ops.split({{0}}, {places or 1}, axis={{axis}})[{{index}}]"


def _slice(call: Call) -> str:
    """An operator of its own, or a subscript where it has steps."""
    starts, stops, steps = (call.attrs[name] for name in ("starts", "stops", "steps"))
    triples: Any = list(zip(starts, stops, steps, strict=True))  # type: ignore[arg-type]
    if {step for _, _, step in triples} <= {1}:
        first = [start % dim if dim else 0 for (start, _, _), dim in zip(triples, call.operands[0].shape, strict=True)]
        if all(start >= 0 for start, _, _ in triples) or 0 not in call.operands[0].shape:
            return f"keras.ops.slice({{0}}, {first}, {{shape}})"
    inside = ", ".join(f"{start}:{stop}:{step}" for start, stop, step in triples)
    return f"{{0}}[{inside}]"


def _pad(call: Call) -> str:
    return f"keras.ops.pad({{0}}, {pairs(call.attrs)}, constant_values={{value}})"


def _slice_update(call: Call) -> str:
    attrs: Any = call.attrs
    first = [0] * call.result.rank
    first[attrs["axis"]] = attrs["start"] or 0
    return f"keras.ops.slice_update({{0}}, {first}, {{1}})"


def _scatter_nd(call: Call) -> str | Unsupported:
    if call.operands[1].rank != 2:
        return Unsupported("keras.ops.scatter_update takes a row for each place")
    reduction = call.attrs["reduction"]
    said = "" if reduction == "none" else f", reduction={reduction!r}"
    return f"keras.ops.scatter_update({{0}}, {{1}}, {{2}}{said})"


def _scatter_rows(call: Call) -> str | Unsupported:
    kind = call.attrs["kind"]
    if kind == "zeros":
        return "keras.ops.scatter({1}, {2}, {shape})"
    if kind not in ("add", "max", "min", "mul", "set", "update"):
        return Unsupported("no such reduction in keras.ops.scatter_update")
    said = "" if kind in ("set", "update") else f", reduction={kind!r}"
    return f"keras.ops.scatter_update({{0}}, {{1}}, {{2}}{said})"


def _sorted_segments(kind: str, more: str) -> Spelling:
    """Of places that leave out some, of which the number is said only on JAX, which has to know it."""

    def spell(call: Call) -> str | Unsupported:
        sizes: Any = call.attrs["sizes"]
        if not sizes or sizes[-1] == 0 or (0 in sizes and kind in ("max", "min")):
            return Unsupported("with no number of segments, the last one is not empty; what is the least of none?")
        places = [segment for segment, size in enumerate(sizes) for _ in range(size)]
        count = f'{len(sizes)} if keras.backend.backend() == "jax" else None'
        return f'keras.ops.segment_{kind}({{0}}, np.array({places}, "int32"), num_segments={count}{more})'

    return spell


def _counting(call: Call) -> str | Unsupported:
    attrs: Any = call.attrs
    start, step, count = attrs["start"], attrs["step"], call.result.shape[0]
    if max(abs(start), abs(start + step * count)) >= 2**31:
        return Unsupported("Keras counts in 32 bits")
    return f"keras.ops.arange({start}, {start + step * count}, {step}, dtype={{dtype}})"


SPELLINGS: dict[str, Spelling] = {
    "reshape": "keras.ops.reshape({0}, {shape})",
    "flatten": "keras.ops.reshape({0}, (-1,))",
    "flatten_2d": "keras.ops.reshape({0}, {shape})",
    "unflatten": "keras.ops.reshape({0}, {shape})",
    "transpose": "keras.ops.transpose({0}, {perm})",
    "squeeze": "keras.ops.squeeze({0}, axis={axes})",
    "unsqueeze": "keras.ops.expand_dims({0}, axis={axis})",
    "broadcast_to": "keras.ops.broadcast_to({0}, {shape})",
    "concat": "keras.ops.concatenate([{args}], axis={axis})",
    "stack": "keras.ops.stack([{args}], axis={axis})",
    "split": _split,
    "slice": _slice,
    "flip": "keras.ops.flip({0}, {axes})",
    "tile": "keras.ops.tile({0}, {repeats})",
    "repeat": "keras.ops.repeat({0}, {repeats}, axis={axis})",
    "pad": _pad,
    "pad_reflect": lambda call: f'keras.ops.pad({{0}}, {pairs(call.attrs)}, mode="reflect")',
    "take": "keras.ops.take({0}, {1}, axis={axis})",
    "take_from_end": "keras.ops.take({0}, {1}, axis={axis})",
    "take_flat": "keras.ops.take({0}, {1})",
    "take_flat_from_end": "keras.ops.take({0}, {1})",
    "embedding": "keras.ops.take({0}, {1}, axis=0)",
    "gather": "keras.ops.take_along_axis({0}, {1}, axis={axis})",
    "gather_from_end": "keras.ops.take_along_axis({0}, {1}, axis={axis})",
    "one_hot": "keras.ops.one_hot({0}, {depth}, axis={axis}, dtype={dtype})",
    "slice_update": attribute("step", 1, "keras.ops.slice_update has no steps", _slice_update),
    "scatter_nd": _scatter_nd,
    "scatter_rows": _scatter_rows,
    **{
        f"segment_{kind}": f"keras.ops.segment_{kind}({{0}}, {{1}}, num_segments={{segments}})"
        for kind in ("sum", "prod")
    },
    **{f"segment_{kind}": f"keras_segments('{kind}', {{0}}, {{1}}, {{segments}})" for kind in ("max", "min")},
    "sorted_segment_sum": _sorted_segments("sum", ""),
    **{f"sorted_segment_{kind}": _sorted_segments(kind, ", sorted=True") for kind in ("max", "min", "prod")},
    **as_numpy("roll tril triu diagonal swapaxes moveaxis rot90 roll_axes meshgrid isin unstack vander eye_like diff"),
    "counting": _counting,
    "sliding_windows": where(
        lambda call: call.attrs["axis"] in (-1, call.operands[0].rank - 1) and call.attrs["size"] != 0,
        "keras.ops.extract_sequences goes along the last axis",
        "keras.ops.extract_sequences({0}, {size}, {step})",
    ),
    "unravel_index": placed("keras.ops.stack(keras.ops.unravel_index({0}, {image}))", values=False),
    **{
        name: f'keras.ops.{theirs}({{0}}, {{block}}, data_format="channels_first")'
        for name, theirs in (("pixel_shuffle", "depth_to_space"), ("pixel_unshuffle", "space_to_depth"))
    },
    **{
        name: (
            f"keras.ops.transpose(keras.ops.{name}(keras.ops.transpose({{0}}, (0, 2, 3, 1)), {{block}}), (0, 3, 1, 2))"
        )
        for name in ("depth_to_space", "space_to_depth")
    },
}
