"""What programs call that quantise linear layers of PyTorch models by torchao. Read as text; a program carries the
source of what it uses."""

import numpy as np
import torch


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
