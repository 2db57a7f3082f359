"""Training programs for PyTorch: the model as a module, and the loop around it, which strategies change in places."""

from __future__ import annotations

from collections.abc import Mapping

from generators.training.networks import Layer, Network, padding, ragged, window
from generators.training.runs import Training
from harness.execute.templates import render
from harness.strategies.mixed_precision import LowPrecision, low_precision_of
from harness.strategies.strategy import Noise, Strategy, columns_of_samples

FRAMEWORK = "torch"
LOSSES = {
    "mse": 'torch.nn.functional.mse_loss(outputs, y, reduction="none").mean(1)',
    "smooth_l1": 'torch.nn.functional.smooth_l1_loss(outputs, y, reduction="none").mean(1)',
    "cross_entropy": 'torch.nn.functional.cross_entropy(outputs, y, reduction="none")',
}
MODULES = ("torch", "torch.distributed", "torch._dynamo", "torch.nn.parallel", "torch.distributed.optim")
"""What ranks import before they are forked: a first import costs seconds."""
OPTIMIZERS = {
    "sgd": "SGD", "adam": "Adam", "adamw": "AdamW", "rmsprop": "RMSprop", "adagrad": "Adagrad",
    "adamax": "Adamax", "nadam": "NAdam",
}  # fmt: skip
LAYERS = {"gelu": "GELU", "tanh": "Tanh", "sigmoid": "Sigmoid", "silu": "SiLU", "relu": "ReLU", "flatten": "Flatten"}

SINGLE_DEVICE: Mapping[str, str] = {
    "distribute": """
def distribute(model, rank, world):
    return model, optimizer_of(model.parameters())
""",
    "share": '''
def share(part, rank, world):
    """The samples of a batch that this rank has: as even a split as there is, the first ranks' shares being larger."""
    return np.array_split(part, world)[rank]
''',
    "backward": '''
def backward(subject, x, y, coefficient, last, world):
    """Adds the gradients of these samples; returns their part of the loss. last: the optimiser steps next."""
    loss = criterion(subject(x), y, coefficient)
    (loss * FACTOR(world)).backward()
    return loss.detach()
''',
    "summed": '''
def summed(value, world):
    """The sum over all ranks."""
    return value
''',
    "predict": """
def predict(subject, x):
    return subject(x)
""",
    "module": '''
def module(subject):
    """The model itself, with the names that it was given."""
    return subject
''',
    "whole": '''
def whole(value):
    """All of a tensor that may be spread over the ranks."""
    return value
''',
    "gradients": """
def gradients(subject):
    named = module(subject).named_parameters()
    return {name: whole(p.grad).clone() for name, p in named if p.requires_grad and p.grad is not None}
""",
    "clip": """
def clip(subject, limit):
    torch.nn.utils.clip_grad_norm_(subject.parameters(), limit)
""",
    "parameters": """
def parameters(subject):
    return {name: whole(parameter) for name, parameter in module(subject).named_parameters()}
""",
    "buffers": """
def buffers(subject):
    return {name: whole(buffer) for name, buffer in module(subject).named_buffers()}
""",
    "states": '''
def states(subject, optimizer):
    """What the optimiser keeps of each parameter."""
    found = {}
    for name, parameter in module(subject).named_parameters():
        for key, value in optimizer.state.get(parameter, {}).items():
            if isinstance(value, torch.Tensor):
                found[f"{name}.{key}"] = whole(value)
    return found
''',
}
"""What a strategy may change, as it is on one device."""


_IN_SHARES = '''
def backward(subject, x, y, coefficient, last, world):
    """Adds the gradients of these samples; returns their part of the loss. last: the optimiser steps next."""
    total = 0.0
    for number, mine in enumerate(np.array_split(np.arange(len(x)), {shards})):
        kept = [buffer.clone() for buffer in subject.buffers()]{before}
        loss = criterion(subject(x[mine]), y[mine], coefficient[mine])
        loss.backward(){after}
        total += loss.detach()
        if number:
            for buffer, value in zip(subject.buffers(), kept):
                buffer.copy_(value)
    return total
'''


def program(training: Training, strategy: Strategy, noise: Noise | None = None) -> str:
    """The text that every rank runs: it defines `train(rank, world, arrays)`. noise: of the reference."""
    network, settings = training.network, training.settings
    pieces = {**SINGLE_DEVICE, **strategy.pieces}
    mixed = settings.dtype == "mixed"
    low = low_precision_of(network, strategy.policy) if mixed else None
    return render(
        "strategies/torch/program.py.j2",
        imports=strategy.imports,
        settings=settings,
        batches=list(settings.batches),
        frozen=list(network.frozen),
        factor=f"lambda world: {strategy.factor}",
        definition=definition(network, bool(noise)),
        forward=forward(network, ".to(DTYPE)" if mixed else "", low if noise else None),
        autocast=mixed and strategy.policy == "autocast" and not noise,
        low=low,
        kinds=network.kinds,
        loss="surprisal(outputs, y)" if noise and settings.loss == "cross_entropy" else LOSSES[settings.loss],
        optimizer=_optimizer(training),
        pieces=[pieces[name].strip("\n") for name in pieces],
        resumed="resumed" in pieces,
        stages="stages" in pieces,
        bags={bag.name: _bags(bag, network.shapes) for bag in network.bags},
        looked_up="bags_of(" in "".join(pieces.values()),
        noise=noise,
    )


def single_device(shards: int, sent: bool = False) -> Strategy:
    """One device. Batch statistics are those of so many shares of each batch, and running statistics those of the
    first share, as ranks have them. sent: each share's gradients lose what they lose on their way between ranks."""
    text = _IN_SHARES.format(
        shards=shards,
        before="\n        before = [p.grad.clone() if p.grad is not None else 0.0 for p in subject.parameters()]"
        * sent,
        after="\n        lose(subject.parameters(), before)" * sent,
    )
    pieces = {"backward": text} if shards > 1 or sent else {}
    return Strategy("torch-alone", "torch", MODULES, (1,), pieces, policy="autocast")


def definition(network: Network, noise: bool = False) -> list[str]:
    """Lines that make the layers. noise: those that round within are the program's own."""
    lines = []
    for layer in network.layers:
        text = _module(layer, network.shapes, "" if noise else "torch.nn.")
        if text:
            lines.append(f"self.{layer.name} = {text}")
        if layer.tied:
            lines.append(f"self.{layer.name}.weight = self.{layer.tied}.weight")
    return lines


def _module(layer: Layer, shapes: Mapping[str, tuple[int, ...]], place: str) -> str:
    given, n = shapes[layer.inputs[0]], layer.numbers
    match layer.kind:
        case "linear":
            return f"torch.nn.Linear({given[-1]}, {n['features']}, bias={bool(n['bias'])})"
        case "conv2d":
            more = f", stride={n['stride']}" if n.get("stride", 1) > 1 else ""
            more += f", groups={n['groups']}" if n.get("groups", 1) > 1 else ""
            more += "" if n.get("bias", 1) else ", bias=False"
            size = f"{given[0]}, {n['channels']}, {_short(window(layer))}, padding={_short(padding(layer))}"
            return f"torch.nn.Conv2d({size}{more})"
        case "max_pool":
            return f"torch.nn.MaxPool2d({n['kernel']}, {n['stride']}, {_short(padding(layer))})"
        case "avg_pool":
            size = f"{n['kernel']}, {n['stride']}, {_short(padding(layer))}"
            return f"torch.nn.AvgPool2d({size}, count_include_pad=False)"
        case "mean":
            return "torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten())"
        case "layer_norm":
            return f"torch.nn.LayerNorm({given[-1]})"
        case "batch_norm":
            return f"{place}BatchNorm{'1d' if len(given) == 1 else '2d'}({given[0]})"
        case "embedding":
            return f"torch.nn.Embedding({n['vocabulary']}, {n['features']})"
        case "embedding_bag":
            mode = "mean" if n["mean"] else "sum"
            return f'torch.nn.EmbeddingBag({n["vocabulary"]}, {n["features"]}, mode="{mode}")'
        case "attention":
            name = "torch.nn.MultiheadAttention" if place else "Attention"
            return f"{name}({given[-1]}, {n['heads']}, bias={bool(n['bias'])}, batch_first=True)"
        case "gru" | "lstm":
            return f"{place}{layer.kind.upper()}({given[-1]}, {n['features']}, batch_first=True)"
        case "interaction":
            return "Interaction()"
        case "dropout":
            return "Masked()"
        case "add" | "columns" | "concat" | "scale":
            return ""
        case kind:
            return f"torch.nn.{LAYERS[kind]}()"


def _short(sizes: tuple[int, int]) -> str:
    """One number where both are the same."""
    return str(sizes[0] if sizes[0] == sizes[1] else sizes)


def forward(network: Network, end: str = "", low: LowPrecision | None = None) -> list[str]:
    """Lines of the forward pass. end: of its last expression; low: where there is noise, what is in bfloat16."""
    lines = []
    for layer in network.layers:
        if layer.name in network.idle:
            continue
        text = _expression(layer, network.shapes)
        if low and layer.kind == "add" and layer.name in low.layers:
            text = f"coarsely(torch.add)({', '.join(layer.inputs)})"
        lines.append(f"{layer.name} = {text}")
    return [*lines, f"return {network.layers[-1].name}{end}"]


def _expression(layer: Layer, shapes: Mapping[str, tuple[int, ...]]) -> str:
    x, module = layer.inputs[0], f"self.{layer.name}"
    own = columns_of_samples(layer, shapes)
    match layer.kind:
        case "add":
            return " + ".join(layer.inputs)
        case "concat":
            return f"torch.cat(({', '.join(layer.inputs)}), 1)"
        case "scale":
            return f"{x} * {layer.inputs[1]}[:, :, None, None]"
        case "columns":
            return own + (f".unflatten(1, {layer.shape})" if len(layer.shape) > 1 else "")
        case "embedding_bag":
            return f"{module}({_bags(layer, shapes)})"
        case "dropout":
            return f"{module}({x}, {own})"
        case "attention":
            return f"{module}({x}, {x}, {x}, need_weights=False)[0]"
        case "gru" | "lstm":
            return f"{module}({x})[0]"
        case _:
            return f"{module}({', '.join(layer.inputs)})"


def _bags(layer: Layer, shapes: Mapping[str, tuple[int, ...]]) -> str:
    """What a table is given: rows of a matrix, or rows and where bags begin. The data are floating numbers, with noise
    or in another dtype near integers only."""
    own = columns_of_samples(layer, shapes)
    return f"*bagged({own}, {layer.numbers['count']})" if ragged(layer) else f"{own}.round().long()"


def _optimizer(training: Training) -> str:
    flags = {"nesterov", "amsgrad"}
    options = [f"{k}={bool(v) if k in flags else v!r}" for k, v in training.settings.options]
    return f"torch.optim.{OPTIMIZERS[training.settings.optimizer]}, dict({', '.join(options)})"
