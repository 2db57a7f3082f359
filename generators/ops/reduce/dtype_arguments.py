"""Reductions and softmax in another dtype than their operand's: by an argument `dtype`, or by PyTorch's rule that whole
numbers and bools are added and multiplied in int64; norms in a wider one; and functions of real numbers of whole ones,
in float32."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from generators.graph import COMMON, FLOATS, INTEGERS, Attr
from generators.ops.elementwise.activations import OPERATORS as ACTIVATIONS
from generators.ops.elementwise.arithmetic import OPERATORS as ARITHMETIC
from generators.ops.elementwise.exponential import OPERATORS as EXPONENTIALS
from generators.ops.elementwise.powers import OPERATORS as POWERS
from generators.ops.elementwise.special import OPERATORS as SPECIAL
from generators.ops.elementwise.trigonometric import OPERATORS as WAVES
from generators.ops.reduce.casting import cast_first
from generators.ops.reduce.cumulative import OPERATORS as SCANS
from generators.ops.reduce.norms import OPERATORS as NORMS
from generators.ops.reduce.promotion_rule import DEFAULT, PROMOTED, category, least
from generators.ops.reduce.records import axes_in
from generators.ops.reduce.reductions import OPERATORS as REDUCTIONS
from generators.ops.reduce.softmax import OPERATORS as SOFTMAX
from generators.ops.slots import tensor
from generators.ops.spec import AttrRule, Attrs, Call, Draw, OpSpec, Spelling, TypeRuleError, Types

_BASES = {
    spec.name: spec
    for specs in (ACTIVATIONS, ARITHMETIC, EXPONENTIALS, POWERS, SPECIAL, WAVES, SCANS, NORMS, REDUCTIONS, SOFTMAX)
    for spec in specs
}
SUMMED = "int64"
"""What PyTorch adds and multiplies whole numbers and bools in, where nothing else is asked for."""


def _chosen(dtypes: tuple[str, ...]) -> AttrRule:
    """Another dtype than the operand's: what is taken without an argument first. Two rare ones do not meet."""

    def rule(d: Draw, operands: Types, attrs: Attrs) -> Attr:
        own = operands[0].dtype
        usual = (SUMMED,) if category(own) < 2 and own != SUMMED else ()
        options = dict.fromkeys((*usual, *dtypes))
        near = [one for one in options if one != own and (one in COMMON or (own in COMMON and one == d.dtype))]
        return d.choice([one for one in near if one in dtypes])

    return rule


def _target(dtypes: tuple[str, ...]) -> Callable[[Types, Attrs], str]:
    def target(operands: Types, attrs: Attrs) -> str:
        to = attrs.get("to", DEFAULT)
        if to not in dtypes or to == operands[0].dtype:
            raise TypeRuleError(f"{to!r} is no other dtype than {operands[0].dtype}")
        return str(to)

    return target


def _wider(dtypes: tuple[str, ...]) -> AttrRule:
    """A dtype that holds all numbers of the operand's."""

    def rule(d: Draw, operands: Types, attrs: Attrs) -> Attr:
        own = operands[0].dtype
        return d.choice([one for one in dtypes if one != own and least(one, own) == one])

    return rule


def _wider_target(operands: Types, attrs: Attrs) -> str:
    own, to = operands[0].dtype, str(attrs.get("to", DEFAULT))
    if to not in FLOATS or to == own or least(to, own) != to:
        raise TypeRuleError(f"{to!r} is no wider dtype than {own}")
    return to


def _multiplied(call: Call) -> str:
    """torch.prod takes one axis, or none for all of them, whose result has no dimensions. Where it takes the dtype
    anyway, nothing is said."""
    usual = category(call.operands[0].dtype) < 2 and call.attrs["to"] == SUMMED
    dtype = "" if usual else ", dtype={dtype}"
    axes, rank = axes_in(call), call.operands[0].rank
    if len(set(axes)) == rank and not call.result.rank:
        return f"torch.prod({{0}}{dtype})"
    if len(axes) == 1:
        return f"torch.prod({{0}}, dim={axes[0]}, keepdim={{keepdims}}{dtype})"
    return "prod({0}.to({dtype}), {axes}, {keepdims})"


def _by_argument(texts: Mapping[str, str]) -> dict[str, Spelling]:
    """PyTorch's and JAX' own arguments. Where PyTorch takes the dtype anyway, nothing is said."""

    def torch(call: Call) -> str:
        usual = category(call.operands[0].dtype) < 2 and call.attrs["to"] == SUMMED
        return (
            texts["torch"].replace(", dtype={dtype}", "") if usual and "mean" not in texts["torch"] else texts["torch"]
        )

    own: dict[str, Spelling] = {"torch": torch}
    return own | ({"jax": texts["jax"]} if "jax" in texts else {})


_ALONG = "dim={axes}, keepdim={keepdims}"
_TEXTS = {
    **{
        name: {
            "torch": f"torch.{name}({{0}}, {_ALONG}, dtype={{dtype}})",
            "jax": f"jnp.{name}({{0}}, axis={{axes}}, keepdims={{keepdims}}, dtype={{dtype}})",
        }
        for name in ("sum", "mean")
    },
    **{
        name: {
            "torch": f"torch.{name}({{0}}, dim={{axis}}, dtype={{dtype}})",
            "jax": f"jnp.{name}({{0}}, axis={{axis}}, dtype={{dtype}})",
        }
        for name in ("cumsum", "cumprod")
    },
    **{name: {"torch": f"torch.{name}({{0}}, dim={{axis}}, dtype={{dtype}})"} for name in ("softmax", "log_softmax")},
}
_NUMBERS = tuple(dtype for dtype in PROMOTED if dtype != "bool")
_REAL = tuple(dtype for dtype in PROMOTED if dtype in FLOATS)


def _argument(name: str, dtypes: tuple[str, ...]) -> OpSpec:
    ranks = 0 if name in ("sum", "mean") else 1
    return cast_first(
        _BASES[name], f"{name}_to", (tensor(PROMOTED, min_rank=ranks),), _target(dtypes),
        attrs={"to": _chosen(dtypes)}, spellings=_by_argument(_TEXTS[name]),
    )  # fmt: skip


_NARROW = tuple(dtype for dtype in _REAL if dtype != "float64")
_NORM = "torch.linalg.vector_norm({0}, dim={axes}, keepdim={keepdims}, dtype={dtype})"
_WHOLE = tuple(dtype for dtype in PROMOTED if dtype in INTEGERS or dtype == "bool")
_OF_INTEGERS = """
    exp log log1p expm1 log2 sqrt rsqrt reciprocal sin cos tan tanh sinh cosh asin acos atan asinh acosh erf sigmoid
"""


def _of_integers(name: str) -> OpSpec:
    return cast_first(
        _BASES[name],
        f"{name}_of_integers",
        (tensor(_WHOLE),),
        _target((DEFAULT,)),
        promotes={"torch": lambda call: True},
    )


OPERATORS: tuple[OpSpec, ...] = (
    *(_argument(name, _NUMBERS) for name in ("sum", "cumsum", "cumprod")),
    *(_argument(name, _REAL) for name in ("mean", "softmax", "log_softmax")),
    cast_first(
        _BASES["prod"], "prod_to", (tensor(PROMOTED),), _target(_NUMBERS), attrs={"to": _chosen(_NUMBERS)},
        spellings={"torch": _multiplied},
    ),
    cast_first(
        _BASES["l2_norm"], "l2_norm_to", (tensor(_NARROW),), _wider_target,
        attrs={"to": _wider(("float64", "float32"))}, spellings={"torch": _NORM},
    ),
    *(_of_integers(name) for name in _OF_INTEGERS.split()),
)  # fmt: skip
