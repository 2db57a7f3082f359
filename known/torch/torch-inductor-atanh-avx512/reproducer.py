"""torch-inductor-atanh-avx512: ValueMismatch of torch-inductor

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
INPUTS = {'w0': ('float32', (1, 2, 4, 5))}
PARAMETERS = {}
OUTPUTS = [('float32', (1, 2, 4, 5))]


def model(w0):
    v0 = torch.atanh(w0)
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

SYMPTOM = 'value'  # ValueMismatch
SECONDS = 120.0
ZERO_SIGNS = True  # are the signs of zeros compared?
ARRAYS = {
    'w0': array([[[[0.5557945370674133, 2.5452253818511963, -1.6606782674789429, -1.5880146026611328, -0.7572662234306335], [0.0, 0.0, -0.9270613789558411, -0.3605426847934723, -0.7337188124656677], [-0.2875248193740845, 0.7941383719444275, -1.5032429695129395, -0.673099160194397, -1.026647925376892], [0.492623507976532, 0.0, 0.0, -0.0, -1.6923905611038208]], [[0.0, 0.0, 0.0, 0.22480764985084534, -0.35588887333869934], [0.25913190841674805, -0.2783375382423401, 1.563489317893982, 0.4122130274772644, 0.6018768548965454], [1.6015353202819824, 0.2151462584733963, 0.0, 0.0, -0.28893738985061646], [0.0, 0.2883571684360504, 0.2300429493188858, 0.2846106290817261, -0.0032420833595097065]]]], dtype='float32'),
}
EXPECTED = [
    array([[[[0.6267272203429667, nan, nan, nan, -0.9897746626025693], [0.0, 0.0, -1.637066620064376, -0.3775095302093986, -0.936735568270117], [-0.2958659161045023, 1.0825379677119356, nan, -0.816388043696148, nan], [0.539518639214645, 0.0, 0.0, -0.0, nan]], [[0.0, 0.0, 0.0, 0.2287139489103353, -0.372170622590692], [0.2651776027682045, -0.2858790947041376, nan, 0.43827434268228654, 0.69608494391813], [nan, 0.21856117098876407, 0.0, 0.0, -0.2974064719493366], [0.0, 0.29677351421134995, 0.23423481547321479, 0.2926919849230725, -0.0032420947188736868]]]], dtype='float64'),
]
ALLOWED = [
    array([[[[3.7355853353526637e-07, 0.0, 0.0, 0.0, 5.899516719408567e-07], [0.0, 0.0, 9.757677439893667e-07, 2.2501321455838195e-07, 5.58337908160137e-07], [1.7634982837123927e-07, 6.452429104538037e-07, 0.0, 4.866051936151243e-07, 0.0], [3.215781685207077e-07, 0.0, 0.0, 0.0, 0.0]], [[0.0, 0.0, 0.0, 1.3632413685055844e-07, 2.2183097763618013e-07], [1.5805816821276597e-07, 1.7039721894898166e-07, 0.0, 2.612318651947716e-07, 4.1489895831194034e-07], [0.0, 1.3027260963331727e-07, 0.0, 0.0, 1.7726807121046137e-07], [0.0, 1.7689079899901551e-07, 1.3961482975511196e-07, 1.7445801796442795e-07, 1.93243904118625e-09]]]], dtype='float64'),
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
