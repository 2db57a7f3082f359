"""torch-quantise-weight-as-activation: Rejection of torch-static-x86

ran with python 3.11.7, numpy 2.4.6, torch 2.13.0+cpu
exit status: 1 reproduced, 0 not reproduced, 77 not available here
"""

import importlib.util
import sys

for module in ['torch', 'torch.ao', 'torch.ao.quantization', 'torch.ao.quantization.quantize_fx']:
    if importlib.util.find_spec(module) is None:
        print(f"not available: {module}")
        sys.exit(77)

# ---- the program that ran ----

import numpy as np
import torch

TARGET = 'torch-static-x86'
# name: (dtype, shape), in the order that the model takes them
INPUTS = {'x': ('float32', (1, 1, 2, 2))}
PARAMETERS = {'b': ('float32', (1,))}
OUTPUTS = []


def torch_watched(module):
    """Ranges (least and greatest elements, as lists) of what each observer of a prepared module is given from now on,
    and a function that ends it."""
    seen, handles = {}, []

    def watch(name, observer):
        def hook(_, given):
            axis, x = getattr(observer, "ch_axis", None), given[0].detach()
            x = x.reshape(1, -1) if axis is None else x.transpose(0, axis).flatten(1)
            low, high = torch.aminmax(x, dim=1)
            before = seen.get(name, (low, high))
            seen[name] = (torch.minimum(low, before[0]), torch.maximum(high, before[1]))

        handles.append(observer.register_forward_pre_hook(hook))

    for name, observer in module.named_modules():
        if hasattr(observer, "min_val") or type(observer).__name__ == "FixedQParamsObserver":
            watch(name, observer)
    return seen, lambda: [handle.remove() for handle in handles]


def torch_observers(module, seen):
    """Scale and zero point of each observer with what it saw (as torch_watched has it) and which range it took of that,
    as JSON can hold it; and the arrays of those that observe a constant."""
    listed, weights = {}, {}
    for node in module.graph.nodes:
        if node.op != "call_module" or str(node.target) not in seen:
            continue
        observer, source = module.get_submodule(node.target), node.args[0]
        taken = seen[node.target]
        if hasattr(observer, "_non_linear_param_search"):
            taken = observer._non_linear_param_search()
            # it takes a second, and is asked three times
            observer._non_linear_param_search = lambda found=taken: found
        elif hasattr(observer, "min_val"):
            taken = observer.min_val, observer.max_val
        scale, zero = observer.calculate_qparams()
        listed[node.target] = {
            "kind": type(observer).__name__,
            "of": source.name,
            "dtype": str(observer.dtype).removeprefix("torch."),
            "scheme": str(observer.qscheme).removeprefix("torch."),
            "limits": [observer.quant_min, observer.quant_max],
            "seen": [bound.reshape(-1).tolist() for bound in seen[node.target]],
            "taken": [bound.reshape(-1).tolist() for bound in taken],
            "scale": scale.reshape(-1).tolist(),
            "zero": zero.reshape(-1).tolist(),
        }
        if source.op == "get_attr":
            weights[node.target] = np.array(getattr(module, source.target).detach())
    return listed, weights


class Recorder(torch.fx.Interpreter):
    """Runs a converted module node by node, as it is, and keeps what each node returns: quantised tensors as whole
    numbers, with their scales and zero points."""

    def __init__(self, module):
        super().__init__(module, garbage_collect_values=False)
        self.nodes, self.values, self.tensors = [], {}, {}

    def keep(self, name, result):
        if isinstance(result, torch.ScriptObject):
            for part, tensor in zip(("weight", "bias"), result.unpack()):
                self.keep(f"{name}.{part}", tensor)
        elif isinstance(result, (list, tuple)):
            for i, item in enumerate(result):
                self.keep(f"{name}.{i}", item)
        elif isinstance(result, torch.Tensor) and result.is_quantized:
            channels = result.qscheme() in (torch.per_channel_affine, torch.per_channel_symmetric)
            scale = result.q_per_channel_scales() if channels else torch.tensor([result.q_scale()])
            zero = result.q_per_channel_zero_points() if channels else torch.tensor([result.q_zero_point()])
            axis = result.q_per_channel_axis() if channels else 0
            self.tensors[name] = {"scale": scale.tolist(), "zero": zero.tolist(), "axis": axis}
            self.values[name] = np.array(result.int_repr())
        elif isinstance(result, torch.Tensor):
            self.values[name] = np.array(result.detach())

    def run_node(self, node):
        result = super().run_node(node)
        self.keep(node.name, result)
        if node.op.startswith("call"):
            self.nodes.append(self.written(node, result))
        return result

    def written(self, node, result):
        """Operator, domain, operands, results and attributes. A packed weight stands as its weight and its bias."""
        operands, attrs = [], {}

        def plain(value):
            if isinstance(value, torch.fx.Node):
                held = self.env[value]
                if isinstance(held, torch.ScriptObject):
                    operands.extend(
                        [f"{value.name}.weight", f"{value.name}.bias" if held.unpack()[1] is not None else ""]
                    )
                    if held._has_method("stride"):
                        for key in ("stride", "padding", "dilation", "groups"):
                            attrs[key] = getattr(held, key)()
                elif getattr(node.target, "__name__", "") == "getitem" and isinstance(held, (list, tuple)):
                    operands.append(f"{value.name}.{node.args[1]}")
                else:
                    operands.append(value.name)
                return None
            if isinstance(value, (list, tuple)):
                return [plain(v) for v in value]
            if isinstance(value, slice):
                return {"slice": [plain(v) for v in (value.start, value.stop, value.step)]}
            return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)

        attrs["args"] = [plain(value) for value in node.args]
        attrs.update({key: plain(value) for key, value in node.kwargs.items()})
        results = [f"{node.name}.{i}" for i in range(len(result))] if isinstance(result, (list, tuple)) else [node.name]
        if node.op == "call_module":
            return [type(self.module.get_submodule(node.target)).__name__, "", operands, results, attrs]
        name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", str(node.target))
        domain = "quantized" if str(node.target).startswith("quantized.") else ""
        return [str(name).split(".")[-1], domain, operands, results, attrs]


def recorded(header, groups):
    """A header (JSON) as an array of bytes, then all arrays of the groups, {group: {name: array}}, in the order in
    which the header lists them."""
    import json

    header["arrays"] = [[group, name] for group, arrays in groups.items() for name in arrays]
    text = np.frombuffer(json.dumps(header).encode(), np.uint8)
    return [text] + [np.asarray(a) for arrays in groups.values() for a in arrays.values()]


def calibration(inputs, share):
    """Samples to calibrate on: the inputs times `share`, and half of that backwards with the other sign. What is no
    real number stays as it is."""

    def scaled(x, by, backwards):
        if x.dtype != np.float32:
            return x
        x = x.reshape(-1)[::-1].reshape(x.shape) if backwards else x
        return np.array(x * np.float32(by), np.float32, order="C")

    return [
        {name: scaled(x, share, False) for name, x in inputs.items()},
        {name: scaled(x, -share / 2, True) for name, x in inputs.items()},
    ]


def model(x, b):
    v = torch.nn.functional.relu(x)
    y = torch.nn.functional.conv2d(v, v, b, padding=(0, 0), stride=(1, 1), dilation=(1, 1), groups=1)
    return (y,)


RESULTS = [('float32', (1, 1, 1, 1))]
SHARE = 1.0


class Module(torch.nn.Module):
    def __init__(self, parameters):
        super().__init__()
        for name, array in parameters.items():
            self.register_parameter(name, torch.nn.Parameter(torch.from_numpy(array), requires_grad=False))

    def forward(self, x):
        return model(x, *[getattr(self, name) for name in PARAMETERS])


def load(parameters):
    import warnings

    from torch.ao import quantization
    from torch.ao.quantization import quantize_fx

    module = Module(parameters).eval()

    def run(*inputs):
        torch.backends.quantized.engine = "x86"
        warnings.simplefilter("ignore")  # it is deprecated, and says so
        feeds = dict(zip(INPUTS, inputs))
        tensors = tuple(torch.from_numpy(x) for x in inputs)
        samples = calibration(feeds, SHARE)
        with torch.no_grad():
            mapping = quantization.get_default_qconfig_mapping(torch.backends.quantized.engine)
            prepared = quantize_fx.prepare_fx(module, mapping, tensors)
            seen, stop = torch_watched(prepared)
            for sample in samples:
                prepared(*[torch.from_numpy(sample[name]) for name in INPUTS])
            stop()
            observers, weights = torch_observers(prepared, seen)
            converted = quantize_fx.convert_fx(prepared)
            recorder = Recorder(converted)
            recorder.run(*tensors)
            called, exact = converted(*tensors), module(*tensors)
        ends = [node.name for node in next(iter(reversed(converted.graph.nodes))).args[0]]
        header = {"engine": "x86", "observers": observers, "tensors": recorder.tensors, "outputs": ends}
        header.update(nodes={"converted": recorder.nodes}, share=SHARE)
        groups = {"converted": recorder.values, "weights": weights}
        groups["called"] = {str(i): output.numpy() for i, output in enumerate(called)}
        groups["float"] = {str(i): output.numpy() for i, output in enumerate(exact)}
        return recorded(header, groups)

    return run


# ---- its inputs, and what a correct evaluation returns: value, and how far from it (inf: anything) ----

from pathlib import Path

from numpy import array, inf, nan

SYMPTOM = 'rejected'  # Rejection
SECONDS = 120.0
ZERO_SIGNS = True  # are the signs of zeros compared?
ARRAYS = {
    'x': array([[[[0.75, 1.25], [-2.0, 1.25]]]], dtype='float32'),
    'b': array([-0.25], dtype='float32'),
}
EXPECTED = [
]
ALLOWED = [
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
        if SYMPTOM == "rejected":
            print("not reproduced")
            return 0
        print(f"not available: the model has {len(outputs)} values here, not {len(OUTPUTS)}")
        return 77
    failed = 0
    for i, (dtype, shape) in enumerate(OUTPUTS):
        problem = wrong(np.asarray(outputs[i]), EXPECTED[i], ALLOWED[i], dtype, shape)
        print(f"output {i}: {problem or 'correct'}")
        failed |= problem is not None
    print("reproduced" if failed else "not reproduced")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
