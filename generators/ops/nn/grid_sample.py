"""Images (NCHW) sampled at points of a grid, and grids from affine maps. -1 and 1 are the image's edges, or with
`align_corners` the centres of its outermost pixels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from generators.bounds.bounded import PRECISION, U64, Bounded
from generators.bounds.products import bilinear
from generators.graph import FLOATS, TensorType
from generators.ops.nn.resize import IMAGE, weighted
from generators.ops.slots import MAX_ELEMENTS, draw_dim, draw_dtype, flag, ints_of, one_of
from generators.ops.spec import Attrs, Call, Draw, OpSpec, Shape, Slot, TypeRuleError, Types, unsupported

Array = np.ndarray

_FAR = 2.0**12
"""Points farther out are at the border, or give zeros; how often one is reflected there is a matter of rounding."""

# ---- sampling -----------------------------------------------------------------------------------------


def _accepts_grid(type_: TensorType, earlier: Types) -> bool:
    x = earlier[0]
    fits = type_.dtype == x.dtype and type_.rank == 4 and type_.shape[0] == x.shape[0] and type_.shape[3] == 2
    return fits and 0 < type_.size // 2 * x.shape[1] <= MAX_ELEMENTS


def _fresh_grid(d: Draw, earlier: Types) -> TensorType:
    x = earlier[0]
    room = MAX_ELEMENTS // (x.shape[0] * x.shape[1])
    rows = draw_dim(d, min(room, 5), zero=False)
    return TensorType(x.dtype, (x.shape[0], rows, draw_dim(d, min(room // rows, 5), zero=False), 2))


def _sampled_type(operands: Types, attrs: Attrs) -> TensorType:
    x, grid = operands
    if not IMAGE.accepts(x, ()) or not _accepts_grid(grid, operands):
        raise TypeRuleError(f"cannot sample {x} at {grid}")
    if attrs["mode"] not in ("bilinear", "nearest") or attrs["padding"] not in ("zeros", "border", "reflection"):
        raise TypeRuleError(f"cannot sample by {attrs['mode']!r} and {attrs['padding']!r}")
    return TensorType(x.dtype, (*x.shape[:2], *grid.shape[1:3]))


def _places(g: Bounded, size: int, call: Call) -> tuple[Array, Array]:
    """Places among `size` pixels, and how far off they may be: the grid's own error, four roundings at most on the way
    to pixels and one or two for each reflection, all of numbers below (|g| + 2) (size + 1)."""
    corners, padding = bool(call.attrs["align_corners"]), call.attrs["padding"]
    known = np.isfinite(g.value) & (np.abs(g.value) < _FAR) & np.isfinite(g.error)
    with np.errstate(invalid="ignore"):
        # an infinite place has no weights among zeros, and a number that overflows on the way is one
        most = np.inf if padding == "border" else PRECISION[g.dtype].largest / (4 * size + 4)
        far = ~known & (padding != "reflection") & (np.abs(g.value) - g.error >= _FAR) & (np.abs(g.value) <= most)
    value = np.where(known, g.value, np.where(far, np.sign(g.value) * _FAR, 0.0))
    place = (value + 1) / 2 * (size - 1) if corners else ((value + 1) * size - 1) / 2
    off = g.error * size / 2 + 12 * (PRECISION[g.dtype].unit + U64) * (np.abs(value) + 2) * (size + 1)
    if padding == "reflection":
        low, span = (0.0, size - 1.0) if corners else (-0.5, float(size))
        if span == 0:
            place = np.zeros(place.shape)
        else:
            turn = np.mod(place - low, 2 * span)
            place = low + np.where(turn > span, 2 * span - turn, turn)
    if padding != "zeros":
        place = np.clip(place, 0, size - 1)
    return place, np.where(known, off, np.where(far, 0.0, np.inf))


def _weights(g: Bounded, size: int, call: Call) -> tuple[Bounded, Array]:
    """Weights of the pixels along one axis, and where they are not known: too far out, or the nearest pixel is not
    certain (an exact middle among them: how a framework scales decides it)."""
    place, off = _places(g, size, call)
    unknown = np.isinf(off)
    off = np.where(unknown, 0.0, off)
    if call.attrs["mode"] == "bilinear":
        return weighted(place, size, off, g.dtype), unknown
    unknown |= np.abs(np.abs(place - np.rint(place)) - 0.5) <= off
    one = (np.rint(place)[..., None] == np.arange(size)).astype(np.float64)
    return Bounded(one, np.zeros(one.shape), g.dtype), unknown


def _sampled(args: Sequence[Bounded], call: Call) -> Bounded:
    x, grid = args
    (columns, far_x), (rows, far_y) = (
        _weights(grid.map(lambda array, i=i: array[..., i]), x.value.shape[3 - i], call) for i in (0, 1)
    )
    plain = np.isfinite(x.value) & np.isfinite(x.error)
    clean = Bounded(np.where(plain, x.value, 0.0), np.where(plain, x.error, 0.0), x.dtype)
    reach = [((w.value != 0) | (w.error > 0)).astype(np.float64) for w in (rows, columns)]
    lost = np.einsum("nijh,nijw,nchw->ncij", *reach, (~plain).astype(np.float64)) > 0
    half = bilinear(lambda w, a: np.einsum("nijh,nchw->ncijw", w, a), rows, clean, 4)
    whole = bilinear(lambda w, a: np.einsum("nijw,ncijw->ncij", w, a), columns, half, 4)
    lost |= (far_x | far_y)[:, None]
    return Bounded(whole.value, np.where(lost, np.inf, whole.error), x.dtype)


grid_sample = OpSpec(
    "grid_sample", "resize", (IMAGE, Slot(_accepts_grid, _fresh_grid)), _sampled_type, _sampled,
    attrs={"mode": one_of("bilinear", "nearest"), "padding": one_of("zeros", "border", "reflection"),
           "align_corners": flag()},
    torch="torch.nn.functional.grid_sample({0}, {1}, mode={mode}, padding_mode={padding}, "
    "align_corners={align_corners})",
    tensorflow=unsupported("it samples no images at points of a grid"),
    jax="grid_sample({0}, {1}, {mode}, {padding}, {align_corners})",
    # its documentation has the grid as (N, H, W, 2), what runs and its importer of ONNX as (N, 2, H, W)
    relax="relax.op.image.grid_sample({0}, relax.op.permute_dims({1}, [0, 3, 1, 2]), method={mode}, "
    "padding_mode={padding}, "
    "align_corners={align_corners})",
    onnx='g.op("GridSample", {0}, {1}, mode={mode}.replace("bi", ""), padding_mode={padding}, '
    "align_corners=int({align_corners}))",
)  # fmt: skip

# ---- grids --------------------------------------------------------------------------------------------


def _fresh_maps(d: Draw, earlier: Types) -> TensorType:
    return TensorType(draw_dtype(d, FLOATS), (d.choice((1, 2, 3)), 2, 3))


_MAPS = Slot(lambda t, earlier: t.dtype in FLOATS and t.rank == 3 and t.shape[1:] == (2, 3) and t.size > 0, _fresh_maps)


def _grid_type(operands: Types, attrs: Attrs) -> TensorType:
    size = ints_of(attrs, "size", 2, least=2)
    if not _MAPS.accepts(operands[0], ()):
        raise TypeRuleError(f"{operands[0]} holds no affine maps")
    return TensorType(operands[0].dtype, (operands[0].shape[0], *size, 2))


def _grid_size(d: Draw, operands: Types, attrs: Attrs) -> Shape:
    return d.choice((2, 3, 4, 7)), d.choice((3, 2, 5, 8))


def _points(size: int, corners: bool) -> Array:
    points = np.linspace(-1, 1, size)
    return points if corners else points * (size - 1) / size


def _grid(args: Sequence[Bounded], call: Call) -> Bounded:
    """Each point's coordinates and 1, times a map: three terms. The coordinates are off by four roundings at most."""
    height, width = ints_of(call.attrs, "size")
    corners = bool(call.attrs["align_corners"])
    x, y = np.meshgrid(_points(width, corners), _points(height, corners))
    base = np.stack([x, y, np.ones(x.shape)], axis=-1)
    unit = PRECISION[args[0].dtype].unit + U64
    off = np.broadcast_to([4 * unit, 4 * unit, 0.0], base.shape)
    places = Bounded(base, off, args[0].dtype)
    return bilinear(lambda b, maps: np.einsum("hwk,nck->nhwc", b, maps), places, args[0], 4)


affine_grid = OpSpec(
    "affine_grid", "resize", (_MAPS,), _grid_type, _grid, attrs={"size": _grid_size, "align_corners": flag()},
    torch=lambda call: (
        f"torch.nn.functional.affine_grid({{0}}, {[call.result.shape[0], 1, *call.result.shape[1:3]]}, "
        "align_corners={align_corners})"
    ),
    tensorflow="affine_grid({0}, {size}, {align_corners})", jax="affine_grid({0}, {size}, {align_corners})",
    relax="relax.op.permute_dims(relax.op.image.affine_grid({0}, {size}, align_corners={align_corners}), "
    "[0, 2, 3, 1])",
    onnx=lambda call: (
        f'g.op("AffineGrid", {{0}}, g.const({[call.result.shape[0], 1, *call.result.shape[1:3]]}, "int64"), '
        "align_corners=int({align_corners}))"
    ),
)  # fmt: skip

OPERATORS: tuple[OpSpec, ...] = (grid_sample, affine_grid)
