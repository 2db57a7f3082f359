"""The text of `layered`, which puts layers (torch.nn.Module) in place of the functions that a traced graph calls."""

from __future__ import annotations

LAYERED = '''
_AVERAGED = "kernel_size", "stride", "padding", "ceil_mode", "count_include_pad"
_WITH_PLACES = "_with_indices"
_PLAIN = {  # function -> layer, and the arguments behind the first one that it takes over
    "adaptive_avg_pool1d": ("AdaptiveAvgPool1d", ("output_size",)),
    "adaptive_avg_pool2d": ("AdaptiveAvgPool2d", ("output_size",)),
    "adaptive_avg_pool3d": ("AdaptiveAvgPool3d", ("output_size",)),
    "avg_pool1d": ("AvgPool1d", _AVERAGED),
    **{f"avg_pool{n}d": (f"AvgPool{n}d", (*_AVERAGED, "divisor_override")) for n in (2, 3)},
    "celu": ("CELU", ("alpha",)),
    "elu": ("ELU", ("alpha",)),
    "gelu": ("GELU", ("approximate",)),
    "hardsigmoid": ("Hardsigmoid", ()),
    "hardswish": ("Hardswish", ()),
    "hardtanh": ("Hardtanh", ("min_val", "max_val")),
    "leaky_relu": ("LeakyReLU", ("negative_slope",)),
    "log_softmax": ("LogSoftmax", ("dim",)),
    **{
        f"max_pool{n}d{rest}": (f"MaxPool{n}d", ("kernel_size", "stride", "padding", "dilation", "ceil_mode"))
        for n in (1, 2, 3)
        for rest in ("", _WITH_PLACES)
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
    "cross_entropy": ("target", "weight", "size_average", "ignore_index", "reduce", "reduction", "label_smoothing"),
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
    if name in _PLAIN:
        places = {"return_indices": True} if name.endswith(_WITH_PLACES) else {}
        layer = getattr(nn, _PLAIN[name][0])(**given, **places)
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

    try:
        zeros = [torch.zeros(shape, dtype=getattr(torch, dtype)) for dtype, shape in INPUTS.values()]
        ShapeProp(traced).propagate(*zeros)
    except RuntimeError:  # PyTorch itself refuses an operand of size 0, say
        return
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
'''
