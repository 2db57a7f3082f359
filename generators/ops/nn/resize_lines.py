"""Lines (NCL) and volumes (NCDHW) in another size: nearest element, or linear, as of images (`resize.py`)."""

from __future__ import annotations

from generators.graph import FLOATS, TensorType
from generators.ops.nn.resize import by_mode, linear, nearest, onnx_resize, resampled
from generators.ops.slots import MAX_ELEMENTS, draw_dim, draw_dtype, ints_of, one_of
from generators.ops.spec import (
    Attrs,
    Draw,
    OpSpec,
    Reference,
    ResultRule,
    Shape,
    Slot,
    Spelling,
    TypeRuleError,
    Types,
    unsupported,
)

_IMAGES = unsupported("it resizes images only")
_NO_LINES = unsupported("it resizes images and volumes only")


def _relax_resize(method: str, mode: str, rounding: str = "") -> str:
    return (
        f'relax.op.image.resize3d({{0}}, {{size}}, method="{method}", coordinate_transformation_mode="{mode}", '
        f'rounding_method="{rounding}")'
    )


def _grid(spatial: int) -> Slot:
    side = 9 if spatial == 1 else 4

    def fresh(d: Draw, earlier: Types) -> TensorType:
        sides = (draw_dim(d, side, zero=False) for _ in range(spatial))
        return TensorType(draw_dtype(d, FLOATS), (d.choice((1, 2)), d.choice((1, 2, 3)), *sides))

    return Slot(lambda t, e: t.dtype in FLOATS and t.rank == spatial + 2 and 0 < t.size <= MAX_ELEMENTS, fresh)


def _size(d: Draw, operands: Types, attrs: Attrs) -> Shape:
    shape = operands[0].shape
    room = MAX_ELEMENTS // (shape[0] * shape[1])
    sizes = []
    for dim in shape[2:]:
        sizes.append(min(d.choice((2 * dim, dim, dim // 2, dim + 1, 3, 7, 1)) or 1, max(1, room)))
        room //= sizes[-1]
    return tuple(sizes)


def _type(spatial: int, *modes: str) -> ResultRule:
    def rule(operands: Types, attrs: Attrs) -> TensorType:
        x = operands[0]
        if not _grid(spatial).accepts(x, ()) or attrs["mode"] not in modes:
            raise TypeRuleError(f"cannot resize {x} by {attrs['mode']!r}")
        return TensorType(x.dtype, (*x.shape[:2], *ints_of(attrs, "size", spatial, least=1)))

    return rule


def _record(
    name: str,
    spatial: int,
    modes: tuple[str, ...],
    reference: Reference,
    *,
    torch: Spelling,
    jax: Spelling,
    relax: Spelling,
    onnx: Spelling,
) -> OpSpec:
    return OpSpec(
        name, "grids", (_grid(spatial),), _type(spatial, *modes), reference,
        attrs={"size": _size, "mode": one_of(*modes)},
        torch=torch, tensorflow=_IMAGES, jax=jax, relax=relax if spatial == 3 else _NO_LINES, onnx=onnx,
    )  # fmt: skip


def _nearest(name: str, spatial: int) -> OpSpec:
    return _record(
        name, spatial, ("floor", "center"), nearest,
        torch=by_mode({"floor": 'torch.nn.functional.interpolate({0}, {size}, mode="nearest")',
                       "center": 'torch.nn.functional.interpolate({0}, {size}, mode="nearest-exact")'}, ""),
        jax=by_mode({"center": 'jax.image.resize({0}, {shape}, "nearest")'}, "it resizes by centres of pixels only"),
        relax=by_mode({"floor": _relax_resize("nearest_neighbor", "asymmetric", "floor"),
                       "center": _relax_resize("nearest_neighbor", "half_pixel", "round_prefer_ceil")}, ""),
        onnx=by_mode({"floor": onnx_resize("nearest", "asymmetric", ', nearest_mode="floor"'),
                      "center": onnx_resize("nearest", "half_pixel", ', nearest_mode="round_prefer_ceil"')}, ""),
    )  # fmt: skip


def _linear(name: str, spatial: int, mode: str) -> OpSpec:
    text = f'torch.nn.functional.interpolate({{0}}, {{size}}, mode="{mode}", align_corners=%s)'
    return _record(
        name, spatial, ("center", "corners"), resampled(linear),
        torch=by_mode({"center": text % False, "corners": text % True}, ""),
        jax=by_mode({"center": 'jax.image.resize({0}, {shape}, "linear", antialias=False)'},
                    "it resizes by centres of pixels only"),
        relax=by_mode({"center": _relax_resize("linear", "half_pixel"),
                       "corners": _relax_resize("linear", "align_corners")}, ""),
        onnx=by_mode({"center": onnx_resize("linear", "half_pixel"),
                      "corners": onnx_resize("linear", "align_corners")}, ""),
    )  # fmt: skip


OPERATORS: tuple[OpSpec, ...] = (
    _nearest("resize_nearest_line", 1),
    _nearest("resize_nearest_volume", 3),
    _linear("resize_linear_line", 1, "linear"),
    _linear("resize_linear_volume", 3, "trilinear"),
)
