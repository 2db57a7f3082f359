"""torch-cosh-overflow: SpecialMismatch of torch-eager

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
INPUTS = {'w1': ('float32', (1, 3, 4, 3))}
PARAMETERS = {}
OUTPUTS = [('float32', (1, 3, 4, 3))]


def model(w1):
    v1 = torch.cosh(w1)
    return (v1,)


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
    'w1': array([[[[3.0, -17.0, -5.0], [71.0, -61.0, -38.0], [19.0, 24.0, 40.0], [17.0, 103.0, 84.0]], [[-10.0, -216.0, 12.0], [137.0, 54.0, -50.0], [51.0, 125.0, -102.0], [-283.0, 52.0, -142.0]], [[46.0, -210.0, 184.0], [89.0, 13.0, 65.0], [-78.0, -73.0, -203.0], [-103.0, -29.0, -94.0]]]], dtype='float32'),
}
EXPECTED = [
    array([[[[10.067661995777765, 12077476.37678767, 74.20994852478785], [3.418835614881372e+30, 1.55214896785096e+26, 1.5927965878556878e+16], [89241150.48159364, 13244561064.921736, 1.1769263341851e+17], [12077476.37678767, inf, 1.5125386611005713e+36]], [[11013.232920103323, inf, 81377.39571257407], [inf, 1.415376651637347e+23, 2.592352764293536e+21], [7.046745412134694e+21, inf, inf], [inf, 1.9155040003582885e+22, inf]], [[4.748059710301224e+19, inf, inf], [2.2448064095871728e+38, 221206.6960055904, 8.474446222051669e+27], [3.7492084984950605e+33, 2.526196815138052e+31, inf], [inf, 1965667148572.021, inf]]]], dtype='float64'),
]
ALLOWED = [
    array([[[[4.800635338051741e-06, 5.7589895164545455, 3.538606098143795e-05], [1.630227859722801e+24, 7.401223032826117e+19, 7595045989.024122], [42.55349661023607, 6315.498862785918, 56120220886.85746], [5.7589895164545455, 0.0, 7.21234637167407e+29]], [[0.005251518690696602, 0.0, 0.0388037661316244], [0.0, 6.749041806680837e+16, 1236130125761363.2], [3360150058467908.5, 0.0, 0.0], [0.0, 9133834844828914.0, 0.0]], [[22640513002930.695, 0.0, 0.0], [1.070407109562155e+32, 0.10547957234792604, 4.040930855750032e+21], [1.7877619267658815e+27, 1.2045845109531421e+25, 0.0], [0.0, 937303.1375347882, 0.0]]]], dtype='float64'),
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
