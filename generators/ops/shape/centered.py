"""The middle of a tensor, or zeros around it: cut off or padded to given sizes along some axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from generators.bounds.bounded import Bounded
from generators.graph import TensorType
from generators.ops.shape.layout import DEEP
from generators.ops.shape.pad_repeat import crop_text, cropped
from generators.ops.slots import MAX_ELEMENTS, axes_of, ints_of, normalized, tensor
from generators.ops.spec import Attrs, Call, Draw, OpSpec, Shape, TypeRuleError, Types


def _sizes(d: Draw, operands: Types, attrs: Attrs) -> Shape:
    """Of each of the axes."""
    x, sizes = operands[0], []
    room = MAX_ELEMENTS // x.size
    for axis in normalized(attrs["axes"], x.rank):
        dim = x.shape[axis]
        sizes.append(d.choice(tuple(s for s in (dim + 1, dim, dim - 1, dim + 2, dim - 2, dim + 5) if s > 0)))
        if sizes[-1] > dim * room:
            sizes[-1] = dim
        room = room * dim // max(dim, sizes[-1])
    return tuple(sizes)


def _type(operands: Types, attrs: Attrs) -> TensorType:
    x = operands[0]
    axes, shape = normalized(attrs["axes"], x.rank), list(x.shape)
    for axis, size in zip(axes, ints_of(attrs, "shape", len(axes), least=1), strict=True):
        shape[axis] = size
    if not axes or x.size == 0:
        raise TypeRuleError(f"there is no middle of {x}")
    return TensorType(x.dtype, tuple(shape))


def _pads(call: Call) -> Shape:
    """In front of each axis, then behind. Of an odd number the smaller half is in front."""
    more = [new - old for old, new in zip(call.operands[0].shape, call.result.shape, strict=True)]
    front = [n // 2 if n >= 0 else -(-n // 2) for n in more]
    return (*front, *(n - before for n, before in zip(more, front, strict=True)))


def _centered(args: Sequence[Bounded], call: Call) -> Bounded:
    return cropped(args, call, _pads)


def _onnx(call: Call) -> str:
    every = call.attrs["axes"] == tuple(range(call.result.rank))
    return 'g.op("CenterCropPad", {0}, g.const({sizes}, "int64"){axes})'.replace(
        "{axes}", "" if every else ", axes={axes}"
    ).replace("{sizes}", str(list(ints_of(call.attrs, "shape"))))


center_crop_pad = OpSpec(
    "center_crop_pad", "layout", (replace(tensor(min_rank=1, nonempty=True), usual=DEEP),), _type, _centered,
    attrs={"axes": axes_of(0), "shape": _sizes}, signed_zero=True,
    torch=crop_text("torch.nn.functional.pad({0}, %t)", _pads), tensorflow=crop_text("tf.pad({0}[%s], %w)", _pads),
    jax=crop_text("jax.lax.pad({0}, jnp.zeros((), {dtype}), %p)", _pads),
    relax=crop_text("relax.op.nn.pad(relax.op.strided_slice({0}, %a, %b, %e), %f)", _pads),
    onnx=_onnx,
)  # fmt: skip

OPERATORS: tuple[OpSpec, ...] = (center_crop_pad,)
