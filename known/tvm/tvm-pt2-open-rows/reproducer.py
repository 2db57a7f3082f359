"""tvm-pt2-open-rows: Rejection of torch-open/tvm-pt2/tvm

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

TARGET = 'torch-open/tvm-pt2/tvm'
# name: (dtype, shape), in the order that the model takes them
INPUTS = {'x0': ('float32', (5, 4, 3))}
PARAMETERS = {}
OUTPUTS = [('float32', (5, 4, 3))]


def model(x0):
    v0 = x0[0:1, 0:4, 0:3]
    v1 = torch.add(v0, x0)
    return (v1,)


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
    sizes = tuple({axis: torch.export.Dim.AUTO for axis, size in enumerate(shape) if size > 1} for _, shape in INPUTS.values())
    opened = (sizes,) if sizes else None
    torch.export.save(torch.export.export(Module(), examples, dynamic_shapes=opened), path)


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
ZERO_SIGNS = True  # are the signs of zeros compared?
ARRAYS = {
    'x0': array([[[0.08564916998147964, 0.23681050539016724, 0.8012744784355164], [0.5821620225906372, 0.09412864595651627, 0.43312692642211914], [0.47905129194259644, 0.1597389131784439, 0.7345771789550781], [0.11367201805114746, 0.39122819900512695, 0.5167402029037476]], [[0.4306280314922333, 0.5867985486984253, 0.7378377914428711], [0.956267237663269, 0.28420117497444153, 0.6485472321510315], [0.6962159872055054, 0.2927207350730896, 0.001490083523094654], [0.9734602570533752, 0.29840123653411865, 0.31398600339889526]], [[0.8917110562324524, 0.5851629376411438, 0.4713096618652344], [0.7732769846916199, 0.030346008017659187, 0.7069650888442993], [0.374243825674057, 0.09085271507501602, 0.6605000495910645], [0.9314638376235962, 0.20719116926193237, 0.6300901770591736]], [[0.2981630861759186, 0.7417566776275635, 0.7221648097038269], [0.21871542930603027, 0.8298868536949158, 0.6576521992683411], [0.6827989220619202, 0.8200757503509521, 0.4285728931427002], [0.7587054371833801, 0.8784801959991455, 0.10231991857290268]], [[0.849768340587616, 0.39392733573913574, 0.47968393564224243], [0.14633457362651825, 0.698426365852356, 0.2919786274433136], [0.8711391687393188, 0.2753743827342987, 0.5618097186088562], [0.3996562063694, 0.6129094958305359, 0.19663923978805542]]], dtype='float32'),
}
EXPECTED = [
    array([[[0.1712983399629593, 0.4736210107803345, 1.6025489568710327], [1.1643240451812744, 0.18825729191303253, 0.8662538528442383], [0.9581025838851929, 0.3194778263568878, 1.4691543579101562], [0.22734403610229492, 0.7824563980102539, 1.0334804058074951]], [[0.5162772014737129, 0.8236090540885925, 1.5391122698783875], [1.5384292602539062, 0.3783298209309578, 1.0816741585731506], [1.1752672791481018, 0.4524596482515335, 0.7360672624781728], [1.0871322751045227, 0.6896294355392456, 0.8307262063026428]], [[0.977360226213932, 0.821973443031311, 1.2725841403007507], [1.355439007282257, 0.12447465397417545, 1.1400920152664185], [0.8532951176166534, 0.25059162825345993, 1.3950772285461426], [1.0451358556747437, 0.5984193682670593, 1.1468303799629211]], [[0.3838122561573982, 0.9785671830177307, 1.5234392881393433], [0.8008774518966675, 0.924015499651432, 1.0907791256904602], [1.1618502140045166, 0.9798146635293961, 1.1631500720977783], [0.8723774552345276, 1.2697083950042725, 0.6190601214766502]], [[0.9354175105690956, 0.630737841129303, 1.2809584140777588], [0.7284965962171555, 0.7925550118088722, 0.7251055538654327], [1.3501904606819153, 0.4351132959127426, 1.2963868975639343], [0.5133282244205475, 1.0041376948356628, 0.713379442691803]]], dtype='float64'),
]
ALLOWED = [
    array([[[1.021017674214216e-08, 2.823001221088828e-08, 9.551936166530805e-08], [6.93991213750076e-08, 1.1221009052654838e-08, 5.163275337644132e-08], [5.710736438360233e-08, 1.9042362424554554e-08, 8.756842394966976e-08], [1.3550760564161387e-08, 4.663803582937307e-08, 6.160023269996105e-08]], [[3.077251931411e-08, 4.909092528562399e-08, 9.173824045729801e-08], [9.169752991110097e-08, 2.2550214668532978e-08, 6.44728042246521e-08], [7.005138895072422e-08, 2.696869670969707e-08, 4.3873027874245466e-08], [6.479813332285917e-08, 4.110511768509838e-08, 4.9515140616735166e-08]], [[5.825520931809441e-08, 4.8993435269200845e-08, 7.585192591199255e-08], [8.079046084473496e-08, 7.419267561309318e-09, 6.795477983436538e-08], [5.086035256358537e-08, 1.493642504137674e-08, 8.315308295149864e-08], [6.22949516515838e-08, 3.566857400514753e-08, 6.835641766996367e-08]], [[2.2876993273926393e-08, 5.832714954991207e-08, 9.0804057944691e-08], [4.7736016206751375e-08, 5.507561582885134e-08, 6.501550255739266e-08], [6.925166954593336e-08, 5.8401505182951096e-08, 6.932914712612927e-08], [5.199774852301996e-08, 7.568051813449292e-08, 3.689885877268487e-08]], [[5.575522864185556e-08, 3.7594905106960806e-08, 7.635107152758245e-08], [4.342178099936347e-08, 4.7239960119805914e-08, 4.321965912381777e-08], [8.047762308786909e-08, 2.593477353654301e-08, 7.727068080862474e-08], [3.0596746583750495e-08, 5.985127082922263e-08, 4.252072843011311e-08]]], dtype='float64'),
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
