"""litert-qr-squares: SpecialMismatch of litert-reference

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
INPUTS = {}
PARAMETERS = {'w0': ('float32', (2, 2, 2, 2))}
OUTPUTS = [('float32', (2, 2, 2, 2))]


def formed(x, form):
    """Elements beyond 4 as zeros; then a dominant diagonal, or x x^T + n I; a power of two times that."""
    if form in ("vast", "minute"):
        exponent = {"float64": 716, "float16": 9}.get(x.dtype.name, 89)
        return formed(x, "shifted") * 2.0 ** (exponent if form == "vast" else -exponent)
    x = tf.where(tf.abs(x) <= 4, x, tf.zeros_like(x))
    rows, columns = x.shape[-2:]
    if form == "gram":
        return tf.matmul(x, x, transpose_b=True) + rows * tf.eye(rows, dtype=x.dtype)
    diagonal = (4 * columns + 1) * tf.eye(rows, columns, dtype=x.dtype)
    return x + {"tamed": 0 * diagonal, "shifted": diagonal, "turned": tf.reverse(diagonal, [-1])}[form]


def qr_factor(x):
    """R with a positive diagonal."""
    r = tf.linalg.qr(x)[1]
    return r * tf.expand_dims(tf.sign(tf.linalg.diag_part(r)), -1)


def dominant(x, main):
    """Rows of diagonals: elements beyond 4 as zeros, and 9 added to the main one."""
    x = tf.where(tf.abs(x) <= 4, x, tf.zeros_like(x))
    return x + tf.constant([[9.0 if row == main else 0.0] for row in range(x.shape[-2])], x.dtype)


def columns(F, x, number, count):
    """One of so many blocks of columns."""
    size = x.shape[1] // count
    return F.take(x, list(range(number * size, (number + 1) * size)), 1)


def rows(F, x, first, last, count):
    """The blocks of rows from `first` to `last` of so many."""
    size = x.shape[0] // count
    return F.take(x, list(range(first * size, (last + 1) * size)), 0)


def model(w0):
    v0 = qr_factor(formed(w0, 'vast'))
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
    'w0': array([[[[0.1257302165031433, -0.13210485875606537], [0.6404226422309875, 0.10490011423826218]], [[-0.5356693863868713, 0.3615950644016266], [1.3040000200271606, 0.9470809698104858]]], [[[-0.7037352323532104, -1.2654215097427368], [-0.6232744455337524, 0.04132597893476486]], [[-2.32503080368042, -0.218791663646698], [-1.2459110021591187, -0.7322673797607422]]]], dtype='float32'),
}
EXPECTED = [
    array([[[[5.662445630289664e+27, 3.129589523635202e+26], [0.0, 5.627557976022284e+27]], [[5.300975350400996e+27, 1.1586753652910932e+27], [0.0, 6.05107724023558e+27]]], [[[5.149610353042879e+27, -1.2003100272357354e+27], [0.0, 5.52190468634938e+27]], [[4.202961765410768e+27, -1.0721082150849974e+27], [0.0, 5.005747844836298e+27]]]], dtype='float64'),
]
ALLOWED = [
    array([[[[4.242105893523796e+22, 4.190754264191653e+22], [0.0, 4.222431743002543e+22]], [[4.036693042449392e+22, 4.6617944763941064e+22], [0.0, 4.690955464088192e+22]]], [[[3.941242268876202e+22, 4.298342267990096e+22], [0.0, 4.324100979538024e+22]], [[3.2146238674704057e+22, 3.8913369241600576e+22], [0.0, 3.9147832435279745e+22]]]], dtype='float64'),
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
