"""Operators made of others: their references from the records of their parts, their spellings from functions that are
written once for all dialects (`harness/dialects/functions/shared/basic.py`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypedDict

import numpy as np

from generators.bounds.bounded import Bounded
from generators.graph import Attr, TensorType
from generators.ops.spec import Attrs, Call, OpSpec, Spelling, TypeRuleError, Types, Unsupported, said

Array = np.ndarray


def type_of(x: Bounded) -> TensorType:
    return TensorType(x.dtype, tuple(x.value.shape))


def compute(spec: OpSpec, *args: Bounded, **attrs: Attr) -> Bounded:
    """The reference of a record, applied to values."""
    types = tuple(type_of(x) for x in args)
    return spec.reference(args, Call(types, attrs, spec.result(types, attrs)))


def joined(*args: Bounded, axis: int) -> Bounded:
    """The values side by side along an axis."""
    value, error = (np.concatenate([getattr(x, name) for x in args], axis) for name in ("value", "error"))
    return Bounded(value, error, args[0].dtype)


def stacked(*args: Bounded, axis: int) -> Bounded:
    """The values along a new axis."""
    return joined(*(x.map(lambda a: np.expand_dims(a, axis)) for x in args), axis=axis)


def chosen(condition: Array, x: Bounded, y: Bounded) -> Bounded:
    """x where the condition holds, else y; the condition is certain."""
    return Bounded(np.where(condition, x.value, y.value), np.where(condition, x.error, y.error), x.dtype)


def given(value: Array | float, dtype: str) -> Bounded:
    """Numbers that the dtype holds exactly."""
    array = np.asarray(value, np.float64)
    return Bounded(array, np.zeros(array.shape), dtype)


def negated(x: Bounded) -> Bounded:
    return Bounded(-x.value, x.error, x.dtype)


def magnitude(x: Bounded) -> Bounded:
    """|x|: no rounding, and no further from it than x may be off."""
    with np.errstate(all="ignore"):
        return Bounded(np.abs(x.value), x.error, x.dtype)


def undetermined(x: Bounded, where: Array) -> Bounded:
    """x, of which the elements that the mask names may be anything."""
    return Bounded(x.value, np.where(where, np.inf, x.error), x.dtype)


# ---- spellings ----------------------------------------------------------------------------------------

_FORMS: Mapping[str, str] = {
    "torch": "{f}(Space, {args}{attrs})",
    "tensorflow": "{f}(Space, {args}{attrs})",
    "jax": "{f}(Space, {args}{attrs})",
    "relax": "Space(bb).run({f}, [{args}]{attrs})",
    "onnx": "Space(g).run({f}, [{args}], [{types}]{attrs})",
}


class Spellings(TypedDict):
    torch: Spelling
    tensorflow: Spelling
    jax: Spelling
    relax: Spelling
    onnx: Spelling


def shared(function: str, *, operands: str = "{args}", **extra: Callable[[Call], object]) -> Spellings:
    """The function of `shared/basic.py` of that name in every dialect: of all operands, with all attributes and
    whatever `extra` computes as keywords."""

    def spelling(form: str) -> Spelling:
        def spell(call: Call) -> str:
            attrs = {**call.attrs, **{name: rule(call) for name, rule in extra.items()}}
            keywords = "".join(f", {name}={value!r}" for name, value in attrs.items())
            types = ", ".join(f"({t.dtype!r}, {t.shape!r})" for t in call.operands)
            text = form.replace("{f}", function).replace("{types}", types).replace("{args}", operands)
            # a literal brace of an attribute would be taken for a field
            return text.replace("{attrs}", keywords.replace("{", "{{").replace("}", "}}"))

        return spell

    return Spellings(**{dialect: spelling(form) for dialect, form in _FORMS.items()})  # type: ignore[typeddict-item]


def left_out(base: OpSpec, name: str, usual: Mapping[str, Callable[[Types], Attr]], **fields: Any) -> OpSpec:
    """The operator with arguments that may be left out, and one that is: its attribute is None. usual: what each of
    them stands for then, by the types of the operands; fields: its rule among `attrs`, and the texts of dialects in
    which it can be left out; the others say what it stands for."""

    def whole(operands: Types, attrs: Attrs) -> Attrs:
        none = [key for key in usual if attrs[key] is None]
        if not none:
            raise TypeRuleError(f"{name} with all arguments is {base.name}")
        return {**attrs, **{key: usual[key](operands) for key in none}}

    def call_of(call: Call) -> Call:
        return replace(call, attrs=whole(call.operands, call.attrs))

    def called(spelling: Spelling) -> Spelling:
        def spell(call: Call) -> str | Unsupported:
            return said(spelling, call_of(call))

        return spell

    dialects = ("torch", "tensorflow", "jax", "relax", "onnx")
    texts = {dialect: called(getattr(base, dialect)) for dialect in dialects if dialect not in fields}
    attrs = {**base.attrs, **fields.pop("attrs")}
    return replace(
        base, name=name, base=base.base or base.name, attrs=attrs,
        result=lambda operands, attrs: base.result(operands, whole(operands, attrs)),
        reference=lambda args, call: base.reference(args, call_of(call)), **texts, **fields,
    )  # fmt: skip
