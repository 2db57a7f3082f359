"""Relax' further spellings of operators: other layouts, axes that are left out, operators of the same meaning, operands
of other kinds (a bound tuple, a shape that is computed, a number in place of a tensor)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from types import MappingProxyType

from generators.ops.otherwise.unsaid import PLAIN
from generators.ops.shape.join_split import cuts
from generators.ops.slots import axis_in, ints_of, normalized
from generators.ops.spec import Call, Spelling, Unsupported

_PLACES = {1: "W", 2: "HW", 3: "DHW"}

# ---- sizes, axes, parts -------------------------------------------------------------------------------


def _open_size(call: Call) -> str | Unsupported:
    shape = list(call.result.shape)
    if not shape or not call.result.size:
        return PLAIN
    shape[shape.index(max(shape))] = -1
    return f"relax.op.reshape({{0}}, {tuple(shape)})"


def _some(text: str) -> Spelling:
    """Of tensors with dimensions and elements: a 0 in a shape keeps a size, and without any there is nothing to say."""
    return lambda call: text if call.result.rank and call.result.size else PLAIN


def _reversed(call: Call) -> str | Unsupported:
    perm = ints_of(call.attrs, "perm")
    return "relax.op.permute_dims({0})" if len(perm) > 1 and list(perm) == sorted(perm, reverse=True) else PLAIN


def _layout(call: Call) -> str | Unsupported:
    perm = ints_of(call.attrs, "perm")
    names = "abcdefgh"[: len(perm)]
    moved = ", ".join(names[axis] for axis in perm)
    return f"relax.op.layout_transform({{0}}, lambda {', '.join(names)}: [{moved}])" if perm else PLAIN


def _other_end(text: str) -> Spelling:
    """%s: the axis counted from the other end."""

    def spell(call: Call) -> str | Unsupported:
        rank, axis = call.result.rank, int(call.number("axis"))
        return text.replace("%s", str(axis - rank if axis >= 0 else axis + rank)) if rank else PLAIN

    return spell


def _equal_parts(call: Call) -> str | Unsupported:
    sizes = ints_of(call.attrs, "sizes")
    if len(cuts(call)) == 0 or len(set(sizes)) != 1 or not sizes[0]:
        return PLAIN
    return f"relax.op.split({{0}}, {len(sizes)}, axis={{axis}})[{{index}}]"


def _no_axes(call: Call) -> str | Unsupported:
    """Where all axes of one place go."""
    x = call.operands[0]
    ones = tuple(axis for axis, size in enumerate(x.shape) if size == 1)
    return "relax.op.squeeze({0})" if ones and ones == tuple(sorted(normalized(call.attrs["axes"], x.rank))) else PLAIN


def _bounds(call: Call) -> str | Unsupported:
    """The bounds counted from the front, as tensors."""
    steps = ints_of(call.attrs, "steps")
    if not steps or min(steps) < 1:
        return PLAIN
    given = zip(ints_of(call.attrs, "starts"), ints_of(call.attrs, "stops"), steps, strict=True)
    ends = [slice(*one).indices(dim) for one, dim in zip(given, call.operands[0].shape, strict=True)]
    starts = [start for start, _, _ in ends]
    stops = [max(start, stop) for start, stop, _ in ends]
    return f"dynamic_slice(bb, {{0}}, {starts}, {stops}, {list(steps)}, {{shape}}, {{name}})"


# ---- images -------------------------------------------------------------------------------------------


def _convolved(kernel: str) -> Spelling:
    """Channels last, the kernel in a layout of its own (%s: the letters of its places)."""

    def spell(call: Call) -> str:
        layout = kernel.replace("%s", _PLACES[call.operands[0].rank - 2])
        text = f'conv_last({{0}}, {{1}}, {{rank0}}, "{layout}", {{stride}}, {{padding}}, {{dilation}}, {{groups}})'
        return _with_bias(text, call)

    return spell


def _first_but_turned(call: Call) -> str:
    """Channels first, the kernel with its inputs first."""
    text = "conv_turned({0}, {1}, {rank0}, {stride}, {padding}, {dilation}, {groups})"
    return _with_bias(text, call)


def _with_bias(text: str, call: Call) -> str:
    return f"biased({text}, {{2}}, {{rank0}})" if len(call.operands) > 2 else text


def _pooled(name: str, rest: str) -> Spelling:
    return f'pooled_last("{name}", {{0}}, {{rank0}}, {rest})'


# ---- normalisations, reductions -----------------------------------------------------------------------


def _scaled_after(text: str, shape: str) -> Spelling:
    """Without its own scale and bias, which are applied afterwards."""

    def spell(call: Call) -> str | Unsupported:
        if call.result.dtype != "float32":
            return PLAIN
        own = text.replace("%s", "{epsilon}, center=False, scale=False)")
        return f"scaled_after({own}, {{1}}, {{2}}, {shape})"

    return spell


_CHANNELS = "(-1, *[1] * ({rank0} - 2))"
_LAYER = "relax.op.nn.layer_norm({args}, list(range(-{rank1}, 0)), %s"
_INSTANCE = "relax.op.nn.instance_norm({args}, 1, list(range(2, {rank0})), %s"
_GROUP = "relax.op.nn.group_norm({args}, {groups}, 1, list(range(2, {rank0})), %s"
_BATCH = "relax.op.nn.batch_norm({args}, axis=1, training=False, epsilon=%s"


def _over_all(name: str) -> Spelling:
    def spell(call: Call) -> str | Unsupported:
        axes, rank = normalized(call.attrs["axes"], call.operands[0].rank), call.operands[0].rank
        text = f"relax.op.{name}({{0}}, keepdims={{keepdims}})"
        return text if rank and sorted(axes) == list(range(rank)) else PLAIN

    return spell


def _one_axis(name: str) -> Spelling:
    def spell(call: Call) -> str | Unsupported:
        axes = ints_of(call.attrs, "axes")
        return f"relax.op.{name}({{0}}, {axes[0]}, {{keepdims}})" if len(axes) == 1 else PLAIN

    return spell


def _collapsed(call: Call) -> str | Unsupported:
    """Axes of length one, or none at all, say what is summed."""
    axes, rank = normalized(call.attrs["axes"], call.operands[0].rank), call.operands[0].rank
    leading = sorted(axes) == list(range(len(axes))) and len(axes) < rank
    kept = bool(call.attrs["keepdims"])
    return "relax.op.collapse_sum_to({0}, {shape})" if call.operands[0].size and (kept or leading) else PLAIN


# ---- elements -----------------------------------------------------------------------------------------


def _number(name: str) -> Spelling:
    """A number that is no tensor."""

    def spell(call: Call) -> str | Unsupported:
        scalar = call.number("scalar")
        if not isfinite(scalar):
            return PLAIN
        kind = "FloatImm" if "float" in call.result.dtype else "IntImm"
        return f"relax.op.{name}({{0}}, relax.prim_value(tvm.tirx.{kind}({{name}}, {{scalar}})))"

    return spell


def _one_dtype(text: str) -> Spelling:
    return lambda call: text if call.operands[0].dtype == call.operands[1].dtype else PLAIN


def _first_axis(text: str) -> Spelling:
    return lambda call: text if axis_in(call.attrs, call.operands[0].rank) == 0 else PLAIN


def _matrix(text: str) -> Spelling:
    return lambda call: text if call.operands[0].rank == 2 else PLAIN


def _matrices(text: str) -> Spelling:
    return lambda call: text if call.operands[0].rank == call.operands[1].rank == 2 else PLAIN


def _same_lengths(call: Call) -> str | Unsupported:
    """Where there are as many keys as queries, the first of one stand above the first of the other, and the last."""
    square = call.operands[0].shape[2] == call.operands[1].shape[2]
    causal = '"BottomRight"' if call.attrs["causal"] else "None"
    return f"attention_of(bb, {{0}}, {{1}}, {{2}}, {{scale}}, {causal})" if square else PLAIN


_TAKEN = "relax.op.take({0}, {1}, axis={axis}, mode=%s)"
_WINDOW = "{kernel}, {stride}, {padding} * 2"
RELAX: Mapping[str, Sequence[Spelling]] = MappingProxyType(
    {
        "reshape": (_open_size, _some("computed_reshape(bb, {0}, {shape}, {name})")),
        "flatten": (_some("relax.op.reshape({0}, (-1,))"),),
        "transpose": (_reversed, _layout),
        "concat": (
            "relax.op.concat(bb.emit(relax.Tuple([{args}])), axis={axis})",
            _other_end("relax.op.concat([{args}], axis=%s)"),
        ),
        "stack": (
            "relax.op.stack(bb.emit(relax.Tuple([{args}])), axis={axis})",
            _other_end("relax.op.stack([{args}], axis=%s)"),
        ),
        "split": (_equal_parts,),
        "slice": (_bounds,),
        "squeeze": (_no_axes,),
        "take": (_TAKEN.replace("%s", '"clip"'), _TAKEN.replace("%s", '"wrap"'),
                 _first_axis("relax.op.index_tensor({0}, [{1}])")),
        "gather_nd": (_some("index_columns(bb, {0}, {1}, {shape1})"),),
        "index_put": (_matrix("relax.op.index_put({0}, ({1}, {2}), {3}, True)"),),
        "masked_fill": ("relax.op.masked_fill({0}, {1}, relax.const({value}, {dtype}))",),
        "sort": (_some("relax.op.gather_elements({0}, relax.op.argsort({0}, {axis}, {descending}, 'int64'), {axis})"),),
        "topk": ('bb.emit(relax.op.topk({0}, {k}, {axis}, "both", {largest}, "int64"))[0]',),
        "topk_indices": ('bb.emit(relax.op.topk({0}, {k}, {axis}, "both", {largest}, "int64"))[1]',),
        "matmul": ("relax.op.matmul({0}, {1}, {name})", _matrices('relax.op.einsum(({0}, {1}), "ij,jk->ik")')),
        "matmul_widened": (_one_dtype("relax.op.matmul({0}, {1}, {name})"),),
        "linear": ("relax.op.linear({0}, {1}, {2}, {name})",
                   "relax.op.add({2}, relax.op.matmul({0}, relax.op.permute_dims({1})))"),
        "outer": ("relax.op.multiply(relax.op.expand_dims({0}, 1), relax.op.expand_dims({1}, 0))",
                  "relax.op.matmul(relax.op.expand_dims({0}, 1), relax.op.expand_dims({1}, 0))"),
        "conv1d": (_convolved("%sIO"), _convolved("O%sI"), _first_but_turned),
        "conv2d": (_convolved("%sIO"), _convolved("O%sI"), _first_but_turned),
        "conv3d": (_convolved("%sIO"), _convolved("O%sI"), _first_but_turned),
        "max_pool1d": (_pooled("max_pool1d", _WINDOW + ", {dilation}"),),
        "max_pool2d": (_pooled("max_pool2d", _WINDOW + ", {dilation}"),),
        "max_pool3d": (_pooled("max_pool3d", _WINDOW + ", {dilation}"),),
        "avg_pool1d": (_pooled("avg_pool1d", _WINDOW + ", count_include_pad={count_include_pad}"),),
        "avg_pool2d": (_pooled("avg_pool2d", _WINDOW + ", count_include_pad={count_include_pad}"),),
        "avg_pool3d": (_pooled("avg_pool3d", _WINDOW + ", count_include_pad={count_include_pad}"),),
        "adaptive_avg_pool2d": (_pooled("adaptive_avg_pool2d", "{output}"),),
        "global_avg_pool": (_pooled("adaptive_avg_pool2d", "(1, 1)"),),
        "batch_norm": (_scaled_after(_BATCH + "[0]", _CHANNELS), "batch_norm_last({args}, {rank0}, {epsilon}, -1)",
                       "batch_norm_last({args}, {rank0}, {epsilon}, {rank0} - 1)"),
        "layer_norm": (_scaled_after(_LAYER, "{shape1}"),),
        "instance_norm": (_scaled_after(_INSTANCE, _CHANNELS),),
        "group_norm": (_scaled_after(_GROUP, _CHANNELS),),
        "softmax": (_other_end("relax.op.nn.softmax({0}, axis=%s)"),),
        "log_softmax": (_other_end("relax.op.nn.log_softmax({0}, axis=%s)"),),
        "attention": (_same_lengths,),
        "sum": (_over_all("sum"), _one_axis("sum"), _collapsed),
        **{name: (_over_all(name), _one_axis(name)) for name in ("mean", "prod", "max", "min", "variance", "std")},
        "mul_scalar": (_number("multiply"),),
        "add_scalar": (_number("add"),),
        "clip": ("relax.op.minimum(relax.op.maximum({0}, relax.const({min}, {dtype})), relax.const({max}, {dtype}))",),
        "logical_and": ("relax.op.bitwise_and({0}, {1})",),
        "logical_or": ("relax.op.bitwise_or({0}, {1})",),
        "logical_xor": ("relax.op.bitwise_xor({0}, {1})",),
        "silu": ("relax.op.multiply({0}, relax.op.sigmoid({0}))",),
        "cumsum": ("relax.op.add(relax.op.cumsum({0}, {axis}, {dtype}, True), relax.op.astype({0}, {dtype}))",),
        "cumprod": ("relax.op.multiply(relax.op.cumprod({0}, {axis}, {dtype}, True), relax.op.astype({0}, {dtype}))",),
    }
)  # fmt: skip
"""By operator. What its own record says stands there."""
