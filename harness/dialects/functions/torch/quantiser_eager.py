"""What programs call that quantise PyTorch modules in eager mode: a graph as modules with stubs, as documentation of
torch.ao.quantization has users write them, and as the kernels that its quantised modules call. Read as text; a program
carries the source of what it uses."""

import numpy as np
import torch


class Functional(torch.nn.Module):
    """An operator of FloatFunctional as a module of its own."""

    def __init__(self, name):
        super().__init__()
        self.name, self.functional = name, torch.ao.nn.quantized.FloatFunctional()

    def forward(self, *given):
        return getattr(self.functional, self.name)(*given)


def torch_layer(module, node):
    """The layer that a product or a convolution with constant weights is, or None."""
    kinds = {torch.nn.functional.linear: torch.nn.Linear, torch.conv1d: torch.nn.Conv1d, torch.conv2d: torch.nn.Conv2d}
    kind = kinds.get(node.target)
    given = [node.args[i] if len(node.args) > i else None for i in (1, 2)]
    held = [getattr(module, one.target) if getattr(one, "op", "") == "get_attr" else None for one in given]
    if kind is None or held[0] is None or (given[1] is not None and held[1] is None):
        return None
    weight, bias = held
    if kind is torch.nn.Linear:
        layer = kind(weight.shape[1], weight.shape[0], bias is not None)
    else:
        names = ("stride", "padding", "dilation", "groups")
        how = {**dict(zip(names, node.args[3:])), **node.kwargs}
        channels = weight.shape[1] * how.get("groups", 1), weight.shape[0]
        layer = kind(*channels, weight.shape[2:], bias=bias is not None, **how)
    layer.weight = torch.nn.Parameter(weight.detach().clone(), requires_grad=False)
    if bias is not None:
        layer.bias = torch.nn.Parameter(bias.detach().clone(), requires_grad=False)
    return layer


def torch_stubbed(module):
    """The module traced, with layers and FloatFunctional, a QuantStub wherever one of these takes a real number, and a
    DeQuantStub wherever what they return is taken by anything else. Rectifiers and what moves elements stays
    quantised."""
    import operator

    from torch.ao.quantization import DeQuantStub, QuantStub

    traced = torch.fx.symbolic_trace(module)
    graph, functional = traced.graph, torch.nn.functional
    arithmetic = {torch.add: "add", operator.add: "add", torch.mul: "mul", operator.mul: "mul"}
    kept = (torch.relu, functional.relu, torch.reshape, torch.permute, torch.unsqueeze, operator.getitem)
    quantised, other = set(), {}

    def called(name, layer, *given):
        traced.add_module(name, layer)
        return graph.call_module(name, given)

    def levels(node):
        if node in quantised:
            return node
        if (node, "levels") not in other:
            other[node, "levels"] = called(f"quant_{node.name}", QuantStub(), node)
        return other[node, "levels"]

    def numbers(node):
        if node not in quantised:
            return node
        if (node, "numbers") not in other:
            other[node, "numbers"] = called(f"dequant_{node.name}", DeQuantStub(), node)
        return other[node, "numbers"]

    for node in list(graph.nodes):
        taken = node.all_input_nodes
        layer = torch_layer(traced, node)
        with graph.inserting_before(node):
            made = None
            if layer is not None:
                made = called(f"layer_{node.name}", layer, levels(node.args[0]))
            elif node.target in arithmetic and len(taken) == len(node.args) and not node.kwargs:
                name = arithmetic[node.target]
                made = called(f"{name}_{node.name}", Functional(name), *map(levels, node.args))
            elif node.target is torch.concat:
                dim = node.kwargs["dim"]
                made = called(f"cat_{node.name}", Functional("cat"), [levels(one) for one in node.args[0]], dim)
            elif node.target in kept and taken and taken[0] in quantised:
                quantised.add(node)
            else:
                for one in taken:
                    node.replace_input_with(one, numbers(one))
            if made is not None:
                quantised.add(made)
                node.replace_all_uses_with(made)
                graph.erase_node(node)
    graph.eliminate_dead_code()
    traced.recompile()
    return traced


def torch_eager_observers(module, seen):
    """What torch_observers says, of a module that is prepared in eager mode, and of the weights of its layers, which
    are observed when they are converted."""
    listed, weights = {}, {}
    for name, (least, most, steps) in seen.items():
        listed[name] = torch_observed(  # noqa: F821 - beside this file
            module.get_submodule(name), name.rpartition(".")[0], least, most, steps
        )
    for name, layer in module.named_modules():
        if type(layer) not in (torch.nn.Linear, torch.nn.Conv1d, torch.nn.Conv2d):
            continue
        observer = layer.qconfig.weight()
        observer(layer.weight)
        rows = layer.weight.flatten(1) if hasattr(observer, "ch_axis") else layer.weight.reshape(1, -1)
        least, most = torch.aminmax(rows, dim=1)
        listed[f"{name}.weight"] = torch_observed(  # noqa: F821
            observer, f"{name}.weight", least, most, [(least, most)]
        )
        weights[f"{name}.weight"] = np.array(layer.weight.detach())
    return listed, weights


def torch_lowered(module):
    """A converted module with the kernels that its quantised modules call in place of these, as far as they are among
    those that torch_stubbed makes."""
    graph = torch.fx.Graph()
    copies = {}
    kernels = torch.ops.quantized
    for node in module.graph.nodes:
        copies[node] = made = graph.node_copy(node, copies.__getitem__)
        if node.op != "call_module":
            continue
        layer = module.get_submodule(node.target)
        kind = type(layer).__name__
        if kind in ("Linear", "Conv1d", "Conv2d"):
            packed = layer._packed_params
            name = f"packed_{node.name}"
            setattr(module, name, getattr(packed, "_packed_params", packed))
            target = {"Linear": kernels.linear, "Conv1d": kernels.conv1d, "Conv2d": kernels.conv2d}[kind]
            with graph.inserting_before(made):
                how = (made.args[0], graph.get_attr(name), layer.scale, layer.zero_point)
        elif kind == "Functional":
            function = layer.functional
            target = {"add": kernels.add, "mul": kernels.mul, "cat": kernels.cat}[layer.name]
            how = (*made.args, function.scale, function.zero_point)
        elif kind == "Quantize":
            target = torch.quantize_per_tensor
            how = (made.args[0], float(layer.scale), int(layer.zero_point), layer.dtype)
        else:
            assert kind == "DeQuantize", kind
            target, how = torch.dequantize, made.args
        with graph.inserting_before(made):
            kernel = graph.call_function(target, how)
        made.replace_all_uses_with(kernel)
        graph.erase_node(made)
        copies[node] = kernel
    return torch.fx.GraphModule(module, graph)
