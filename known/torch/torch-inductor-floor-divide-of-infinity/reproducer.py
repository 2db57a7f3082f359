"""torch-inductor-floor-divide-of-infinity: SelfMismatch of torch-inductor

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
INPUTS = {'x0': ('float32', (1,)), 'x1': ('float32', (1,))}
PARAMETERS = {}
OWN_OUTPUTS = [('float32', (1,))]


def model(x0, x1):
    v0 = torch.floor_divide(x0, x1)
    return (v0,)


def load(parameters):
    bound = [torch.from_numpy(parameters[name]) for name in PARAMETERS]
    compiled = torch.compile(model, backend="inductor", fullgraph=True, dynamic=False)

    def run(*inputs):
        with torch.no_grad():
            outputs = compiled(*[torch.from_numpy(x) for x in inputs], *bound)
        return [output.numpy() for output in outputs]

    return run


OTHERS = {'level': ("import numpy as np\nimport torch\n\nTARGET = 'torch-eager'\n# name: (dtype, shape), in the order that the model takes them\nINPUTS = {'x0': ('float32', (1,)), 'x1': ('float32', (1,))}\nPARAMETERS = {}\nOUTPUTS = [('float32', (1,))]\n\n\ndef model(x0, x1):\n    v0 = torch.floor_divide(x0, x1)\n    return (v0,)\n\n\ndef load(parameters):\n    bound = [torch.from_numpy(parameters[name]) for name in PARAMETERS]\n    compiled = model\n\n    def run(*inputs):\n        with torch.no_grad():\n            outputs = compiled(*[torch.from_numpy(x) for x in inputs], *bound)\n        return [output.numpy() for output in outputs]\n\n    return run\n", {}), 'lanes': ('import numpy as np\nimport torch\n\nTARGET = \'torch-inductor\'\n# name: (dtype, shape), in the order that the model takes them\nINPUTS = {\'x0\': (\'float32\', (68,)), \'x1\': (\'float32\', (68,))}\nPARAMETERS = {}\nOUTPUTS = [(\'float32\', (68,))]\n\n\ndef model(x0, x1):\n    v0 = torch.floor_divide(x0, x1)\n    return (v0,)\n\n\ndef load(parameters):\n    bound = [torch.from_numpy(parameters[name]) for name in PARAMETERS]\n    compiled = torch.compile(model, backend="inductor", fullgraph=True, dynamic=False)\n\n    def run(*inputs):\n        with torch.no_grad():\n            outputs = compiled(*[torch.from_numpy(x) for x in inputs], *bound)\n        return [output.numpy() for output in outputs]\n\n    return run\n', {'x0': ((1,), 68), 'x1': ((1,), 68)})}  # programs, by what they are beside this one
LENGTHS = {0: 68}  # of the outputs of "lanes", by the number of the output of this program
OUTPUTS = [("uint8", shape) for shape in [(1,)]] * 3
LEAST = float("inf")  # a zero and a number of that size or more differ in kind
LARGEST = {"float16": 65504.0, "bfloat16": 3.3895313892515355e38, "float32": 3.4028234663852886e38}
once = load


def load_other(text, given):
    """Another program, compiled for these values of its parameters; what it takes and returns are values by name."""
    space = {"__name__": "program"}
    exec(text, space)
    run = space["load"]({name: given[name] for name in space["PARAMETERS"]})
    return lambda arrays: [np.array(out) for out in run(*[arrays[name] for name in space["INPUTS"]])]


def kinds(a, b):
    """How elements differ: 1 NaN, 2 an infinity, 3 a sign, 4 an integer, 5 a zero; 0: not, or by rounding only."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return np.zeros(a.shape, np.uint8)  # one of them is wrong, which is another question
    if a.dtype.kind in "biu":
        return np.where(a != b, 4, 0).astype(np.uint8)
    largest = LARGEST.get(str(a.dtype), 1.7976931348623157e308)
    a, b = a.astype(np.float64), b.astype(np.float64)
    with np.errstate(all="ignore"):
        infinite = (np.isinf(a) != np.isinf(b)) | (np.isinf(a) & np.isinf(b) & (a != b))
        rounded = (np.abs(np.where(np.isinf(a), b, a)) > largest / 2) & (np.sign(a) == np.sign(b))
        sign = np.isfinite(a) & np.isfinite(b) & (np.sign(a) * np.sign(b) < 0)
        zero = np.isfinite(a) & np.isfinite(b) & ((a == 0) != (b == 0)) & (np.abs(a + b) >= LEAST)
    nan = np.isnan(a) != np.isnan(b)
    return np.where(nan, 1, np.where(infinite & ~rounded, 2, np.where(sign, 3, np.where(zero, 5, 0)))).astype(
        np.uint8
    )


def tiled(array, shape, length):
    """All elements, broadcast to a shape, one after the other, until so many are there."""
    return np.resize(np.broadcast_to(array, shape).ravel(), length).astype(array.dtype)


def load(parameters):
    own = once(parameters)
    others = {}

    def run(*inputs):
        arrays = {**parameters, **dict(zip(INPUTS, inputs))}
        first = [np.array(out) for out in own(*inputs)]
        found = {name: [np.zeros(out.shape, np.uint8) for out in first] for name in ('level', 'roles', 'lanes')}
        for name, (text, shapes) in OTHERS.items():
            given = arrays
            if name == "lanes":
                given = {leaf: tiled(arrays[leaf], shape, length) for leaf, (shape, length) in shapes.items()}
            try:
                if name not in others:
                    others[name] = load_other(text, given)
                results = others[name](given)
            except Exception as error:
                error.add_note(f"in step {name}: another program than the target's own")
                raise
            if name != "lanes":
                found[name] = [kinds(a, b) for a, b in zip(first, results)]
                continue
            for (place, length), out in zip(LENGTHS.items(), results):
                shown = kinds(tiled(first[place], first[place].shape, length), out)
                size = first[place].size
                whole = np.concatenate([shown, np.zeros(-len(shown) % size, np.uint8)]).reshape(-1, size)
                found[name][place] = whole.max(axis=0).reshape(first[place].shape)
        return [flags for name in ('level', 'roles', 'lanes') for flags in found[name]]

    return run


# ---- its inputs, and what a correct evaluation returns: value, and how far from it (inf: anything) ----

from pathlib import Path

from numpy import array, inf, nan

SYMPTOM = 'inconsistency'  # SelfMismatch
SECONDS = 120.0
ZERO_SIGNS = False  # are the signs of zeros compared?
ARRAYS = {
    'x0': array([inf], dtype='float32'),
    'x1': array([2.0], dtype='float32'),
}
EXPECTED = [
    array([0], dtype='uint8'),
    array([0], dtype='uint8'),
    array([0], dtype='uint8'),
]
ALLOWED = [
    array([0.0], dtype='float64'),
    array([0.0], dtype='float64'),
    array([0.0], dtype='float64'),
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
