"""How spellings of Keras are made."""

from __future__ import annotations

import re
from collections.abc import Callable

from generators.ops import OPS
from generators.ops.spec import Call, Spelling, Unsupported, said


def same(names: str) -> dict[str, Spelling]:
    """Those of one operand that Keras calls as we do."""
    return {name: f"keras.ops.{name}({{0}})" for name in names.split()}


def single(**names: str) -> dict[str, Spelling]:
    """Those of one operand, by our name."""
    return {name: f"keras.ops.{theirs}({{0}})" for name, theirs in names.items()}


def pair(**names: str) -> dict[str, Spelling]:
    """Those of two operands, by our name."""
    return {name: f"keras.ops.{theirs}({{0}}, {{1}})" for name, theirs in names.items()}


def along(**names: str) -> dict[str, Spelling]:
    """Reductions, by our name."""
    return {name: f"keras.ops.{theirs}({{0}}, axis={{axes}}, keepdims={{keepdims}})" for name, theirs in names.items()}


def placed(text: str, values: bool = True) -> Callable[[Call], str | Unsupported]:
    """Places or counts, which Keras gives in 32 bits. values: operand 0 is no index, so that of 64 bits it would lose
    some."""

    def spell(call: Call) -> str | Unsupported:
        if values and call.operands[0].dtype == "int64":
            return Unsupported("Keras computes int64 in 32 bits on most back ends")
        return f'keras.ops.cast({text}, "int64")' if call.result.dtype == "int64" else text

    return spell


def narrowed(text: str, *dtypes: str) -> Callable[[Call], str]:
    """What Keras gives in a wider dtype where operand 0 has one of these, cast back then."""
    return lambda call: f"keras.ops.cast({text}, {{dtype}})" if call.operands[0].dtype in dtypes else text


def where(holds: Callable[[Call], bool], why: str, text: Spelling) -> Spelling:
    """The text where the call is such a one."""

    def spell(call: Call) -> str | Unsupported:
        if not holds(call):
            return Unsupported(why)
        return said(text, call)

    return spell


def attribute(key: str, value: object, why: str, text: Spelling) -> Spelling:
    """The text where the attribute is this."""
    return where(lambda call: call.attrs[key] == value, why, text)


def as_numpy(names: str) -> dict[str, Spelling]:
    """Those whose text is JAX' with another module: Keras has the function of numpy with its name and arguments."""
    return {name: _renamed(name) for name in names.split()}


def _renamed(name: str) -> Spelling:
    def spell(call: Call) -> str | Unsupported:
        text = said(OPS[name].jax, call)
        return text.replace("jnp.", "keras.ops.") if isinstance(text, str) else text

    return spell


def composed(names: str) -> dict[str, Spelling]:
    """Those that some dialect composes of other functions (`functions/shared`): the same is said of Keras' own."""
    return {name: _composed(name) for name in names.split()}


def _composed(name: str) -> Spelling:
    def spell(call: Call) -> str | Unsupported:
        record = OPS[name]
        for text in (record.jax, record.tensorflow, record.torch):
            spelled = said(text, call)
            if isinstance(spelled, str) and re.match(r"\w+\(Space, ", spelled):
                return spelled
        return Unsupported("it is composed of other functions only where some dialect does so")

    return spell
