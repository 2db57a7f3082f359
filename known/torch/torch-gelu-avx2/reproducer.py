"""torch-gelu-avx2: ValueMismatch of torch-eager

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

TARGET = 'torch-eager'
# name: (dtype, shape), in the order that the model takes them
INPUTS = {'x0': ('float32', (2, 2, 1, 6))}
PARAMETERS = {}
OUTPUTS = [('float32', (2, 2, 1, 6))]


def model(x0):
    v0 = torch.nn.functional.gelu(x0)
    return (v0,)


def load(parameters):
    bound = [torch.from_numpy(parameters[name]) for name in PARAMETERS]
    compiled = model

    def run(*inputs):
        with torch.no_grad():
            outputs = compiled(*[torch.from_numpy(x) for x in inputs], *bound)
        return [output.numpy() for output in outputs]

    return run


# ---- its inputs, and what a correct evaluation returns: value, and how far from it (inf: anything) ----

from pathlib import Path

from numpy import array, inf, nan

SYMPTOM = 'value'  # ValueMismatch
SECONDS = 120.0
ZERO_SIGNS = False  # are the signs of zeros compared?
ARRAYS = {
    'x0': array([[[[-0.0, -0.8496795296669006, 1.1126437187194824, 0.6157301068305969, -1.3830043077468872, 0.6833164095878601]], [[-0.05825945362448692, 0.47435659170150757, -0.802499532699585, 0.8415984511375427, 2.919546604156494, -1.2433946132659912]]], [[[0.5136001706123352, -0.1377769410610199, 0.2339252084493637, 0.9479784965515137, -1.2255767583847046, 0.0]], [[0.03220953047275543, -1.7330751419067383, 0.0, 1.1959590911865234, 0.0, -0.09209135919809341]]]], dtype='float32'),
}
EXPECTED = [
    array([[[[-0.0, -0.1680255214557778, 0.96473916796817, 0.4500763375728523, -0.11524820036844999, 0.5143982263792755]], [[-0.02777641691385458, 0.3236901128632194, -0.16943335485371794, 0.673273392963247, 2.9144295005804635, -0.13287067422147095]]], [[[0.35758601410775226, -0.061339445211277946, 0.13859565163469129, 0.7853336356571042, -0.13503281456842411, 0.0]], [[0.016518577889255905, -0.07199394653831469, 0.0, 1.0573997416036525, 0.0, -0.04266709874664553]]]], dtype='float64'),
]
ALLOWED = [
    array([[[[0.0, 5.916726949433673e-07, 1.0466143428170046e-06, 3.9647693624824097e-07, 1.2245955138440402e-06, 4.7420379560854357e-07]], [[8.031480015331718e-09, 2.5157592286853267e-07, 5.390386153818364e-07, 6.728638765799067e-07, 3.312819766641341e-06, 1.0579447245789196e-06]]], [[[2.8916000036810906e-07, 2.804968219934315e-08, 7.364111245878354e-08, 8.160792660809424e-07, 1.0365176831037423e-06, 0.0]], [[3.890977316224815e-09, 1.6237930658637652e-06, 0.0, 1.1651650865299882e-06, 0.0, 1.5278470435338698e-08]]]], dtype='float64'),
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
