"""tflite-add-before-dense: Rejection of litert-reference

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
INPUTS = {'x0': ('float32', (4, 1))}
PARAMETERS = {'w1': ('float32', (3,)), 'w2': ('float32', (3, 5)), 'w3': ('float32', (5,))}
OUTPUTS = [('float32', (4, 5))]


def model(x0, w1, w2, w3):
    v0 = tf.add(x0, w1)
    v1 = tf.matmul(v0, w2)
    v2 = tf.add(v1, w3)
    return (v2,)


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

SYMPTOM = 'rejected'  # Rejection
SECONDS = 120.0
ZERO_SIGNS = False  # are the signs of zeros compared?
ARRAYS = {
    'x0': array([[0.5532605648040771], [0.21760061383247375], [-0.05798998847603798], [-2.3189361095428467]], dtype='float32'),
    'w1': array([-4.5, 2.0, -0.5], dtype='float32'),
    'w2': array([[-4.5, 2.0, -0.5, 1.5, -2.0], [-3.5, 1.0, -3.5, -3.5, 1.5], [1.5, 3.5, -0.5, -3.0, -3.0]], dtype='float32'),
    'w3': array([-4.5, 2.0, -0.5, 1.5, -2.0], dtype='float32'),
}
EXPECTED = [
    array([[4.4038063287734985, -3.1538063287734985, -7.489672541618347, -13.516302824020386, 9.56358802318573], [6.585596010088921, -5.335596010088921, -5.979202762246132, -11.838003069162369, 10.738397851586342], [8.376934925094247, -7.126934925094247, -4.739045051857829, -10.46005005761981, 11.702964959666133], [23.073084712028503, -21.823084712028503, 5.43521249294281, 0.8446805477142334, 19.616276383399963]], dtype='float64'),
]
ALLOWED = [
    array([[6.646534709472439e-06, 2.7231228546381478e-06, 3.0538635881437827e-06, 4.3858007160332105e-06, 3.403198899347094e-06], [6.938553537521921e-06, 3.124403608520667e-06, 2.7510653018407217e-06, 4.289603975173516e-06, 3.6771297029883827e-06], [7.209590489364285e-06, 3.5268524257577372e-06, 2.5128813100288134e-06, 4.273177507794728e-06, 3.964593147482416e-06], [9.965460611242365e-06, 6.980624337367793e-06, 1.7390291177749238e-06, 4.771390651705194e-06, 6.5510650280600585e-06]], dtype='float64'),
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
