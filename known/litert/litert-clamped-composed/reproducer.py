"""litert-clamped-composed: SpecialMismatch of litert-reference

ran with python 3.11.7, numpy 2.4.6, ai-edge-litert 2.3.0, tensorflow-cpu 2.21.0
exit status: 1 reproduced, 0 not reproduced, 77 not available here
"""

import importlib.util
import sys

for module in ['tensorflow', 'ai_edge_litert', 'ai_edge_litert.interpreter']:
    if importlib.util.find_spec(module) is None:
        print(f"not available: {module}")
        sys.exit(77)

# ---- the program that ran ----

import numpy as np
import tensorflow as tf

TARGET = 'litert-reference'
# name: (dtype, shape), in the order that the model takes them
INPUTS = {'x0': ('float32', (3, 2, 4)), 'x1': ('float32', (2, 2)), 'x2': ('float32', (2, 4)), 'x3': ('float32', (2, 2)), 'x4': ('float32', (2,)), 'x5': ('float32', (2,))}
PARAMETERS = {}
OUTPUTS = [('float32', (3, 2, 2))]


class Space:
    """One set of names for all dialects; see `shared_helpers.py`."""

    exp, log, sqrt, tanh, sigmoid = tf.exp, tf.math.log, tf.sqrt, tf.tanh, tf.sigmoid
    abs, equal, concat, stack, matmul = tf.abs, tf.equal, tf.concat, tf.stack, tf.matmul
    reshape, transpose, maximum, minimum = tf.reshape, tf.transpose, tf.maximum, tf.minimum

    @staticmethod
    def where(condition, x, y):
        """A number takes the dtype of the other operand, which a traced function does not see to."""
        dtype = (x if tf.is_tensor(x) else y).dtype
        return tf.where(condition, tf.cast(x, dtype), tf.cast(y, dtype))

    @staticmethod
    def sum(x, axes, keepdims=False):
        return tf.reduce_sum(x, axis=axes, keepdims=keepdims)

    @staticmethod
    def mean(x, axes, keepdims=False):
        return tf.reduce_mean(x, axis=axes, keepdims=keepdims)

    @staticmethod
    def max(x, axes, keepdims=False):
        return tf.reduce_max(x, axis=axes, keepdims=keepdims)

    @staticmethod
    def take(x, places, axis):
        return tf.gather(x, places, axis=axis)

    @staticmethod
    def softmax(x, axis):
        return tf.nn.softmax(x, axis=axis)

    @staticmethod
    def log_softmax(x, axis):
        return tf.nn.log_softmax(x, axis=axis)

    @staticmethod
    def constant(values, like):
        return tf.constant(values, like.dtype)

    @staticmethod
    def cast(x, like):
        return tf.cast(x, like.dtype)


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


def model(x0, x1, x2, x3, x4, x5):
    v0 = rnn(Space, x0, x1, x2, x3, x4, x5, activation='tanh', direction='forward', output='all')
    return (v0,)


def load(parameters):
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    bound = [tf.constant(parameters[name]) for name in PARAMETERS]
    signature = [tf.TensorSpec(shape, dtype, f"input{i}") for i, (dtype, shape) in enumerate(INPUTS.values())]
    concrete = tf.function(lambda *x: model(*x, *bound), signature, autograph=False).get_concrete_function()
    converter = tf.lite.TFLiteConverter.from_concrete_functions([concrete])  # by a SavedModel costs ten times as much
    converter.canonicalizing_inf_as_min_max_float = False  # else infinities are replaced on purpose
    content = converter.convert()
    kernels = OpResolverType.BUILTIN_REF
    interpreter = Interpreter(model_content=content, experimental_op_resolver_type=kernels, num_threads=1)
    interpreter.allocate_tensors()

    def run(*inputs):
        for detail, array in zip(interpreter.get_input_details(), inputs):
            interpreter.set_tensor(detail["index"], array)
        interpreter.invoke()
        return [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]

    return run


# ---- its inputs, and what a correct evaluation returns: value, and how far from it (inf: anything) ----

from pathlib import Path

from numpy import array, inf, nan

SYMPTOM = 'special'  # SpecialMismatch
SECONDS = 120.0
ZERO_SIGNS = False  # are the signs of zeros compared?
ARRAYS = {
    'x0': array([[[1.4457448720932007, 0.13779878616333008, 0.2692592442035675, 0.8730139136314392], [0.4498368501663208, 1.5266656875610352, -1.160833477973938, 0.9005140066146851]], [[-inf, 1.3019471168518066, 1.268843412399292, nan], [-0.5344002842903137, -0.511254072189331, inf, nan]], [[0.0, -1.428170084953308, nan, -0.0], [-0.32306697964668274, 0.0, -1.4181513786315918, inf]]], dtype='float32'),
    'x1': array([[0.02550155483186245, -inf], [0.18298880755901337, 0.0]], dtype='float32'),
    'x2': array([[-1.1420923471450806, -1.0693365335464478, 0.0, 0.0], [-1.037935495376587, nan, -0.392619252204895, 1.3877289295196533]], dtype='float32'),
    'x3': array([[-1.231665015220642, 0.2671189606189728], [-0.006926123518496752, 0.5015352964401245]], dtype='float32'),
    'x4': array([inf, -1.039984107017517], dtype='float32'),
    'x5': array([0.2442295104265213, 0.6781783103942871], dtype='float32'),
}
EXPECTED = [
    array([[[nan, nan], [1.0, nan]], [[nan, nan], [nan, nan]], [[nan, nan], [nan, nan]]], dtype='float64'),
]
ALLOWED = [
    array([[[0.0, 0.0], [5.960464479759509e-07, 0.0]], [[0.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]]], dtype='float64'),
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
