"""Faults that a hunt has to find without being pointed at them: each in one operator of one target, importers and
compiled targets mostly. Half are off by 1e-5 to 3e-7, a third by special values or edges of shapes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from generators.graph import FLOATS

WIDE = ("float32", "float64")
"""What holds a factor so near 1."""

Kind = Literal["small", "special", "shape"]


@dataclass(frozen=True)
class ReachFault:
    """kind: of what is wrong; target: or route, by name; function: of `programs/reach_faults.py`; given: its other
    arguments; operands: how many of the node's it takes beside the result; backward: is only the gradient wrong?
    dtypes: of results that are wrong."""

    kind: Kind
    target: str
    operator: str
    function: str
    given: dict[str, float] = field(default_factory=dict, hash=False)
    operands: int = 0
    backward: bool = False
    dtypes: tuple[str, ...] = WIDE

    def __str__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self.given.items())
        return f"{self.target} {self.operator}: {self.function}({given})"


def _small(target: str, operator: str, size: float) -> ReachFault:
    return ReachFault("small", target, operator, "off", {"by": 1 + size})


def _slope(target: str, operator: str, size: float) -> ReachFault:
    return ReachFault("small", target, operator, "gradient_off", {"by": 1 + size}, backward=True)


def _between(target: str, operator: str, low: float, high: float, size: float) -> ReachFault:
    given = {"low": low, "high": high, "by": 1 + size}
    return ReachFault("special", target, operator, "off_between", given, 1)


def _turned(target: str, operator: str, number: float, instead: float, *dtypes: str) -> ReachFault:
    return ReachFault(
        "special", target, operator, "turned", {"number": number, "instead": instead}, 1, dtypes=dtypes or FLOATS
    )


def _nan(target: str, operator: str, instead: float) -> ReachFault:
    return ReachFault("special", target, operator, "nan_lost", {"instead": instead}, 1, dtypes=FLOATS)


def _behind(target: str, operator: str, lanes: int) -> ReachFault:
    return ReachFault("shape", target, operator, "off_behind", {"lanes": lanes, "by": 1.0001})


def _beside(target: str, operator: str) -> ReachFault:
    return ReachFault("shape", target, operator, "off_beside_one", {"by": 1.0001})


TVM_TORCH, TVM_ONNX, TVM_TFLITE = "torch/tvm-pt2/tvm", "onnx/tvm-onnx/tvm", "tensorflow/tflite/tvm-tflite/tvm"
TORCH_ONNX, TORCHSCRIPT = "torch/torch-onnx/ort-all", "torch/torchscript-onnx/ort-all"
TF_ONNX, JAX_TF = "tensorflow/tf2onnx/ort-all", "jax/jax2tf/tf-savedmodel"

REACH_FAULTS = (
    _small("torch-inductor", "add", 3e-7),
    _small("torch-inductor", "exp", 1e-6),
    _small("torch-inductor", "softmax", 2e-6),
    _small("torch-inductor", "layer_norm", 1e-5),
    _small("torch-export", "cumsum", 3e-6),
    _small("tf-graph", "sub", 3e-7),
    _small("tf-xla", "mul", 3e-7),
    _small("tf-xla", "tanh", 2e-6),
    _small("tf-xla", "mean", 1e-6),
    _small("jax-jit", "sqrt", 1e-6),
    _small("jax-jit", "logsumexp", 3e-6),
    _small("jax-jit", "matmul", 3e-6),
    _small("ort-all", "gelu", 5e-6),
    _small("ort-all", "div", 1e-6),
    _small("ort-all", "linear", 3e-6),
    _small("ort-extended", "silu", 3e-6),
    _small("tvm-O0", "reciprocal", 1e-6),
    _small("tvm-O2", "sigmoid", 2e-6),
    _small("tvm-O3", "conv2d", 5e-6),
    _small(TVM_TORCH, "erf", 2e-6),
    _small(TVM_TORCH, "rsqrt", 1e-6),
    _small(TVM_ONNX, "leaky_relu", 1e-6),
    _small(TVM_TFLITE, "square", 1e-6),
    _small(TORCH_ONNX, "hard_sigmoid", 2e-5),  # the exporter leaves out factors nearer to 1
    _small(TF_ONNX, "log_softmax", 1e-5),
    _small(TORCHSCRIPT, "elu", 3e-6),
    _small(JAX_TF, "maximum", 3e-7),
    _slope("torch-eager", "mul", 3e-7),
    _slope("torch-eager", "relu", 3e-7),
    _slope("torch-eager", "tanh", 5e-6),
    _slope("torch-eager", "gelu", 1e-5),
    _slope("torch-inductor", "sum", 3e-7),
    _slope("torch-inductor", "sigmoid", 3e-6),
    _slope("tf-graph", "neg", 3e-7),
    _slope("tf-graph", "sqrt", 2e-6),
    _slope("tf-xla", "cos", 2e-6),
    _slope("jax-jit", "log", 2e-6),
    _slope("jax-jit", "square", 1e-6),
    _slope("jax-jit", "transpose", 3e-7),
    _slope("jax-eager", "matmul", 1e-6),
    _nan("torch-inductor", "abs", 0.0),
    _nan("torch-inductor", "minimum", 0.0),
    _nan("tvm-O2", "exp", 0.0),
    _nan(TVM_ONNX, "ceil", 0.0),
    _nan(TF_ONNX, "floor", 0.0),
    _turned("tf-xla", "abs", float("-inf"), 3e38),
    _turned("jax-jit", "atan", float("inf"), 1.5),
    _turned("ort-all", "round", 2.5, 3.0),
    _turned("tvm-O3", "neg", -128, 0, "int8"),
    _turned("ort-basic", "square", 46341, 0, "int32"),
    _between("torch-inductor", "tanh", 7.9, 9.0, 1e-5),
    _between("tf-xla", "exp", 80.0, 88.0, 1e-5),
    _between("jax-jit", "sin", 1e4, 2e5, 1e-4),
    _between("ort-all", "erf", 0.9, 1.0, 1e-5),
    _between(TVM_TORCH, "sigmoid", 16.0, 40.0, 1e-4),
    ReachFault(
        "special",
        "torch-eager",
        "exp",
        "gradient_off_between",
        {"low": 10.0, "high": 80.0, "by": 1.0001},
        1,
        backward=True,
    ),
    ReachFault(
        "special", "torch-eager", "leaky_relu", "gradient_off_at", {"number": 0.0, "by": 300.0}, 1, backward=True
    ),
    ReachFault("special", "tf-graph", "maximum", "gradient_off_at_ties", {"by": 2.0}, 2, backward=True),
    ReachFault("shape", "tf-xla", "div", "gradient_off_beside_one", {"by": 1.0001}, backward=True),
    _behind("torch-inductor", "mul", 8),
    _behind("tf-xla", "sub", 4),
    _behind("tvm-O3", "add", 16),
    _behind(TVM_TORCH, "maximum", 8),
    _beside("ort-all", "sub"),
    _beside(TF_ONNX, "div"),
    _beside("jax-jit", "concat"),
    _beside("torch-export", "sum"),
)
