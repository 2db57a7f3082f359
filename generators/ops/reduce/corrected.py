"""Variances and standard deviations of samples: sums of squared deviations by n - correction (Bessel's correction is 1,
which PyTorch takes where nothing is said)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from generators.bounds.bounded import Bounded, multiply
from generators.bounds.sums import root, variance_of
from generators.graph import FLOATS, Attr, TensorType
from generators.ops.elementwise.references import constant
from generators.ops.reduce.records import axes_in, count, reducible, reduction
from generators.ops.slots import int_of
from generators.ops.spec import Attrs, Call, Draw, OpSpec, Spelling, TypeRuleError, Types

CORRECTIONS = (1, 0, 2, 3)


def _elements(operands: Types, attrs: Attrs) -> int:
    return count(Call(operands, attrs, operands[0]))


def _correction(d: Draw, operands: Types, attrs: Attrs) -> Attr:
    """Less than there are elements."""
    return d.choice([c for c in CORRECTIONS if c < _elements(operands, attrs)])


def factor(call: Call) -> float:
    """n / (n - correction): what makes a population's variance that of a sample."""
    return count(call) / (count(call) - int_of(call.attrs, "correction"))


def _variance(args: Sequence[Bounded], call: Call) -> Bounded:
    """The population's, by n / (n - correction): as one quotient, or as a rounded factor of it."""
    of_all = variance_of(args[0], axes_in(call), bool(call.attrs["keepdims"]))
    return multiply(of_all, constant(factor(call), of_all))


def _std(args: Sequence[Bounded], call: Call) -> Bounded:
    return root(_variance(args, call))


def _of_torch(name: str) -> Spelling:
    """Without arguments where those are the usual ones."""

    def spell(call: Call) -> str:
        usual = not call.result.rank and call.attrs["correction"] == 1
        return f"torch.{name}({{0}}" + (")" if usual else ", dim={axes}, correction={correction}, keepdim={keepdims})")

    return spell


def _scaled(text: str) -> Spelling:
    """{factor}: n / (n - correction)."""
    return lambda call: text.replace("{factor}", repr(factor(call)))


def _corrected(
    name: str, reference: Callable[[Sequence[Bounded], Call], Bounded], torch: str, tensorflow: Spelling, jax: str,
    relax: str, onnx: str,
) -> OpSpec:  # fmt: skip
    plain = reduction(
        name, reducible(FLOATS), reference, empty=False, torch=_of_torch(torch), tensorflow=tensorflow, jax=jax,
        relax=_scaled(relax), onnx=_scaled(onnx),
    )  # fmt: skip

    def result(operands: Types, attrs: Attrs) -> TensorType:
        found = plain.result(operands, attrs)
        if not 0 <= int_of(attrs, "correction") < _elements(operands, attrs):
            raise TypeRuleError(f"{operands[0]} along {attrs['axes']} is too few for the correction")
        return found

    return replace(plain, result=result, attrs={**plain.attrs, "correction": _correction})


_RELAX = (
    "relax.op.multiply(relax.op.variance({0}, axis=list({axes}), keepdims={keepdims}), relax.const({factor}, {dtype}))"
)
_ONNX = 'g.op("Mul", variance(g, {0}, {axes}, {keepdims}), g.const({factor}, {name}))'


def _of_numpy(text: str) -> Spelling:
    """%s: the variance. TensorFlow's numpy takes one axis and a dtype beside ddof only, though numpy takes more."""

    def spell(call: Call) -> str:
        axes = axes_in(call)
        if len(axes) == 1:
            rest = "dtype={dtype}, ddof={correction}, keepdims={keepdims})"
            variance = f"tf.experimental.numpy.var({{0}}, axis={axes[0]}, {rest}"
        else:
            variance = f"tf.math.reduce_variance({{0}}, axis={{axes}}, keepdims={{keepdims}}) * {factor(call)!r}"
        return text.replace("%s", variance)

    return spell


_DDOF = "axis={axes}, ddof={correction}, keepdims={keepdims}"

OPERATORS: tuple[OpSpec, ...] = (
    _corrected(
        "variance_corrected", _variance, "var", _of_numpy("%s"),
        f"jnp.var({{0}}, {_DDOF})", _RELAX, _ONNX,
    ),
    _corrected(
        "std_corrected", _std, "std", _of_numpy("tf.sqrt(%s)"),
        f"jnp.std({{0}}, {_DDOF})", f"relax.op.sqrt({_RELAX})", f'g.op("Sqrt", {_ONNX})',
    ),
)  # fmt: skip
