"""Faults of derivatives, of the kinds that real back ends have had. `{right}` is the correct spelling; a fault wraps it
into a function whose forward result is right and whose gradient is not."""

from __future__ import annotations

from planted.faults.forward import Fault


def _wrap(how: str, *operands: int) -> str:
    """The correct spelling as a function of these operands, its gradients changed by `how`."""
    names = ", ".join(f"a{i}" for i in operands)
    return f"changed(lambda {names}: {{alone}}, {how}, {', '.join(f'{{{i}}}' for i in operands)})"


def _fault(name: str, operator: str, how: str, operands: int = 1) -> Fault:
    return Fault(name, operator, _wrap(how, *range(operands)))


def _by(factor: str) -> str:
    """The first gradient replaced by the result's gradient times an expression in x."""
    return f"first(lambda r, g, x, *t: g * ({factor}))"


GRADIENT_FAULTS = (
    _fault("1 - y instead of 1 - y * y", "tanh", _by("1 - torch.tanh(x)")),
    _fault("y instead of y (1 - y)", "sigmoid", _by("torch.sigmoid(x)")),
    _fault("passes below zero", "relu", _by("torch.ones_like(x)")),
    _fault("wrong side", "relu", _by("(x < 0).to(x.dtype)")),
    _fault("sum left out", "softmax", _by("{right}")),
    _fault("softmax left out", "log_softmax", _by("torch.ones_like(x)")),
    _fault("factor 2 left out", "square", "scaled(0.5)"),
    _fault("factor 1 / 2 left out", "sqrt", "scaled(2.0)"),
    _fault("sign", "reciprocal", "scaled(-1.0)"),
    _fault("sign", "cos", "scaled(-1.0)"),
    _fault("x (1 - y) left out", "silu", _by("torch.sigmoid(x)")),
    _fault("density left out", "gelu", _by("0.5 * (1 + torch.erf(x * 0.7071067811865476))")),
    _fault("derivative of the other formula", "gelu_tanh", _by("0.5 * (1 + torch.tanh(0.7978845608 * x))")),
    _fault("stopped", "sub", "second(lambda r, g, *t: r * 0)", 2),
    _fault("sign", "sub", "second(lambda r, g, *t: -r)", 2),
    _fault("sign", "div", "second(lambda r, g, *t: -r)", 2),
    _fault("operands swapped", "atan2", "lambda right, g, x, y: [-right[0], -right[1]]", 2),
    _fault("exponent", "pow", "first(lambda r, g, x, y: r * x)", 2),
    _fault("broadcast not summed", "add", "second(lambda r, g, x, y: first_of_broadcast(r, g, y))", 2),
    _fault("broadcast not summed", "mul", "second(lambda r, g, x, y: first_of_broadcast(r, g * x, y))", 2),
    _fault("transposed", "matmul", "second(lambda r, g, *t: swapped_if_square(r))", 2),
    _fault("accumulates in float16", "matmul", "first(lambda r, g, x, w: torch.matmul(g.half(), w.mT.half()).to("
           "r.dtype) if x.dim() == w.dim() == 2 else r)", 2),
    _fault("bias averaged", "linear", "lambda right, g, *t: [right[0], right[1], right[2] / 2]", 3),
    _fault("mean left out", "layer_norm", "first(lambda r, g, x, *t: r + g.mean())", 3),
    _fault("scale taken for bias", "layer_norm", "lambda right, g, *t: [right[0], right[2], right[2]]", 3),
    _fault("weight flipped", "conv1d", "second(lambda r, g, *t: r.flip(-1))", 2),
    _fault("weight flipped", "conv2d", "second(lambda r, g, *t: r.flip(-1))", 3),
    _fault("last tile dropped", "conv2d", "first(lambda r, g, *t: tile_lost(r))", 3),
    _fault("gives it to all", "max", "first(lambda r, g, x: to_all_maxima(r, g, x, {axes}, {keepdims}))"),
    _fault("passes outside", "clip", _by("torch.ones_like(x)")),
    _fault("not divided by the count", "mean", "scaled(2.0)"),
    _fault("not reversed", "cumsum", "first(lambda r, g, x: torch.cumsum(g, dim={axis}))"),
    _fault("not cropped", "pad", "first(lambda r, g, x: g.reshape(-1)[: r.numel()].reshape(r.shape))"),
    _fault("repeated indices overwrite", "take", "first(lambda r, g, x, i: no_duplicates(r, g, x, i) "
           "if {axis} == 0 else r)", 2),
    _fault("repeated indices overwrite", "embedding", "first(lambda r, g, x, i: no_duplicates(r, g, x, i))", 2),
    _fault("branches swapped", "where", "lambda right, g, c, x, y: right[::-1] if x.shape == y.shape else right", 3),
    _fault("not transposed back", "transpose", "first(lambda r, g, x: g.reshape(r.shape))"),
    _fault("not flipped back", "flip", "first(lambda r, g, x: g.clone())"),
    _fault("error of 1e-3 in one element", "exp", "first(lambda r, g, x: one_nudged(r))"),
    _fault("error of 1e-3 in one element", "mul", "first(lambda r, g, *t: one_nudged(r))", 2),
    _fault("error of 1e-4", "rsqrt", "scaled(1.0001)"),
    _fault("bfloat16 inside", "sin", "first(lambda r, g, x: r.bfloat16().to(r.dtype))"),
    _fault("stopped", "log", "scaled(0.0)"),
    _fault("stale scale", "rms_norm", "second(lambda r, g, *t: r * 2)", 2),
    _fault("last tile dropped", "avg_pool2d", "first(lambda r, g, x: tile_lost(r))"),
)  # fmt: skip

_UNMASKED = (
    "torch.softmax(q @ k.mT * (q.shape[-1] ** -0.5 if {scale} is None else {scale}), -1).mT @ g "
    "if q.shape[1] == k.shape[1] else right[2]"
)

SELDOM_FAULTS = (
    _fault("factor 2", "matrix_norm", "scaled(2.0)"),
    _fault("power of the norm left out", "vector_norm", "scaled(0.5)"),
    _fault("not transposed", "solve", "second(lambda r, g, a, b: torch.linalg.solve_ex(formed(a, {form}), g)"
           ".result)", 2),
    _fault("transposed", "inverse", "first(lambda r, g, x: r.mT.contiguous())"),
    _fault("transposed", "det", "first(lambda r, g, x: r.mT.contiguous())"),
    _fault("not symmetrised", "cholesky", "first(lambda r, g, x: torch.tril(r))"),
    _fault("sign", "singular_values", "scaled(-1.0)"),
    _fault("statistics taken for constants", "batch_norm_training", "first(lambda r, g, x, s, b: g * s.reshape(-1, "
           "*[1] * (x.dim() - 2)) * torch.rsqrt(x.var([0, *range(2, x.dim())], correction=0, keepdim=True) + "
           "{epsilon}))", 3),
    _fault("error of 1e-3 in one element", "layer_norm_plain", "first(lambda r, g, x: one_nudged(r))"),
    _fault("neighbours left out", "local_response_norm", "first(lambda r, g, x: g * {right} / x)"),
    _fault("mask left out", "attention_masked",
           f"lambda right, g, q, k, v, m: [*right[:2], {_UNMASKED}]", 4),
    _fault("bias stopped", "attention_biased", "lambda right, g, *t: [*right[:3], right[3] * 0]", 4),
    _fault("forget gate stopped", "lstm_cell", "lambda right, g, x, h, c, w, *t: [*right[:3], torch.cat([p * (i != 1) "
           "for i, p in enumerate(right[3].chunk(4))]), *right[4:]]", 7),
    _fault("state stopped", "gru", "second(lambda r, *t: r * 0)", 6),
    _fault("operands swapped", "cosine_embedding", "lambda right, g, *t: right[::-1]", 3),
    _fault("1 - x left out", "binary_cross_entropy", "first(lambda r, g, x, t: r * (1 - x))", 2),
    _fault("half left out", "gaussian_nll", "lambda right, g, *t: [*right[:2], right[2] * 2]", 3),
    _fault("sign", "pairwise_distance", "second(lambda r, *t: -r)", 2),
    _fault("deviation taken for a constant", "corrcoef", "first(lambda r, g, x: r + g.mean())"),
)  # fmt: skip
"""Of operators that are drawn seldom: planted in cases of the operator alone."""

COMPLEX_FAULTS = (
    _fault("conjugate left out", "complex_mul", "first(lambda r, g, x, y: g * y if r.shape == g.shape else r)", 2),
    _fault("the other convention", "complex_exp", "first(lambda r, g, x: r.conj().resolve_conj())"),
    _fault("weight not conjugated", "conj", "first(lambda r, g, x: g.clone())"),
    _fault("parts swapped", "complex_sqrt", "first(lambda r, g, x: torch.complex(r.imag, r.real))"),
    _fault("factor 2 in one part", "modulus", "first(lambda r, g, x: torch.complex(r.real, 2 * r.imag))"),
    _fault("sign", "phase", "scaled(-1.0)"),
    _fault("error of 1e-3 in one element", "complex_div", "first(lambda r, g, *t: one_nudged(r))", 2),
    _fault("error of 1e-4", "complex_log", "scaled(1.0001)"),
    _fault("second factor left out", "complex_square", "scaled(0.5)"),
    _fault("along the radius, too", "complex_sign", "first(lambda r, g, x: g / torch.abs(x))"),
    _fault("imaginary part stopped", "complex", "second(lambda r, g, *t: r * 0)", 2),
    _fault("parts swapped", "view_as_complex", "first(lambda r, g, x: r.flip(-1))"),
    _fault("transposed only", "complex_matmul", "first(lambda r, g, x, y: g @ y.mT)", 2),
    _fault("conjugate of the wrong operand", "complex_inner", "second(lambda r, *t: r.conj().resolve_conj())", 2),
    _fault("transform not conjugated", "complex_fft", "first(lambda r, g, x: {right})"),
    _fault("inverse instead of adjoint", "complex_rfft",
           "first(lambda r, g, x: torch.fft.irfft(g, n=x.shape[-1], norm={norm}))"),
    _fault("ends counted twice", "complex_irfft",
           "first(lambda r, g, x: torch.cat([2 * r[..., :1], r[..., 1:]], dim=-1))"),
)  # fmt: skip
"""Of complex numbers, planted in cases of the operator alone, too."""
