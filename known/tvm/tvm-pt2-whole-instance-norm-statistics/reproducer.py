"""tvm-pt2-whole-instance-norm-statistics: Rejection of torch/tvm-pt2-whole/tvm

ran with python 3.11.7, numpy 2.4.6, apache-tvm 0.27.0.post1, torch 2.13.0+cpu
exit status: 1 reproduced, 0 not reproduced, 77 not available here
"""

import importlib.util
import sys

for module in ['torch', 'tvm', 'tvm.relax']:
    if importlib.util.find_spec(module) is None:
        print(f"not available: {module}")
        sys.exit(77)

# ---- the program that ran ----

import numpy as np
import torch

TARGET = 'torch/tvm-pt2-whole/tvm'
# name: (dtype, shape), in the order that the model takes them
INPUTS = {'x1': ('float32', (7,)), 'x3': ('float32', (7,))}
PARAMETERS = {'u1': ('float32', (1, 7, 5)), 'w2': ('float32', (7,))}
OUTPUTS = [('float32', (1, 7, 5))]


def model(x1, x3, u1, w2):
    v0 = torch.nn.functional.instance_norm(u1, w2, x3, x1, x1, False, 0.1, 0.0009765625)
    return (v0,)


TRUST = True


def write(parameters, path):
    class Module(torch.nn.Module):
        def __init__(self):
            super().__init__()
            for name, array in parameters.items():
                self.register_buffer(name, torch.from_numpy(array))

        def forward(self, *inputs):
            return model(*inputs, *[getattr(self, name) for name in PARAMETERS])

    examples = tuple(torch.zeros(shape, dtype=getattr(torch, dtype)) for dtype, shape in INPUTS.values())
    torch.export.save(torch.export.export(Module(), examples), path)


def exported_program(path):
    import os
    import pickle

    import torch
    import torch.ao.quantization.fx._decomposed  # registers the operators of quantised programs

    # torch.export.load unpickles whatever does not load as plain tensors, unless told so
    os.environ["TORCH_FORCE_WEIGHTS_ONLY_LOAD"] = str(int(not TRUST))
    try:
        return torch.export.load(path)
    except pickle.UnpicklingError as error:
        raise ValueError("it holds a pickle of more than tensors, which is opened only where it is trusted") from error


def convert_1(source, target):
    import json
    from pathlib import Path

    import tvm
    from tvm import relax

    names = []  # of the outputs, where the file has them in another order than its signature
    from tvm.relax.frontend.torch import from_exported_program

    module = from_exported_program(exported_program(source), run_ep_decomposition=False)
    function = module["main"]

    def ports(kind, values):
        return [
            (
                name or f"{kind}{i}",
                str(type_.dtype),
                [int(dim) if isinstance(dim, tvm.tirx.IntImm) else None for dim in type_.shape or [None] * type_.ndim],
            )
            for i, (name, type_) in enumerate(values)
        ]

    returned = function.ret_ty
    results = list(returned.fields) if hasattr(returned, "fields") else [returned]
    signature = {
        "inputs": ports("in", [(variable.name, variable.ty) for variable in function.params]),
        "outputs": ports("out", [*zip(names or [""] * len(results), results)]),
    }
    tvm.compile(module, tvm.target.Target("llvm")).export_library(target)
    Path(target).with_suffix(".json").write_text(json.dumps(signature), encoding="utf-8")


def open_model(path):
    import json
    from pathlib import Path

    import tvm
    from tvm import relax

    signature = json.loads(Path(path).with_suffix(".json").read_text(encoding="utf-8"))
    machine = relax.VirtualMachine(tvm.runtime.load_module(path), tvm.cpu())

    def call(*arrays):
        returned = machine["main"](*[tvm.runtime.tensor(array) for array in arrays])
        return [value.numpy() for value in ([returned] if hasattr(returned, "numpy") else returned)]

    return *[[tuple(port) for port in signature[side]] for side in ("inputs", "outputs")], call


FILES = ['0.pt2', '1.so']
STEPS = [('tvm-pt2-whole', convert_1)]


def ordered(ports, names):
    """The names in the order in which the model has what they name: by name, as most tools leave it; where names are
    lost, by the numbers that TensorFlow gives in their place, where outputs that are inputs or constants may have
    none, and all may be sorted as text (10 before 2); else as they are, since other tools keep the order."""
    import re

    plain = [name for name, _, _ in ports]
    if len(set(plain)) == len(plain) and set(plain) <= set(names):
        return plain
    found = [re.sub(r"^serving_default_|:0$|(?<=^out)0+(?=[0-9])", "", name) for name, _, _ in ports]
    if len(set(found)) == len(found) and set(found) <= set(names):
        return found
    if len(found) != len(names):
        raise ValueError(f"the model has {', '.join(found) or 'nothing'} in place of {', '.join(names)}")
    numbered = r"(?:Stateful)?PartitionedCall(?:_[0-9]+)?:([0-9]+)|(?:in|out|output_)([0-9]+)|Identity(?:_([0-9]+))?"
    matches = [re.fullmatch(numbered, name) or re.fullmatch(numbered, port[0]) for name, port in zip(found, ports)]
    numbers = [int(next(filter(None, match.groups()), 0)) if match else -1 for match in matches]
    known = [number for number in numbers if number >= 0]
    left = [number for number in range(len(names)) if number not in known]
    if len(known) + len(left) > len(names):  # one twice, or one too many
        return names
    as_text = sorted(known) != known == sorted(known, key=str)
    rest = iter(sorted(left, key=str) if as_text else left)
    return [names[number if number >= 0 else next(rest)] for number in numbers]


def load(parameters):
    import os
    import shutil
    import tempfile

    folder = tempfile.mkdtemp(prefix="conversion-")
    step = "write"
    try:
        write(parameters, os.path.join(folder, FILES[0]))
        for (step, convert), source, target in zip(STEPS, FILES, FILES[1:]):
            convert(os.path.join(folder, source), os.path.join(folder, target))
        step = "open"
        inputs, outputs, call = open_model(os.path.join(folder, FILES[-1]))
        taken, wanted = ordered(inputs, list(INPUTS)), [f"out{i}" for i in range(len(OUTPUTS))]
        given = ordered(outputs, wanted) if len(outputs) == len(wanted) else None
    except Exception as error:
        error.add_note(f"in step {step}")
        raise
    finally:
        shutil.rmtree(folder)

    def run(*arrays):
        arrays = dict(zip(INPUTS, arrays))
        try:
            results = call(*[arrays[name] for name in taken])
        except Exception as error:
            error.add_note("in step run")
            raise
        return [results[given.index(name)] for name in wanted] if given else results  # too few or too many

    return run


# ---- its inputs, and what a correct evaluation returns: value, and how far from it (inf: anything) ----

from pathlib import Path

from numpy import array, inf, nan

SYMPTOM = 'rejected'  # Rejection
SECONDS = 120.0
ZERO_SIGNS = False  # are the signs of zeros compared?
ARRAYS = {
    'u1': array([[[0.006651225499808788, -0.6004916429519653, 0.9357619881629944, -0.8749023675918579, 0.1591813564300537], [-0.9995136857032776, -0.9997140765190125, 0.44423460960388184, -0.951624870300293, -0.7697430849075317], [0.4832884669303894, -0.8365771174430847, -0.02522323466837406, -0.11174902319908142, 0.8784512281417847], [0.8249461650848389, 0.851492166519165, -0.21245808899402618, -0.31679725646972656, -0.5470010042190552], [-0.2831677198410034, -0.9999163746833801, 0.5192939043045044, -0.5592571496963501, 0.6883207559585571], [0.023545926436781883, 0.8665768504142761, 0.8754431009292603, -0.9760087132453918, -0.028359798714518547], [-0.4176432490348816, -0.8789193630218506, 0.21289539337158203, -0.6268326640129089, 0.5014178156852722]]], dtype='float32'),
    'x1': array([34.55841827392578, 82.16181182861328, 33.04370880126953, -130.3157196044922, 90.53558349609375, 44.63745880126953, -53.6953239440918], dtype='float32'),
    'w2': array([18.905338287353516, -52.274845123291016, -41.30635452270508, -244.14674377441406, 179.97073364257812, 114.41658782958984, -32.54228210449219], dtype='float32'),
    'x3': array([0.3425966799259186, 0.947242021560669, 3.2050979137420654, 2.328648090362549, 0.37651458382606506, 1.7325077056884766, 1.9162051677703857], dtype='float32'),
}
EXPECTED = [
    array([[[-1079.6740865800994, -1115.4701351048018, -1024.8953916908317, -1131.6488965221213, -1070.681185152827], [4408.53773102504, 4408.520822972468, 4530.354551766621, 4412.578368344186, 4427.92471432386], [804.2501423941412, 779.8926998000733, 794.8658196822317, 793.2690306212884, 811.5426685312545], [-21045.88684295748, -21048.153328448832, -20957.313741040216, -20948.405310523904, -20928.750619567156], [-26470.841847159194, -26576.458598864923, -26352.594830526305, -26511.525102809002, -26327.687818978895], [-3833.6421677282437, -3805.060799468413, -3804.7602060217846, -3867.530176388459, -3835.401933121361], [-1299.4802739892032, -1281.592108982715, -1323.932394825992, -1291.3679641182364, -1335.121217619805]]], dtype='float64'),
]
ALLOWED = [
    array([[[0.0011021884239816615, 0.0011372060210128848, 0.0010744353807434436, 0.0011531174588165366, 0.0010976322661058184], [0.00431959060416974, 0.004319582037884709, 0.004399180847356722, 0.004321637750098411, 0.004329412813092407], [0.000768311490580652, 0.0007517182134045956, 0.0007593041853694661, 0.000758495189171916, 0.0007754835214363002], [0.020608817748294365, 0.02061104678437437, 0.020530357780068863, 0.02052584441848169, 0.02051588657832012], [0.026138689636009255, 0.026242561269479648, 0.026058884387046993, 0.02617870067735441, 0.026046265514510298], [0.0038225607977678843, 0.00380808035147822, 0.0038079280590050477, 0.003855508220911197, 0.003823910836456855], [0.0012489260556975937, 0.0012398632071224005, 0.001265251245955318, 0.0012448160401689495, 0.001276255194489884]]], dtype='float64'),
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
