"""tvm-concat-gradient-symbolic-size: Rejection of tvm-O0

ran with python 3.11.7, numpy 2.4.6, apache-tvm 0.27.0.post1
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
# what the model takes: n changes from run to run; the first size is compiled for
ARGUMENTS = {'x0': ('float32', ('n', 3)), 'x1': ('float32', (4, 3)), 'weight_v0': ('float32', ('n+4', 3))}
SIZES = (4, 5, 8, 1, 0)
# None: changes from run to run
RESULTS = [('float32', (None, 3)), ('float32', (4, 3))]
# name: (dtype, shape), of all runs in order
INPUTS = {'x0_at_4': ('float32', (4, 3)), 'x1_at_4': ('float32', (4, 3)), 'weight_v0_at_4': ('float32', (8, 3)), 'x0_at_5': ('float32', (5, 3)), 'x1_at_5': ('float32', (4, 3)), 'weight_v0_at_5': ('float32', (9, 3)), 'x0_at_8': ('float32', (8, 3)), 'x1_at_8': ('float32', (4, 3)), 'weight_v0_at_8': ('float32', (12, 3)), 'x0_at_1': ('float32', (1, 3)), 'x1_at_1': ('float32', (4, 3)), 'weight_v0_at_1': ('float32', (5, 3)), 'x0_at_0': ('float32', (0, 3)), 'x1_at_0': ('float32', (4, 3)), 'weight_v0_at_0': ('float32', (4, 3))}
PARAMETERS = {}
OUTPUTS = [('float32', (4, 3)), ('float32', (4, 3)), ('float32', (5, 3)), ('float32', (4, 3)), ('float32', (8, 3)), ('float32', (4, 3)), ('float32', (1, 3)), ('float32', (4, 3)), ('float32', (0, 3)), ('float32', (4, 3))]


def model(bb, x0, x1):
    v0 = bb.emit(relax.op.concat([x0, x1], axis=0))
    return (v0,)


LEAVES = ('x0', 'x1')
WEIGHTS = {0: 'weight_v0'}  # number of an output -> its weights

def compile_once(parameters):
    n = tvm.tirx.Var("n", "int64")
    bb = relax.BlockBuilder()
    arguments = [
        relax.Var(name, relax.TensorType([eval(dim, {"n": n}) if isinstance(dim, str) else dim for dim in shape], dtype))
        for name, (dtype, shape) in [*ARGUMENTS.items(), *PARAMETERS.items()]
    ]
    given = dict(zip([*ARGUMENTS, *PARAMETERS], arguments))
    with bb.function("main", arguments):
        with bb.dataflow():
            outputs = model(bb, *[given[name] for name in given if name not in WEIGHTS.values()])
            terms = [relax.op.sum(relax.op.multiply(outputs[i], given[w])) for i, w in WEIGHTS.items()]
            total = terms[0]
            for term in terms[1:]:
                total = relax.op.add(total, term)
            result = bb.emit_output(bb.normalize(total))
        bb.emit_func_output(result)
    module = relax.transform.Gradient("main", [given[name] for name in LEAVES])(bb.get())
    module = tvm.IRModule({"main": module["main_adjoint"].with_attr("global_symbol", "main")})
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
        executable = tvm.compile(module, target, relax_pipeline=tvm.transform.Sequential(passes))
    machine = relax.VirtualMachine(executable, tvm.cpu())

    def run(size, *inputs):
        return [gradient.numpy() for gradient in machine["main"](*[tvm.runtime.tensor(x) for x in inputs])[1]]

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
ARRAYS = {
    'x0_at_4': array([[1.2295008897781372, -0.06416921317577362, -0.5461688041687012], [0.3148209750652313, -0.6058128476142883, -0.5731292366981506], [-0.6077406406402588, -2.295424222946167, 0.10549947619438171], [-1.2638353109359741, -0.10726912319660187, 1.4499688148498535]], dtype='float32'),
    'x1_at_4': array([[-0.521000325679779, -0.542009174823761, 1.363909363746643], [0.546305775642395, 0.9765270948410034, -0.3552912473678589], [0.748083233833313, -0.6861686110496521, -0.6760017275810242], [0.5962442755699158, -0.5983731746673584, 0.767118513584137]], dtype='float32'),
    'x0_at_5': array([[0.3148209750652313, -0.6058128476142883, -0.5731292366981506], [-0.6077406406402588, -2.295424222946167, 0.10549947619438171], [-1.2638353109359741, -0.10726912319660187, 1.4499688148498535], [1.2295008897781372, -0.06416921317577362, -0.5461688041687012], [0.3148209750652313, -0.6058128476142883, -0.5731292366981506]], dtype='float32'),
    'x1_at_5': array([[-0.521000325679779, -0.542009174823761, 1.363909363746643], [0.546305775642395, 0.9765270948410034, -0.3552912473678589], [0.748083233833313, -0.6861686110496521, -0.6760017275810242], [0.5962442755699158, -0.5983731746673584, 0.767118513584137]], dtype='float32'),
    'x0_at_8': array([[1.2295008897781372, -0.06416921317577362, -0.5461688041687012], [0.3148209750652313, -0.6058128476142883, -0.5731292366981506], [-0.6077406406402588, -2.295424222946167, 0.10549947619438171], [-1.2638353109359741, -0.10726912319660187, 1.4499688148498535], [1.2295008897781372, -0.06416921317577362, -0.5461688041687012], [0.3148209750652313, -0.6058128476142883, -0.5731292366981506], [-0.6077406406402588, -2.295424222946167, 0.10549947619438171], [-1.2638353109359741, -0.10726912319660187, 1.4499688148498535]], dtype='float32'),
    'x1_at_8': array([[-0.521000325679779, -0.542009174823761, 1.363909363746643], [0.546305775642395, 0.9765270948410034, -0.3552912473678589], [0.748083233833313, -0.6861686110496521, -0.6760017275810242], [0.5962442755699158, -0.5983731746673584, 0.767118513584137]], dtype='float32'),
    'x0_at_1': array([[0.3148209750652313, -0.6058128476142883, -0.5731292366981506]], dtype='float32'),
    'x1_at_1': array([[-0.521000325679779, -0.542009174823761, 1.363909363746643], [0.546305775642395, 0.9765270948410034, -0.3552912473678589], [0.748083233833313, -0.6861686110496521, -0.6760017275810242], [0.5962442755699158, -0.5983731746673584, 0.767118513584137]], dtype='float32'),
    'x0_at_0': array([], dtype='float32').reshape((0, 3)),
    'x1_at_0': array([[-0.521000325679779, -0.542009174823761, 1.363909363746643], [0.546305775642395, 0.9765270948410034, -0.3552912473678589], [0.748083233833313, -0.6861686110496521, -0.6760017275810242], [0.5962442755699158, -0.5983731746673584, 0.767118513584137]], dtype='float32'),
    'weight_v0_at_4': array([[-1.328125, 0.65625, 1.078125], [1.46875, 1.328125, 1.359375], [-0.5, 0.921875, 1.265625], [1.5, 0.78125, -1.171875], [0.8125, -1.375, -1.328125], [0.703125, -0.5625, 1.25], [1.484375, -1.0, 0.75], [-0.75, -1.171875, 0.984375]], dtype='float32'),
    'weight_v0_at_5': array([[1.25, 1.03125, 0.84375], [1.5, 0.578125, 0.5625], [1.15625, -1.4375, 1.171875], [0.734375, -1.046875, -1.21875], [0.875, 0.671875, 0.75], [1.4375, 1.390625, 0.734375], [1.125, -1.1875, -0.609375], [1.453125, 1.046875, -0.75], [-0.796875, 1.328125, -0.609375]], dtype='float32'),
    'weight_v0_at_8': array([[0.734375, -1.109375, -1.203125], [0.765625, -1.359375, 1.3125], [1.453125, -0.625, -0.640625], [1.234375, 0.90625, -0.78125], [1.0625, 0.59375, -1.328125], [-0.890625, 0.75, -1.28125], [0.890625, -1.046875, 1.03125], [0.71875, 0.625, 0.609375], [-1.171875, 1.21875, 0.796875], [-0.59375, 1.015625, 0.703125], [1.15625, 1.5, 1.40625], [0.984375, -1.015625, -0.84375]], dtype='float32'),
    'weight_v0_at_1': array([[-1.03125, 1.40625, -0.765625], [1.0625, 0.71875, 0.703125], [-0.640625, -0.578125, 1.25], [-0.859375, -0.84375, -0.5625], [0.84375, 1.3125, -0.984375]], dtype='float32'),
    'weight_v0_at_0': array([[1.234375, 1.015625, 0.84375], [-0.796875, -0.765625, 1.265625], [0.796875, -0.734375, 0.875], [1.015625, 1.3125, -0.640625]], dtype='float32'),
}
EXPECTED = [
    array([[-1.328125, 0.65625, 1.078125], [1.46875, 1.328125, 1.359375], [-0.5, 0.921875, 1.265625], [1.5, 0.78125, -1.171875]], dtype='float64'),
    array([[0.8125, -1.375, -1.328125], [0.703125, -0.5625, 1.25], [1.484375, -1.0, 0.75], [-0.75, -1.171875, 0.984375]], dtype='float64'),
    array([[1.25, 1.03125, 0.84375], [1.5, 0.578125, 0.5625], [1.15625, -1.4375, 1.171875], [0.734375, -1.046875, -1.21875], [0.875, 0.671875, 0.75]], dtype='float64'),
    array([[1.4375, 1.390625, 0.734375], [1.125, -1.1875, -0.609375], [1.453125, 1.046875, -0.75], [-0.796875, 1.328125, -0.609375]], dtype='float64'),
    array([[0.734375, -1.109375, -1.203125], [0.765625, -1.359375, 1.3125], [1.453125, -0.625, -0.640625], [1.234375, 0.90625, -0.78125], [1.0625, 0.59375, -1.328125], [-0.890625, 0.75, -1.28125], [0.890625, -1.046875, 1.03125], [0.71875, 0.625, 0.609375]], dtype='float64'),
    array([[-1.171875, 1.21875, 0.796875], [-0.59375, 1.015625, 0.703125], [1.15625, 1.5, 1.40625], [0.984375, -1.015625, -0.84375]], dtype='float64'),
    array([[-1.03125, 1.40625, -0.765625]], dtype='float64'),
    array([[1.0625, 0.71875, 0.703125], [-0.640625, -0.578125, 1.25], [-0.859375, -0.84375, -0.5625], [0.84375, 1.3125, -0.984375]], dtype='float64'),
    array([], dtype='float64').reshape((0, 3)),
    array([[1.234375, 1.015625, 0.84375], [-0.796875, -0.765625, 1.265625], [0.796875, -0.734375, 0.875], [1.015625, 1.3125, -0.640625]], dtype='float64'),
]
ALLOWED = [
    array([[5e-324, 5e-324, 5e-324], [5e-324, 5e-324, 5e-324], [5e-324, 5e-324, 5e-324], [5e-324, 5e-324, 5e-324]], dtype='float64'),
    array([[5e-324, 5e-324, 5e-324], [5e-324, 5e-324, 5e-324], [5e-324, 5e-324, 5e-324], [5e-324, 5e-324, 5e-324]], dtype='float64'),
    array([[5e-324, 5e-324, 5e-324], [5e-324, 5e-324, 5e-324], [5e-324, 5e-324, 5e-324], [5e-324, 5e-324, 5e-324], [5e-324, 5e-324, 5e-324]], dtype='float64'),
    array([[5e-324, 5e-324, 5e-324], [5e-324, 5e-324, 5e-324], [5e-324, 5e-324, 5e-324], [5e-324, 5e-324, 5e-324]], dtype='float64'),
    array([[5e-324, 5e-324, 5e-324], [5e-324, 5e-324, 5e-324], [5e-324, 5e-324, 5e-324], [5e-324, 5e-324, 5e-324], [5e-324, 5e-324, 5e-324], [5e-324, 5e-324, 5e-324], [5e-324, 5e-324, 5e-324], [5e-324, 5e-324, 5e-324]], dtype='float64'),
    array([[5e-324, 5e-324, 5e-324], [5e-324, 5e-324, 5e-324], [5e-324, 5e-324, 5e-324], [5e-324, 5e-324, 5e-324]], dtype='float64'),
    array([[5e-324, 5e-324, 5e-324]], dtype='float64'),
    array([[5e-324, 5e-324, 5e-324], [5e-324, 5e-324, 5e-324], [5e-324, 5e-324, 5e-324], [5e-324, 5e-324, 5e-324]], dtype='float64'),
    array([], dtype='float64').reshape((0, 3)),
    array([[5e-324, 5e-324, 5e-324], [5e-324, 5e-324, 5e-324], [5e-324, 5e-324, 5e-324], [5e-324, 5e-324, 5e-324]], dtype='float64'),
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
