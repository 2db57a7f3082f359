"""xla-grouped-conv-infinity-elsewhere: SpecialMismatch of jax-eager

exit status: 1 reproduced, 0 not reproduced, 77 not available here
"""

import importlib.util
import sys

for module in ['jax', 'jax.numpy']:
    if importlib.util.find_spec(module) is None:
        print(f"not available: {module}")
        sys.exit(77)

# ---- the program that ran ----

import numpy as np
import jax
import jax.numpy as jnp

jax.config.update("jax_enable_x64", True)

TARGET = 'jax-eager'
# name: (dtype, shape), in the order that the model takes them
INPUTS = {'x0': ('float64', (1, 3, 3)), 'x1': ('float64', (3, 2, 3))}
PARAMETERS = {}
OUTPUTS = [('float64', (1, 6, 3))]


def convolution(x, weight, bias=None, *, padding, stride, dilation, groups):
    """Padding is written as all fronts, then all backs."""
    n = len(stride)
    y = jax.lax.conv_general_dilated(
        x,
        weight,
        window_strides=stride,
        padding=list(zip(padding[:n], padding[n:])),
        rhs_dilation=dilation,
        feature_group_count=groups,
    )
    return y if bias is None else y + bias.reshape(-1, *[1] * n)


def conv_transpose(x, weight, stride, dilation, padding, output_padding, groups):
    """The gradient of a convolution with respect to its input; weight is (C, O / groups, kernel...)."""
    channels, out, *kernel = weight.shape
    flipped = jnp.flip(weight, range(2, weight.ndim)).reshape(groups, channels // groups, out, *kernel)
    flipped = flipped.swapaxes(1, 2).reshape(groups * out, channels // groups, *kernel)
    border = [d * (k - 1) - p for d, k, p in zip(dilation, kernel, padding)]
    return jax.lax.conv_general_dilated(
        x,
        flipped,
        window_strides=(1,) * len(kernel),
        padding=[(b, b + extra) for b, extra in zip(border, output_padding)],
        lhs_dilation=stride,
        rhs_dilation=dilation,
        feature_group_count=groups,
    )


def model(x0, x1):
    v0 = conv_transpose(x0, x1, (1,), (2,), (2,), (0,), 3)
    return (v0,)


def load(parameters):
    with jax.default_device(jax.devices("cpu")[0]):  # also where there is a GPU
        bound = [jnp.asarray(parameters[name]) for name in PARAMETERS]

    def apply(*inputs):
        return model(*inputs, *bound)

    compiled = apply

    def run(*inputs):
        with jax.default_device(jax.devices("cpu")[0]):
            return [np.asarray(output) for output in compiled(*[jnp.asarray(x) for x in inputs])]

    return run


# ---- its inputs, and what a correct evaluation returns: value, and how far from it (inf: anything) ----

from pathlib import Path

from numpy import array, inf, nan

SYMPTOM = 'special'  # SpecialMismatch
SECONDS = 120.0
ZERO_SIGNS = False  # are the signs of zeros compared?
ARRAYS = {
    'x0': array([[[2.173413718743111, 1.0391901030044768, 1.0150721970986232], [-1.090685405454538, -1.036243508783891, -0.6494836626535567], [inf, 0.12584760424907918, 1.4029693116487107]]], dtype='float64'),
    'x1': array([[[-0.18533188017533503, 0.9630405759056178, 0.39799457252361853], [0.7558587033821091, -0.07311577696828556, 1.5484342130632454]], [[0.4660585369184334, -0.7279941840734232, -0.0416032535390601], [-0.6561181195544628, nan, -0.0]], [[-0.2330689939899891, 0.5687333001803057, 0.0], [-2.134781357870372, nan, -0.18181510245209404]]], dtype='float64'),
}
EXPECTED = [
    array([[[1.9049603605775396, 1.0007822352728495, 1.8425625771877712], [0.6083403220187606, -0.07598119179892501, 3.29117036887308], [0.49131522625592516, 0.75437924767851, 0.5181963905169722], [nan, nan, nan], [inf, 0.07157372328436386, nan], [nan, nan, nan]]], dtype='float64'),
]
ALLOWED = [
    array([[[1.013061118629436e-15, 2.2221829604714965e-16, 8.182621590026127e-16], [4.112985452032216e-16, 1.6871213714725336e-17, 1.5274918901354006e-15], [4.870370939406719e-16, 1.6750584201441713e-16, 2.3012542561183676e-16], [0.0, 0.0, 0.0], [0.0, inf, 0.0], [0.0, 0.0, 0.0]]], dtype='float64'),
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
