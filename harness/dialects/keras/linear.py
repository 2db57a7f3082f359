"""Products, matrices and Fourier transforms."""

from __future__ import annotations

from generators.ops.spec import Call, Spelling, Unsupported
from harness.dialects.keras.texts import as_numpy, attribute, narrowed, pair, single, where


def _cdist(call: Call) -> str | Unsupported:
    if call.attrs["p"] != 2.0:
        return Unsupported("keras.ops.cdist is Euclidean")
    return "keras.ops.cdist({0}, {1})"


def _of_pairs(name: str) -> Spelling:
    """Of complex numbers as two real tensors."""

    def spell(call: Call) -> str | Unsupported:
        if call.attrs["norm"] != "backward" or (call.attrs["inverse"] and name == "fft"):
            return Unsupported("keras.ops has the plain transforms")
        theirs = "ifft2" if call.attrs["inverse"] else name
        return f"keras.ops.stack(keras.ops.{theirs}(({{0}}[..., 0], {{0}}[..., 1])), axis=-1)"

    return spell


def _tensor(call: Call) -> bool:
    """Keras has a batch of vectors at least."""
    return call.operands[0].rank > 1


def _wide(call: Call) -> bool:
    return call.result.dtype != "float16"


_PRODUCT = "keras.ops.matmul({0}, {1})"
_HALF = "TensorFlow loses subnormal numbers of float16"
_PLAIN = ("norm", "backward", "keras.ops has the plain transforms")

SPELLINGS: dict[str, Spelling] = {
    # of int8 it is of int32, by design
    **dict.fromkeys(("matmul", "matrix_vector", "vector_matrix"), narrowed(_PRODUCT, "int8")),
    "matmul_widened": where(
        lambda call: {type_.dtype for type_ in call.operands} == {"int8"},
        "keras.ops.matmul widens products of int8 alone",
        _PRODUCT,
    ),
    **pair(outer="outer", kron="kron", dot="dot"),
    **pair(complex_matmul="matmul", cross="cross"),
    **single(det="det"),
    **as_numpy("trace tensordot"),
    # of int8 it is of int32, by design
    "einsum": "keras.ops.cast(keras.ops.einsum({equation}, {0}, {1}), {dtype})",
    "einsum_single": "keras.ops.cast(keras.ops.einsum({equation}, {0}), {dtype})",
    "vecdot": where(
        lambda call: call.operands[0].rank == 1, "keras.ops.inner is of vectors", "keras.ops.inner({0}, {1})"
    ),
    "complex_inner": where(
        lambda call: call.operands[0].rank == 1, "keras.ops.vdot is of vectors", "keras.ops.vdot({0}, {1})"
    ),
    "adjoint": "keras.ops.conj(keras.ops.swapaxes({0}, -2, -1))",
    "linear": "keras.ops.add(keras.ops.matmul({0}, keras.ops.transpose({1})), {2})",
    "solve": "keras.ops.solve(formed({0}, {form}), {1})",
    "inverse": "keras.ops.inv(formed({0}, {form}))",
    "triangular_solve": where(
        lambda call: not (call.attrs["unit"] or call.attrs["transposed"]),
        "keras.ops.solve_triangular takes the diagonal as it is",
        'keras.ops.solve_triangular(keras.ops.add(formed({0}, "tamed"), keras.ops.multiply(5.0, keras.ops.eye('
        "{shape0}[-1], dtype={dtype}))), {1}, lower={lower})",
    ),
    "cholesky": 'keras.ops.cholesky(formed({0}, "gram"), upper={upper})',
    "cholesky_inverse": (
        'keras.ops.cholesky_inverse(keras.ops.cholesky(formed({0}, "gram"), upper={upper}), upper={upper})'
    ),
    "slogdet": lambda call: f"keras.ops.slogdet({{0}})[{int(call.attrs['pick'] == 'logarithm')}]",
    "singular_values": "keras.ops.svd(formed({0}, {form}), compute_uv=False)",
    "eigenvalues": "keras.ops.eigh(symmetric(formed({0}, {form})))[0]",
    "eigh_product": "eigh_product(formed({0}, {form}))",
    "qr_factor": where(_wide, _HALF, "qr_factor(formed({0}, {form}))"),
    "qr_product": where(
        _wide, _HALF, 'keras.ops.matmul(*keras.ops.qr(formed({0}, {form}), mode="reduced"))'
    ),
    "svd_product": "svd_product(formed({0}, {form}))",
    "pseudo_inverse": "keras.ops.pinv(formed({0}, {form}))",
    "least_squares": "keras.ops.lstsq(formed({0}, {form}), {1})",
    "cdist": _cdist,
    "fft": where(_tensor, "a batch at least", _of_pairs("fft")),
    "fft2": _of_pairs("fft2"),
    "rfft": attribute(*_PLAIN, "keras.ops.stack(keras.ops.rfft({0}, fft_length={size}), axis=-1)"),
    "irfft": attribute(*_PLAIN, "keras.ops.irfft(({0}[..., 0], {0}[..., 1]), fft_length={size})"),
    "short_time_fourier": attribute(
        "onesided", True, "keras.ops.stft is of real signals",
        "keras.ops.stack(keras.ops.stft({0}, {shape1}[0], {step}, {shape1}[0], window={1}, center=False), axis=-1)",
    ),
}  # fmt: skip
