"""torch-compile-zeros-of-both-signs: ValueMismatch of torch-aot-eager

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

TARGET = 'torch-aot-eager'
# name: (dtype, shape), in the order that the model takes them
INPUTS = {'x0': ('float32', (2, 3)), 'x2': ('float32', (2, 3)), 'x3': ('float32', (2, 3)), 'weight_v3': ('float32', (2, 3)), 'weight_v7': ('float32', (2, 3))}
PARAMETERS = {}
OUTPUTS = [('float32', (2, 3)), ('float32', (2, 3)), ('float32', (2, 3))]


def model(x0, x2, x3):
    v0 = torch.copysign(x0, 0.0)
    v3 = torch.mul(x2, v0)
    v4 = torch.copysign(x0, -0.0)
    v7 = torch.mul(x3, v4)
    return (v3, v7,)


LEAVES = ('x0', 'x2', 'x3')
WEIGHTS = {0: 'weight_v3', 1: 'weight_v7'}  # number of an output -> its weights


def load(parameters):
    compiled = torch.compile(model, backend="aot_eager", fullgraph=True, dynamic=False)

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
        return [output.numpy(force=True) for output in gradients]

    return run


# ---- its inputs, and what a correct evaluation returns: value, and how far from it (inf: anything) ----

from pathlib import Path

from numpy import array, inf, nan

SYMPTOM = 'value'  # ValueMismatch
SECONDS = 120.0
ZERO_SIGNS = False  # are the signs of zeros compared?
ARRAYS = {
    'x0': array([[1.0, -2.0, 3.0], [4.0, 5.0, 6.0]], dtype='float32'),
    'x2': array([[1.0, -2.0, 3.0], [4.0, 5.0, 6.0]], dtype='float32'),
    'x3': array([[1.0, -2.0, 3.0], [4.0, 5.0, 6.0]], dtype='float32'),
    'weight_v3': array([[1.171875, 1.046875, -1.4375], [-1.328125, 1.03125, 1.46875]], dtype='float32'),
    'weight_v7': array([[-1.5, 1.359375, -0.75], [0.609375, 1.359375, 1.359375]], dtype='float32'),
}
EXPECTED = [
    array([[2.671875, -0.625, -2.0625], [-7.75, -1.640625, 0.65625]], dtype='float64'),
    array([[1.171875, 2.09375, -4.3125], [-5.3125, 5.15625, 8.8125]], dtype='float64'),
    array([[1.5, -2.71875, 2.25], [-2.4375, -6.796875, -8.15625]], dtype='float64'),
]
ALLOWED = [
    array([[3.185220606178457e-07, 3.241177986071375e-07, 5.141139832395836e-07], [9.239002460026402e-07, 8.102942117543116e-07, 1.0505937187189895e-06]], dtype='float64'),
    array([[6.985346493945666e-08, 1.248048573584959e-07, 2.570607509772005e-07], [3.1666904105887017e-07, 3.073552457336093e-07, 5.25298056344714e-07]], dtype='float64'),
    array([[8.941243512250452e-08, 1.6206003865953944e-07, 1.3411865268375678e-07], [1.4529520707406984e-07, 4.051500966488486e-07, 4.861801159786183e-07]], dtype='float64'),
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
