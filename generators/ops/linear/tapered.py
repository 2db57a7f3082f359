"""Rows by a window of signal processing along the last axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy import special

from generators.bounds.bounded import PRECISION, Bounded, multiply
from generators.graph import TensorType
from generators.ops.slots import flag, floating, one_of
from generators.ops.spec import Attrs, Call, Draw, OpSpec, Slot, Spelling, TypeRuleError, Types, unsupported

PARTS = {"hann": (0.5, 0.5, 0.0), "hamming": (25 / 46, 21 / 46, 0.0), "blackman": (0.42, 0.5, 0.08)}
"""a, b and c of a - b cos t + c cos 2 t, as ONNX defines them."""


def _type(operands: Types, attrs: Attrs) -> TensorType:
    x = operands[0]
    if attrs["kind"] not in PARTS or not isinstance(attrs["periodic"], bool) or not x.rank or x.shape[-1] < 2:
        raise TypeRuleError(f"no window for {x}")
    return x


def _rows() -> Slot:
    base = floating(min_rank=1)

    def accepts(type_: TensorType, earlier: Types) -> bool:
        return base.accepts(type_, earlier) and type_.shape[-1] > 1

    def fresh(d: Draw, earlier: Types) -> TensorType:
        type_ = base.fresh(d, earlier)
        return type_ if type_.shape[-1] > 1 else TensorType(type_.dtype, (*type_.shape[:-1], 5))

    return Slot(accepts, fresh)


def _window(call: Call) -> Bounded:
    """t = 2 pi i / n with 8 u (a constant, a product, a quotient), of which 2 t <= 4 pi makes 101 u; a cosine of 4 ulp,
    8 u; products, constants and sums 6 u: of blackman 0.5 (51 + 8) + 0.08 (101 + 8) + 6 < 64 u."""
    n, p = call.result.shape[-1], PRECISION[call.result.dtype]
    t = 2 * np.pi * np.arange(n) / (n if call.attrs["periodic"] else n - 1)
    a, b, c = PARTS[str(call.attrs["kind"])]
    value = np.broadcast_to(a - b * np.cos(t) + c * np.cos(2 * t), call.result.shape)
    return Bounded(value, np.full(call.result.shape, 64 * p.unit + p.tiny), call.result.dtype)


def _tapered(args: Sequence[Bounded], call: Call) -> Bounded:
    return multiply(args[0], _window(call))


def _by_kind(text: str, **kinds: str) -> Spelling:
    """{angle}: 2 pi, and {span}: by which number the places are divided; {a}, {b}, {c}: of the window."""

    def spell(call: Call) -> str:
        kind, n = str(call.attrs["kind"]), call.result.shape[-1]
        parts = zip("abc", PARTS[kind], strict=True)
        fields = {"n": n, "span": n if call.attrs["periodic"] else n - 1, "angle": 2 * np.pi, **dict(parts)}
        spelled = kinds.get(kind, text)
        for name, value in fields.items():
            spelled = spelled.replace(f"{{{name}}}", repr(value))
        return spelled

    return spell


_SUM = "{0} * ({a} - {b} * COS(TURN) + {c} * COS(2.0 * TURN))"


def _composed(cosine: str, places: str) -> str:
    return _SUM.replace("TURN", f"({{angle}} * {places} / {{span}})").replace("COS", cosine)


tapered = OpSpec(
    "tapered", "signal", (_rows(),), _type, _tapered,
    attrs={"kind": one_of(*PARTS), "periodic": flag()},
    torch=_by_kind(
        "",
        hann="{0} * torch.hann_window({n}, {periodic}, dtype={dtype}, device={0}.device)",
        hamming="{0} * torch.hamming_window({n}, {periodic}, 25 / 46, 21 / 46, dtype={dtype}, device={0}.device)",
        blackman="{0} * torch.blackman_window({n}, {periodic}, dtype={dtype}, device={0}.device)",
    ),
    tensorflow=_by_kind(  # its Hamming window has 0.54 and 0.46
        _composed("tf.cos", "tf.cast(tf.range({n}), {dtype})"),
        hann="{0} * tf.signal.hann_window({n}, {periodic}, {dtype})",
    ),
    jax=_by_kind(_composed("jnp.cos", "jnp.arange({n}, dtype={dtype})")),
    relax=_by_kind(
        "window(bb, {0}, relax.const(np.arange({n}), {dtype}), ({a}, {b}, {c}), {angle}, {span}, {dtype})"
    ),
    onnx=_by_kind(
        "",
        **{
            kind: f'g.op("Mul", {{0}}, g.op("{kind.title()}Window", g.const({{n}}, "int64"), '
            "periodic=int({periodic}), output_datatype={dtype}))"
            for kind in PARTS
        },
    ),
)  # fmt: skip

# ---- Kaiser's -----------------------------------------------------------------------------------------

BETAS = (12.0, 0.0, 5.0, -5.0, 0.5, 40.0)
"""12 is the default of PyTorch and TensorFlow. The window is even in it."""


def _kaiser_type(operands: Types, attrs: Attrs) -> TensorType:
    if attrs["beta"] not in BETAS:
        raise TypeRuleError(f"no Kaiser window of {attrs['beta']!r}")
    return _type(operands, {"kind": "hann", "periodic": False})


def _kaiser(args: Sequence[Bounded], call: Call) -> Bounded:
    """I0(beta r) / I0(beta), r = sqrt(1 - (2 i / (n - 1) - 1)^2). What is under the root is off by some 4 u, at its
    zeros by as much absolutely, so that r is off by 4 u / r, but by no more than the root of 4 u. I0 grows no faster
    than exp: the value is off by exp(beta off) - 1 of itself. Two functions of 8 ulp, a quotient of 2.5 ulp."""
    n, p, beta = call.result.shape[-1], PRECISION[call.result.dtype], abs(call.number("beta"))
    inside = np.maximum(1 - (2 * np.arange(n) / (n - 1) - 1) ** 2, 0.0)
    root = np.sqrt(inside)
    value = special.i0e(beta * root) / special.i0e(beta) * np.exp(beta * (root - 1))
    off = np.minimum(4 * p.unit / np.maximum(root, p.unit), np.sqrt(4 * p.unit))
    error = value * (np.expm1(beta * (off + 2 * p.unit * root)) + (40 + 4 * beta) * p.unit) + p.tiny
    shape = call.result.shape
    window = Bounded(np.broadcast_to(value, shape), np.broadcast_to(error, shape), call.result.dtype)
    return multiply(args[0], window)


kaiser_tapered = OpSpec(
    "kaiser_tapered", "signal", (_rows(),), _kaiser_type, _kaiser, attrs={"beta": one_of(*BETAS)},
    torch=lambda call: f"{{0}} * torch.kaiser_window({call.result.shape[-1]}, False, {{beta}}, dtype={{dtype}}, "
    "device={0}.device)",
    tensorflow=lambda call: f"{{0}} * tf.signal.kaiser_window({call.result.shape[-1]}, {{beta}}, {{dtype}})",
    jax=lambda call: f"{{0}} * jnp.kaiser({call.result.shape[-1]}, {{beta}}).astype({{dtype}})",
    relax=unsupported("it has no Kaiser window"), onnx=unsupported("it has no Kaiser window"),
)  # fmt: skip

# ---- Hamming's, of any numbers ------------------------------------------------------------------------

_ALPHAS, _BETAS = (0.54, 0.5, 1.0, 0.375), (0.46, 0.5, 0.0, -0.625)
"""The first ones are the defaults of PyTorch, TVM and TensorFlow."""


def _hamming_type(operands: Types, attrs: Attrs) -> TensorType:
    if attrs["alpha"] not in _ALPHAS or attrs["beta"] not in _BETAS:
        raise TypeRuleError(f"no Hamming window of {attrs['alpha']!r} and {attrs['beta']!r}")
    return _type(operands, {"kind": "hamming", "periodic": attrs["periodic"]})


def _hamming(args: Sequence[Bounded], call: Call) -> Bounded:
    """As `_window` says, of numbers whose sizes add up to less than 2."""
    n, p = call.result.shape[-1], PRECISION[call.result.dtype]
    t = 2 * np.pi * np.arange(n) / (n if call.attrs["periodic"] else n - 1)
    value = call.number("alpha") - call.number("beta") * np.cos(t)
    shape = call.result.shape
    window = Bounded(np.broadcast_to(value, shape), np.full(shape, 128 * p.unit + p.tiny), call.result.dtype)
    return multiply(args[0], window)


def _hamming_torch(call: Call) -> str:
    """What is as where nothing is said is left out."""
    said = [str(call.result.shape[-1]), *(f"{{{name}}}" for name in ("periodic", "alpha", "beta"))]
    for name, default in (("beta", _BETAS[0]), ("alpha", _ALPHAS[0]), ("periodic", True)):
        if call.attrs[name] != default:
            break
        said.pop()
    return f"{{0}} * torch.hamming_window({', '.join(said)}, dtype={{dtype}}, device={{0}}.device)"


def _hamming_composed(cosine: str, places: str) -> Callable[[Call], str]:
    def spell(call: Call) -> str:
        n = call.result.shape[-1]
        span = n if call.attrs["periodic"] else n - 1
        return f"{{0}} * ({{alpha}} - {{beta}} * {cosine}({2 * np.pi!r} * {places.replace('N', str(n))} / {span}))"

    return spell


hamming_tapered = OpSpec(
    "hamming_tapered", "signal", (_rows(),), _hamming_type, _hamming,
    attrs={"periodic": one_of(True, False), "alpha": one_of(*_ALPHAS), "beta": one_of(*_BETAS)},
    torch=_hamming_torch, tensorflow=_hamming_composed("tf.cos", "tf.cast(tf.range(N), {dtype})"),
    jax=_hamming_composed("jnp.cos", "jnp.arange(N, dtype={dtype})"),
    relax=lambda call: "relax.op.multiply({0}, relax.op.hamming_window("
    f"{call.result.shape[-1]}, {{periodic}}, {{alpha}}, {{beta}}, {{dtype}}))",
    onnx=unsupported("its Hamming window has numbers of its own"),
)  # fmt: skip

OPERATORS: tuple[OpSpec, ...] = (tapered, kaiser_tapered, hamming_tapered)
