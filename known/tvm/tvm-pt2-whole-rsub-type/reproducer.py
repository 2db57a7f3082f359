"""tvm-pt2-whole-rsub-type: Rejection of torch/tvm-pt2-whole/tvm

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
INPUTS = {'x2': ('float64', (6, 2))}
PARAMETERS = {'w0': ('float64', (3, 2)), 'w1': ('float64', (3, 2)), 'w3': ('float64', (6,))}
OUTPUTS = [('float64', (3, 2))]


class Space:
    """One set of names for all dialects; see `shared_helpers.py`."""

    exp, log, sqrt, tanh, sigmoid = torch.exp, torch.log, torch.sqrt, torch.tanh, torch.sigmoid
    abs, where, equal, concat, stack, matmul = torch.abs, torch.where, torch.eq, torch.concat, torch.stack, torch.matmul
    reshape, transpose = torch.reshape, torch.permute

    @staticmethod
    def maximum(x, limit):
        return torch.maximum(x, torch.as_tensor(limit, dtype=x.dtype))

    @staticmethod
    def minimum(x, limit):
        return torch.minimum(x, torch.as_tensor(limit, dtype=x.dtype))

    @staticmethod
    def sum(x, axes, keepdims=False):
        return torch.sum(x, dim=axes, keepdim=keepdims)

    @staticmethod
    def mean(x, axes, keepdims=False):
        return torch.mean(x, dim=axes, keepdim=keepdims)

    @staticmethod
    def max(x, axes, keepdims=False):
        return torch.amax(x, dim=axes, keepdim=keepdims)

    @staticmethod
    def softmax(x, axis):
        return torch.softmax(x, dim=axis)

    @staticmethod
    def log_softmax(x, axis):
        return torch.log_softmax(x, dim=axis)

    @staticmethod
    def take(x, places, axis):
        """Of a table of places, or of a tensor of them."""
        places = torch.as_tensor(places)
        flat = torch.index_select(x, axis, places.reshape(-1))
        return flat.reshape(*x.shape[:axis], *places.shape, *x.shape[axis + 1 :])

    @staticmethod
    def constant(values, like):
        return torch.as_tensor(values, dtype=like.dtype)

    @staticmethod
    def cast(x, like):
        return x.to(like.dtype)


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


def model(x2, w0, w1, w3):
    v0 = gru_cell(Space, w0, w1, x2, x2, w3, w3, reset='before')
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

SYMPTOM = 'rejected'  # Rejection
SECONDS = 120.0
ZERO_SIGNS = False  # are the signs of zeros compared?
ARRAYS = {
    'w0': array([[-0.5, 4.0], [-1.5, -1.0], [3.0, -0.5]], dtype='float64'),
    'w1': array([[-150.7023448570937, -28.524184620127922], [-80.00045547921411, -121.12233331529383], [-28.11320722507086, -5.206484253249172]], dtype='float64'),
    'x2': array([[0.44700997039508716, 0.4698585432730126], [0.36717102193918827, 0.5674818864382667], [0.6993454187644, 0.8129808891368512], [0.34253971413879303, 0.15940792003704152], [0.03103064537904765, 0.8014311020873782], [0.12771257778780298, 0.8227649915252112]], dtype='float64'),
    'w3': array([-4.5, 0.0, -0.5, -2.0, -3.5, -1.0], dtype='float64'),
}
EXPECTED = [
    array([[-0.9990189874199175, 0.8417663106009426], [-0.9999996949551776, -0.9951941739684304], [-0.9999991034081894, -0.9659765551716428]], dtype='float64'),
]
ALLOWED = [
    array([[4.4434767903734066e-14, 1.6108444561506964e-14], [2.481361022538065e-14, 3.654775331002255e-14], [1.0412004370990726e-14, 4.520683811927029e-15]], dtype='float64'),
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
