"""Faults that a question of its own is there to find, each planted in torch-eager."""

from __future__ import annotations

from dataclasses import dataclass

from planted.faults.forward import Fault, with_operand

from harness.questions.derivatives.dynamic import DYNAMIC_GRADIENT
from harness.questions.dtypes.mixed import MIXED
from harness.questions.dynamic import DYNAMIC
from harness.questions.memory.layouts import LAYOUTS
from harness.questions.memory.repeat import REPEAT
from harness.questions.memory.writes import MEMORY
from harness.questions.metamorphic import METAMORPHIC
from harness.questions.question import Question
from harness.questions.scalars import SCALARS


@dataclass(frozen=True)
class QuestionFault:
    """A fault and the question that has to find it."""

    question: Question
    fault: Fault

    def __str__(self) -> str:
        return f"{self.question.name}: {self.fault.operator}: {self.fault.name}"


_SIZES = (
    Fault("reads the first size only", "sum", with_operand(0, "known_part({0})")),
    Fault("reads the first size only", "max", with_operand(0, "known_part({0})")),
    Fault("reads the first size only", "argmax", with_operand(0, "known_part({0})")),
    Fault("mask of the first size", "softmax", "known_grid({right})"),
    Fault("mask of the first size", "relu", "known_grid({right})"),
    Fault("rows of the first size", "matmul", "known_grid({right})"),
    Fault("rows of the first size", "layer_norm", "known_grid({right})"),
    Fault("divided by the first size", "mean", "known_divisor({right}, {0})"),
    Fault("divided by the first size", "variance", "known_divisor({right}, {0})"),
    Fault("strides of the first size", "transpose", with_operand(0, "known_strides({0})")),
    Fault("strides of the first size", "exp", with_operand(0, "known_strides({0})")),
    Fault("offsets of the first size", "concat", "known_offsets([{args}], {axis})"),
    Fault("period of the first size", "cumsum", "known_period({0}, {axis})"),
    Fault("counted back from the first size", "flip", "known_reverse({0}, {axes})"),
    Fault("size 1 taken for empty", "add", "one_is_empty({right})"),
    Fault("size 1 taken for a constant", "mul", with_operand(0, "one_is_constant({0})")),
    Fault("no rows come out as one", "sub", "empty_has_a_row({right})"),
    Fault("memory used again for a smaller size", "neg", "used_again({right})"),
)

_ADJOINTS = (
    *(
        Fault("gradient of the first size", operator, "known_adjoint({right})")
        for operator in ("tanh", "matmul", "softmax", "concat", "exp", "layer_norm")
    ),
    *(
        Fault("gradient shared among the first size", operator, "known_share({right})")
        for operator in ("mul", "cumsum", "sigmoid", "conv1d")
    ),
)

_VIEWS = (
    Fault("strides ignored", "relu", with_operand(0, "dense({0})")),
    Fault("strides ignored", "add", with_operand(0, "dense({0})")),
    Fault("strides ignored", "softmax", with_operand(0, "dense({0})")),
    Fault("alignment assumed", "mul", with_operand(0, "aligned({0})")),
    Fault("alignment assumed", "sigmoid", with_operand(0, "aligned({0})")),
    Fault("transposition ignored", "matmul", with_operand(1, "flag_ignored({1})")),
    Fault("shared rows counted once", "sum", with_operand(0, "counted_once({0})")),
    Fault("step ignored", "maximum", with_operand(1, "every_second_doubled({1})")),
    Fault("strides of the first call", "tanh", with_operand(0, "assumed({0})")),
)

_UNEQUAL = (
    Fault("dtype of the first operand", "div", "({right}).to({0}.dtype)"),
    Fault("dtype of the second operand", "atan2", "({right}).to({1}.dtype)"),
    Fault("dtype of the first operand", "squared_difference", "({right}).to({0}.dtype)"),
    Fault("compared as the first operand", "greater", "torch.greater({0}, {1}.to({0}.dtype))"),
    Fault("dtype of the second operand", "where", "({right}).to({2}.dtype)"),
)

_NUMBERS = (
    Fault("number of the first call", "leaky_relu", "torch.nn.functional.leaky_relu({0}, known_number({alpha}))"),
    Fault("number of the first call", "elu", "torch.nn.functional.elu({0}, alpha=known_number({alpha}))"),
    Fault("number of the first call", "clip", "torch.clamp({0}, {min}, known_number({max}))"),
    Fault("number of the first call", "tril", "torch.tril({0}, known_number({k}))"),
    Fault("number of the first call", "roll", "torch.roll({0}, known_number({shift}), {axis})"),
)

_REPEATED = (
    Fault("rounded by chance", "exp", "jitter({right})"),
    Fault("rounded by chance", "sqrt", "jitter({right})"),
    Fault("another order every time", "l2_norm", "other_rounding({right}, {0})"),
    Fault("drifts from call to call", "mean", "drifts({right})"),
    Fault("operand overwritten", "neg", "overwritten({0}, {right})"),
)

_EDITED = (
    Fault("operand overwritten", "abs", "overwritten({0}, {right})"),
    Fault("operands taken for one", "add", "aliased({0}, {1}, {right})"),
    Fault("operands taken for one", "mul", "aliased({0}, {1}, {right})"),
    Fault("a batch of one", "tanh", "batch_of_one({right})"),
    Fault("a batch of one", "sigmoid", "batch_of_one({right})"),
    Fault("statistics of the first row", "layer_norm", "first_row({0}, {right})"),
    Fault("halves swapped", "concat", "halves_swapped([{args}], {axis})"),
)

_FORGOTTEN = tuple(
    Fault("what is written through a view is forgotten", operator, "torch.clone({right})")
    for operator in (
        *("slice", "transpose", "reshape", "diagonal", "unstack", "split", "unsqueeze", "sliding_windows"),
        "dropout_off",
    )
)

_IN_PLACE = (
    Fault("a copy that is none", "identity", "{0}"),
    *(
        Fault("changed in place", name, "({0}).copy_({right})")
        for name in ("slice_update", "select_scatter", "diagonal_scatter")
    ),
)

QUESTION_FAULTS = tuple(
    QuestionFault(question, fault)
    for question, faults in (
        (DYNAMIC, _SIZES),
        (DYNAMIC_GRADIENT, _ADJOINTS),
        (LAYOUTS, _VIEWS),
        (MIXED, _UNEQUAL),
        (SCALARS, _NUMBERS),
        (REPEAT, _REPEATED),
        (METAMORPHIC, _EDITED),
        (MEMORY, (*_FORGOTTEN, *_IN_PLACE)),
    )
    for fault in faults
)
