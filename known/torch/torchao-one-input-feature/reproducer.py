"""torchao-one-input-feature: Rejection of torchao-int8-weight

ran with python 3.11.7, numpy 2.4.6, torch 2.13.0+cpu, torchao 0.18.0
exit status: 1 reproduced, 0 not reproduced, 77 not available here
"""

import importlib.util
import sys

for module in ['torch', 'torchao']:
    if importlib.util.find_spec(module) is None:
        print(f"not available: {module}")
        sys.exit(77)

# ---- the program that ran ----

import numpy as np
import torch

TARGET = 'torchao-int8-weight'
# name: (dtype, shape), in the order that the model takes them
INPUTS = {'w1': ('float32', (1, 1, 1))}
PARAMETERS = {'x2w': ('float32', (2, 1)), 'x3w': ('float32', (2,))}
OUTPUTS = []


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
        if isinstance(node.target, torch._ops.OpOverload):
            domain, name = node.target._schema.name.split("::")
            return [name, domain, operands, results, attrs]
        name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", str(node.target))
        domain = "quantized" if str(node.target).startswith("quantized.") else ""
        return [str(name).split(".")[-1], domain, operands, results, attrs]


def torch_layers(module):
    """The module traced, its products with constant matrices as Linear modules."""
    traced = torch.fx.symbolic_trace(module)
    graph = traced.graph

    def constant(node):
        return getattr(traced, node.target) if isinstance(node, torch.fx.Node) and node.op == "get_attr" else None

    for node in list(graph.nodes):
        if node.target not in (torch.nn.functional.linear, torch.matmul):
            continue
        x, given, *rest = node.args
        weight, bias = constant(given), constant(rest[0]) if rest else None
        if weight is None or weight.ndim != 2 or (rest and bias is None):
            continue
        weight = weight if node.target is torch.nn.functional.linear else weight.t()
        layer = torch.nn.Linear(weight.shape[1], weight.shape[0], bias is not None)
        layer.weight = torch.nn.Parameter(weight.detach().clone().contiguous(), requires_grad=False)
        if bias is not None:
            layer.bias = torch.nn.Parameter(bias.detach().clone(), requires_grad=False)
        traced.add_module(f"layer_{node.name}", layer)
        with graph.inserting_after(node):
            made = graph.call_module(f"layer_{node.name}", (x,))
        node.replace_all_uses_with(made)
        graph.erase_node(node)
    traced.recompile()
    return traced


def layer_weights(module):
    """The weights of the Linear modules of a traced module, by the names of the nodes that call them."""
    called = {node.name: module.get_submodule(node.target) for node in module.graph.nodes if node.op == "call_module"}
    return {name: np.array(layer.weight) for name, layer in called.items() if isinstance(layer, torch.nn.Linear)}


class LayerRecorder(Recorder):  # noqa: F821 - beside this file
    """Records quantised weights as levels, scales and zero points."""

    def written(self, node, result):
        layer = self.module.get_submodule(node.target) if node.op == "call_module" else None
        weight = getattr(layer, "weight", None)
        if not hasattr(weight, "qdata"):
            return super().written(node, result)
        parts = {"weight": weight.qdata, "scale": weight.scale, "zero": getattr(weight, "zero_point", None)}
        parts["zero"] = torch.zeros_like(weight.scale, dtype=torch.int8) if parts["zero"] is None else parts["zero"]
        parts["bias"] = layer.bias
        names = []
        for part, tensor in parts.items():
            names.append("" if tensor is None else f"{node.name}.{part}")
            if tensor is not None:
                self.values[names[-1]] = np.array(tensor.detach())
        own = getattr(weight, "act_quant_kwargs", None)
        other = getattr(weight, "activation_quantization", None)
        bits = {"torch.int4": 4}.get(str(getattr(weight, "target_dtype", "")), 8)
        attrs = {
            "activation": "symmetric" if own is not None else "affine" if other is not None else "",
            "limits": [-(2 ** (bits - 1)), 2 ** (bits - 1) - 1],
        }
        return [type(weight).__name__, "torchao", [node.args[0].name, *names], [node.name], attrs]


def recorded(header, groups):
    """A header (JSON) as an array of bytes, then all arrays of the groups, {group: {name: array}}, in the order in
    which the header lists them."""
    import json

    header["arrays"] = [[group, name] for group, arrays in groups.items() for name in arrays]
    text = np.frombuffer(json.dumps(header).encode(), np.uint8)
    return [text] + [np.asarray(a) for arrays in groups.values() for a in arrays.values()]


def model(w1, x2w, x3w):
    v4 = torch.nn.functional.linear(w1, x2w, x3w)
    return (v4,)


RESULTS = [('float32', (1, 1, 2))]
SHARE = 1.0


class Module(torch.nn.Module):
    def __init__(self, parameters):
        super().__init__()
        for name, array in parameters.items():
            self.register_parameter(name, torch.nn.Parameter(torch.from_numpy(array), requires_grad=False))

    def forward(self, w1):
        return model(w1, *[getattr(self, name) for name in PARAMETERS])


def load(parameters):
    from torchao import quantization
    from torchao.quantization.granularity import PerAxis

    module = torch_layers(Module(parameters).eval())

    def run(*inputs):
        tensors = tuple(torch.from_numpy(x) for x in inputs)
        with torch.no_grad():
            exact, weights = module(*tensors), layer_weights(module)
            quantization.quantize_(module, quantization.Int8WeightOnlyConfig(set_inductor_config=False))
            recorder = LayerRecorder(module)
            recorder.run(*tensors)
            called = module(*tensors)
        ends = [node.name for node in next(iter(reversed(module.graph.nodes))).args[0]]
        header = {"outputs": ends, "nodes": {"converted": recorder.nodes}}
        groups = {"converted": recorder.values, "weights": weights}
        for group, outputs in {"called": called, "float": exact}.items():
            groups[group] = {str(i): output.numpy() for i, output in enumerate(outputs)}
        return recorded(header, groups)

    return run


# ---- its inputs, and what a correct evaluation returns: value, and how far from it (inf: anything) ----

from pathlib import Path

from numpy import array, inf, nan

SYMPTOM = 'rejected'  # Rejection
SECONDS = 120.0
ZERO_SIGNS = True  # are the signs of zeros compared?
ARRAYS = {
    'w1': array([[[0.0]]], dtype='float32'),
    'x2w': array([[0.0], [0.0]], dtype='float32'),
    'x3w': array([0.0, 0.0], dtype='float32'),
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
