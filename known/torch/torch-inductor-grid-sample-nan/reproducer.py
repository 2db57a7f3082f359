"""torch-inductor-grid-sample-nan: SpecialMismatch of torch-inductor

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
INPUTS = {'x0': ('float32', (2, 2, 3, 1))}
PARAMETERS = {'w1': ('float32', (2, 5, 1, 2))}
OUTPUTS = [('float32', (2, 2, 5, 1))]


def model(x0, w1):
    v0 = torch.nn.functional.grid_sample(x0, w1, mode='bilinear', padding_mode='reflection', align_corners=True)
    return (v0,)


def load(parameters):
    bound = [torch.from_numpy(parameters[name]) for name in PARAMETERS]
    compiled = torch.compile(model, backend="inductor", fullgraph=True, dynamic=False)

    def run(*inputs):
        with torch.no_grad():
            outputs = compiled(*[torch.from_numpy(x) for x in inputs], *bound)
        return [output.numpy() for output in outputs]

    return run


# ---- its inputs, and what a correct evaluation returns: value, and how far from it (inf: anything) ----

from pathlib import Path

from numpy import array, inf, nan

SYMPTOM = 'special'  # SpecialMismatch
SECONDS = 120.0
ZERO_SIGNS = False  # are the signs of zeros compared?
ARRAYS = {
    'x0': array([[[[0.0], [-inf], [0.37400609254837036]], [[-0.39988717436790466], [-0.714555561542511], [2.071043014526367]]], [[[nan], [1.0658737421035767], [-1.332085371017456]], [[0.11595901101827621], [-1.3405652046203613], [nan]]]], dtype='float32'),
    'w1': array([[[[1.0385596752166748, -0.5646968483924866]], [[0.8282214999198914, -0.3217431306838989]], [[-0.18958047032356262, -1.0577824115753174]], [[-0.36379578709602356, -0.3705035150051117]], [[0.1815025806427002, -1.664799690246582]]], [[[-0.38583022356033325, 0.08270519971847534]], [[0.39313796162605286, 0.09318514913320541]], [[-0.0028523013461381197, 0.8608348369598389]], [[-0.22953130304813385, 0.8505622148513794]], [[-1.4322900772094727, 0.2074497938156128]]]], dtype='float32'),
}
EXPECTED = [
    array([[[[0.0], [0.0], [0.0], [0.0], [0.0]], [[-0.536863315016264], [-0.6133131695256999], [-0.4180694726253691], [-0.5979698180333299], [-0.6090786206919745]]], [[[0.8675500547361636], [0.8424195645320642], [-0.9983730000763273], [-0.9737396722756984], [0.5684176185083487]], [[-1.2296934916365956], [-1.215644436105027], [-0.18655997526695955], [-0.20033109502577418], [-1.0624652293254826]]]], dtype='float64'),
]
ALLOWED = [
    array([[[[inf], [inf], [inf], [inf], [inf]], [[1.0767015862455723e-05], [1.0176582882090563e-05], [1.1258447345358911e-05], [9.865384741789061e-06], [1.3876221182569231e-05]]], [[[1.7715822976672354e-05], [1.7705433079158307e-05], [2.303439023228587e-05], [2.320256946488326e-05], [1.833825234043642e-05]], [[inf], [inf], [inf], [inf], [inf]]]], dtype='float64'),
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
