"""torch-inductor-scatter-slice-update: ValueMismatch of torch-inductor

ran with python 3.11.7, numpy 2.4.6, torch 2.13.0+cpu
exit status: 1 reproduced, 0 not reproduced, 77 not available here
"""

import importlib.util
import sys

for module in ['torch']:
    if importlib.util.find_spec(module) is None:
        print(f"not available: {module}")
        sys.exit(77)

# ---- the program that ran ----

import numpy as np
import torch

TARGET = 'torch-inductor'
# name: (dtype, shape), in the order that the model takes them
INPUTS = {'x2': ('float32', (2, 2, 1, 11)), 'x6': ('int64', (2, 2, 1, 11)), 'w7': ('float32', (2, 2, 1, 11)), 'w8': ('float32', (2, 2, 0, 2)), 'weight_v7': ('float32', (2, 2, 1, 2))}
PARAMETERS = {}
OUTPUTS = [('float32', (2, 2, 1, 11)), ('float32', (2, 2, 1, 11)), ('float32', (2, 2, 0, 2))]


def model(x2, x6, w7, w8):
    v1 = torch.nn.functional.avg_pool2d(x2, (1, 2), (1, 5), (0, 0), count_include_pad=False)
    v4 = torch.scatter_reduce(v1, 3, x6.long(), w7, "amin")
    v5 = torch.scatter_reduce(v4, -1, x6.long(), w7, "amax")
    v7 = torch.slice_scatter(v5, w8, 2, 0, 0, 1)
    return (v7,)


LEAVES = ('x2', 'w7', 'w8')
WEIGHTS = {0: 'weight_v7'}  # number of an output -> its weights


def load(parameters):
    compiled = torch.compile(model, backend="inductor", fullgraph=True, dynamic=False)

    def run(*inputs):
        given = {**dict(zip(INPUTS, inputs)), **parameters}
        values = {name: torch.from_numpy(array.copy()) for name, array in given.items()}
        for name in LEAVES:
            values[name].requires_grad_()
        outputs = compiled(*[values[name] for name in given if name not in WEIGHTS.values()])
        # what is a constant by the framework's own rules has a gradient of zero
        pairs = [(outputs[i], values[weight]) for i, weight in WEIGHTS.items() if outputs[i].requires_grad]
        wanted = [values[name] for name in LEAVES]
        if pairs:
            reached, seeds = zip(*pairs)
            gradients = torch.autograd.grad(reached, wanted, seeds, allow_unused=True, materialize_grads=True)
        else:
            gradients = [torch.zeros_like(leaf) for leaf in wanted]
        return [gradient.detach().numpy() for gradient in gradients]

    return run


# ---- its inputs, and what a correct evaluation returns: value, and how far from it (inf: anything) ----

from pathlib import Path

from numpy import array, inf, nan

SYMPTOM = 'value'  # ValueMismatch
SECONDS = 120.0
ZERO_SIGNS = False  # are the signs of zeros compared?
ARRAYS = {
    'x2': array([[[[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]], [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]]], [[[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]], [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]]]], dtype='float32'),
    'x6': array([[[[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]], [[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]]], [[[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]], [[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]]]], dtype='int64'),
    'w7': array([[[[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]], [[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]]], [[[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]], [[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]]]], dtype='float32'),
    'w8': array([[[], []], [[], []]], dtype='float32').reshape((2, 2, 0, 2)),
    'weight_v7': array([[[[-1.15625, 1.46875]], [[-0.90625, 1.4375]]], [[[0.640625, -1.328125]], [[0.921875, -0.625]]]], dtype='float32'),
}
EXPECTED = [
    array([[[[0.0, 0.0, 0.0, 0.0, 0.0, 0.734375, 0.734375, 0.0, 0.0, 0.0, 0.0]], [[0.0, 0.0, 0.0, 0.0, 0.0, 0.71875, 0.71875, 0.0, 0.0, 0.0, 0.0]]], [[[0.0, 0.0, 0.0, 0.0, 0.0, -0.6640625, -0.6640625, 0.0, 0.0, 0.0, 0.0]], [[0.0, 0.0, 0.0, 0.0, 0.0, -0.3125, -0.3125, 0.0, 0.0, 0.0, 0.0]]]], dtype='float64'),
    array([[[[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]], [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]]], [[[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]], [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]]]], dtype='float64'),
    array([[[], []], [[], []]], dtype='float64').reshape((2, 2, 0, 2)),
]
ALLOWED = [
    array([[[[2.523851708690491e-11, 2.523851708690491e-11, 1.00699e-318, 1.00699e-318, 1.00699e-318, 1.7946599091393546e-06, 1.7946599091393546e-06, 1.00699e-318, 1.00699e-318, 1.00699e-318, 1.00699e-318]], [[1.9781540419466015e-11, 1.9781540419466015e-11, 1.00699e-318, 1.00699e-318, 1.00699e-318, 1.7564756557534107e-06, 1.7564756557534107e-06, 1.00699e-318, 1.00699e-318, 1.00699e-318, 1.00699e-318]]], [[[1.3983502710312182e-11, 1.3983502710312182e-11, 1.00699e-318, 1.00699e-318, 1.00699e-318, 1.622830768902608e-06, 1.622830768902608e-06, 1.00699e-318, 1.00699e-318, 1.00699e-318, 1.00699e-318]], [[2.0122601461180947e-11, 2.0122601461180947e-11, 1.00699e-318, 1.00699e-318, 1.00699e-318, 7.636850677188744e-07, 7.636850677188744e-07, 1.00699e-318, 1.00699e-318, 1.00699e-318, 1.00699e-318]]]], dtype='float64'),
    array([[[[inf, inf, inf, inf, inf, inf, inf, inf, inf, inf, inf]], [[inf, inf, inf, inf, inf, inf, inf, inf, inf, inf, inf]]], [[[inf, inf, inf, inf, inf, inf, inf, inf, inf, inf, inf]], [[inf, inf, inf, inf, inf, inf, inf, inf, inf, inf, inf]]]], dtype='float64'),
    array([[[], []], [[], []]], dtype='float64').reshape((2, 2, 0, 2)),
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
