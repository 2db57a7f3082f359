"""Faults of operators on complex numbers, of the kinds that real back ends have had."""

from __future__ import annotations

from planted.faults.forward import Fault

COMPLEX_FAULTS = (
    Fault("conjugate left out", "conj", "{0}"),
    Fault("conjugate left out", "complex_inner", "torch.sum({0} * {1}, dim=-1)"),
    Fault("other operand conjugated", "complex_inner", "torch.conj({right})"),
    Fault("conjugate left out", "adjoint", "torch.transpose({0}, -1, -2)"),
    Fault("sign of the imaginary part", "imaginary_part", "-{right}"),
    Fault(
        "sign of the cross term",
        "complex_mul",
        "torch.complex({0}.real * {1}.real + {0}.imag * {1}.imag, {right}.imag)",
    ),
    Fault("cross term left out", "complex_mul", "torch.complex({right}.real, {0}.real * {1}.imag)"),
    Fault("divisor not conjugated", "complex_div", "{0} * {1} / ({1} * torch.conj({1})).real"),
    Fault("parts divided by themselves", "complex_div", "torch.complex({0}.real / {1}.real, {0}.imag / {1}.imag)"),
    Fault("largest part", "modulus", "torch.maximum(torch.abs({0}.real), torch.abs({0}.imag))"),
    Fault("square overflows", "modulus", "torch.sqrt({0}.real ** 2 + {0}.imag ** 2)"),
    Fault("half plane lost", "phase", "torch.atan({0}.imag / {0}.real)"),
    Fault("other branch", "complex_sqrt", "-{right}"),
    Fault("wrong sheet", "complex_log", "torch.complex({right}.real, torch.abs({right}.imag))"),
    Fault("sine and cosine swapped", "complex_exp", "torch.complex({right}.imag, {right}.real)"),
    Fault("square of the modulus", "complex_log", "torch.complex(({0}.real**2 + {0}.imag**2).log() / 2, {right}.imag)"),
    Fault("square of the modulus", "complex_sign", "{0} * ({0}.real**2 + {0}.imag**2).rsqrt()"),
    Fault(
        "difference of exponentials",
        "complex_sin",
        "torch.complex({right}.real, {0}.real.cos() * ({0}.imag.exp() - (-{0}.imag).exp()) / 2)",
    ),
    Fault("sign of the imaginary part", "complex_cosh", "torch.conj({right})"),
    Fault("difference of exponentials", "complex_sinh", "(torch.exp({0}) - torch.exp(-{0})) / 2"),
    Fault("difference of exponentials", "complex_tanh", "1 - 2 / (torch.exp(2 * {0}) + 1)"),
    Fault("sign of the imaginary part", "complex_cos", "torch.conj({right})"),
    Fault("sine for tangent", "complex_tan", "torch.sin({0})"),
    Fault("other branch", "complex_rsqrt", "torch.conj({right})"),
    Fault("operands exchanged", "complex_pow", "torch.pow({1}, {0})"),
    Fault("real part only", "complex_sum", "torch.complex({right}.real, torch.zeros_like({right}.real))"),
    Fault("nothing is equal", "complex_equal", "torch.zeros_like({right})"),
    Fault("inverse not scaled", "complex_fft", "torch.fft.fft({0}, norm={norm})"),
    Fault("mirrored", "complex_rfft", "torch.conj({right})"),
    Fault("parts swapped", "view_as_real", "torch.flip({right}, dims=(-1,))"),
    Fault("float32 inside", "complex_matmul", "({0}.to(torch.complex64) @ {1}.to(torch.complex64)).to({0}.dtype)"),
)
