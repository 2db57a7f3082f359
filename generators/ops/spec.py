"""The record of an operator: its type rule, how it is drawn, its reference and its spelling in every dialect."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from generators.bounds.bounded import Bounded
from generators.graph import Attr, TensorType

T = TypeVar("T")
Types = tuple[TensorType, ...]
Domain = tuple[int, int]
Shape = tuple[int, ...]
Attrs = Mapping[str, Attr]


class Draw(Protocol):
    """The source of every random choice. Shrinks towards `low`, the first option and False.

    dtype: what most new leaves of the graph are, where their place allows it: operators of rare dtypes meet"""

    dtype: str

    def integer(self, low: int, high: int) -> int: ...
    def choice(self, options: Sequence[T]) -> T: ...
    def boolean(self) -> bool: ...
    def attributes(self) -> Draw:
        """What a node's attributes are drawn from."""
        ...


class TypeRuleError(ValueError):
    """Operands and attributes that an operator does not accept."""


@dataclass(frozen=True, slots=True)
class Value:
    """What a slot sees of a candidate operand. `domain` is set for leaves whose elements are confined to a
    closed interval; None means anything of the dtype."""

    type: TensorType
    domain: Domain | None = None

    def within(self, wanted: Domain) -> bool:
        """Are its elements confined to this interval?"""
        return self.domain is not None and wanted[0] <= self.domain[0] and self.domain[1] <= wanted[1]


@dataclass(frozen=True, slots=True)
class Call:
    """One application: all that a spelling or a reference needs to know beside the operand values."""

    operands: Types
    attrs: Attrs
    result: TensorType

    def number(self, key: str) -> float:
        """An attribute that the type rule has found to be a number."""
        return float(self.attrs[key])  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Slot:
    """One operand position. Both functions get the operands chosen so far (all earlier slots), so that a
    slot may depend on those before it.

    accepts: may this value stand here?
    fresh:   the type of a new leaf that may stand here; it must be accepted.
    domain:  the interval that elements must lie in (None: no demand). Only leaves confined to it fit.
    usual:   values of more dimensions are not drawn for it
    span:    the interval that the elements of about every second new leaf lie in, where few others show anything
    """

    accepts: Callable[[TensorType, Types], bool]
    fresh: Callable[[Draw, Types], TensorType]
    domain: Callable[[Types], Domain | None] = field(default=lambda _: None)
    usual: int = 2**31
    span: Domain | None = None

    def fits(self, value: Value, earlier: Types) -> bool:
        wanted = self.domain(earlier)
        return (wanted is None or value.within(wanted)) and self.accepts(value.type, earlier)


AttrRule = Callable[[Draw, Types, Attrs], Attr]
"""Draws a valid value of one attribute, given the operands' types and the attributes drawn before it."""

ResultRule = Callable[[Types, Attrs], TensorType]
"""The type of the result; raises TypeRuleError for anything that the operator does not accept."""

Reference = Callable[[Sequence[Bounded], Call], Bounded]
"""The float64 value with a bound on the error that a correct evaluation in the result's dtype may make."""


@dataclass(frozen=True, slots=True)
class Unsupported:
    """Why a dialect cannot express an operator, or not for these types."""

    why: str


SpellingRule = Callable[[Call], "str | Unsupported"]
Spelling = str | Unsupported | SpellingRule
"""The source text of one application. Fields of the text (`str.format`):

{0} {1} …        operands           {args}            all operands, comma-separated
{axis} …         an attribute       {shape} {rank}    of the result
{shape0} {rank0} of operand 0, …    {dtype} {dtype0}  the dialect's expression for a dtype
{name} {name0}   the dtype's plain name in quotes, e.g. 'float32'

Functions of the dialect's helper file may be called; the program carries their source."""


def unsupported(why: str) -> Unsupported:
    return Unsupported(why)


def said(spelling: Spelling, call: Call) -> str | Unsupported:
    """What a spelling is of this call."""
    return spelling(call) if callable(spelling) else spelling


def only(dtypes: Sequence[str], why: str, text: str, operand: int = 0) -> Spelling:
    """`text` where the operand's dtype is among `dtypes`, otherwise unsupported because of `why`."""

    def spell(call: Call) -> str | Unsupported:
        return text if call.operands[operand].dtype in dtypes else Unsupported(why)

    return spell


@dataclass(frozen=True)
class OpSpec:
    """One operator, one record. `variadic` operands: the last slot may repeat up to that many times.
    `signed_zero`: IEEE 754 (or C Annex F) fixes the sign of a zero result when the signs of zero operands
    are known. `thresholds`: numbers at which kernels change their formula or a step of theirs overflows, of any dtype:
    sweeps take elements from beside those that a dtype holds (`thresholds.py` has them, by operator). `promotes`:
    the dtype in which operands of other ones, no places or conditions, are computed with. `base`: the operator that
    this one is behind its promotion or its rule of paddings; what is known of that holds for it, too."""

    name: str
    family: str
    operands: tuple[Slot, ...]
    result: ResultRule
    reference: Reference
    torch: Spelling
    tensorflow: Spelling
    jax: Spelling
    relax: Spelling
    onnx: Spelling
    attrs: Mapping[str, AttrRule] = field(default_factory=dict)
    variadic: int = 1
    signed_zero: bool = False
    thresholds: tuple[float, ...] = ()
    promotes: Callable[[Types, Attrs], str] | None = None
    base: str = ""

    def slot(self, position: int) -> Slot:
        return self.operands[min(position, len(self.operands) - 1)]
