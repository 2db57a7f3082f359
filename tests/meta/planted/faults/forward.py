"""Faults of the kinds that real back ends have had, one operator each. `{right}` is the correct spelling; a fault
that changes an operand binds its name anew around it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """name: what is wrong; operator: where; text: the wrong spelling for torch."""

    name: str
    operator: str
    text: str


def with_operand(operand: int, expression: str) -> str:
    """The correct spelling, with an operand replaced."""
    return f"(lambda {{{operand}}}: {{right}})({expression})"


FAULTS = (
    Fault("wrong axis", "softmax", "torch.softmax({0}, dim=0)"),
    Fault("wrong axis", "cumsum", "torch.cumsum({0}, dim=0, dtype={0}.dtype)"),
    Fault("wrong axis", "flip", "torch.flip({0}, dims=(0,))"),
    Fault("maximum not subtracted", "softmax", "torch.exp({0}) / torch.exp({0}).sum({axis}, keepdim=True)"),
    Fault("maximum not subtracted", "logsumexp", "torch.log(torch.exp({0}).sum({axes}, keepdim={keepdims}))"),
    Fault("log of softmax", "log_softmax", "torch.log(torch.softmax({0}, dim={axis}))"),
    Fault("epsilon left out", "layer_norm", "torch.nn.functional.layer_norm({0}, {shape1}, {1}, {2}, eps=0.0)"),
    Fault("scale left out", "batch_norm", with_operand(1, "torch.ones_like({1})")),
    Fault("bias added twice", "batch_norm", with_operand(2, "{2} * 2")),
    Fault("unbiased variance", "variance", "torch.var({0}, dim={axes}, keepdim={keepdims}, unbiased=True)"),
    Fault("bias added twice", "conv2d", with_operand(2, "{2} * 2")),
    Fault("bias added twice", "linear", "{right} + {2}"),
    Fault("bias left out", "linear", "{right} - {2}"),
    Fault("padding off by one", "conv2d", "off_by_one({right})"),
    Fault("padding off by one", "pad", "off_by_one({right})"),
    Fault("padding off by one", "avg_pool2d", "off_by_one({right})"),
    Fault("pads with zero", "max_pool2d", "torch.clamp({right}, min=0)"),
    Fault("flipped kernel", "conv1d", with_operand(1, "{1}.flip(-1)")),
    Fault("flipped kernel", "conv_transpose2d", with_operand(1, "{1}.flip(-1)")),
    Fault("transposed weight", "matmul", "torch.matmul({0}, transposed_if_square({1}))"),
    Fault("transposed weight", "linear", with_operand(1, "transposed_if_square({1})")),
    Fault("accumulates in float16", "matmul", "torch.matmul({0}.half(), {1}.half()).to({0}.dtype)"),
    Fault("accumulates in float16", "sum", "half_sum({0}, {axes}, {keepdims})"),
    Fault("last term dropped", "matmul", "torch.matmul({0}[..., :-1], {1}[..., :-1, :])"),
    Fault("last tile dropped", "add", "tail_lost({right})"),
    Fault("last tile dropped", "transpose", "tail_lost({right})"),
    Fault("last tile dropped", "mean", "tail_lost({right})"),
    Fault("integer overflow", "mul", "narrow_product({0}, {1})"),
    Fault("NaN lost", "max", with_operand(0, "nan_lost({0}, -float('inf'))")),
    Fault("NaN lost", "min", with_operand(0, "nan_lost({0}, float('inf'))")),
    Fault("NaN lost", "maximum", "torch.fmax({0}, {1})"),
    Fault("NaN lost", "relu", with_operand(0, "nan_lost({0}, 0.0)")),
    Fault("ties away from zero", "round", "torch.sign({0}) * torch.floor(torch.abs({0}) + 0.5)"),
    Fault("towards zero", "floor", "torch.trunc({0})"),
    Fault("last of equal maxima", "argmax", "last_tie({0}, {axis}, {keepdims})"),
    Fault("rounds instead of truncating", "cast", "rounded_cast({0}, {dtype})"),
    Fault("branches swapped", "where", "torch.where({0}, {2}, {1})"),
    Fault("strict comparison", "less_equal", "torch.lt({0}, {1})"),
    Fault("equal within a tolerance", "equal", "torch.abs({0} - {1}) <= 1e-3"),
    Fault("lower bound ignored", "clip", "torch.clamp({0}, max={max})"),
    Fault("operands swapped", "sub", "{1} - {0}"),
    Fault("parts in reverse order", "concat", "torch.cat([{args}][::-1], dim={axis})"),
    Fault("column-major", "reshape", "fortran_reshape({0}, {shape})"),
    Fault("index off by one", "take", with_operand(1, "torch.clamp({1} - 1, min=0)")),
    Fault("index off by one", "gather", with_operand(1, "torch.clamp({1} - 1, min=0)")),
    Fault("index off by one", "one_hot", "off_by_one({right})"),
    Fault("error of 1e-4 in one element", "exp", "one_wrong({right})"),
    Fault("error of 1e-4 in one element", "mul", "one_wrong({right})"),
    Fault("error of 1e-4 in one element", "group_norm", "one_wrong({right})"),
    Fault("error of 1e-4 in one element", "instance_norm", "one_wrong({right})"),
    Fault("17 ulp", "sqrt", "{right} * (1 + 2e-6)"),
    Fault("bfloat16 inside", "tanh", "low({right}, torch.bfloat16)"),
    Fault("float16 inside", "sigmoid", "low({right}, torch.float16)"),
    Fault("approximate reciprocal", "div", "{0} * low(torch.reciprocal({1}), torch.bfloat16)"),
    Fault("another formula", "gelu", "torch.nn.functional.gelu({0}, approximate='tanh')"),
    Fault("diagonal off by one", "tril", "torch.tril({right}, {k} - 1)"),
    Fault("stale buffer", "neg", "stale({right}.contiguous())"),
    Fault("overwrites its operand", "neg", "{0}.neg_()"),
)
