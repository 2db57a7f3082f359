"""torch-inductor-pool-gradient-beside: ValueMismatch of torch-inductor

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
INPUTS = {'x0': ('float32', (1, 2, 4, 4)), 'x1': ('float32', (2, 2, 1, 1)), 'x2': ('float32', (2,)), 'weight_v2': ('float32', (1, 2, 4, 4))}
PARAMETERS = {}
OUTPUTS = [('float32', (1, 2, 4, 4)), ('float32', (2, 2, 1, 1)), ('float32', (2,))]


def model(x0, x1, x2):
    v0 = torch.nn.functional.conv2d(x0, x1, x2, padding=(0, 0), stride=(1, 1), dilation=(1, 1), groups=1)
    v1 = torch.nn.functional.max_pool2d(v0, (3, 3), (1, 1), (1, 1), (1, 1))
    v2 = torch.mul(v0, v1)
    return (v2,)


LEAVES = ('x0', 'x1', 'x2')
WEIGHTS = {0: 'weight_v2'}  # number of an output -> its weights


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
        return [output.numpy(force=True) for output in gradients]

    return run


# ---- its inputs, and what a correct evaluation returns: value, and how far from it (inf: anything) ----

from pathlib import Path

from numpy import array, inf, nan

SYMPTOM = 'value'  # ValueMismatch
SECONDS = 120.0
ZERO_SIGNS = False  # are the signs of zeros compared?
ARRAYS = {
    'x0': array([[[[-0.75, 0.75, -0.25, 2.0], [3.75, 2.25, 0.0, -4.0], [-1.75, -2.25, -2.5, 0.25], [0.5, -3.25, -3.5, 1.0]], [[1.5, 1.75, -3.75, -1.25], [-1.0, 3.5, 3.25, -2.75], [2.75, -1.5, 3.0, -2.0], [2.5, -3.0, -0.5, 1.25]]]], dtype='float32'),
    'x1': array([[[[-0.5]], [[0.25]]], [[[0.0]], [[-0.25]]]], dtype='float32'),
    'x2': array([0.0, -0.25], dtype='float32'),
    'weight_v2': array([[[[1.453125, 0.828125, -0.78125, -0.8125], [0.890625, 1.09375, 0.765625, 1.421875], [-0.96875, -1.328125, -1.265625, 0.828125], [-1.453125, -1.203125, -0.5, 1.28125]], [[-0.671875, -0.953125, -1.296875, -1.09375], [-0.9375, 1.109375, -0.8125, -0.59375], [-1.390625, -1.265625, 0.515625, 0.71875], [0.75, 0.6875, 1.0, 0.609375]]]], dtype='float32'),
}
EXPECTED = [
    array([[[[-1.08984375, -0.33642578125, 0.5126953125, 0.533203125], [-0.69580078125, -1.09375, -0.79150390625, -2.2724609375], [2.732421875, 1.328125, 3.2333984375, -0.828125], [1.13525390625, 1.203125, 0.5, -1.28125]], [[0.544921875, 0.33203125, 0.203857421875, -0.07861328125], [0.272216796875, 0.356201171875, 0.535400390625, 1.193359375], [-1.1923828125, -0.505859375, -1.68115234375, 0.421142578125], [-0.661376953125, -0.735595703125, -0.375, 0.6025390625]]]], dtype='float64'),
    array([[[[33.82275390625]], [[-19.97509765625]]], [[[1.066650390625]], [[7.0126953125]]]], dtype='float64'),
    array([-5.578125, -2.5048828125], dtype='float64'),
]
ALLOWED = [
    array([[[[4.872063058201639e-07, 1.303639542193693e-07, 3.4272625203434603e-07, 3.564316242462714e-07], [2.6960218454976103e-07, 4.237765780422714e-07, 4.3712975615212544e-07, 1.0927719426152608e-06], [1.5544579171153833e-06, 5.145828352177571e-07, 5.404679761964956e-06, 3.208789312493236e-07], [4.398588786166627e-07, 4.661533800630073e-07, 1.9374041789056405e-07, 4.964194512658613e-07]], [[2.661406396453788e-07, 1.8040892700523682e-07, 1.1092566505777288e-06, 3.148271585220645e-07], [2.4452761872405845e-07, 3.669306726235831e-07, 3.318346011476172e-07, 7.165150459997369e-07], [9.830122585937059e-07, 4.4146249660856706e-07, 2.8448235523431082e-06, 2.6434219495376885e-07], [3.208286288864802e-07, 9.118024278744601e-07, 2.011955246465094e-07, 3.238619035911113e-07]]]], dtype='float64'),
    array([[[[0.00012270061774289829]], [[0.00015258761105363218]]], [[[2.849740024339653e-05]], [[4.818741135258029e-05]]]], dtype='float64'),
    array([5.851797702744233e-05, 1.7143801810990024e-05], dtype='float64'),
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
