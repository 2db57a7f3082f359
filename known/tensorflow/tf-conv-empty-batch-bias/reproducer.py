"""tf-conv-empty-batch-bias: Rejection of tf-eager

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
INPUTS = {'x1': ('float32', (16, 1, 1, 3)), 'x2': ('float32', (16,))}
PARAMETERS = {'w0': ('float32', (0, 4, 1, 1))}
OUTPUTS = [('float32', (0, 16, 2, 1))]


def conv2d(x, weight, bias, stride, padding, dilation, groups):
    """NCHW by OIHW. TensorFlow convolves NHWC by HWIO on a CPU; the number of groups follows from the shapes."""
    top, left, bottom, right = padding
    y = tf.nn.conv2d(
        tf.transpose(x, [0, 2, 3, 1]),
        tf.transpose(weight, [2, 3, 1, 0]),
        strides=list(stride),
        padding=[[0, 0], [top, bottom], [left, right], [0, 0]],
        dilations=list(dilation),
    )
    return tf.transpose(tf.nn.bias_add(y, bias), [0, 3, 1, 2])


def model(x1, x2, w0):
    v0 = conv2d(w0, x1, x2, (2, 2), (1, 0, 1, 3), (3, 1), 4)
    return (v0,)


def load(parameters):
    bound = [tf.constant(parameters[name]) for name in PARAMETERS]

    def run(*inputs):
        return [output.numpy() for output in model(*[tf.constant(x) for x in inputs], *bound)]

    return run


# ---- its inputs, and what a correct evaluation returns: value, and how far from it (inf: anything) ----

from pathlib import Path

from numpy import array, inf, nan

SYMPTOM = 'rejected'  # Rejection
SECONDS = 120.0
ZERO_SIGNS = False  # are the signs of zeros compared?
ARRAYS = {
    'w0': array([], dtype='float32').reshape((0, 4, 1, 1)),
    'x1': array([[[[-1.392385255450833e-35, 6.193113941730522e-36, 3.694040502531186e-36]]], [[[2.530463098772063e-35, 1.0953518809590939e-35, 1.9978939897907833e-35]]], [[[-8.640976894919944e-36, -8.4729638546989e-36, 5.977630918305967e-36]]], [[[-7.299740280012081e-36, -1.337695065094308e-35, -1.528590354112744e-35]]], [[[8.002487020557442e-36, -2.268936412193702e-35, 2.3856953445441584e-36]]], [[[3.567504820656935e-36, -3.608723532938378e-36, -2.402347415885006e-35]]], [[[1.7217621589851588e-35, -1.2659415525657028e-35, 4.435394742168404e-36]]], [[[-3.4960385541348187e-37, 7.395082026714792e-36, 1.5152275719569425e-36]]], [[[1.9274185690813643e-35, -1.9170335528884858e-35, -1.2644635750494102e-35]]], [[[1.4646072725028068e-35, 1.0435076582792088e-35, -1.7421289761455973e-35]]], [[[-3.8214769614790805e-36, 6.465345382696002e-37, -3.548407700977362e-36]]], [[[1.4172438328241365e-35, 2.4718653798004966e-36, 5.632819481219701e-36]]], [[[1.948832992489577e-36, -2.1187214857337234e-36, -2.1958349267730528e-35]]], [[[2.6959741956946534e-35, -5.301666332109393e-37, 9.038919471322491e-36]]], [[[-1.7137254051276326e-35, 8.975799786869402e-36, 1.738809696931337e-35]]], [[[-4.8108569935622134e-36, 2.580912354614604e-35, -1.1877075391070425e-35]]]], dtype='float32'),
    'x2': array([-9905.4755859375, 11189.138671875, -12740.9658203125, 6793.2001953125, 7634.33203125, -9695.81640625, 6061.55126953125, 7882.4296875, 1719.55908203125, 7258.9296875, 3900.502197265625, -253.63787841796875, 10713.1591796875, -1648.7025146484375, 22651.07421875, -24901.76953125], dtype='float32'),
}
EXPECTED = [
    array([], dtype='float64').reshape((0, 16, 2, 1)),
]
ALLOWED = [
    array([], dtype='float64').reshape((0, 16, 2, 1)),
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
