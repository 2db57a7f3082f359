"""Mixed operands and Python numbers: does each framework give the dtype that its documentation names, and the value?"""

from __future__ import annotations

import re
import textwrap

import pytest

from generators.graph import EVERY
from harness.backends import TARGETS, probe
from harness.execute.pool import Job, Pool
from oracles.judge.outcome import Value
from oracles.questions.dtypes.promotion import CASES, REFUSED, RULES, judge, operands

_PROGRAM = """
import numpy as np
import ml_dtypes
{imports}

INPUTS, PARAMETERS = (), ()
CASES = {cases!r}
NAMES = {names!r}
PYTHON = {{"python bool": bool, "python int": int, "python float": float, "python complex": complex}}


def operand(name, number):
    if name in PYTHON:
        return PYTHON[name](1 if name == "python bool" else number)
    return tensor(np.array([1 if name == "bool" else number]).astype(name))


def attempt(f, *operands):
    try:
        return f(*operands)
    except NameError:  # a fault of this program
        raise
    except Exception:  # whatever it refuses with
        return None


class Typed:
    def __init__(self, dtype):
        self.dtype = dtype

    def reshape(self, shape):
        return [float("nan")]


def outcomes(cases):
    return [attempt(apply, *case) for case in cases]


{text}


def load(parameters):
    def run():
        results = outcomes([(operation, operand(x, a), operand(y, b)) for operation, x, y, a, b in CASES])
        names = [None if result is None else str(result.dtype) for result in results]
        dtypes = [-1 if name is None else NAMES.index(name) if name in NAMES else -2 for name in names]
        values = [0 if result is None else complex(result.reshape(-1)[0]) for result in results]
        return [np.array(dtypes), np.array(values, "complex128")]

    return run
"""

_PYTHON = """
OPERATIONS = {
    "add": lambda x, y: x + y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "pow": lambda x, y: x**y,
    "equal": lambda x, y: EQUAL(x, y),
    "less": lambda x, y: x < y,
}


def apply(operation, x, y):
    return plain(OPERATIONS[operation](x, y))
"""

_TORCH = """
EQUAL = lambda x, y: x == y


def tensor(array):
    if str(array.dtype) == "bfloat16":
        return torch.from_numpy(array.astype("float32")).bfloat16()
    return torch.from_numpy(array)


def plain(x):
    return x.float().numpy().astype("bfloat16") if x.dtype == torch.bfloat16 else x.numpy()
"""

_JAX = """
EQUAL = lambda x, y: x == y
EVERY_NTH = 13
tensor, plain = jnp.asarray, lambda x: x


def outcomes(cases):
    # dtypes by tracing; values, which cost a compilation, of one case in EVERY_NTH
    typed = [attempt(lambda: jax.eval_shape(lambda: apply(*case))) for case in cases]
    kept = [i for i, result in enumerate(typed) if result is not None][::EVERY_NTH]
    tensors = [[x for x in cases[i][1:] if isinstance(x, jax.Array)] for i in kept]

    def together(tensors):
        left = [iter(of_one) for of_one in tensors]
        return [
            apply(cases[i][0], *[next(t) if isinstance(x, jax.Array) else x for x in cases[i][1:]])
            for i, t in zip(kept, left)
        ]

    results = dict(zip(kept, jax.jit(together)(tensors)))
    return [np.asarray(results[i]) if i in results else r and Typed(r.dtype) for i, r in enumerate(typed)]
"""

_TENSORFLOW = """
EQUAL = tf.math.equal  # == compares objects where dtypes differ
tensor = tf.constant


def plain(x):
    return x.numpy()
"""

_ONNX = """
KINDS = {"add": "Add", "mul": "Mul", "div": "Div", "pow": "Pow", "equal": "Equal", "less": "Less"}


def tensor(array):
    return array


def apply(operation, x, y):
    def info(name, dtype):
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(dtype), [1])

    result = np.dtype("bool") if operation in ("equal", "less") else x.dtype
    node = helper.make_node(KINDS[operation], ["x", "y"], ["z"])
    graph = helper.make_graph([node], "g", [info("x", x.dtype), info("y", y.dtype)], [info("z", result)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, {"x": x, "y": y})[0]
"""

_TVM = """
KINDS = {"add": "add", "mul": "multiply", "div": "divide", "pow": "power", "equal": "equal", "less": "less"}


def tensor(array):
    return relax.Var("x", relax.TensorType((1,), str(array.dtype)))


def apply(operation, x, y):
    bb = relax.BlockBuilder()
    with bb.function("main", [x, y]):
        z = bb.emit(getattr(relax.op, KINDS[operation])(x, y))
        bb.emit_func_output(z)
    return Typed(z.ty.dtype)
"""

_NUMPY_MODE = (
    "import tensorflow as tf\nimport tensorflow.experimental.numpy as tnp\ntnp.experimental_enable_numpy_behavior"
)
PROGRAMS = {
    "torch": ("torch-eager", "import torch", _TORCH + _PYTHON),
    "jax": (
        "jax-eager",
        'import jax\nimport jax.numpy as jnp\njax.config.update("jax_enable_x64", True)',
        _JAX + _PYTHON,
    ),
    "tensorflow": ("tf-eager", "import tensorflow as tf", _TENSORFLOW + _PYTHON),
    "tensorflow-numpy": ("tf-eager", _NUMPY_MODE + "()", _TENSORFLOW + _PYTHON),
    "onnx": ("ort-disable", "import onnxruntime\nfrom onnx import helper", _ONNX),
    "tvm": ("tvm-O0", "from tvm import relax", _TVM),
}
"""framework -> the target whose worker it needs, imports, what the program says."""

KNOWN: dict[str, dict[str, str]] = {
    "tensorflow": {
        r"mul\(.*\bbool\b.*\) is bool, not refused": "`*` of a bool tensor and one of another dtype, or a number, is "
        "bool: where one operand is bool it is logical_and, to which the other one is converted without a word",
    },
    "tvm": {
        r"\w+\((.*, )?bool(, .*)?\) is \w+, not refused": "operands of which one is bool are let through, and the "
        "result has the dtype of the left one",
    },
    "jax": {r"pow\(bool, python int\) is int32, not int64": "a bool to an int is computed as int32"},
}
"""framework -> regular expression of what deviates (as `judge` says it) -> what it is. Reported, not excused elsewhere:
nothing of it can be drawn into a graph."""


def deviations(pool: Pool, framework: str) -> list[str]:
    """What a framework does otherwise than documented: one job, in a worker of its own where it changes all else."""
    name, imports, text = PROGRAMS[framework]
    told = [case for case in CASES if RULES[framework](case)]
    listed = [(c.operation, c.left, c.right, *operands(c.operation)) for c in told]
    program = textwrap.dedent(_PROGRAM).format(imports=imports, text=text, cases=listed, names=EVERY)
    target = TARGETS[name]
    own = framework if framework.startswith("tensorflow-") else target.framework
    outcome = pool.run([Job(own, target.modules, program, {})])[0]
    assert isinstance(outcome, Value), outcome
    if own != target.framework:
        pool.restart_worker(own)
    dtypes, values = outcome.outputs
    got = {-1: REFUSED, -2: "another dtype", **dict(enumerate(EVERY))}
    found = [judge(framework, c, got[int(d)], complex(v)) for c, d, v in zip(told, dtypes, values, strict=True)]
    return [line for line in found if line]


@pytest.mark.slow(one_in=5)
@pytest.mark.parametrize("framework", PROGRAMS)
def test_results_are_as_documented(framework: str, pool: Pool) -> None:
    availability = probe.probe(TARGETS[PROGRAMS[framework][0]])
    if not availability.available:
        pytest.skip(f"{framework}: {availability.reason}")
    found, known = deviations(pool, framework), list(KNOWN.get(framework, ()))
    assert [line for line in found if not any(re.fullmatch(pattern, line) for pattern in known)] == [], "new"
    gone = [pattern for pattern in known if not any(re.fullmatch(pattern, line) for line in found)]
    assert gone == [], "known, and no longer so"
