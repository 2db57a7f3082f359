"""tf-crop-and-resize-nearest-gradient: ValueMismatch of tf-eager

ran with python 3.11.7, numpy 2.4.6, tensorflow-cpu 2.21.0
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
INPUTS = {'x2': ('float32', (2, 5, 1, 3)), 'x3': ('float32', (3, 4)), 'x4': ('int32', (3,)), 'weight_v2': ('float32', (3, 2, 2, 3))}
PARAMETERS = {}
OUTPUTS = [('float32', (2, 5, 1, 3)), ('float32', (3, 4))]


def model(x2, x3, x4):
    v2 = tf.raw_ops.CropAndResize(image=x2, boxes=x3, box_ind=x4, crop_size=(2, 2), method='nearest', extrapolation_value=0.0)
    return (v2,)


LEAVES = ('x2', 'x3')
WEIGHTS = {0: 'weight_v2'}  # number of an output -> its weights


def load(parameters):
    def gradients(given):
        weights = {i: given[weight] for i, weight in WEIGHTS.items()}
        with tf.GradientTape() as tape:
            for name in LEAVES:
                tape.watch(given[name])
            outputs = model(*[given[name] for name in [*INPUTS, *PARAMETERS] if name not in WEIGHTS.values()])
        found = tape.gradient(
            [outputs[i] for i in weights],
            [given[name] for name in LEAVES],
            output_gradients=list(weights.values()),
            unconnected_gradients=tf.UnconnectedGradients.ZERO,
        )
        return [tf.convert_to_tensor(gradient) for gradient in found]  # from IndexedSlices, too

    def run(*inputs):
        given = {**dict(zip(INPUTS, inputs)), **parameters}
        found = gradients({name: tf.constant(array) for name, array in given.items()})
        return [gradient.numpy() for gradient in found]

    return run


# ---- its inputs, and what a correct evaluation returns: value, and how far from it (inf: anything) ----

from pathlib import Path

from numpy import array, inf, nan

SYMPTOM = 'value'  # ValueMismatch
SECONDS = 120.0
ZERO_SIGNS = False  # are the signs of zeros compared?
ARRAYS = {
    'x2': array([[[[43.64852523803711, -37.155696868896484, 85.59931182861328]], [[-129.55093383789062, -24.720184326171875, 189.36077880859375]], [[-17.7249698638916, 197.23770141601562, 40.1216926574707]], [[-29.471912384033203, -57.668521881103516, 49.32239532470703]], [[104.93582153320312, -165.7231903076172, -47.70644760131836]]], [[[8.694757461547852, 104.83800506591797, -128.42938232421875]], [[79.6924819946289, -111.3063735961914, -101.99564361572266]], [[-29.170867919921875, 10.723296165466309, 64.10171508789062]], [[59.99686050415039, 5.9436821937561035, -307.23052978515625]], [[-73.43303680419922, -204.6320037841797, 23.874662399291992]]]], dtype='float32'),
    'x3': array([[0.5201696753501892, 0.07072710990905762, -0.5871464014053345, -0.9653914570808411], [-0.32031866908073425, 0.7542406916618347, -0.3273681700229645, 0.929929256439209], [-0.42133843898773193, 0.7537012696266174, 0.3845755159854889, -0.8975344300270081]], dtype='float32'),
    'x4': array([0, 1, 1], dtype='int32'),
    'weight_v2': array([[[[1.34375, 0.984375, 1.109375], [-1.140625, 0.890625, -1.5]], [[-0.90625, -0.796875, -1.5], [0.828125, -1.09375, -1.296875]]], [[[-0.59375, 1.0, 1.0625], [0.59375, 1.328125, -0.828125]], [[0.890625, -0.84375, -1.4375], [-0.875, -0.5, 1.21875]]], [[[-0.703125, -1.0, -0.71875], [-0.703125, 0.75, 0.9375]], [[1.25, 1.25, 1.40625], [-0.5, -0.859375, -1.140625]]]], dtype='float32'),
}
EXPECTED = [
    array([[[[0.0, 0.0, 0.0]], [[0.0, 0.0, 0.0]], [[0.203125, 1.875, -0.390625]], [[0.0, 0.0, 0.0]], [[0.0, 0.0, 0.0]]], [[[0.0, 0.0, 0.0]], [[0.0, 0.0, 0.0]], [[0.75, 0.390625, 0.265625]], [[0.0, 0.0, 0.0]], [[0.0, 0.0, 0.0]]]], dtype='float64'),
    array([[0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]], dtype='float64'),
]
ALLOWED = [
    array([[[[5.014592477289035e-11, 5.014592477289035e-11, 5.014592477289035e-11]], [[5.014592477289035e-11, 5.014592477289035e-11, 5.014592477289035e-11]], [[1.925044314386979e-06, 1.452867221075813e-06, 2.021902512850509e-06]], [[5.014592477289035e-11, 5.014592477289035e-11, 5.014592477289035e-11]], [[5.014592477289035e-11, 5.014592477289035e-11, 5.014592477289035e-11]]], [[[5.014592477289035e-11, 5.014592477289035e-11, 5.014592477289035e-11]], [[5.014592477289035e-11, 5.014592477289035e-11, 5.014592477289035e-11]], [[1.3560062714863428e-06, 1.634471430299535e-06, 1.973474361071252e-06]], [[5.014592477289035e-11, 5.014592477289035e-11, 5.014592477289035e-11]], [[5.014592477289035e-11, 5.014592477289035e-11, 5.014592477289035e-11]]]], dtype='float64'),
    array([[2.5674713483719858e-08, 2.5674713483719858e-08, 2.5674713483719858e-08, 2.5674713483719858e-08], [2.5674713483719858e-08, 2.5674713483719858e-08, 2.5674713483719858e-08, 2.5674713483719858e-08], [2.5674713483719858e-08, 2.5674713483719858e-08, 2.5674713483719858e-08, 2.5674713483719858e-08]], dtype='float64'),
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
