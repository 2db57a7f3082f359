"""tvm-combine-parallel-index: Rejection of tvm-O3

exit status: 1 reproduced, 0 not reproduced, 77 not available here
"""

import importlib.util
import sys

for module in ['tvm', 'tvm.relax']:
    if importlib.util.find_spec(module) is None:
        print(f"not available: {module}")
        sys.exit(77)

# ---- the program that ran ----

import numpy as np
import tvm
from tvm import relax

TARGET = 'tvm-O3'
# name: (dtype, shape), in the order that the model takes them
INPUTS = {'v7': ('float32', (1, 1, 1)), 'w1': ('float32', (1, 1)), 'w2': ('float32', (1, 1)), 'w3': ('float32', (1,))}
PARAMETERS = {}
OUTPUTS = [('float32', (1, 1, 1))]


class Value:
    """An expression with the operators of Python."""

    def __init__(self, space, expr):
        self.space, self.expr = space, space.bb.emit(expr)
        self.shape, self.dtype = tuple(int(n) for n in self.expr.ty.shape), str(self.expr.ty.dtype)

    def __add__(self, other):
        return self.space.call(relax.op.add, self, other)

    def __sub__(self, other):
        return self.space.call(relax.op.subtract, self, other)

    def __mul__(self, other):
        return self.space.call(relax.op.multiply, self, other)

    def __truediv__(self, other):
        return self.space.call(relax.op.divide, self, other)

    def __gt__(self, other):
        return self.space.call(relax.op.greater, self, other)

    def __and__(self, other):
        return self.space.call(relax.op.logical_and, self, other)

    def __radd__(self, other):
        return self.space.constant(other, self) + self

    def __rsub__(self, other):
        return self.space.constant(other, self) - self

    def __rmul__(self, other):
        return self.space.constant(other, self) * self

    def __neg__(self):
        return self.space.call(relax.op.negative, self)


class Space:
    """One set of names for all dialects; see `shared_helpers.py`."""

    def __init__(self, bb):
        self.bb = bb

    def run(self, function, operands, **attrs):
        """The function of these expressions, as an expression."""
        return function(self, *[Value(self, o) for o in operands], **attrs).expr

    def call(self, op, *operands, **attrs):
        """Numbers take the dtype of the last operand that is a value."""
        like = [o for o in operands if isinstance(o, Value)][-1]
        values = [o if isinstance(o, Value) else self.constant(o, like) for o in operands]
        return Value(self, op(*[v.expr for v in values], **attrs))

    def constant(self, values, like):
        return Value(self, relax.const(np.asarray(values, like.dtype), like.dtype))

    def cast(self, x, like):
        return self.call(relax.op.astype, x, dtype=like.dtype)

    def exp(self, x):
        return self.call(relax.op.exp, x)

    def log(self, x):
        return self.call(relax.op.log, x)

    def sqrt(self, x):
        return self.call(relax.op.sqrt, x)

    def tanh(self, x):
        return self.call(relax.op.tanh, x)

    def sigmoid(self, x):
        return self.call(relax.op.sigmoid, x)

    def abs(self, x):
        return self.call(relax.op.abs, x)

    def equal(self, x, y):
        return self.call(relax.op.equal, x, y)

    def maximum(self, x, y):
        return self.call(relax.op.maximum, x, y)

    def minimum(self, x, y):
        return self.call(relax.op.minimum, x, y)

    def where(self, condition, x, y):
        like = x if isinstance(x, Value) else y
        x, y = (o if isinstance(o, Value) else self.constant(o, like) for o in (x, y))
        return self.call(relax.op.where, condition, x, y)

    def matmul(self, x, y):
        return self.call(relax.op.matmul, x, y)

    def reshape(self, x, shape):
        return self.call(relax.op.reshape, x, shape=tuple(shape))

    def transpose(self, x, order):
        return self.call(relax.op.permute_dims, x, axes=list(order))

    def concat(self, values, axis):
        return Value(self, relax.op.concat([v.expr for v in values], axis=axis))

    def stack(self, values, axis):
        return Value(self, relax.op.stack([v.expr for v in values], axis=axis))

    def take(self, x, places, axis):
        places = places.expr if isinstance(places, Value) else relax.const(np.asarray(places, "int64"), "int64")
        return Value(self, relax.op.take(x.expr, places, axis=axis))

    def sum(self, x, axes, keepdims=False):
        return self.call(relax.op.sum, x, axis=list(axes), keepdims=keepdims)

    def mean(self, x, axes, keepdims=False):
        return self.call(relax.op.mean, x, axis=list(axes), keepdims=keepdims)

    def max(self, x, axes, keepdims=False):
        return self.call(relax.op.max, x, axis=list(axes), keepdims=keepdims)

    def softmax(self, x, axis):
        return self.call(relax.op.nn.softmax, x, axis=axis)

    def log_softmax(self, x, axis):
        return self.call(relax.op.nn.log_softmax, x, axis=axis)


def gates(F, x, weight, bias):
    """x by the transposed weight, and the bias."""
    return F.matmul(x, F.transpose(weight, [1, 0])) + bias


def rnn_cell(F, x, h, w, r, bw, br, activation):
    total = gates(F, x, w, bw) + gates(F, h, r, br)
    return F.maximum(total, 0) if activation == "relu" else F.tanh(total)


def over_time(F, step, x, state, direction, output):
    """The step from state to state, over the first axis of x."""
    order = list(range(x.shape[0]))
    if direction == "reverse":
        order.reverse()
    results = []
    for t in order:
        state = step(F.reshape(F.take(x, [t], 0), x.shape[1:]), *state)
        results.append(state[0])
    if output != "all":
        return state[1 if output == "cell" else 0]
    if direction == "reverse":
        results.reverse()
    return F.stack(results, 0)


def rnn(F, x, h, w, r, bw, br, activation, direction, output):
    def step(x, h):
        return (rnn_cell(F, x, h, w, r, bw, br, activation),)

    return over_time(F, step, x, [h], direction, output)


def model(bb, v7, w1, w2, w3):
    v9 = bb.emit(Space(bb).run(rnn, [v7, w1, w2, w1, w3, w3], activation='tanh', direction='forward', output='all'))
    return (v9,)


def load(parameters):
    bb = relax.BlockBuilder()
    arguments = [
        relax.Var(name, relax.TensorType(shape, dtype))
        for name, (dtype, shape) in [*INPUTS.items(), *PARAMETERS.items()]
    ]
    with bb.function("main", arguments):
        with bb.dataflow():
            results = bb.emit_output(relax.Tuple(model(bb, *arguments)))
        bb.emit_func_output(results)
    target = tvm.target.Target({"kind": "llvm", "opt-level": 3})
    passes = [
        relax.transform.BindParams("main", parameters),
        relax.backend.DispatchSampling(),
        relax.backend.DispatchSortScan(),
        relax.transform.CanonicalizeBindings(),
        relax.transform.EliminateCommonSubexpr(),
        relax.transform.FuseTransposeMatmul(),
        relax.transform.CombineParallelMatmul(),
        relax.transform.FoldBatchnormToConv2D(),
        relax.transform.RemoveRedundantReshape(),
        relax.transform.LegalizeOps(),
        relax.transform.AnnotateTIROpPattern(),
        relax.transform.FoldConstant(),
        relax.transform.FuseOps(),
        relax.transform.FuseTIR(),
        relax.transform.DataflowUseInplaceCalls(),
        relax.transform.DeadCodeElimination(),
        relax.transform.RewriteDataflowReshape(),
        relax.transform.ToNonDataflow(),
        relax.transform.RemovePurityChecking(),
        relax.transform.CallTIRRewrite(),
        relax.transform.StaticPlanBlockMemory(),
        relax.transform.LowerAllocTensor(),
        relax.transform.KillAfterLastUse(),
        relax.transform.LowerRuntimeBuiltin(),
        relax.transform.ComputePrimValue(),
        relax.transform.VMShapeLower(),
        relax.transform.AttachGlobalSymbol(),
    ]
    with target, tvm.transform.PassContext(opt_level=3):
        executable = tvm.compile(bb.get(), target, relax_pipeline=tvm.transform.Sequential(passes))
    machine = relax.VirtualMachine(executable, tvm.cpu())

    def run(*inputs):
        return [output.numpy() for output in machine["main"](*[tvm.runtime.tensor(x) for x in inputs])]

    return run


# ---- its inputs, and what a correct evaluation returns: value, and how far from it (inf: anything) ----

from pathlib import Path

from numpy import array, inf, nan

SYMPTOM = 'rejected'  # Rejection
SECONDS = 120.0
ZERO_SIGNS = False  # are the signs of zeros compared?
ARRAYS = {
    'v7': array([[[0.0]]], dtype='float32'),
    'w1': array([[0.0]], dtype='float32'),
    'w2': array([[0.0]], dtype='float32'),
    'w3': array([0.0], dtype='float32'),
}
EXPECTED = [
    array([[[0.0]]], dtype='float64'),
]
ALLOWED = [
    array([[[0.0]]], dtype='float64'),
]


def wrong(output, expected, allowed, dtype, shape):
    """What is wrong with one output, or None."""
    if str(output.dtype) != dtype or output.shape != tuple(shape):
        return f"{output.dtype}{output.shape} instead of {dtype}{tuple(shape)}"
    if not shape and output.ndim == 0:
        output, expected, allowed = output.reshape(1), expected.reshape(1), allowed.reshape(1)
    if "complex" in dtype:  # the parts side by side: NaN and infinities in place, then the modulus of the difference
        got, bad, distance = output, np.zeros(output.shape, bool), np.zeros(output.shape)
        for a, b in ((output.real, expected.real), (output.imag, expected.imag)):
            bad |= (np.isnan(a) != np.isnan(b)) | ((np.isinf(a) | np.isinf(b)) & ~np.isnan(b) & (a != b))
            with np.errstate(all="ignore"):
                distance = np.hypot(distance, np.where(np.isfinite(a) & np.isfinite(b), a.astype("float64") - b, 0.0))
            if ZERO_SIGNS:
                bad |= (a == 0) & (b == 0) & (allowed == 0) & (np.signbit(a) != np.signbit(b))
        bad = ~np.isinf(allowed) & (bad | (distance > allowed))
    elif "float" in dtype:
        got = output.astype("float64")
        with np.errstate(all="ignore"):
            same = (got == expected) | (np.isnan(got) & np.isnan(expected))
            near = np.isfinite(got) & np.isfinite(expected) & (np.abs(got - expected) <= allowed)
        bad = ~np.isinf(allowed) & ~same & ~near
        if ZERO_SIGNS:
            bad |= (allowed == 0) & (got == 0) & (expected == 0) & (np.signbit(got) != np.signbit(expected))
    else:
        got, bad = output, ~np.isinf(allowed) & (output != expected)
    if not bad.any():
        return None
    at = tuple(int(i[0]) for i in np.nonzero(bad))
    detail = f"expected {expected[at]}, got {got[at]}, allowed {allowed[at]:.3g}"
    return f"{bad.sum()} of {bad.size} wrong, at {at}: {detail}"


def main():
    if SYMPTOM in ("crash", "timeout") and "--child" not in sys.argv:
        import subprocess

        try:
            code = subprocess.run([sys.executable, __file__, "--child"], timeout=SECONDS).returncode
        except subprocess.TimeoutExpired:
            print("reproduced: no result within", SECONDS, "s")
            return 1
        print("the process ended with status", code)
        return 0 if code == 0 else 77 if code == 77 else 1
    try:
        outputs = load({n: ARRAYS[n] for n in PARAMETERS})(*[ARRAYS[n] for n in INPUTS])
    except Exception as error:
        # another failure than the one looked for says nothing about it: like a framework that is not there
        why = (str(error).splitlines() or [""])[0]
        print(f"{'reproduced' if SYMPTOM == 'rejected' else 'not available'}: {type(error).__name__}: {why}")
        return 1 if SYMPTOM == "rejected" else 77
    if len(outputs) != len(OUTPUTS):
        print(f"reproduced: {len(outputs)} outputs instead of {len(OUTPUTS)}")
        return 1
    failed = 0
    for i, (dtype, shape) in enumerate(OUTPUTS):
        problem = wrong(np.asarray(outputs[i]), EXPECTED[i], ALLOWED[i], dtype, shape)
        print(f"output {i}: {problem or 'correct'}")
        failed |= problem is not None
    print("reproduced" if failed else "not reproduced")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
