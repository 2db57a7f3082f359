"""torch-inductor-frozen-zeros-of-both-signs: ValueMismatch of torch-inductor-frozen

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

TARGET = 'torch-inductor-frozen'
# name: (dtype, shape), in the order that the model takes them
INPUTS = {'x0': ('float32', (2, 3)), 'x2': ('float32', (2, 3)), 'x3': ('float32', (2, 3))}
PARAMETERS = {}
OUTPUTS = [('float32', (2, 3)), ('float32', (2, 3))]


def model(x0, x2, x3):
    v0 = torch.copysign(x0, 0.0)
    v3 = torch.mul(x2, v0)
    v4 = torch.copysign(x0, -0.0)
    v7 = torch.mul(x3, v4)
    return (v3, v7,)


import torch._inductor.config


class Module(torch.nn.Module):
    def __init__(self, parameters):
        super().__init__()
        self.full = {}
        for name, array in parameters.items():
            tensor = torch.from_numpy(array)
            if len({one.tobytes() for one in array.reshape(-1)}) == 1:  # all alike, the sign of a zero, too
                self.full[name] = (tensor.shape, tensor.flatten()[0].item(), tensor.dtype)
            else:
                self.register_buffer(name, tensor)

    def constant(self, name):
        if name not in self.full:
            return getattr(self, name)
        shape, value, dtype = self.full[name]
        return torch.full(shape, value, dtype=dtype)

    def forward(self, *inputs):
        return model(*inputs, *[self.constant(name) for name in PARAMETERS])


def load(parameters):
    module = Module(parameters).eval()
    compiled = torch.compile(module, backend="inductor", fullgraph=True, dynamic=False)

    def run(*inputs):
        with torch.no_grad(), torch._inductor.config.patch(freezing=True):  # the tracer asks for it, too
            return [output.numpy() for output in compiled(*[torch.from_numpy(x) for x in inputs])]

    return run


# ---- its inputs, and what a correct evaluation returns: value, and how far from it (inf: anything) ----

from pathlib import Path

from numpy import array, inf, nan

SYMPTOM = 'value'  # ValueMismatch
SECONDS = 120.0
ZERO_SIGNS = True  # are the signs of zeros compared?
ARRAYS = {
    'x0': array([[0.1257302165031433, -0.13210485875606537, 0.6404226422309875], [0.10490011423826218, -0.5356693863868713, 0.3615950644016266]], dtype='float32'),
    'x2': array([[0.3455841839313507, 0.8216181397438049, 0.3304370641708374], [-1.3031572103500366, 0.9053558707237244, 0.4463745653629303]], dtype='float32'),
    'x3': array([[0.18905338644981384, -0.5227484703063965, -0.41306355595588684], [-2.44146728515625, 1.7997074127197266, 1.1441658735275269]], dtype='float32'),
}
EXPECTED = [
    array([[0.043450374265750824, 0.10853974830227653, 0.21161937772733808], [-0.1367013402361339, 0.48497142373232904, 0.16140683970965686]], dtype='float64'),
    array([[-0.023769723208987514, 0.06905761283477574, 0.2645352539145964], [0.25611019712187044, -0.9640481654474797, -0.4137247327243294]], dtype='float64'),
]
ALLOWED = [
    array([[2.5898441331157733e-09, 6.469473165668166e-09, 1.2613497884016138e-08], [8.148034855448369e-09, 2.8906549545466206e-08, 9.620597381052028e-09]], dtype='float64'),
    array([[1.4167859135589977e-09, 4.116154497387135e-09, 1.5767529898885907e-08], [1.5265357379672244e-08, 5.7461748661925736e-08, 2.465991582069243e-08]], dtype='float64'),
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
