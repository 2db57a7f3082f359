"""tvm-structured-half: Rejection of tvm-O0-structured

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

TARGET = 'tvm-O0-structured'
# name: (dtype, shape), in the order that the model takes them
INPUTS = {'x0': ('float16', (37, 1)), 'x1': ('float16', (1,)), 'x2': ('float16', (1,)), 'x3': ('float16', (1,)), 'x4': ('float16', (1,))}
PARAMETERS = {}
OUTPUTS = [('float16', (37, 1))]


def model(bb, x0, x1, x2, x3, x4):
    v0 = bb.emit(relax.op.nn.batch_norm(x0, x1, x2, x3, x4, axis=1, epsilon=7.62939453125e-06, training=False)[0])
    return (v0,)


class Structured:
    """A builder that sends each tensor through structures of Relax: a cast to its own type and to one with unknown
    sizes, a tuple, and a function of its own."""

    def __init__(self, builder):
        self.builder = builder

    def __getattr__(self, name):
        return getattr(self.builder, name)

    def emit(self, expression):
        value = self.builder.emit(expression)
        type_ = value.ty
        if not isinstance(type_, relax.TensorType) or type_.shape is None or not type_.ndim:
            return value
        value = self.builder.match_cast(value, type_)
        sizes = [tvm.tirx.Var(f"n{axis}", "int64") for axis in range(type_.ndim)]
        loose = self.builder.match_cast(value, relax.TensorType(sizes, type_.dtype))
        pair = self.builder.emit(relax.Tuple([value, loose]))
        value = self.builder.match_cast(self.builder.emit(relax.TupleGetItem(pair, 1)), type_)
        return self.called(value, type_)

    def called(self, value, type_):
        """A function that turns a tensor and turns it back."""
        inner = relax.BlockBuilder()
        x = relax.Var("x", type_)
        with inner.function("same", [x], private=True):
            with inner.dataflow():
                turned = inner.emit(relax.op.permute_dims(x))
                result = inner.emit_output(relax.op.permute_dims(turned))
            inner.emit_func_output(result)
        function = self.builder.add_func(inner.get()["same"], "same")
        return self.builder.emit(relax.Call(function, [value]))



def load(parameters):
    bb = relax.BlockBuilder()
    arguments = [
        relax.Var(name, relax.TensorType(shape, dtype))
        for name, (dtype, shape) in [*INPUTS.items(), *PARAMETERS.items()]
    ]
    with bb.function("main", arguments):
        with bb.dataflow():
            results = bb.emit_output(relax.Tuple(model(Structured(bb), *arguments)))
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

SYMPTOM = 'rejected'  # Rejection
SECONDS = 120.0
ZERO_SIGNS = False  # are the signs of zeros compared?
ARRAYS = {
    'x0': array([[0.125732421875], [-0.132080078125], [0.640625], [0.10491943359375], [-0.53564453125], [0.361572265625], [1.3037109375], [0.947265625], [-0.70361328125], [-1.265625], [-0.623046875], [0.04132080078125], [-2.32421875], [-0.21875], [-1.24609375], [-0.732421875], [-0.54443359375], [-0.31640625], [0.41162109375], [1.04296875], [-0.1285400390625], [1.3662109375], [-0.6650390625], [0.3515625], [0.9033203125], [0.093994140625], [-0.74365234375], [-0.921875], [-0.457763671875], [0.22021484375], [-1.009765625], [-0.209228515625], [-0.1591796875], [0.541015625], [0.214599609375], [0.35546875], [-0.65380859375]], dtype='float16'),
    'x1': array([0.345703125], dtype='float16'),
    'x2': array([0.1890869140625], dtype='float16'),
    'x3': array([2.041015625], dtype='float16'),
    'x4': array([3.771484375], dtype='float16'),
}
EXPECTED = [
    array([[-0.1518544620048679], [-0.19774790918487306], [-0.06019794675616441], [-0.15555940175117045], [-0.26958679951493797], [-0.10987238816406769], [0.057838608680288256], [-0.005612558822370384], [-0.2994870757079717], [-0.39953131378408135], [-0.28514537346422003], [-0.1668806545829804], [-0.5879725893262239], [-0.21317610402284826], [-0.3960545374825658], [-0.3046153207527071], [-0.2711513488506199], [-0.230559985530426], [-0.10096314889143415], [0.011423645055055776], [-0.19711774348022343], [0.068964292845138], [-0.29262044251247843], [-0.11165423601859448], [-0.01343530550078037], [-0.15750422349483068], [-0.3066144671260785], [-0.3383400508774078], [-0.2557231540126448], [-0.13503555664628647], [-0.3539855442342277], [-0.21148117557585944], [-0.2025719363032259], [-0.07792950589389369], [-0.13603512983297217], [-0.11095888075829136], [-0.290621296139107]], dtype='float64'),
]
ALLOWED = [
    array([[0.004036433700009247], [0.0043205061364991], [0.003782504507528084], [0.004046698026068525], [0.004999015493468164], [0.00392012473844604], [0.003511973921741191], [0.003631278776965571], [0.005281419871928366], [0.006226325219625151], [0.0051459642834227465], [0.00407806291684204], [0.008006129558292942], [0.004466223512012723], [0.006193487501199546], [0.0053298555066061334], [0.005013792466759685], [0.004630412104140748], [0.003895442194843082], [0.003595236840864729], [0.004314554300034459], [0.0034920157688426647], [0.005216565378037797], [0.0039250612471666314], [0.003652951254275485], [0.004052086044733074], [0.005348737194700857], [0.005648381375334502], [0.004868075091246063], [0.003989837873792931], [0.0057961511082497245], [0.00445021512428024], [0.004366068470814627], [0.0038316287894305566], [0.003992607134782531], [0.0039231348047390835], [0.005197683689943074]], dtype='float64'),
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
