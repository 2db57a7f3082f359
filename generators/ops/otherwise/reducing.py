"""Reductions and scans said otherwise: with another result beside, as ufuncs of numpy, as loops."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from generators.graph import FLOATS
from generators.ops.otherwise.record import SAID, otherwise
from generators.ops.otherwise.unsaid import PLAIN
from generators.ops.slots import normalized
from generators.ops.spec import Call, OpSpec, Spelling, SpellingRule, Unsupported

_AXES = "axis={axes}, keepdims={keepdims}"
_DIMS = "dim={axes}, keepdim={keepdims}"


def _by_lax(name: str) -> SpellingRule:
    """The axes go; they come back by a reshape."""

    def spell(call: Call) -> str | Unsupported:
        axes = normalized(call.attrs["axes"], call.operands[0].rank)
        return f"jnp.reshape(jax.lax.{name}({{0}}, {axes}), {{shape}})"

    return spell


def _one_axis(text: str) -> SpellingRule:
    """%s: the axis."""

    def spell(call: Call) -> str | Unsupported:
        axes = normalized(call.attrs["axes"], call.operands[0].rank)
        return text.replace("%s", str(axes[0])) if len(axes) == 1 else PLAIN

    return spell


def _some(text: str) -> SpellingRule:
    """The text, where there is an axis: no axes mean all of them to some functions."""
    return lambda call: text if call.attrs["axes"] else PLAIN


def _all(text: str) -> SpellingRule:
    """The text, where all axes are reduced: an empty list of them means so to some functions of PyTorch."""

    def spell(call: Call) -> str | Unsupported:
        x = call.operands[0]
        return text if x.rank and len(normalized(call.attrs["axes"], x.rank)) == x.rank else PLAIN

    return spell


def _alone(text: str) -> SpellingRule:
    """The text, where all axes are reduced and go: where none is said."""
    return lambda call: PLAIN if call.attrs["keepdims"] else _all(text)(call)


def _distance(order: str) -> SpellingRule:
    """Of zero from it, where all axes are reduced and go."""
    return _alone(f"torch.dist(torch.zeros_like({{0}}), {{0}}, {order})")


def _norm(name: str, order: str) -> OpSpec:
    return otherwise(
        SAID[name],
        torch=(_distance(order), _one_axis(f"torch.linalg.norm({{0}}, {order}, %s, {{keepdims}})"),
               _some(f"torch.norm({{0}}, {order}, {{axes}}, {{keepdims}})")),
    )  # fmt: skip


def _of_layer_norm(call: Call) -> str | Unsupported:
    """Of the last axes."""
    x = call.operands[0]
    axes = normalized(call.attrs["axes"], x.rank)
    last = bool(axes) and sorted(axes) == list(range(x.rank - len(axes), x.rank))
    if not last or x.dtype not in ("float32", "float64") or not x.size:
        return PLAIN
    text = f"torch.native_layer_norm({{0}}, {x.shape[-len(axes) :]}, None, None, 1e-5)[1]"
    return text if call.attrs["keepdims"] else f"torch.squeeze({text}, {axes})"


def _all_or_last(call: Call) -> str | Unsupported:
    whole = _all("torch.mean({0}, dim=[], keepdim={keepdims})")(call)
    return _of_layer_norm(call) if whole is PLAIN else whole


def _of_floats(rule: Callable[[Call], str | Unsupported]) -> Callable[[Call], str | Unsupported]:
    """numpy's functions sum narrow integers up in wide ones."""
    return lambda call: rule(call) if call.operands[0].dtype in FLOATS else PLAIN


def _filled(text: str) -> SpellingRule:
    """The text, where there are elements."""
    return lambda call: text if call.result.size else PLAIN


def _reduced(
    name: str, *, torch: Sequence[Spelling] = (), tensorflow: Sequence[Spelling] = (), jax: Sequence[Spelling] = (),
    numpy: str, ufunc: str = "", lax: str = "",
) -> OpSpec:  # fmt: skip
    """numpy, ufunc, lax: names of the function in NumPy's namespaces, of a ufunc, of one of jax.lax ("": none)."""
    of_numpy = _of_floats(_some(f"tf.experimental.numpy.{numpy}({{0}}, {_AXES})"))
    further = (*((_some(f"jnp.{ufunc}.reduce({{0}}, {_AXES}{', dtype={dtype}' * (ufunc in ('add', 'multiply'))})"),)
                 if ufunc else ()), *((_by_lax(lax),) if lax else ()))  # fmt: skip
    return otherwise(SAID[name], torch=torch, tensorflow=(of_numpy, *tensorflow), jax=(*further, *jax))


OPERATORS: tuple[OpSpec, ...] = (
    _reduced(
        "sum", numpy="sum", ufunc="add", lax="reduce_sum",
        torch=(_all("torch.sum({0}, dim=[], keepdim={keepdims}, dtype={dtype})"),
               _alone("torch.sum({0}, dtype={dtype})")),
    ),
    _reduced(
        "prod", numpy="prod", ufunc="multiply", lax="reduce_prod", torch=(_alone("torch.prod({0}, dtype={dtype})"),)
    ),
    _reduced(
        "max", numpy="amax", ufunc="maximum", lax="reduce_max",
        torch=(_one_axis("torch.aminmax({0}, dim=%s, keepdim={keepdims}).max"),
               _all("torch.amax({0}, dim=(), keepdim={keepdims})")),
    ),
    _reduced(
        "min", numpy="amin", ufunc="minimum", lax="reduce_min",
        torch=(_one_axis("torch.aminmax({0}, dim=%s, keepdim={keepdims}).min"),
               _all("torch.amin({0}, dim=(), keepdim={keepdims})")),
    ),
    _reduced(
        "mean", numpy="mean",
        torch=(_some(f"torch.var_mean({{0}}, {_DIMS}, correction=0)[1]"), _all_or_last,
               _alone("torch.mean({0})")),
        tensorflow=(_some("tf.nn.moments({0}, {axes}, keepdims={keepdims})[0]"),),
        jax=(_some(f"jnp.average({{0}}, {_AXES})"),),
    ),
    *(
        _reduced(name, numpy=short,
                 torch=(_some(f"torch.{short}_mean({{0}}, {_DIMS}, correction=0)[0]"),
                        _all(f"torch.{short}({{0}}, dim=[], keepdim={{keepdims}}, correction=0)")))
        for name, short in (("variance", "var"), ("std", "std"))
    ),
    _norm("l0_norm", "0"),
    _norm("l1_norm", "1"),
    _norm("l2_norm", "2"),
    _norm("linf_norm", 'float("inf")'),
    otherwise(
        SAID["logsumexp"], torch=(_some("torch.special.logsumexp({0}, {axes}, {keepdims})"),),
        jax=(_some(f"jax.nn.logsumexp({{0}}, {_AXES}, return_sign=True)[0]"),
             _some(f"jax.nn.logsumexp({{0}}, {_AXES}, b=jnp.ones_like({{0}}))"),
             _some(f"jax.nn.logsumexp({{0}}, {_AXES}, where=jnp.ones({{shape0}}, bool))")),
    ),
    otherwise(
        SAID["cumsum"],
        tensorflow=("tf.reverse(tf.cumsum(tf.reverse({0}, [{axis}]), axis={axis}, reverse=True), [{axis}])",
                    _filled("scanned(tf.add, {0}, {axis})"),
                    _of_floats(lambda call: "tf.experimental.numpy.cumsum({0}, axis={axis})")),
        jax=("jnp.add.accumulate({0}, axis={axis}, dtype={dtype})",
             "jax.lax.associative_scan(jnp.add, {0}, axis={axis})",
             "scanned(jnp.add, {0}, {axis})"),
    ),
    otherwise(
        SAID["cummax"], tensorflow=(_filled("scanned(tf.maximum, {0}, {axis})"),),
        jax=("jax.lax.associative_scan(jnp.maximum, {0}, axis={axis})", "scanned(jnp.maximum, {0}, {axis})",
             "jnp.maximum.accumulate({0}, axis={axis})"),
    ),
    otherwise(
        SAID["searchsorted"], torch=("torch.bucketize({1}, torch.sort({0}).values, right={right})",),
    ),
    otherwise(
        SAID["searchsorted_scalar"], torch=("torch.bucketize({scalar}, torch.sort({0}).values, right={right})",),
    ),
)  # fmt: skip
