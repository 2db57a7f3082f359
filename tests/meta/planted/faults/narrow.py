"""Faults of narrow dtypes, of the kinds that real back ends have had: 16-bit floating point, 8-bit integers."""

from __future__ import annotations

from planted.faults.forward import Fault, with_operand

NARROW_FAULTS = (
    Fault("rounded to bfloat16", "add", "through({right}, torch.float16, torch.bfloat16)"),
    Fault("rounded to bfloat16", "abs", "through({right}, torch.float16, torch.bfloat16)"),
    Fault("rounded to bfloat16", "maximum", "through({right}, torch.float16, torch.bfloat16)"),
    Fault("rounded to float16", "mul", "through({right}, torch.bfloat16, torch.float16)"),
    Fault("rounded to float16", "neg", "through({right}, torch.bfloat16, torch.float16)"),
    Fault("truncated, not rounded", "sub", "cut({0}.float() - {1}.float(), {right})"),
    Fault("truncated, not rounded", "mul", "cut({0}.float() * {1}.float(), {right})"),
    Fault("truncated, not rounded", "cast", "cut({0}.float(), {right})"),
    Fault("largest number instead of infinity", "exp", "no_infinity({right})"),
    Fault("largest number instead of infinity", "mul", "no_infinity({right})"),
    Fault("maximum not subtracted", "softmax", "torch.exp({0}) / torch.exp({0}).sum({axis}, keepdim=True)"),
    Fault("NaN lost", "relu", with_operand(0, "number({0})")),
    Fault("lookup table", "sigmoid", "table({right}, 2.0**-4)"),
    Fault("saturates", "add", "saturated({right}, {0}.long() + {1}.long())"),
    Fault("saturates", "sub", "saturated({right}, {0}.long() - {1}.long())"),
    Fault("saturates", "mul", "saturated({right}, {0}.long() * {1}.long())"),
    Fault("saturates", "neg", "saturated({right}, -{0}.long())"),
    Fault("saturates", "sum", "saturated({right}, torch.sum({0}.long(), dim={axes}, keepdim={keepdims}))"),
    Fault("unsigned compared as signed", "less", "torch.lt(signed({0}), signed({1}))"),
    Fault("unsigned compared as signed", "maximum", "torch.where(torch.lt(signed({0}), signed({1})), {1}, {0})"),
    Fault("unsigned sorted as signed", "max", "unsigned_maximum({right}, {0}, {axes}, {keepdims})"),
    Fault("zero-extended", "cast", "zero_extended({0}, {right})"),
)
