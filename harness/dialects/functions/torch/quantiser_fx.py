"""What programs that quantise PyTorch models call: what observers saw, and a record of what a converted module holds
and computes. Read as text; a program carries the source of what it uses."""

import numpy as np
import torch


def torch_watched(module):
    """Ranges (least and greatest elements, as lists) of what each observer of a prepared module is given from now on,
    and a function that ends it."""
    seen, handles = {}, []

    def watch(name, observer):
        def hook(_, given):
            axis, x = getattr(observer, "ch_axis", None), given[0].detach()
            axis = None if axis == -1 else axis
            x = x.reshape(1, -1) if axis is None else x.transpose(0, axis).flatten(1)
            low, high = torch.aminmax(x, dim=1)
            before = seen.get(name, (low, high, []))
            seen[name] = (torch.minimum(low, before[0]), torch.maximum(high, before[1]), [*before[2], (low, high)])

        handles.append(observer.register_forward_pre_hook(hook))

    for name, observer in module.named_modules():
        fake = isinstance(observer, torch.ao.quantization.FakeQuantizeBase)
        if fake or hasattr(observer, "min_val") or type(observer).__name__ == "FixedQParamsObserver":
            watch(name, observer)
    return seen, lambda: [handle.remove() for handle in handles]


def torch_observed(observer, of, least, most, steps):
    """One of them."""
    observer = getattr(observer, "activation_post_process", observer)
    taken = (least, most)
    if hasattr(observer, "_non_linear_param_search"):
        taken = observer._non_linear_param_search()
        # it takes a second, and is asked three times
        observer._non_linear_param_search = lambda found=taken: found
    elif hasattr(observer, "min_val"):
        taken = observer.min_val, observer.max_val
    scale, zero = observer.calculate_qparams()
    return {
        "kind": type(observer).__name__,
        "of": of,
        "dtype": str(observer.dtype).removeprefix("torch."),
        "scheme": str(observer.qscheme).removeprefix("torch."),
        "limits": [observer.quant_min, observer.quant_max],
        "least": float(getattr(observer, "eps", 0)),
        "seen": [bound.reshape(-1).tolist() for bound in (least, most)],
        "averaged": float(getattr(observer, "averaging_constant", 0)),
        "steps": [[bound.reshape(-1).tolist() for bound in step] for step in steps],
        "taken": [bound.reshape(-1).tolist() for bound in taken],
        "scale": scale.reshape(-1).tolist(),
        "zero": zero.reshape(-1).tolist(),
    }


def torch_observers(module, seen):
    """Scale and zero point of each observer with what it saw (as torch_watched has it) and which range it took of that,
    as JSON can hold it; and the arrays of those that observe a constant."""
    listed, weights = {}, {}
    for node in module.graph.nodes:
        if node.op != "call_module" or str(node.target) not in seen:
            continue
        observer, source = module.get_submodule(node.target), node.args[0]
        listed[node.target] = torch_observed(observer, source.name, *seen[node.target])
        if source.op == "get_attr":
            weights[node.target] = np.array(getattr(module, source.target).detach())
    return listed, weights


def torch_trained(module, samples):
    """A step of gradient descent of the weights on each sample, towards zero; where nothing is trained, just the calls.
    A vector may be the variance of a batch normalisation, which has no gradient."""
    weights = [weight for weight in module.parameters() if weight.is_floating_point() and weight.ndim > 1]
    for weight in weights:
        weight.requires_grad_()
    optimiser = torch.optim.SGD(weights, lr=1e-3) if weights else None
    with torch.enable_grad():
        for sample in samples:
            real = [output.square().mean() for output in module(*sample) if output.is_floating_point()]
            if optimiser and real and sum(real).requires_grad:
                optimiser.zero_grad()
                sum(real).backward()
                optimiser.step()


def torch_faked(module, inputs):
    """What fake quantisation takes and gives once no range changes any more: scales, zero points and limits by name,
    and arrays."""
    listed, arrays, handles = {}, {}, []

    def watch(name, fake):
        def hook(_, given, result):
            axis = getattr(fake, "ch_axis", 0)
            listed[name] = {
                "scale": fake.scale.reshape(-1).tolist(),
                "zero": fake.zero_point.reshape(-1).tolist(),
                "axis": max(axis, 0),
                "limits": [fake.activation_post_process.quant_min, fake.activation_post_process.quant_max],
            }
            arrays[f"{name} in"], arrays[f"{name} out"] = (np.array(x.detach()) for x in (given[0], result))

        handles.append(fake.register_forward_hook(hook))

    module.apply(torch.ao.quantization.disable_observer)
    for name, fake in module.named_modules():
        if isinstance(fake, torch.ao.quantization.FakeQuantizeBase):
            watch(name, fake)
    module(*inputs)
    for handle in handles:
        handle.remove()
    return listed, arrays


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
