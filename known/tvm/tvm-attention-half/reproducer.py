"""tvm-attention-half: TypeMismatch of tvm-O0

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
PARAMETERS = {'w0': ('float16', (1, 2, 2, 4)), 'w1': ('float16', (1, 2, 2, 4))}
OUTPUTS = [('float16', (1, 2, 2, 4))]


def attention(bb, q, k, v, scale, causal=False, bias=None):
    """Over (batch, heads, length, features); relax has the length before the heads and as many heads of keys and
    values as of queries."""
    groups = int(q.ty.shape[1]) // int(k.ty.shape[1])
    k, v = (x if groups == 1 else relax.op.repeat(x, groups, axis=1) for x in (k, v))
    q, k, v = (bb.emit(relax.op.permute_dims(x, [0, 2, 1, 3])) for x in (q, k, v))
    if bias is not None and len(bias.ty.shape) == 2:
        bias = bb.emit(relax.op.expand_dims(bias, [0, 1]))
    y = relax.op.nn.attention(q, k, v, bias, scale, "TopLeft" if causal else None)
    return relax.op.permute_dims(y, [0, 2, 1, 3])


def model(bb, w0, w1):
    v0 = bb.emit(attention(bb, w0, w0, w1, 0.25, causal=False))
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

SYMPTOM = 'type'  # TypeMismatch
SECONDS = 120.0
ZERO_SIGNS = False  # are the signs of zeros compared?
ARRAYS = {
    'w0': array([[[[0.076171875, 0.12103271484375, 0.036407470703125, 0.88232421875], [0.1044921875, 0.22265625, 0.37744140625, 0.8095703125]], [[0.7763671875, 0.64111328125, 0.873046875, 0.26416015625], [0.08026123046875, 0.58837890625, 0.386962890625, 0.364013671875]]]], dtype='float16'),
    'w1': array([[[[0.0, -0.0, 0.0, 0.0], [0.0, 0.0, 0.796875, 1.484375]], [[-1.7509765625, -0.0, -0.0, 0.71728515625], [-0.0, 1.7197265625, -0.0, 0.697265625]]]], dtype='float16'),
}
EXPECTED = [
    array([[[[0.0, 0.0, 0.3965788340802492, 0.7387252791690916], [0.0, 0.0, 0.4031890051130246, 0.7510383428575949]], [[-0.98136555749784, 0.7558756161789202, 0.0, 0.708485922785112], [-0.901597067580371, 0.8342204632200039, 0.0, 0.7075739015674276]]]], dtype='float64'),
]
ALLOWED = [
    array([[[[0.0, 0.0, 0.007321254727134262, 0.0134270002270148], [0.0, 0.0, 0.007551572163781089, 0.013856022903121636]], [[0.021226827305606988, 0.015110143387690284, 0.0, 0.014867111899155882], [0.0166102081771021, 0.014992638898145222, 0.0, 0.012928277815990234]]]], dtype='float64'),
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
