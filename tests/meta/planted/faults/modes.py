"""Faults of forward mode, second derivatives by both orders, vectorised maps and autocast, each planted in
torch-eager. Plain results are right."""

from __future__ import annotations

from planted.faults.forward import Fault, with_operand
from planted.faults.questions import QuestionFault

from harness.questions.derivatives.hessian import HESSIAN
from harness.questions.derivatives.jvp import JVP
from harness.questions.derivatives.tangent_gradient import TANGENT_GRADIENT
from harness.questions.derivatives.tangent_tangent import TANGENT_TANGENT
from harness.questions.dtypes.autocast import AUTOCAST
from harness.questions.lanes.vmap import VMAP


def _pushed(how: str, *operands: int) -> str:
    """The correct spelling as a function of these operands, its tangent changed by `how`."""
    names = ", ".join(f"a{i}" for i in operands)
    return f"pushed(lambda {names}: {{alone}}, {how}, {', '.join(f'{{{i}}}' for i in operands)})"


def _by(factor: str) -> str:
    """The tangent replaced by the operand's, times an expression in x."""
    return f"lambda r, t, x: t[0] * ({factor})"


_TANGENTS = (
    Fault("1 - y instead of 1 - y * y", "tanh", _pushed(_by("1 - torch.tanh(x)"), 0)),
    Fault("y instead of y (1 - y)", "sigmoid", _pushed(_by("torch.sigmoid(x)"), 0)),
    Fault("passes below zero", "relu", _pushed(_by("torch.ones_like(x)"), 0)),
    Fault("sum left out", "softmax", _pushed("lambda r, t, x: t[0] * {right}", 0)),
    Fault("sign", "cos", _pushed("lambda r, t, *x: -r", 0)),
    Fault("error of 1e-4", "exp", _pushed("lambda r, t, *x: r * 1.0001", 0)),
    Fault("bfloat16 inside", "sin", _pushed("lambda r, t, *x: r.bfloat16().to(r.dtype)", 0)),
    Fault("second operand held", "mul", _pushed("lambda r, t, x, y: t[0] * y", 0, 1)),
    Fault("second operand held", "matmul", _pushed("lambda r, t, x, y: torch.matmul(t[0], y)", 0, 1)),
    Fault("second operand held", "add", _pushed("lambda r, t, x, y: t[0].expand_as(r).clone()", 0, 1)),
    Fault("sign", "sub", _pushed("lambda r, t, x, y: t[0] + t[1]", 0, 1)),
    Fault("not divided by the count", "mean", _pushed("lambda r, t, *x: r * 2", 0)),
    Fault("stopped", "log", _pushed("lambda r, t, *x: r * 0", 0)),
    Fault("one element lost", "cumsum", _pushed("lambda r, t, *x: last_lost(r)", 0)),
)


def twice(how: str, *operands: int) -> str:
    """The correct spelling as a function of these operands with the right gradient, whose own gradient is changed."""
    names = ", ".join(f"a{i}" for i in operands)
    return f"twice(lambda {names}: {{alone}}, {how}, {', '.join(f'{{{i}}}' for i in operands)})"


_SECOND = (
    Fault("backward pass detached", "tanh", twice("bend(stopped)", 0)),
    Fault("backward pass detached", "log", twice("bend(stopped)", 0)),
    Fault("backward pass detached", "softmax", twice("bend(stopped)", 0)),
    Fault("backward pass detached", "layer_norm", twice("bend(stopped, stopped)", 0, 1, 2)),
    Fault("1 - 2 y left out", "sigmoid", twice(
        "bend(lambda r, g, t, x: g * t[0] * torch.sigmoid(x) * torch.sigmoid(-x))", 0)),
    Fault("factor 2 left out", "square", twice("bend(lambda r, *rest: r / 2)", 0)),
    Fault("sign", "sin", twice("bend(lambda r, *rest: -r)", 0)),
    Fault("sign", "div", twice("bend(lambda r, *rest: r, lambda r, *rest: -r)", 0, 1)),
    Fault("error of 1e-4", "exp", twice("bend(lambda r, *rest: r * 1.0001)", 0)),
    Fault("bfloat16 inside", "sqrt", twice("bend(lambda r, *rest: r.bfloat16().to(r.dtype))", 0)),
    Fault("tangent of the second operand dropped", "mul", twice("bend(stopped)", 0, 1)),
    Fault("tangent of the first operand dropped", "matmul", twice(
        "bend(lambda r, *rest: r, stopped)", 0, 1)),
    Fault("weight of the first pass", "linear", twice("bend(stopped)", 0, 1, 2)),
    Fault("kernel flipped", "conv2d", twice("bend(lambda r, *rest: r, lambda r, *rest: r.flip(-1))", 0, 1, 2)),
    Fault("tangent dropped", "cos", twice("lambda right, *rest: [right[0] * 0, *right[1:]]", 0)),
    Fault("passes below zero", "relu", twice("lambda right, g, t, x: [t[0], *right[1:]]", 0)),
    Fault("last element lost", "logsumexp", twice("bend(lambda r, *rest: last_lost(r))", 0)),
)  # fmt: skip


def held(*operands: int) -> str:
    """The correct spelling with the right tangent, which is a constant to what differentiates it by the operands."""
    return _pushed("lambda r, t, *x: r", *operands)


_HELD = tuple(
    Fault("operands held in the rule", operator, held(*operands))
    for operator, operands in (
        *((name, (0,)) for name in ("tanh", "sigmoid", "exp", "sin", "square", "log", "softmax", "logsumexp")),
        *(("mul", (0, 1)), ("div", (0, 1)), ("matmul", (0, 1)), ("layer_norm", (0, 1, 2))),
    )
)

_MAPS = (
    Fault("one lane for all", "neg", "lanes({right}, lambda y: y[:1].expand_as(y))"),
    Fault("lanes in reverse", "exp", "lanes({right}, lambda y: y.flip(0))"),
    Fault("lanes averaged", "mul", "lanes({right}, lambda y: y.mean(0, keepdim=True).expand_as(y) "
          "if y.is_floating_point() else y)"),
    Fault("last lane dropped", "relu", "lanes({right}, lambda y: last_lost(y))"),
    Fault("one lane further", "softmax", "lanes({right}, lambda y: y.roll(1, 0))"),
    Fault("last lane dropped", "matmul", "lanes({right}, lambda y: last_lost(y))"),
    Fault("one lane for all", "sum", "lanes({right}, lambda y: y[:1].expand_as(y))"),
    Fault("lanes summed", "mean", "lanes({right}, lambda y: y.sum(0, keepdim=True).expand_as(y))"),
    Fault("lanes in reverse", "conv2d", "lanes({right}, lambda y: y.flip(0))"),
    Fault("one lane for all", "take", "lanes({right}, lambda y: y[:1].expand_as(y))"),
)  # fmt: skip

_CASTS = (
    Fault("not cast", "matmul", "uncast(lambda *x: torch.matmul(*x), {0}, {1})"),
    Fault("not cast", "prelu", "uncast(lambda *x: {right}, {0}, {1})"),
    Fault("widened again", "linear", "widened({right})"),
    Fault("widened again", "conv2d", "widened({right})"),
    Fault("in the lower dtype", "exp", with_operand(0, "lowered({0})")),
    Fault("in the lower dtype", "softmax", with_operand(0, "lowered({0})")),
    Fault("in the lower dtype", "layer_norm", with_operand(0, "lowered({0})")),
    Fault("in the lower dtype", "sum", with_operand(0, "lowered({0})")),
    Fault("in the lower dtype", "mean", with_operand(0, "lowered({0})")),
    Fault("result of the lower dtype", "l1_loss", "narrowed({right})"),
    Fault("weight of another dtype", "linear", with_operand(1, "through_half_the_bits({1})")),
    Fault("to the first dtype", "add", "({right}).to({0}.dtype)"),
)  # fmt: skip

MODE_FAULTS = tuple(
    QuestionFault(question, fault)
    for question, faults in (
        (JVP, _TANGENTS),
        (HESSIAN, _SECOND),
        (TANGENT_GRADIENT, _HELD),
        (TANGENT_TANGENT, _HELD),
        (VMAP, _MAPS),
        (AUTOCAST, _CASTS),
    )
    for fault in faults
)
