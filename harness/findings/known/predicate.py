"""Which elements a known issue is about: expressions over the operands, the attributes and the result of a node, such as
`any(isnan(x0), axis)`. They are data of entries, parsed by `ast` and walked here; nothing of them is executed."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from generators.bounds.bounded import PRECISION
from generators.graph import INTEGERS

Array = np.ndarray
LONGEST = 400
"""Characters of an expression."""
RESULT = ("expected", "got")
"""Names of what the reference says and of what came."""
LIMITS = ("unit", "tiny", "largest", "least")
"""Names of the unit roundoff, the least normal, the greatest and the least number of the result's dtype; of integers the
last two."""
BEFORE, AFTER = ("before", "above"), ("after", "below")
"""Functions of the nodes beside one, by globs of operators with commas between them: of what its operands come from (at
once, or further up; of one operand where a place follows), and of what takes its result (at once, or further down)."""
LEAVES = ("input", "constant")
"""May stand among these globs: an input of the graph, and what follows from parameters alone."""


class PredicateError(ValueError):
    """An expression that cannot be used; the message, a line, says why."""


def _signbit(x: Array) -> Array:
    if np.iscomplexobj(x):
        return np.signbit(np.real(x)) | np.signbit(np.imag(x))
    return np.signbit(x) if x.dtype.kind == "f" else x < 0


def _over(reduce: Callable[..., Array]) -> Callable[..., Array]:
    """A reduction over all, or over the axes of an attribute; reduced axes stay, with size 1."""

    def reduced(x: Array, axis: Any = None) -> Array:
        return np.asarray(reduce(x, axis=axis, keepdims=axis is not None))

    return reduced


def _finite(reduce: Callable[..., Array], other: float) -> Callable[..., Array]:
    """A reduction of the finite elements: 0 where there are none."""

    def reduced(x: Array, axis: Any = None) -> Array:
        kept = np.where(np.isfinite(x), x, other)
        if not kept.size:
            return np.zeros(())
        found = np.asarray(reduce(kept, axis=axis, keepdims=axis is not None))
        return np.where(np.isfinite(found), found, 0)

    return reduced


FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: getattr(np, name) for name in ("isnan", "isinf", "isfinite", "sign", "abs", "real", "imag", "floor")},
    "signbit": _signbit,
    "any": _over(np.any),
    "all": _over(np.all),
    "min": _finite(np.min, np.inf),
    "max": _finite(np.max, -np.inf),
    "sum": _over(np.sum),
    "rank": np.ndim,
    "size": np.size,
    "length": lambda x, axis: np.shape(x)[axis],
    "item": lambda x, place: x[place],
}
_BINARY: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: np.true_divide,
    ast.Mod: np.mod,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.And: np.logical_and,
    ast.Or: np.logical_or,
}
_UNARY: dict[type[ast.AST], Callable[[Any], Any]] = {ast.USub: operator.neg, ast.Not: np.logical_not}
_CONSTANTS = (bool, int, float, str, type(None))


@dataclass(frozen=True)
class Predicate:
    """text: an expression of numbers, strings, the names of `names`, comparisons, + - * / %, `and`, `or`, `not` (element
    by element, of attributes that are tuples, too) and the functions of `FUNCTIONS`."""

    text: str

    @cached_property
    def _tree(self) -> ast.expr:
        """The expression, of nothing but what is allowed. Raises PredicateError."""
        if len(self.text) > LONGEST:
            raise PredicateError(f"longer than {LONGEST} characters")
        try:
            tree = ast.parse(self.text.strip(), mode="eval").body
            _check(tree)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise PredicateError(f"no expression: {error}") from error
        return tree

    @cached_property
    def names(self) -> frozenset[str]:
        """Operands (`x0`, `x1`, …; `operands`: the elements of all of them in a row), attributes, `RESULT` and
        `LIMITS` that it mentions. Raises PredicateError."""
        called = {id(node.func) for node in ast.walk(self._tree) if isinstance(node, ast.Call)}
        return frozenset(n.id for n in ast.walk(self._tree) if isinstance(n, ast.Name) and id(n) not in called)

    @cached_property
    def beside(self) -> tuple[tuple[str, int], ...]:
        """The globs that it asks of nodes beside, and the place of the operand (-1: of any). Raises PredicateError."""
        calls = [node.args for node in ast.walk(self._tree) if isinstance(node, ast.Call) and _of_neighbours(node)]
        return tuple((args[0].value, args[1].value if args[1:] else -1) for args in calls)  # type: ignore[attr-defined]

    def check(self, attributes: Collection[str], most: int) -> None:
        """Can it be asked of an operator with these attributes and at most so many operands? Raises PredicateError."""
        given = {*attributes, *RESULT, *LIMITS, "operands", *(f"x{i}" for i in range(most))}
        unknown = sorted(self.names - given)
        if unknown:
            raise PredicateError(f"unknown name {unknown[0]!r}; there are {', '.join(sorted(given))}")

    def holds(self, values: Mapping[str, Any], shape: tuple[int, ...]) -> Array:
        """Where it holds, element by element of a result of this shape. What is of another shape is broadcast; a
        reduction's is that of the operand with the reduced axes gone; where nothing fits, all or no elements: does it
        hold anywhere? What cannot be computed of these values (shapes that do not fit each other, a name that is
        missing) does not hold."""
        try:
            with np.errstate(all="ignore"):
                mask = np.asarray(_evaluate(self._tree, values)).astype(bool)
        except (KeyError, TypeError, ValueError, IndexError, OverflowError):
            return np.zeros(shape, bool)
        return placed(mask, shape)


def placed(mask: Array, shape: tuple[int, ...]) -> Array:
    """A mask over the elements of a result, as `Predicate.holds` says."""
    try:
        return np.broadcast_to(mask, shape)
    except ValueError:
        pass
    if [n for n in mask.shape if n != 1] == [n for n in shape if n != 1]:
        return mask.reshape(shape)
    return np.full(shape, bool(mask.any()))


def values_of(
    operands: list[Array], attributes: Mapping[str, Any], dtype: str, expected: Array | None, got: Array | None = None
) -> dict[str, Any]:
    """What the names of an expression stand for at a node whose result is of this dtype: float64 in place of the narrower
    floating dtypes. None: not known."""
    given = [_wide(array) for array in operands]
    values: dict[str, Any] = {**attributes, **{f"x{i}": array for i, array in enumerate(given)}}
    values["operands"] = np.concatenate([np.zeros(0), *(array.ravel() for array in given)])
    values |= {name: _wide(array) for name, array in zip(RESULT, (expected, got), strict=True) if array is not None}
    if dtype in PRECISION:
        limits = PRECISION[dtype]
        values |= {"unit": limits.unit, "tiny": limits.tiny, "largest": limits.largest, "least": -limits.largest}
    elif dtype in INTEGERS:
        values |= {"largest": int(np.iinfo(dtype).max), "least": int(np.iinfo(dtype).min)}
    return values


def _wide(array: Array) -> Array:
    """The same numbers, so that no operation of an expression overflows or is refused."""
    kind = array.dtype.kind
    if kind in "biu":
        return array.astype(np.int64) if array.dtype != np.uint64 else array
    return array.astype(np.complex128 if kind == "c" else np.float64)


def _of_neighbours(call: ast.Call) -> bool:
    """Is it a call of a function of the nodes beside, as it may be written?"""
    match call:
        case ast.Call(func=ast.Name(id=name), args=[ast.Constant(value=str())], keywords=[]):
            return name in BEFORE + AFTER
        case ast.Call(func=ast.Name(id=name), args=[ast.Constant(value=str()), ast.Constant(value=int())], keywords=[]):
            return name in BEFORE
        case _:
            return False


def _check(tree: ast.expr) -> None:
    """Raises ValueError naming what is not part of the language."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id=name), keywords=[]) if name in FUNCTIONS or _of_neighbours(node):
                pass
            case ast.Constant(value=value) if isinstance(value, _CONSTANTS):
                pass
            case ast.Compare(ops=[_]) | ast.Name() | ast.BinOp() | ast.UnaryOp() | ast.BoolOp() | ast.Load():
                pass
            case ast.operator() | ast.unaryop() | ast.cmpop() | ast.boolop() if type(node) in _BINARY | _UNARY:
                pass
            case _:
                raise ValueError(f"{ast.unparse(node) or type(node).__name__} is not part of the language")


def _rows(value: Any) -> Any:
    """An attribute of several numbers element by element, where Python compares tuples as a whole, in order."""
    return np.asarray(value) if isinstance(value, tuple) else value


def _evaluate(node: ast.expr, values: Mapping[str, Any]) -> Any:
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            return values[name]
        case ast.UnaryOp(op=op, operand=operand):
            return _UNARY[type(op)](_evaluate(operand, values))
        case ast.BinOp(left=left, op=op, right=right) | ast.Compare(left=left, ops=[op], comparators=[right]):
            return _BINARY[type(op)](*(_rows(_evaluate(part, values)) for part in (left, right)))
        case ast.BoolOp(op=op, values=parts):
            result = _evaluate(parts[0], values)
            for part in parts[1:]:
                result = _BINARY[type(op)](result, _evaluate(part, values))
            return result
        case ast.Call(func=ast.Name(id=name), args=arguments):
            function = values[name] if name in BEFORE + AFTER else FUNCTIONS[name]
            return function(*(_evaluate(argument, values) for argument in arguments))
    raise AssertionError(node)
