"""Operators whose operands are cast first: by a framework's own promotion of dtypes, or by an argument `dtype`.

A record follows from that of the operator of one dtype: its reference, of the cast operands, and its spelling. A
dialect that promotes writes the operator alone; the others write the casts."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from generators.bounds.bounded import Bounded
from generators.graph import Attr, TensorType
from generators.ops.elementwise.cast import cast
from generators.ops.spec import (
    AttrRule,
    Attrs,
    Call,
    Draw,
    OpSpec,
    Slot,
    Spelling,
    TypeRuleError,
    Types,
    Unsupported,
    said,
)

Target = Callable[[Types, Attrs], str]
"""The dtype that operands are cast to; raises TypeRuleError where there is none."""
DIALECTS = ("torch", "tensorflow", "jax", "relax", "onnx")
_FIELD = re.compile(r"\{(args|dtype|name|)(\d*)\}")


def cast_types(operands: Types, to: str, kept: Sequence[int] = ()) -> Types:
    """Types of the operands as they are once cast; kept: positions of those that are not."""
    return tuple(one if i in kept else TensorType(to, one.shape) for i, one in enumerate(operands))


_SAID = {"torch": "torch.{to}", "tensorflow": "tf.{to}", "jax": "jnp.{to}", "relax": "'{to}'"}
_ONNX = {"float32": "TensorProto.FLOAT", "int64": "TensorProto.INT64"}
"""What no operand and no result may have, but numbers of the program."""


def _named(dialect: str, to: str, call: Call, kind: str) -> str:
    """What means the dtype `to` in a text: the field of the result, or of an operand that has it, or the name."""
    if call.result.dtype == to:
        return f"{{{kind}}}"
    fields = (f"{{{kind}{i}}}" for i, one in enumerate(call.operands) if one.dtype == to)
    plain = repr(to) if kind == "name" else _ONNX.get(to, "") if dialect == "onnx" else _SAID[dialect].format(to=to)
    return next(fields, plain)


def _spelling(dialect: str, base: Spelling, target: Target, kept: Sequence[int], written: bool) -> Spelling:
    """The text of the operator of one dtype. written: with the casts."""
    if isinstance(base, Unsupported):
        return base

    def spell(call: Call) -> str | Unsupported:
        to = target(call.operands, call.attrs)
        whole = replace(call, operands=cast_types(call.operands, to, kept))
        text = said(base, whole)
        if isinstance(text, Unsupported):
            return text
        one_cast = str(getattr(cast, dialect))

        def operand(i: int) -> str:
            plain = f"{{{i}}}"
            if not written or i in kept or call.operands[i].dtype == to:
                return plain
            return one_cast.replace("{0}", plain).replace("{dtype}", _named(dialect, to, call, "dtype"))

        def field(match: re.Match[str]) -> str:
            kind, number = match[1], match[2]
            if kind == "args":
                return ", ".join(operand(i) for i in range(len(call.operands)))
            if not kind:
                return operand(int(number)) if number else match[0]
            return match[0] if not number or int(number) in kept else _named(dialect, to, call, kind)

        return _FIELD.sub(field, text)

    return spell


def _kept_wide(x: Bounded, then: Bounded, call: Call) -> Bounded:
    """A cast operand. A number that float16 does not hold may be kept in float32 until a comparison, whose result does
    not overflow (`oracles/judge/reference.py` sees to operators whose results are of float16)."""
    if then.dtype != "float16" or call.result.dtype == then.dtype:
        return then
    overflows = np.isinf(then.value) & np.isfinite(x.value)
    return replace(then, error=np.where(overflows, np.inf, then.error))


def cast_first(
    base: OpSpec,
    name: str,
    slots: tuple[Slot, ...],
    target: Target,
    *,
    kept: Sequence[int] = (),
    promotes: Mapping[str, Callable[[Call], bool]] | None = None,
    attrs: Mapping[str, AttrRule] | None = None,
    spellings: Mapping[str, Spelling] | None = None,
) -> OpSpec:
    """`base` of operands that are cast to `target`, but for those `kept`. promotes: dialect -> does it promote in this
    call? It writes none of the casts then. attrs: drawn before those of the operator; spellings: dialects that write
    it in another way."""
    own = tuple(attrs or {})

    def rest(given: Attrs) -> Attrs:
        return {key: value for key, value in given.items() if key not in own}

    def typed(operands: Types, given: Attrs) -> TensorType:
        if not all(slot.accepts(one, operands[:i]) for i, (slot, one) in enumerate(zip(slots, operands, strict=False))):
            raise TypeRuleError(f"{name} does not take {', '.join(map(str, operands))}")
        return base.result(cast_types(operands, target(operands, given), kept), rest(given))

    def drawn(rule: AttrRule) -> AttrRule:
        def draw(d: Draw, operands: Types, given: Attrs) -> Attr:
            return rule(d, cast_types(operands, target(operands, given), kept), rest(given))

        return draw

    def reference(args: Sequence[Bounded], call: Call) -> Bounded:
        to = target(call.operands, call.attrs)
        types = cast_types(call.operands, to, kept)
        values = [
            x if x.dtype == then.dtype else _kept_wide(x, cast.reference([x], Call((one,), {"to": to}, then)), call)
            for x, one, then in zip(args, call.operands, types, strict=True)
        ]
        return base.reference(values, Call(types, rest(call.attrs), call.result))

    def spelt(dialect: str) -> Spelling:
        if spellings and dialect in spellings:
            return spellings[dialect]
        plain, cast_ = (_spelling(dialect, getattr(base, dialect), target, kept, written) for written in (False, True))
        does = (promotes or {}).get(dialect)
        if does is None or isinstance(plain, Unsupported):
            return cast_

        def spell(call: Call) -> str | Unsupported:
            chosen = plain if does(call) else cast_
            return said(chosen, call)

        return spell

    return OpSpec(
        name, base.family, slots, typed, reference,
        attrs={**(attrs or {}), **{key: drawn(rule) for key, rule in base.attrs.items()}},
        variadic=base.variadic, signed_zero=base.signed_zero, thresholds=base.thresholds,
        promotes=target, base=base.name,
        torch=spelt("torch"), tensorflow=spelt("tensorflow"), jax=spelt("jax"), relax=spelt("relax"),
        onnx=spelt("onnx"),
    )  # fmt: skip
