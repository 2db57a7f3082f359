"""torch-triangular-solve-tangent: ValueMismatch of torch-eager

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

TARGET = 'torch-eager'
# name: (dtype, shape), in the order that the model takes them
INPUTS = {'x0': ('float64', (2, 2)), 'x1': ('float64', (2, 1)), 'tangent_x0': ('float64', (2, 2)), 'tangent_x1': ('float64', (2, 1))}
PARAMETERS = {}
OUTPUTS = [('float64', (2, 1))]


def formed(x, form):
    """Elements beyond 4 as zeros; then a dominant diagonal, or x x^T + n I; a power of two times that."""
    if form in ("vast", "minute"):
        exponent = {torch.float64: 716, torch.float16: 11}.get(x.dtype, 89)
        return formed(x, "shifted") * 2.0 ** (exponent if form == "vast" else -exponent)
    x = torch.where(x.abs() <= 4, x, torch.zeros_like(x))
    rows, columns = x.shape[-2:]
    if form == "gram":
        return x @ x.mT + rows * torch.eye(rows, dtype=x.dtype, device=x.device)
    diagonal = (4 * columns + 1) * torch.eye(rows, columns, dtype=x.dtype, device=x.device)
    return x + {"tamed": 0 * diagonal, "shifted": diagonal, "turned": diagonal.flip(-1)}[form]


def triangular_solved(x, b, lower, unit, transposed):
    """The function that was there before torch.linalg: it takes the whole matrix, and says which triangle of it."""
    t = formed(x, "tamed")
    if not unit:
        t = t + 5 * torch.eye(t.shape[-1], dtype=t.dtype, device=t.device)
    return torch.triangular_solve(b, t, upper=not lower, transpose=transposed, unitriangular=unit)[0]


def columns(F, x, number, count):
    """One of so many blocks of columns."""
    size = x.shape[1] // count
    return F.take(x, list(range(number * size, (number + 1) * size)), 1)


def rows(F, x, first, last, count):
    """The blocks of rows from `first` to `last` of so many."""
    size = x.shape[0] // count
    return F.take(x, list(range(first * size, (last + 1) * size)), 0)


def model(x0, x1):
    v0 = triangular_solved(x0, x1, True, False, False)
    return (v0,)


LEAVES = {'x0': 'tangent_x0', 'x1': 'tangent_x1'}  # leaf -> its tangent
MOVED = (0,)  # numbers of outputs


def load(parameters):
    def pushed(given):
        def outputs(*leaves):
            values = {**given, **dict(zip(LEAVES, leaves))}
            results = model(*[values[name] for name in [*INPUTS, *PARAMETERS] if name not in LEAVES.values()])
            return tuple(results[i] for i in MOVED)

        leaves = tuple(given[name] for name in LEAVES)
        return torch.func.jvp(outputs, leaves, tuple(given[name] for name in LEAVES.values()))[1]

    compiled = pushed

    def run(*inputs):
        given = {**dict(zip(INPUTS, inputs)), **parameters}
        found = compiled({name: torch.from_numpy(array) for name, array in given.items()})
        return [output.numpy(force=True) for output in found]

    return run


# ---- its inputs, and what a correct evaluation returns: value, and how far from it (inf: anything) ----

from pathlib import Path

from numpy import array, inf, nan

SYMPTOM = 'value'  # ValueMismatch
SECONDS = 120.0
ZERO_SIGNS = False  # are the signs of zeros compared?
ARRAYS = {
    'x0': array([[1.0, 0.5], [0.25, 2.0]], dtype='float64'),
    'x1': array([[1.0], [2.0]], dtype='float64'),
    'tangent_x0': array([[-1.453125, -0.734375], [-1.484375, -0.515625]], dtype='float64'),
    'tangent_x1': array([[0.65625], [0.515625]], dtype='float64'),
}
EXPECTED = [
    array([[0.14973958333332812], [0.12426259566350634]], dtype='float64'),
]
ALLOWED = [
    array([[6.121934020758573e-12], [2.844614238474023e-11]], dtype='float64'),
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
