"""torch-export-dynamic-rational-bound: Rejection of torch-export

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

TARGET = 'torch-export'
# what the model takes: n changes from run to run; the first size is compiled for
ARGUMENTS = {'v1': ('float64', (1, 5, 3, 'n')), 'x7': ('float64', (5, 1, 1, 3))}
SIZES = (4, 5, 8)
# None: changes from run to run
RESULTS = [('float64', (1, 1, 9, None))]
# name: (dtype, shape), of all runs in order
INPUTS = {'v1_at_4': ('float64', (1, 5, 3, 4)), 'x7_at_4': ('float64', (5, 1, 1, 3)), 'v1_at_5': ('float64', (1, 5, 3, 5)), 'x7_at_5': ('float64', (5, 1, 1, 3)), 'v1_at_8': ('float64', (1, 5, 3, 8)), 'x7_at_8': ('float64', (5, 1, 1, 3))}
PARAMETERS = {}
OUTPUTS = [('float64', (1, 1, 9, 2)), ('float64', (1, 1, 9, 3)), ('float64', (1, 1, 9, 6))]


def model(v1, x7):
    v4 = torch.nn.functional.conv_transpose2d(v1, x7, None, (3, 1), (0, 2), (2, 0), 1, (2, 1))
    return (v4,)


class Module(torch.nn.Module):
    def __init__(self, parameters):
        super().__init__()
        for name, array in parameters.items():
            self.register_buffer(name, torch.from_numpy(array))

    def forward(self, *inputs):
        return model(*inputs, *[getattr(self, name) for name in PARAMETERS])


def compile_once(parameters):
    module, n, exported = Module(parameters), torch.export.Dim("n", min=0), []
    symbols = [{i: n for i, dim in enumerate(shape) if dim == "n"} for _, shape in ARGUMENTS.values()]

    def run(size, *arrays):
        tensors = tuple(torch.from_numpy(x) for x in arrays)
        with torch.no_grad():
            if not exported:
                program = torch.export.export(module, tensors, dynamic_shapes=(tuple(symbols),))
                exported.append(program.run_decompositions().module())
            return [output.numpy() for output in exported[0](*tensors)]

    return run


def load(parameters):
    compiled = compile_once(parameters)

    def run(*inputs):
        outputs, count = [], len(ARGUMENTS)
        for i, size in enumerate(SIZES):
            outputs += compiled(size, *inputs[i * count : (i + 1) * count])
        return outputs

    return run


# ---- its inputs, and what a correct evaluation returns: value, and how far from it (inf: anything) ----

from pathlib import Path

from numpy import array, inf, nan

SYMPTOM = 'rejected'  # Rejection
SECONDS = 120.0
ZERO_SIGNS = False  # are the signs of zeros compared?
DATA = np.load(Path(__file__).with_name("data.npz"))
ARRAYS = {name: DATA["ARRAYS_" + name] for name in [*INPUTS, *PARAMETERS]}
EXPECTED = [DATA[f"EXPECTED_{i}"] for i in range(len(OUTPUTS))]
ALLOWED = [DATA[f"ALLOWED_{i}"] for i in range(len(OUTPUTS))]


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
