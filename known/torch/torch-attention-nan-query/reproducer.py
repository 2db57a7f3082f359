"""torch-attention-nan-query: SpecialMismatch of torch-eager

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
INPUTS = {'x0': ('float32', (1, 2, 3, 4))}
PARAMETERS = {}
OUTPUTS = [('float32', (1, 2, 3, 4))]


def model(x0):
    v0 = torch.nn.functional.scaled_dot_product_attention(x0, x0, x0, scale=None, is_causal=False)
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

SYMPTOM = 'special'  # SpecialMismatch
SECONDS = 120.0
ZERO_SIGNS = False  # are the signs of zeros compared?
ARRAYS = {
    'x0': array([[[[0.5532605648040771, 0.21760061383247375, -0.05798998847603798, -2.3189361095428467], [0.43149417638778687, -2.126279830932617, 0.9099212288856506, 0.0], [0.8300566673278809, 0.8276983499526978, 0.2985144555568695, -0.5350013971328735]], [[-0.3070622980594635, 1.5080722570419312, nan, -0.22812379896640778], [-0.0, -0.517249345779419, nan, 0.2565516531467438], [-0.29385605454444885, nan, -inf, 0.08958446979522705]]]], dtype='float32'),
}
EXPECTED = [
    array([[[[0.581669157618675, 0.19413552765626832, 0.02524842557605813, -2.007116847425347], [0.4506504677190387, -1.9119983278639574, 0.8413526614245009, -0.13383695706009452], [0.6612839087493989, 0.24140684508164667, 0.19726923224930265, -1.3022763524189]], [[nan, nan, nan, nan], [nan, nan, nan, nan], [nan, nan, nan, nan]]]], dtype='float64'),
]
ALLOWED = [
    array([[[[3.5591924822027723e-06, 2.0521196184145443e-06, 6.554477305944189e-07, 1.2858278608290248e-05], [2.805925332201037e-06, 1.27092693206092e-05, 5.4214546005746044e-06, 6.096379407861384e-07], [2.1801088991072635e-06, 2.2978431498511275e-06, 8.509259161477676e-07, 4.296236433292645e-06]], [[0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]]]], dtype='float64'),
]


def wrong(output, expected, allowed, dtype, shape):
    """What is wrong with one output, or None."""
    if str(output.dtype) != dtype or output.shape != tuple(shape):
        return f"{output.dtype}{output.shape} instead of {dtype}{tuple(shape)}"
    if not shape and output.ndim == 0:
        output, expected, allowed = output.reshape(1), expected.reshape(1), allowed.reshape(1)
    if "float" in dtype:
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
