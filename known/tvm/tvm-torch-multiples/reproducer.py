"""tvm-torch-multiples: ValueMismatch of torch/tvm-pt2/tvm

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

TARGET = 'torch/tvm-pt2/tvm'
# name: (dtype, shape), in the order that the model takes them
INPUTS = {'u0': ('float64', (2, 3, 1, 2, 3)), 'x1': ('float64', (2, 3, 1, 2, 3))}
PARAMETERS = {}
OUTPUTS = [('float64', (2, 3, 1, 2, 3))]


def model(u0, x1):
    v0 = torch.add(u0, x1, alpha=0.5)
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

    module = from_exported_program(exported_program(source), run_ep_decomposition=True)
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
STEPS = [('tvm-pt2', convert_1)]


def ordered(ports, names):
    """The names in the order in which the model has what they name: by name, as most tools leave it; where names are
    lost, by the numbers that TensorFlow gives in their place, where an output that is an input or a constant may have
    none; else as they are, since other tools keep the order."""
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
    rest = iter(left)
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

SYMPTOM = 'value'  # ValueMismatch
SECONDS = 120.0
ZERO_SIGNS = False  # are the signs of zeros compared?
ARRAYS = {
    'u0': array([[[[[237.6972349135461, 690.5761139755526, -2645.3524926053], [-2561.102144642461, -9640.481255755292, 4137.247213248602]]], [[[-4243.513939620202, 7328.57487433785, -1978.9785702149102], [7008.193083666217, -6092.928276945891, -128.3405343338743]]], [[[7645.256963716509, 1733.1510668374058, -5668.372415001218], [726.3949492282786, -2967.7828082598826, 1920.5293181419704]]]], [[[[522.0621473383551, -9302.076194822328, -1081.5741660280744], [2569.4307754074025, -2198.9407382071895, 1442.9625922163596]]], [[[-9131.89262269461, 736.2864501015534, -15291.570015814132], [15101.940327725511, 7915.962917218495, -3313.5653897746297]]], [[[-8495.52199531542, -269.2417164712878, -1716.9908581791683], [3907.235475282274, 452.0116046904759, 1009.3940514829897]]]]], dtype='float64'),
    'x1': array([[[[[34.558419206478604, 82.16181435011583, 33.043707618338715], [-130.31572316043608, 90.53558666731178, 44.637457236401126]]], [[[-53.69532353602852, 58.11181041963531, 36.457239618607574], [29.4132496655526, 2.842224131579679, 54.67129866124469]]], [[[-73.6454087001667, -16.290994799305277, -48.21193126799783], [59.884621263462755, 3.972210748165899, -29.24567509650886]]]], [[[[-78.1908462356842, -25.71922406188707, 0.8142180518343508], [-27.560290529937042, 129.40638143982073, 100.67243153057943]]], [[[-271.11624789659686, -188.90132459676727, -17.477209205516196], [-42.21904115763536, 21.36429974986111, 21.73219310225636]]], [[[211.78387550510482, -111.20207626922813, -37.76050071269981], [204.27716074923302, 64.6702996201847, 66.30633723762617]]]]], dtype='float64'),
}
EXPECTED = [
    array([[[[[254.97644451678542, 731.6570211506105, -2628.8306387961306], [-2626.2600062226793, -9595.213462421636, 4159.565941866802]]], [[[-4270.3616013882165, 7357.630779547668, -1960.7499504056063], [7022.899708498993, -6091.507164880101, -101.00488500325196]]], [[[7608.434259366425, 1725.0055694377531, -5692.478380635216], [756.33725986001, -2965.7967028857997, 1905.906480593716]]]], [[[[482.966724220513, -9314.935806853271, -1081.1670570021572], [2555.650630142434, -2134.2375474872792, 1493.2988079816494]]], [[[-9267.450746642908, 641.8357878031698, -15300.30862041689], [15080.830807146694, 7926.6450670934255, -3302.6992932235016]]], [[[-8389.630057562867, -324.84275460590186, -1735.8711085355183], [4009.3740556568905, 484.34675450056824, 1042.5472201018028]]]]], dtype='float64'),
]
ALLOWED = [
    array([[[[[9.067934873653029e-14, 2.573734320084903e-13, 8.810793736619859e-13], [8.964222257166967e-13, 3.2109252775820306e-12, 1.3928473942498307e-12]]], [[[1.4312581996765652e-12, 2.4602608899329478e-12, 6.591322721677095e-13], [2.3439937768538266e-12, 2.0293527781365033e-12, 4.274598486304881e-14]]], [[[2.5463820930881647e-12, 5.772552658669624e-13, 1.9040050690319493e-12], [2.6188370488569307e-13, 9.884702417450484e-13, 6.396647605406604e-13]]]], [[[[1.738816248780878e-13, 3.1067799729114936e-12, 3.60236562589236e-13], [8.557923621113302e-13, 7.323943912031582e-13, 5.141337434944956e-13]]], [[[3.131831084665484e-12, 2.452326508866798e-13, 5.098937014287202e-12], [5.0299565605068135e-12, 2.6436610290786554e-12, 1.1036389767986476e-12]]], [[[2.829577237622589e-12, 1.2671323748287253e-13, 5.844496083402101e-13], [1.3694087983678352e-12, 1.7208964397186017e-13, 3.5828020174675764e-13]]]]], dtype='float64'),
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
