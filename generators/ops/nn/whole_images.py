"""Images of whole numbers: the greatest of windows, and other sizes by the nearest pixel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from generators.bounds.bounded import Bounded, exact
from generators.graph import TensorType
from generators.ops.nn.pooling import max_pool
from generators.ops.nn.resize import onnx_resize, resize_nearest
from generators.ops.nn.windows import activations, given, padded, windows
from generators.ops.slots import draw_dtype, one_of
from generators.ops.spec import Attrs, Call, Draw, OpSpec, ResultRule, Slot, Spelling, TypeRuleError, Types, Unsupported


def _of(dtypes: Sequence[str], floating: Slot) -> Slot:
    """The same shapes of other dtypes."""

    def accepts(type_: TensorType, earlier: Types) -> bool:
        return type_.dtype in dtypes and floating.accepts(replace(type_, dtype="float32"), earlier)

    def fresh(d: Draw, earlier: Types) -> TensorType:
        return replace(floating.fresh(d, earlier), dtype=draw_dtype(d, dtypes))

    return Slot(accepts, fresh)


def _like(rule: ResultRule, dtypes: Sequence[str]) -> ResultRule:
    """What the rule says of floating numbers."""

    def result(operands: Types, attrs: Attrs) -> TensorType:
        if operands[0].dtype not in dtypes:
            raise TypeRuleError(f"{operands[0]} holds no whole numbers of {', '.join(dtypes)}")
        return replace(rule((replace(operands[0], dtype="float32"),), attrs), dtype=operands[0].dtype)

    return result


# ---- the greatest -------------------------------------------------------------------------------------

_SHORT = ("int8", "uint8")
_MAX = max_pool(2)


def _max(args: Sequence[Bounded], call: Call) -> Bounded:
    x = args[0]
    kernel, stride, dilation, padding = given(call.attrs, "kernel", "stride", "dilation", "padding")
    least = int(np.iinfo(x.dtype).min)

    def view(array: np.ndarray, fill: int) -> np.ndarray:
        return windows(padded(np.ascontiguousarray(array), padding * 2, fill), kernel, stride, dilation)

    unknown = np.asarray(view(x.undetermined, 0).any(axis=(-2, -1)))
    return exact(view(x.value, least).max(axis=(-2, -1)), x.dtype, unknown)


max_pool2d_of_integers = replace(
    _MAX, name="max_pool2d_of_integers", operands=(_of(_SHORT, activations(2)),),
    result=_like(_MAX.result, _SHORT), reference=_max,
    jax="jax.lax.reduce_window({0}, np.array(np.iinfo({name}).min, {name}), jax.lax.max, (1, 1, *{kernel}), "
    "(1, 1, *{stride}), ((0, 0), (0, 0), *((p, p) for p in {padding})), window_dilation=(1, 1, *{dilation}))",
)  # fmt: skip

# ---- other sizes --------------------------------------------------------------------------------------

_RESIZED = ("int32", "uint8", "int8")
_MODES = ("floor", "center", "corners")
DOWN = "center down"
"""Of two pixels that are as near the first one, as ONNX has it by default."""


def _resized_type(operands: Types, attrs: Attrs) -> TensorType:
    plain = {**attrs, "mode": "center"} if attrs["mode"] == DOWN else attrs
    return _like(resize_nearest.result, _RESIZED)(operands, plain)


def _nearest_down(args: Sequence[Bounded], call: Call) -> Bounded:
    """Whole numbers of a result's pixel by the size decide, so that nothing is rounded; what lies on the edge between
    two pixels is undetermined unless both scales are powers of two."""
    turned = Call(call.operands, {**call.attrs, "mode": "center"}, call.result)
    picked = args[0].map(lambda a: a[:, :, ::-1, ::-1])
    return resize_nearest.reference([picked], turned).map(lambda a: a[:, :, ::-1, ::-1])


def _resized(args: Sequence[Bounded], call: Call) -> Bounded:
    """The first of two is the second one of the image turned round."""
    return (_nearest_down if call.attrs["mode"] == DOWN else resize_nearest.reference)(args, call)


def _plain(spelling: Spelling, dtypes: Sequence[str] = _RESIZED) -> Spelling:
    def spell(call: Call) -> str | Unsupported:
        if call.attrs["mode"] == DOWN:
            return Unsupported("it takes the second of two pixels that are as near")
        if call.result.dtype not in dtypes:
            return Unsupported(f"of whole numbers it resizes {', '.join(dtypes)} only")
        assert callable(spelling)
        return spelling(call)

    return spell


_DOWN = onnx_resize("nearest", "half_pixel", ', nearest_mode="round_prefer_floor"')


def _onnx(call: Call) -> str | Unsupported:
    spelling = resize_nearest.onnx
    assert callable(spelling)
    return _DOWN if call.attrs["mode"] == DOWN else spelling(call)


resize_nearest_of_integers = replace(
    resize_nearest, name="resize_nearest_of_integers", operands=(_of(_RESIZED, resize_nearest.operands[0]),),
    result=_resized_type, reference=_resized,
    attrs={**resize_nearest.attrs, "mode": one_of(*_MODES, DOWN)},
    torch=_plain(resize_nearest.torch, ("uint8",)), tensorflow=_plain(resize_nearest.tensorflow),
    jax=_plain(resize_nearest.jax),
    relax=_plain(resize_nearest.relax), onnx=_onnx,
)  # fmt: skip

OPERATORS: tuple[OpSpec, ...] = (max_pool2d_of_integers, resize_nearest_of_integers)
