"""Which dtype two operands of different dtypes, or a tensor and a Python number, give: each framework's own documented
rule, written down as data. What a document leaves open is anything; what it forbids has to be refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from ml_dtypes import finfo

from generators.graph import COMPLEX, EVERY, FLOATS, INTEGERS

SCALARS = ("python bool", "python int", "python float", "python complex")
OPERATIONS = ("add", "mul", "div", "pow", "equal", "less")
REFUSED = "refused"
ANYTHING: frozenset[str] = frozenset()
"""What a rule says where its document says nothing."""
_INEXACT = frozenset((*FLOATS, *COMPLEX))


@dataclass(frozen=True)
class PromotionCase:
    """One operation; left and right are dtypes of tensors with one element, one of them may be of `SCALARS`."""

    operation: str
    left: str
    right: str

    def __str__(self) -> str:
        return f"{self.operation}({self.left}, {self.right})"


CASES: tuple[PromotionCase, ...] = tuple(
    PromotionCase(operation, left, right)
    for operation in OPERATIONS
    for left, right in (*product(EVERY, EVERY), *product(EVERY, SCALARS), *product(SCALARS, EVERY))
)

Rule = Callable[[PromotionCase], frozenset[str]]
"""The dtypes (or REFUSED) that a result may have; ANYTHING where nothing is said."""


def operands(operation: str) -> tuple[int, int]:
    """The numbers that are combined: sums and products of 8-bit integers wrap, powers are small."""
    return (100, 120) if operation in ("add", "mul", "equal", "less") else (3, 2)


# ---- lattices -----------------------------------------------------------------------------------------

JAX_LATTICE: Mapping[str, tuple[str, ...]] = {
    "bool": ("python int",),
    "python int": ("uint8", "int8"),
    "uint8": ("int16", "uint16"),
    "uint16": ("int32", "uint32"),
    "uint32": ("int64", "uint64"),
    "uint64": ("python float",),
    "int8": ("int16",),
    "int16": ("int32",),
    "int32": ("int64",),
    "int64": ("python float",),
    "python float": ("bfloat16", "float16", "python complex"),
    "bfloat16": ("float32",),
    "float16": ("float32",),
    "float32": ("float64", "complex64"),
    "float64": ("complex128",),
    "python complex": ("complex64",),
    "complex64": ("complex128",),
    "complex128": (),
}
"""https://docs.jax.dev/en/latest/type_promotion.html: a result is the least node that both operands reach."""


def least(lattice: Mapping[str, tuple[str, ...]], left: str, right: str) -> str:
    """The least node above both."""

    def above(node: str) -> set[str]:
        return {node}.union(*(above(n) for n in lattice[node]))

    common = above(left) & above(right)
    return next(node for node in common if common <= above(node))


def _known(name: str) -> str:
    return "bool" if name == "python bool" else name


def lattice_rule(weak: Mapping[str, Sequence[str]]) -> Rule:
    """JAX's lattice; `weak`: the dtypes that a result of each kind of Python number may have. Quotients of integers are
    floating, of which dtype is not said; nor are powers of bools, nor an order of complex numbers."""

    def rule(case: PromotionCase) -> frozenset[str]:
        node = least(JAX_LATTICE, _known(case.left), _known(case.right))
        found = frozenset(weak.get(node, (node,)))
        exact = not found & _INEXACT
        if (node == "bool" and case.operation != "equal") or (case.operation == "less" and found & set(COMPLEX)):
            return ANYTHING
        if case.operation in ("equal", "less"):
            return frozenset({"bool"})
        return frozenset(FLOATS) if case.operation == "div" and exact else found

    return rule


# ---- rules --------------------------------------------------------------------------------------------


def _category(name: str) -> int:
    """Bool, integer, floating, complex."""
    plain = name.removeprefix("python ")
    return 0 if plain == "bool" else 3 if "complex" in plain else 2 if "float" in plain else 1


_WIDE_UNSIGNED = ("uint16", "uint32", "uint64")


def torch_rule(case: PromotionCase) -> frozenset[str]:
    """https://docs.pytorch.org/docs/stable/tensor_attributes.html#type-promotion-doc: a Python number of a higher
    category than the tensor gives the default dtype of its category, else the tensor's; of tensors, the least dtype of
    the higher category that holds both. uint16, uint32 and uint64 promote with nothing, and have few operators.
    Quotients of integers have the default dtype."""
    pair = (case.left, case.right)
    if set(pair) & set(_WIDE_UNSIGNED):
        return ANYTHING
    top = max(map(_category, pair))
    if (top == 0 and case.operation in ("div", "pow")) or (top == 3 and case.operation == "less"):
        return ANYTHING
    if {"python complex", "float16"} == set(pair) and case.operation not in ("equal",):
        return ANYTHING  # a complex number of two float16, which is not among the dtypes here
    if case.operation in ("equal", "less"):
        return frozenset({"bool"})
    result = _torch_result(*pair)
    return frozenset({"float32" if case.operation == "div" and top < 2 else result})


def _torch_result(left: str, right: str) -> str:
    for scalar, tensor in ((left, right), (right, left)):
        if scalar in SCALARS:
            if _category(scalar) <= _category(tensor):
                return tensor
            if scalar == "python complex":
                return "complex128" if tensor == "float64" else "complex64"
            return {"python int": "int64", "python float": "float32"}[scalar]
    if _category(left) != _category(right):
        low, high = sorted((left, right), key=_category)
        return "complex128" if high in COMPLEX and low == "float64" else high
    if {left, right} == {"float16", "bfloat16"}:
        return "float32"
    return str(np.promote_types(left, right)) if "bfloat16" not in (left, right) else max(left, right, key=_wider)


def _wider(name: str) -> int:
    return {"bfloat16": 0, "float16": 0, "float32": 1, "float64": 2}[name]


def tensorflow_rule(case: PromotionCase) -> frozenset[str]:
    """https://www.tensorflow.org/guide/tf_numpy_type_promotion: "By default, TensorFlow raises errors instead of
    promoting types"; a Python number becomes a tensor of the other operand's dtype where that holds numbers of its
    kind. Kernels may be missing for bool and the rarer dtypes, so that the same dtype may be refused. tf.truediv:
    quotients of integers are float32 or float64."""
    pair = (case.left, case.right)
    tensors = [name for name in pair if name not in SCALARS]
    if len(set(tensors)) > 1:
        return frozenset({REFUSED})
    dtype, scalar = tensors[0], next((name for name in pair if name in SCALARS), None)
    if scalar and _category(scalar) > _category(dtype):
        return frozenset({REFUSED})
    if scalar == "python bool" or dtype == "bool":
        return ANYTHING
    if case.operation in ("equal", "less"):
        return frozenset({"bool", REFUSED})
    if case.operation == "div" and dtype in INTEGERS:
        return frozenset({"float32", "float64", REFUSED})
    return frozenset({dtype, REFUSED})


def numpy_rule(case: PromotionCase) -> frozenset[str]:
    """tf.experimental.numpy.experimental_enable_numpy_behavior: "changes dtype promotion in tf.Tensor operators to be
    compatible with NumPy" (https://www.tensorflow.org/api_docs/python/tf/experimental/numpy/experimental_enable_numpy_behavior).
    NumPy has no bfloat16, and its rule for Python numbers was another before NumPy 2: nothing is said of those. Kernels
    may be missing."""
    pair = (case.left, case.right)
    if "bfloat16" in pair or set(pair) & set(SCALARS):
        return ANYTHING
    result = np.promote_types(*pair)
    if result == "bool" or (result.kind == "c" and case.operation == "less"):
        return ANYTHING
    if case.operation in ("equal", "less"):
        return frozenset({"bool", REFUSED})
    if case.operation == "div" and result.kind in "iu":
        return frozenset({"float16", "float32", "float64", REFUSED})
    return frozenset({str(result), REFUSED})


def strict_rule(*but: str) -> Rule:
    """Mixed operands are refused, but by these operations, of which nothing is said."""

    def rule(case: PromotionCase) -> frozenset[str]:
        if {case.left, case.right} & {*SCALARS, *COMPLEX} or case.operation in but:
            return ANYTHING
        if case.left != case.right:
            return frozenset({REFUSED})
        return frozenset({"bool" if case.operation in ("equal", "less") else case.left, REFUSED})

    return rule


RULES: Mapping[str, Rule] = {
    "torch": torch_rule,
    # with jax_enable_x64 a result that is weakly typed has 64 bits
    "jax": lattice_rule({"python int": ["int64"], "python float": ["float64"], "python complex": ["complex128"]}),
    "tensorflow": tensorflow_rule,
    "tensorflow-numpy": numpy_rule,
    # https://onnx.ai/onnx/operators/: both inputs of Add, Mul, Div, Equal, Less are of type T; Pow takes two types
    "onnx": strict_rule("pow"),
    # Relax says so of arithmetic itself: "Binary operators must have the same datatype for both operands"
    "tvm": strict_rule("equal", "less"),
}


# ---- judgement ----------------------------------------------------------------------------------------


def value_of(case: PromotionCase, dtype: str, whole: bool) -> complex | None:
    """The result in that dtype: both operands converted to it, then combined as numpy does. None where nothing is said:
    bool. `whole`: quotients of integers are integers."""
    left, right = operands(case.operation)
    a, b = (1 if _category(name) == 0 else n for name, n in ((case.left, left), (case.right, right)))
    if case.operation in ("equal", "less"):
        return complex(a == b if case.operation == "equal" else a < b)
    if dtype == "bool":
        return None
    with np.errstate(all="ignore"):
        x, y = np.asarray(a, np.int64).astype(dtype), np.asarray(b, np.int64).astype(dtype)
        if case.operation == "add":
            return complex(x + y)
        if case.operation == "mul":
            return complex(x * y)
        if case.operation == "pow":
            return complex(a**b)
        return complex(a // b) if whole and dtype in INTEGERS else complex(a / b)


def judge(framework: str, case: PromotionCase, got: str, value: complex) -> str | None:
    """What deviates from the rule in a result (its dtype, or REFUSED, and its value), or None."""
    allowed = RULES[framework](case)
    if not allowed:
        return None
    if got not in allowed:
        return f"{case} is {got}, not {' or '.join(sorted(allowed))}"
    expected = None if got == REFUSED else value_of(case, got, framework in ("onnx", "tvm"))
    if expected is None:
        return None
    unit = float(finfo(got).eps) if got in FLOATS else float(np.finfo(got).eps) if got in COMPLEX else 0.0
    if abs(value - expected) > 2 * unit * abs(expected):
        return f"{case} is {value} as {got}, not {expected}"
    return None
