"""tvm-pt2-whole-lstm: TypeMismatch of torch/tvm-pt2-whole/tvm

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
INPUTS = {'x3': ('float64', (2, 4)), 'x4': ('float64', (2, 4)), 'x5': ('float64', (16, 4)), 'x7': ('float64', (16,))}
PARAMETERS = {'w2': ('float64', (3, 2, 4)), 'w6': ('float64', (16, 4))}
OUTPUTS = [('float64', (2, 4))]


def recurrent(kind, x, states, weights, direction, output):
    """One layer of torch.lstm and its kin, over the first axis of x."""
    x = torch.flip(x, [0]) if direction == "reverse" else x
    states = [state.unsqueeze(0) for state in states]
    given = states if kind == "lstm" else states[0]
    y, *last = getattr(torch, kind)(x, given, weights, True, 1, 0.0, False, False, False)
    if output == "all":
        return torch.flip(y, [0]) if direction == "reverse" else y
    return last[1 if output == "cell" else 0].squeeze(0)


def gates(F, x, weight, bias):
    """x by the transposed weight, and the bias."""
    return F.matmul(x, F.transpose(weight, [1, 0])) + bias


def columns(F, x, number, count):
    """One of so many blocks of columns."""
    size = x.shape[1] // count
    return F.take(x, list(range(number * size, (number + 1) * size)), 1)


def lstm_step(F, x, h, c, w, r, bw, br):
    """Gates i, f, g, o."""
    total = gates(F, x, w, bw) + gates(F, h, r, br)
    i, f, g, o = (columns(F, total, number, 4) for number in range(4))
    c = F.sigmoid(f) * c + F.sigmoid(i) * F.tanh(g)
    return F.sigmoid(o) * F.tanh(c), c


def over_time(F, step, x, state, direction, output):
    """The step from state to state, over the first axis of x."""
    order = list(range(x.shape[0]))
    if direction == "reverse":
        order.reverse()
    results = []
    for t in order:
        state = step(F.reshape(F.take(x, [t], 0), x.shape[1:]), *state)
        results.append(state[0])
    if output != "all":
        return state[1 if output == "cell" else 0]
    if direction == "reverse":
        results.reverse()
    return F.stack(results, 0)


def lstm(F, x, h, c, w, r, bw, br, direction, output):
    def step(x, h, c):
        return lstm_step(F, x, h, c, w, r, bw, br)

    return over_time(F, step, x, [h, c], direction, output)


def model(x3, x4, x5, x7, w2, w6):
    v3 = recurrent("lstm", w2, [x3, x4], [x5, w6, x7, x7], 'forward', 'cell')
    return (v3,)


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

SYMPTOM = 'type'  # TypeMismatch
SECONDS = 120.0
ZERO_SIGNS = False  # are the signs of zeros compared?
ARRAYS = {
    'w2': array([[[-2.0, 1.5, 0.0, -1.0], [3.5, 3.0, 1.0, -1.0]], [[-2.0, -4.5, 1.5, 4.0], [2.5, -2.0, -4.5, -4.5]], [[-1.0, 2.0, -4.0, -3.5], [2.0, -1.5, -4.5, 4.5]]], dtype='float64'),
    'x3': array([[-3189.6798625460433, 4335.1864862127095, 20507.952441499623, 4689.038345076793], [6166.519001428622, -15967.384665842035, 5712.1121939310915, 28689.29081640804]], dtype='float64'),
    'x4': array([[-2.0, 1.5, 1.5, -4.0], [1.5, 0.0, 3.5, -4.5]], dtype='float64'),
    'x5': array([[1.150961566340131, -0.0, 1.814836437532729, -0.0], [-0.0, 0.0, -0.0, 0.2778416871495768], [0.7542063789147205, 0.16448857111255538, -0.0, -0.0], [-0.0, 0.0, 0.06363413053354591, -0.0], [-0.0, 0.0, -0.0, 0.0], [-0.6550416456732683, -0.0, -1.253607309461368, 0.21178434067457666], [-0.3316241385271627, -0.0, 0.4545521906223464, 0.0], [0.0, 0.3418122002582408, 1.1865144906752259, 0.0], [0.2574120792389537, -0.3090688194885593, 0.3522685455108916, -0.0], [1.7400121474883257, -0.03824186416018326, -1.2995321821130859, 0.3732766723414156], [-0.715573302584914, -0.0, -0.0, 0.0], [1.5249761002476723, -0.0, -0.0, 0.37661787350153675], [-0.0, -1.4174931774158945, -0.7950816916500592, -0.0], [-0.0, 0.0, 0.932661156718842, 2.813228553404187], [0.0, 0.0, 0.0, -0.2961432034749998], [-0.02858203620689752, -0.24056817966681265, 1.1103726922625086, 0.6334462608326217]], dtype='float64'),
    'w6': array([[0.06305110768658562, 0.8271272480446639, 0.5869458691943134, 0.5226369559958958], [0.42096243378441545, 0.08902029965448144, 0.9652441729673928, 0.7697262345610152], [0.7382102498027882, 0.6889492762094676, 0.29417251332363603, 0.9791745033335071], [0.1167659182724674, 0.4536825898639024, 0.6309831896266074, 0.7105688585186271], [0.43828837079355487, 0.031213548517127432, 0.9726085143620327, 0.6615072513040197], [0.22424074873720068, 0.9317507840504089, 0.3181120622483947, 0.10425778346808967], [0.8360697505732229, 0.32355022110304943, 0.6952859475467323, 0.918816825651859], [0.2599961308725335, 0.9030947238795145, 0.29839548595919985, 0.7057925208977944], [0.8263532064572763, 0.8541718954742318, 0.9375597429753182, 0.5017315550424168], [0.5017089899606741, 0.24299847051482049, 0.9039305659158126, 0.395432137763129], [0.3090202318793307, 0.8371181310797857, 0.7014428135347376, 0.7600870493699428], [0.024722868375393725, 0.6388893961594033, 0.8668373879565412, 0.16310634300364857], [0.8576888733399709, 0.1375309482987208, 0.35217916415244455, 0.6688812207336201], [0.5158750490582861, 0.3182781247675701, 0.3389960246800404, 0.03319770672029243], [0.6484183787295255, 0.5014662626877637, 0.0021818768264875166, 0.06903027493334124], [0.6450313090123215, 0.6820803903855803, 0.16465331426773866, 0.16293744652578612]], dtype='float64'),
    'x7': array([-1.5, 2.0, -3.0, -4.0, 2.5, -3.5, 3.5, 1.5, -1.0, 4.0, 4.0, -3.5, 1.5, 4.5, 2.5, 0.0], dtype='float64'),
}
EXPECTED = [
    array([[-0.9801192716068405, 1.1598827639417153, 2.481232743188953, -0.794688848047974], [2.484720001518034, 1.2364287517223054, 4.524996915614381, -0.05634885116772059]], dtype='float64'),
]
ALLOWED = [
    array([[1.8490640612580688e-14, 1.432163434587495e-14, 2.161770278198185e-14, 3.017715937804205e-14], [2.147632118554038e-14, 1.3597637408503161e-14, 3.93792930771189e-14, 3.783720312264992e-15]], dtype='float64'),
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
