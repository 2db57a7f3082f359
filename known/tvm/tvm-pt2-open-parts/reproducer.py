"""tvm-pt2-open-parts: Rejection of torch-open/tvm-pt2/tvm

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
INPUTS = {'x0': ('float32', (3, 2, 3)), 'x1': ('float32', (2, 2)), 'x2': ('float32', (6, 3)), 'x3': ('float32', (6, 2)), 'x4': ('float32', (6,)), 'x5': ('float32', (6,))}
PARAMETERS = {}
OUTPUTS = [('float32', (3, 2, 2))]


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


def rows(F, x, first, last, count):
    """The blocks of rows from `first` to `last` of so many."""
    size = x.shape[0] // count
    return F.take(x, list(range(first * size, (last + 1) * size)), 0)


def gru_cell(F, x, h, w, r, bw, br, reset):
    """Gates r, z, n; the reset gate scales the state's part of n after its product, or the state before it."""
    inner = gates(F, x, w, bw)
    outer = gates(F, h, rows(F, r, 0, 1, 3), rows(F, br, 0, 1, 3))
    scale = F.sigmoid(columns(F, inner, 0, 3) + columns(F, outer, 0, 2))
    update = F.sigmoid(columns(F, inner, 1, 3) + columns(F, outer, 1, 2))
    weight, bias = rows(F, r, 2, 2, 3), rows(F, br, 2, 2, 3)
    rest = scale * gates(F, h, weight, bias) if reset == "after" else gates(F, scale * h, weight, bias)
    new = F.tanh(columns(F, inner, 2, 3) + rest)
    return (1 - update) * new + update * h


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


def gru(F, x, h, w, r, bw, br, reset, direction, output):
    def step(x, h):
        return (gru_cell(F, x, h, w, r, bw, br, reset),)

    return over_time(F, step, x, [h], direction, output)


def lstm(F, x, h, c, w, r, bw, br, direction, output):
    def step(x, h, c):
        return lstm_step(F, x, h, c, w, r, bw, br)

    return over_time(F, step, x, [h, c], direction, output)


def model(x0, x1, x2, x3, x4, x5):
    v0 = recurrent("gru", x0, [x1], [x2, x3, x4, x5], 'forward', 'all')
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
ZERO_SIGNS = False  # are the signs of zeros compared?
ARRAYS = {
    'x0': array([[[0.1257302165031433, -0.13210485875606537, 0.6404226422309875], [0.10490011423826218, -0.5356693863868713, 0.3615950644016266]], [[1.3040000200271606, 0.9470809698104858, -0.7037352323532104], [-1.2654215097427368, -0.6232744455337524, 0.04132597893476486]], [[-2.32503080368042, -0.218791663646698, -1.2459110021591187], [-0.7322673797607422, -0.5442590117454529, -0.3163001537322998]]], dtype='float32'),
    'x1': array([[0.3455841839313507, 0.8216181397438049], [0.3304370641708374, -1.3031572103500366]], dtype='float32'),
    'x2': array([[0.18905338644981384, -0.5227484703063965, -0.41306355595588684], [-2.44146728515625, 1.7997074127197266, 1.1441658735275269], [-0.32542282342910767, 0.7738065719604492, 0.28121066093444824], [-0.5538228154182434, 0.9775674343109131, -0.310556560754776], [-0.32882389426231384, -0.7921467423439026, 0.45495808124542236], [-0.09919805079698563, 0.5452887415885925, -0.6071857213973999]], dtype='float32'),
    'x3': array([[2.040919065475464, -2.5556650161743164], [0.4180988371372223, -0.5677695870399475], [-0.4526492953300476, -0.21559716761112213], [-2.019986152648926, -0.2319323718547821], [-0.8652130961418152, 3.3229994773864746], [0.22578661143779755, -0.3526307940483093]], dtype='float32'),
    'x4': array([-0.6517911553382874, -0.17471729218959808, 1.6637239456176758, 0.6591477394104004, -1.64139723777771, -0.00520326429978013], dtype='float32'),
    'x5': array([-0.8019314408302307, -1.3243589401245117, -0.24836161732673645, 0.4204452335834503, 1.1360465288162231, 0.10970640182495117], dtype='float32'),
}
EXPECTED = [
    array([[[0.06156591443611312, 0.11571956961381441], [0.02250156502057027, -0.8473743806780311]], [[-0.13522999881172454, 0.2297986287397274], [-0.15177674406094135, -0.6548571610540304]], [[-0.2385358358642668, 0.2575896613798628], [-0.31014932280983626, -0.5252540728381927]]], dtype='float64'),
]
ALLOWED = [
    array([[[1.6270414464119863e-06, 1.4058514718075182e-06], [1.7574784250448249e-06, 2.046625604910212e-06]], [[2.9746564105321664e-06, 2.7076714320795064e-06], [3.164117368591382e-06, 3.609502919709294e-06]], [[4.329593335690385e-06, 4.111986120034003e-06], [4.781646115605e-06, 4.777397127240644e-06]]], dtype='float64'),
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
