"""tf-bicubic-table: ValueMismatch of tf-eager

exit status: 1 reproduced, 0 not reproduced, 77 not available here
"""

import importlib.util
import sys

for module in ['tensorflow']:
    if importlib.util.find_spec(module) is None:
        print(f"not available: {module}")
        sys.exit(77)

# ---- the program that ran ----

import numpy as np
import tensorflow as tf

TARGET = 'tf-eager'
# name: (dtype, shape), in the order that the model takes them
INPUTS = {'x0': ('float32', (1, 1, 2, 2))}
PARAMETERS = {}
OUTPUTS = [('float32', (1, 1, 13, 4))]


def resized(x, f, size, **options):
    """NCHW; TensorFlow resizes NHWC."""
    return tf.transpose(f(tf.transpose(x, [0, 2, 3, 1]), list(size), **options), [0, 3, 1, 2])


def model(x0):
    v0 = resized(x0, tf.image.resize, (13, 4), method="bicubic")
    return (v0,)


def load(parameters):
    bound = [tf.constant(parameters[name]) for name in PARAMETERS]

    def run(*inputs):
        return [output.numpy() for output in model(*[tf.constant(x) for x in inputs], *bound)]

    return run


# ---- its inputs, and what a correct evaluation returns: value, and how far from it (inf: anything) ----

from pathlib import Path

from numpy import array, inf, nan

SYMPTOM = 'value'  # ValueMismatch
SECONDS = 120.0
ZERO_SIGNS = False  # are the signs of zeros compared?
ARRAYS = {
    'x0': array([[[[0.1257302165031433, -0.13210485875606537], [0.6404226422309875, 0.10490011423826218]]]], dtype='float32'),
}
EXPECTED = [
    array([[[[0.08475038963960974, 0.01828621445761925, -0.11350761229016838, -0.17997178747215886], [0.09854106898214329, 0.02997904093632208, -0.10597468181741157, -0.17453670986323275], [0.12213164220978903, 0.04998099098045368, -0.09308872141455836, -0.1652393726438937], [0.1601823404795318, 0.08224337640836704, -0.07230415689917735, -0.15024312097034215], [0.2282592579628288, 0.13996436052856792, -0.035118266816182644, -0.12341316425044352], [0.31825835320540397, 0.21627269732427715, 0.01404225024278239, -0.08794340563834446], [0.4180775000987684, 0.30090724903025795, 0.06856680807790587, -0.04860344299060457], [0.5178966469921327, 0.3855418007362388, 0.12309136591302931, -0.009263480342864706], [0.6078957422347081, 0.46185013753194804, 0.17225188297199437, 0.026206278269234357], [0.6759726597180049, 0.5195711216521488, 0.2094377730549891, 0.05303623498913298], [0.7140233579877477, 0.5518335070800622, 0.23022233757037008, 0.06803248666268455], [0.7376139312153933, 0.5718354571241937, 0.24310829797322328, 0.07732982388202364], [0.7514046105579271, 0.5835282836028967, 0.25064122844598014, 0.08276490149094973]]]], dtype='float64'),
]
ALLOWED = [
    array([[[[1.21652224816065e-05, 9.46034823063805e-06, 7.110024206960377e-06, 8.424657173485754e-06], [9.879757820494648e-06, 7.6194447842007825e-06, 5.8886999216440196e-06, 7.142055956058936e-06], [8.695363845165653e-06, 6.614125809147732e-06, 5.17813492024731e-06, 6.366890392455484e-06], [8.414069869948432e-06, 6.264500844618705e-06, 4.803942492821406e-06, 5.892014841349303e-06], [9.645776021396263e-06, 6.9679782135825745e-06, 4.817546509280969e-06, 5.674589656688817e-06], [1.1439137486069567e-05, 8.030993886232574e-06, 4.936343511464865e-06, 5.497207695745796e-06], [1.3541751447144596e-05, 9.299763306387108e-06, 5.127850436776655e-06, 5.362795399406865e-06], [1.618176995305573e-05, 1.1025837739056158e-05, 6.008067151025659e-06, 6.333946495357704e-06], [1.892478873221127e-05, 1.2876487848564788e-05, 7.127164376394007e-06, 7.695475672480959e-06], [2.1327063358359003e-05, 1.4523142507167428e-05, 8.08081810592063e-06, 8.814354306201359e-06], [2.3548735435370194e-05, 1.6120830398991057e-05, 8.981801969584043e-06, 9.79051148558897e-06], [2.648115312252743e-05, 1.829321659452724e-05, 1.0102079979498113e-05, 1.0891912610068182e-05], [3.105184091005374e-05, 2.1728007990633104e-05, 1.1755570113427396e-05, 1.2401043524227894e-05]]]], dtype='float64'),
]


def wrong(output, expected, allowed, dtype, shape):
    """What is wrong with one output, or None."""
    if str(output.dtype) != dtype or output.shape != tuple(shape):
        return f"{output.dtype}{output.shape} instead of {dtype}{tuple(shape)}"
    if not shape and output.ndim == 0:
        output, expected, allowed = output.reshape(1), expected.reshape(1), allowed.reshape(1)
    if dtype.startswith("float"):
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
        print(f"{'reproduced' if SYMPTOM == 'rejected' else 'not available'}: {type(error).__name__}: {error}")
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
