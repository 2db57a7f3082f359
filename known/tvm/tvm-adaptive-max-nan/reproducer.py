"""tvm-adaptive-max-nan: SpecialMismatch of tvm-O0

exit status: 1 reproduced, 0 not reproduced, 77 not available here
"""

import importlib.util
import sys

for module in ['tvm', 'tvm.relax']:
    if importlib.util.find_spec(module) is None:
        print(f"not available: {module}")
        sys.exit(77)

# ---- the program that ran ----

import numpy as np
import tvm
from tvm import relax

TARGET = 'tvm-O0'
# name: (dtype, shape), in the order that the model takes them
INPUTS = {}
PARAMETERS = {'w0': ('float64', (3, 2, 1, 4))}
OUTPUTS = [('float64', (3, 2, 3, 1))]


def adaptive_max_pool2d(x, rows, columns):
    """Every cell reduced by itself."""

    def cell(top, bottom, left, right):
        part = relax.op.strided_slice(x, [2, 3], [top, left], [bottom, right])
        return relax.op.max(part, axis=[2, 3], keepdims=True)

    lines = [relax.op.concat([cell(*row, *column) for column in columns], axis=3) for row in rows]
    return relax.op.concat(lines, axis=2)


def model(bb, w0):
    v0 = bb.emit(adaptive_max_pool2d(w0, [(0, 1), (0, 1), (0, 1)], [(0, 4)]))
    return (v0,)


def load(parameters):
    bb = relax.BlockBuilder()
    arguments = [
        relax.Var(name, relax.TensorType(shape, dtype))
        for name, (dtype, shape) in [*INPUTS.items(), *PARAMETERS.items()]
    ]
    with bb.function("main", arguments):
        with bb.dataflow():
            results = bb.emit_output(relax.Tuple(model(bb, *arguments)))
        bb.emit_func_output(results)
    target = tvm.target.Target({"kind": "llvm", "opt-level": 0})
    passes = [
        relax.transform.BindParams("main", parameters),
        relax.backend.DispatchSampling(),
        relax.backend.DispatchSortScan(),
        relax.transform.LegalizeOps(),
        relax.transform.RewriteDataflowReshape(),
        relax.transform.ToNonDataflow(),
        relax.transform.RemovePurityChecking(),
        relax.transform.CallTIRRewrite(),
        relax.transform.StaticPlanBlockMemory(),
        relax.transform.LowerAllocTensor(),
        relax.transform.KillAfterLastUse(),
        relax.transform.LowerRuntimeBuiltin(),
        relax.transform.ComputePrimValue(),
        relax.transform.VMShapeLower(),
        relax.transform.AttachGlobalSymbol(),
    ]
    with target, tvm.transform.PassContext(opt_level=0):
        executable = tvm.compile(bb.get(), target, relax_pipeline=tvm.transform.Sequential(passes))
    machine = relax.VirtualMachine(executable, tvm.cpu())

    def run(*inputs):
        return [output.numpy() for output in machine["main"](*[tvm.runtime.tensor(x) for x in inputs])]

    return run


# ---- its inputs, and what a correct evaluation returns: value, and how far from it (inf: anything) ----

from pathlib import Path

from numpy import array, inf, nan

SYMPTOM = 'special'  # SpecialMismatch
SECONDS = 120.0
ZERO_SIGNS = False  # are the signs of zeros compared?
ARRAYS = {
    'w0': array([[[[-0.5512049521805326, 0.0, -1.2948874712846217, nan]], [[0.13145726718267844, -0.2349780343131823, 0.9487059075617537, -0.5632453491537533]]], [[[nan, -1.2864361820047332, -0.9102188727899898, 1.7808472105055577]], [[-1.060140442076999, inf, -0.7729004235065219, 0.9248472230441759]]], [[[-1.1434086757744184, 0.24511552465364903, -0.47104625451238225, 0.6039233688336985]], [[-0.5392061343878524, nan, 0.4897100996898056, -0.569181247106214]]]], dtype='float64'),
}
EXPECTED = [
    array([[[[nan], [nan], [nan]], [[0.9487059075617537], [0.9487059075617537], [0.9487059075617537]]], [[[nan], [nan], [nan]], [[inf], [inf], [inf]]], [[[0.6039233688336985], [0.6039233688336985], [0.6039233688336985]], [[nan], [nan], [nan]]]], dtype='float64'),
]
ALLOWED = [
    array([[[[0.0], [0.0], [0.0]], [[0.0], [0.0], [0.0]]], [[[0.0], [0.0], [0.0]], [[0.0], [0.0], [0.0]]], [[[0.0], [0.0], [0.0]], [[0.0], [0.0], [0.0]]]], dtype='float64'),
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
