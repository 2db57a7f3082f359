"""litert-softplus-overflow: ValueMismatch of litert-reference

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
INPUTS = {'x0': ('float32', (37, 1))}
PARAMETERS = {}
OUTPUTS = [('float32', (37, 1))]


def model(x0):
    v0 = tf.math.softplus(x0)
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

SYMPTOM = 'value'  # ValueMismatch
SECONDS = 120.0
ZERO_SIGNS = False  # are the signs of zeros compared?
ARRAYS = {
    'x0': array([[88.71892547607422], [0.00048828125], [11.089865684509277], [-17.32868003845215], [0.3465735912322998], [-2.8520305156707764], [40.0], [88.72283172607422], [39.999996185302734], [3.725290076417309e-09], [-88.00000762939453], [-708.396484375], [-103.97207641601562], [88.71893310546875], [0.3465735614299774], [87.99999237060547], [88.00000762939453], [-4.931471347808838], [20.000001907348633], [88.71891784667969], [-9.704059600830078], [709.7827758789062], [104.00000762939453], [88.72284698486328], [5.960465188081798e-08], [-17.32868194580078], [11.089866638183594], [0.3465736210346222], [0.0004882813082076609], [19.999998092651367], [-13.942383766174316], [-745.13330078125], [-103.9720687866211], [103.99999237060547], [709.7826538085938], [104.0], [20.0]], dtype='float32'),
}
EXPECTED = [
    array([[88.71892547607422], [0.6933913509872675], [11.089880950648306], [2.9802306313677922e-08], [0.8813735875774034], [0.05612225310416239], [40.0], [88.72283172607422], [39.999996185302734], [0.6931471824225903], [6.054555702630808e-39], [2.224927358379829e-308], [7.006497001795564e-46], [88.71893310546875], [0.8813735701196073], [87.99999237060547], [88.00000762939453], [0.0071899685164805984], [20.000001909409782], [88.71891784667969], [6.103335025736028e-05], [709.7827758789062], [104.00000762939453], [88.72284698486328], [0.6931472103622717], [2.9802249470344777e-08], [11.089881904308063], [0.8813736050351998], [0.6933913510163784], [19.999998094712524], [8.808449615316506e-07], [0.0], [7.006550457329389e-46], [103.99999237060547], [709.7826538085938], [104.0], [20.000000002061153]], dtype='float64'),
]
ALLOWED = [
    array([[6.351632511874404e-05], [5.555567869204458e-07], [7.991705623215001e-06], [5.960466609166121e-08], [6.900121601946481e-07], [9.974640831107023e-08], [2.8669834145844675e-05], [6.351911908646875e-05], [2.866983141736057e-05], [5.553821439536367e-07], [5.960464477539063e-08], [5.960464477539063e-08], [5.960464477539063e-08], [6.351633057571225e-05], [6.900121477078593e-07], [6.30021040901596e-05], [6.300211500409603e-05], [6.474731100943994e-08], [1.4364720761026334e-05], [6.351631966177583e-05], [5.964829922934269e-08], [0.0005077358074898137], [7.444620680452374e-05], [6.351913000040517e-05], [5.553821639376541e-07], [5.960466609162055e-08], [7.991706305325614e-06], [6.900121726814371e-07], [5.555567869412676e-07], [1.4364718032542234e-05], [5.960527480480323e-08], [5.960464477539063e-08], [5.960464477539063e-08], [7.444619589058732e-05], [0.0005077357201783223], [7.444620134755553e-05], [1.4364719396784285e-05]], dtype='float64'),
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
