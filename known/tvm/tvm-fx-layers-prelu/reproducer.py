"""tvm-fx-layers-prelu: Rejection of tvm-fx-layers

ran with python 3.11.7, numpy 2.4.6, apache-tvm 0.27.0.post1, torch 2.13.0+cpu
exit status: 1 reproduced, 0 not reproduced, 77 not available here
"""

import importlib.util
import sys

for module in ['torch', 'torch.fx', 'tvm', 'tvm.relax']:
    if importlib.util.find_spec(module) is None:
        print(f"not available: {module}")
        sys.exit(77)

# ---- the program that ran ----

import numpy as np
import torch

TARGET = 'tvm-fx-layers'
# name: (dtype, shape), in the order that the model takes them
INPUTS = {'x0': ('float32', (2, 3))}
PARAMETERS = {'x1': ('float32', (3,))}
OUTPUTS = [('float32', (2, 3))]


def model(x0, x1):
    v0 = torch.nn.functional.prelu(x0, x1)
    return (v0,)


_PLAIN = {  # function -> layer, and the arguments behind the first one that it takes over
    "adaptive_avg_pool1d": ("AdaptiveAvgPool1d", ("output_size",)),
    "adaptive_avg_pool2d": ("AdaptiveAvgPool2d", ("output_size",)),
    "adaptive_avg_pool3d": ("AdaptiveAvgPool3d", ("output_size",)),
    "avg_pool1d": ("AvgPool1d", ("kernel_size", "stride", "padding", "ceil_mode", "count_include_pad")),
    **{
        f"avg_pool{n}d": (
            f"AvgPool{n}d",
            ("kernel_size", "stride", "padding", "ceil_mode", "count_include_pad", "divisor_override"),
        )
        for n in (2, 3)
    },
    "celu": ("CELU", ("alpha",)),
    "elu": ("ELU", ("alpha",)),
    "gelu": ("GELU", ("approximate",)),
    "hardsigmoid": ("Hardsigmoid", ()),
    "hardswish": ("Hardswish", ()),
    "hardtanh": ("Hardtanh", ("min_val", "max_val")),
    "leaky_relu": ("LeakyReLU", ("negative_slope",)),
    "log_softmax": ("LogSoftmax", ("dim",)),
    **{
        f"max_pool{n}d": (
            f"MaxPool{n}d",
            ("kernel_size", "stride", "padding", "dilation", "ceil_mode"),
        )
        for n in (1, 2, 3)
    },
    **{
        f"max_pool{n}d_with_indices": (f"MaxPool{n}d", ("kernel_size", "stride", "padding", "dilation", "ceil_mode"))
        for n in (1, 2, 3)
    },
    "pixel_shuffle": ("PixelShuffle", ("upscale_factor",)),
    "relu": ("ReLU", ()),
    "relu6": ("ReLU6", ()),
    "selu": ("SELU", ()),
    "sigmoid": ("Sigmoid", ()),
    "silu": ("SiLU", ()),
    "softmax": ("Softmax", ("dim",)),
    "softplus": ("Softplus", ("beta", "threshold")),
    "tanh": ("Tanh", ()),
}
_WEIGHTED = {  # function -> its arguments behind the first one
    **{f"conv{n}d": ("weight", "bias", "stride", "padding", "dilation", "groups") for n in (1, 2, 3)},
    **{
        f"conv_transpose{n}d": ("weight", "bias", "stride", "padding", "output_padding", "groups", "dilation")
        for n in (1, 2)
    },
    "batch_norm": ("running_mean", "running_var", "weight", "bias", "training", "momentum", "eps"),
    "cross_entropy": (
        *("target", "weight", "size_average", "ignore_index", "reduce", "reduction", "label_smoothing"),
    ),
    "embedding": ("weight", "padding_idx", "max_norm", "norm_type", "scale_grad_by_freq", "sparse"),
    "group_norm": ("num_groups", "weight", "bias", "eps"),
    "instance_norm": ("running_mean", "running_var", "weight", "bias", "use_input_stats", "momentum", "eps"),
    "layer_norm": ("normalized_shape", "weight", "bias", "eps"),
    "linear": ("weight", "bias"),
    "prelu": ("weight",),
}


_LEFT_OUT = "inplace", "_stacklevel", "return_indices"


def _layer(name, given, shape):
    """The layer that does what the function of this name does with these arguments, or None. shape: of the first one"""
    nn = torch.nn
    weight, bias = given.pop("weight", None), given.pop("bias", None)
    mean, variance = given.pop("running_mean", None), given.pop("running_var", None)
    given = {key: value for key, value in given.items() if value is not None}
    count, channels = len(shape) - 2, shape[1] if len(shape) > 1 else 0
    affine = {"affine": weight is not None}
    if name == "hardtanh" and not given.get("min_val", -1.0) < given.get("max_val", 1.0):
        return None  # the layer refuses that
    if name.endswith("with_indices"):
        layer = getattr(nn, _PLAIN[name][0])(**given, return_indices=True)
    elif name in _PLAIN:
        layer = getattr(nn, _PLAIN[name][0])(**given)
    elif name.startswith("conv"):
        groups, swapped = given.get("groups", 1), "transpose" in name
        sizes = (weight.shape[0], weight.shape[1] * groups) if swapped else (weight.shape[1] * groups, weight.shape[0])
        kind = f"Conv{'Transpose' if swapped else ''}{name[-2:]}"
        layer = getattr(nn, kind)(*sizes, tuple(weight.shape[2:]), bias=bias is not None, **given)
    elif name == "linear":
        layer = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None)
    elif name == "prelu":
        layer = nn.PReLU(weight.numel())
    elif name == "embedding":
        layer = nn.Embedding(*weight.shape, **given)
    elif name == "layer_norm":
        shape = tuple(given.pop("normalized_shape"))
        layer = nn.LayerNorm(shape, elementwise_affine=weight is not None, bias=bias is not None, **given)
    elif name == "group_norm":
        layer = nn.GroupNorm(given.pop("num_groups"), channels, **affine, **given)
    elif name == "cross_entropy":
        return nn.CrossEntropyLoss(weight, **given)
    elif name == "batch_norm" and count == 2 and mean is not None and not given.pop("training", False):
        layer = nn.BatchNorm2d(channels, **affine, **given)
    elif name == "instance_norm" and 1 <= count <= 3 and given.pop("use_input_stats", True) and mean is None:
        layer = getattr(nn, f"InstanceNorm{count}d")(channels, **affine, **given)
    else:
        return None
    for key, value in (("weight", weight), ("bias", bias)):
        if value is not None:
            setattr(layer, key, nn.Parameter(value))
    for key, value in (("running_mean", mean), ("running_var", variance)):
        if value is not None:
            setattr(layer, key, value)
    return layer


def layered(traced):
    """The functions that a layer of torch.nn is of, as these layers; weights that are buffers become theirs."""
    from torch.fx.passes.shape_prop import ShapeProp

    ShapeProp(traced).propagate(*[torch.zeros(shape, dtype=getattr(torch, dtype)) for dtype, shape in INPUTS.values()])
    count = 0
    for node in list(traced.graph.nodes):
        name = getattr(node.target, "__name__", "") if node.op == "call_function" else ""
        names = _PLAIN[name][1] if name in _PLAIN else _WEIGHTED.get(name)
        if names is None or not node.args or not isinstance(node.args[0], torch.fx.Node):
            continue
        given = dict(zip(names, node.args[1:])) | node.kwargs
        given = {key: value for key, value in given.items() if key not in _LEFT_OUT and value is not None}
        operands = [node.args[0]]
        if name == "cross_entropy":
            operands.append(given.pop("target"))
        if not set(given) <= set(names) or "tensor_meta" not in node.args[0].meta:
            continue
        held = {key: value for key, value in given.items() if isinstance(value, torch.fx.Node)}
        if any(value.op != "get_attr" for value in held.values()):
            continue
        given |= {key: getattr(traced, value.target) for key, value in held.items()}
        layer = _layer(name, given, node.args[0].meta["tensor_meta"].shape)
        if layer is None:
            continue
        traced.add_module(f"layer{count}", layer.eval())
        with traced.graph.inserting_before(node):
            node.replace_all_uses_with(traced.graph.call_module(f"layer{count}", tuple(operands)))
        traced.graph.erase_node(node)
        count += 1
    traced.graph.eliminate_dead_code()
    traced.recompile()

def load(parameters):
    import tvm
    from tvm.relax.frontend.torch import from_fx

    traced = torch.fx.symbolic_trace(model)
    given = traced.graph.find_nodes(op="placeholder")
    for node, name in zip(given[len(INPUTS) :], PARAMETERS):  # model takes them last; a module has them as buffers
        traced.register_buffer(f"buffer_{name}", torch.from_numpy(parameters[name]))
        with traced.graph.inserting_before(node):
            node.replace_all_uses_with(traced.graph.get_attr(f"buffer_{name}"))
        traced.graph.erase_node(node)
    for node in traced.graph.find_nodes(op="call_function", target=getattr):
        if node.args[1] == "device":  # there is one, and the importer does not know the attribute
            for user in list(node.users):
                user.kwargs = {name: given for name, given in user.kwargs.items() if given is not node}
            traced.graph.erase_node(node)
    traced.recompile()
    layered(traced)
    module = from_fx(traced, [(shape, dtype) for dtype, shape in INPUTS.values()])
    machine = tvm.relax.VirtualMachine(tvm.compile(module, tvm.target.Target("llvm")), tvm.cpu())

    def run(*inputs):
        results = machine["main"](*[tvm.runtime.tensor(x) for x in inputs])
        return [result.numpy() if hasattr(result, "numpy") else np.asarray(result) for result in results]

    return run


# ---- its inputs, and what a correct evaluation returns: value, and how far from it (inf: anything) ----

from pathlib import Path

from numpy import array, inf, nan

SYMPTOM = 'rejected'  # Rejection
SECONDS = 120.0
ZERO_SIGNS = False  # are the signs of zeros compared?
ARRAYS = {
    'x0': array([[0.12999999523162842, -0.12999999523162842, 0.6399999856948853], [0.10000000149011612, -0.5400000214576721, 0.36000001430511475]], dtype='float32'),
    'x1': array([1.2999999523162842, 0.949999988079071, -0.699999988079071], dtype='float32'),
}
EXPECTED = [
    array([[0.12999999523162842, -0.12349999392032629, 0.6399999856948853], [0.10000000149011612, -0.5130000139474866, 0.36000001430511475]], dtype='float64'),
]
ALLOWED = [
    array([[0.0, 7.3611732948064575e-09, 0.0], [0.0, 3.057718371501926e-08, 0.0]], dtype='float64'),
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
