"""PyTorch: layers that are themselves spread over the ranks. Dense layers by columns and rows, losses by classes, both
beside `fully_shard`, and DTensor's data parallelism."""

from __future__ import annotations

from generators.training.runs import Training
from harness.strategies.strategy import WORLDS, Strategy, even_parts, first_reason, refuses
from harness.strategies.torch.ddp import APART, START, distribute, small_shards
from harness.strategies.torch.fsdp import FULLY, MESH, RESHARD, SHARDED, TENSOR, TIED, WHOLE

# ---- tensor parallel ----------------------------------------------------------------------------------

_PARALLEL = "from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module"
_LAYOUTS = "from torch.distributed.tensor import Replicate"
_LOSS = "from torch.distributed.tensor.parallel import ColwiseParallel, loss_parallel, parallelize_module"
TOGETHER = '''
def share(part, rank, world):
    """Every rank sees the whole batch."""
    return part
'''


def _linear(training: Training, world: int) -> str | None:
    kinds = {layer.kind for layer in training.network.layers if layer.name not in training.network.idle}
    if "linear" not in kinds:
        return "no dense layer to spread"
    if training.settings.clip:
        return "clip_grad_norm_ takes no mixture (got mixed torch.Tensor and DTensor)"
    return TIED(training, world)


def _tensor(name: str, style: str) -> Strategy:
    lines = f"""    mesh = init_device_mesh("cpu", (world,))
    plan = {{name: {style} for name, layer in model.named_children() if isinstance(layer, torch.nn.Linear)}}
    subject = parallelize_module(model, mesh, plan)"""
    return Strategy(
        name, "torch", SHARDED, WORLDS,
        {"start": START, "distribute": distribute(lines), "share": TOGETHER, "whole": WHOLE},
        imports=(_PARALLEL, _LAYOUTS, TENSOR, MESH), shards=False, policy="autocast", unsupported=_linear,
    )  # fmt: skip


# ---- loss parallel ------------------------------------------------------------------------------------

_SPREAD_CLASSES = """    mesh = init_device_mesh("cpu", (world,))
    *_, last = [name for name, layer in model.named_children() if isinstance(layer, torch.nn.Linear)]
    subject = parallelize_module(model, mesh, {last: ColwiseParallel(use_local_output=False)})"""
_SPREAD_LOSS = '''
def backward(subject, x, y, coefficient, last, world):
    """Adds the gradients of these samples; returns their part of the loss. last: the optimiser steps next."""
    with loss_parallel():
        outputs = subject(x)
        mesh = outputs.device_mesh
        y, coefficient = (DTensor.from_local(value, mesh, [Replicate()]) for value in (y, coefficient))
        loss = criterion(outputs, y, coefficient)
        loss.backward()
    return loss.detach().full_tensor()
'''
_SPREAD_CLASSES_PREDICT = """
def predict(subject, x):
    return subject(x).full_tensor()
"""


def _classes(training: Training, world: int) -> str | None:
    last = training.network.layers[-1]
    if training.settings.loss != "cross_entropy" or last.kind != "linear":
        return "no cross entropy of what a dense layer returns"
    classes = last.numbers["features"]
    if -(-classes // world) * (world - 1) >= classes:
        return "a rank without classes (index 0 is out of bounds for dimension 1 with size 0)"
    return _linear(training, world)


# ---- both ---------------------------------------------------------------------------------------------

_GRID = """    mesh = init_device_mesh("cpu", (world // 2, 2), mesh_dim_names=("data", "tensor"))
    plan = {name: ColwiseParallel(output_layouts=Replicate()) for name, layer in model.named_children()
            if isinstance(layer, torch.nn.Linear)}
    parallelize_module(model, mesh["tensor"], plan)
    for child in model.children():
        if any(True for _ in child.parameters()):
            fully_shard(child, mesh=mesh["data"])
    subject = fully_shard(model, mesh=mesh["data"])"""
_PAIRS = '''
def share(part, rank, world):
    """Two ranks, which share the layers, see the same samples."""
    return np.array_split(part, world // 2)[rank // 2]
'''
_PAIRS_SUMMED = '''
def summed(value, world):
    """The sum over all shares of the samples, each of which two ranks have."""
    value = value.clone()
    dist.all_reduce(value)
    return value / 2
'''

# ---- tensors that are spread --------------------------------------------------------------------------

_SPREAD = """    mesh = init_device_mesh("cpu", (world,))
    distribute_module(model, mesh)
    subject = model
    MESH.append(mesh)"""
_SPREAD_BACKWARD = '''
MESH = []


def backward(subject, x, y, coefficient, last, world):
    """Adds the gradients of these samples; returns their part of the loss. last: the optimiser steps next."""
    x, y, coefficient = (distribute_tensor(value, MESH[-1], [Shard(0)]) for value in (x, y, coefficient))
    loss = criterion(subject(x), y, coefficient)
    loss.backward()
    return loss.detach().full_tensor()
'''
_SPREAD_PREDICT = """
def predict(subject, x):
    return subject(distribute_tensor(x, MESH[-1], [Shard(0)])).full_tensor()
"""


def _statistics(training: Training, world: int) -> str | None:
    return small_shards(training, 1)


_UNTIED = refuses("tied", "distribute_module makes each layer's parameters anew: those of two layers come apart")
_MIXED = first_reason(
    *(
        refuses(kind, "it makes plain tensors within (got mixed torch.Tensor and DTensor)")
        for kind in ("gru", "lstm", "embedding_bag")
    )
)
_NO_ATTENTION = refuses(
    "attention", "the gradient of attention on a CPU takes no DTensor (does not have a sharding strategy registered)"
)


def _flattened(training: Training, world: int) -> str | None:
    shapes = training.network.shapes
    dense = [layer for layer in training.network.layers if layer.kind == "linear"]
    why = even_parts("dense layers flatten the samples' rows (Cannot flatten unevenly sharded tensor)")
    return why(training, world) if any(len(shapes[layer.inputs[0]]) > 1 for layer in dense) else None


_DTENSOR = "from torch.distributed.tensor import Shard, distribute_module, distribute_tensor"


STRATEGIES = (
    _tensor("torch-tensor-columns", "ColwiseParallel(output_layouts=Replicate())"),
    _tensor("torch-tensor-rows", "RowwiseParallel(input_layouts=Replicate())"),
    Strategy(
        "torch-loss-parallel", "torch", SHARDED, WORLDS,
        {
            "start": START, "distribute": distribute(_SPREAD_CLASSES), "share": TOGETHER, "backward": _SPREAD_LOSS,
            "predict": _SPREAD_CLASSES_PREDICT, "whole": WHOLE,
        },
        imports=(_LOSS, _LAYOUTS, TENSOR, MESH), shards=False, unsupported=_classes,
    ),
    Strategy(
        "torch-fully-shard-tensor", "torch", SHARDED, (4, 8),
        {
            "start": START, "distribute": distribute(_GRID), "share": _PAIRS, "summed": _PAIRS_SUMMED, "whole": WHOLE,
            "predict": RESHARD,
        },
        imports=(FULLY, _PARALLEL, _LAYOUTS, TENSOR, MESH), factor="(world // 2)", policy="autocast",
        unsupported=first_reason(APART, _linear),
    ),
    Strategy(
        "torch-dtensor-data", "torch", SHARDED, WORLDS,
        {
            "start": START, "distribute": distribute(_SPREAD), "share": TOGETHER, "backward": _SPREAD_BACKWARD,
            "predict": _SPREAD_PREDICT, "whole": WHOLE,
        },
        imports=(_DTENSOR, TENSOR, MESH), shards=False,
        unsupported=first_reason(_statistics, _UNTIED, _MIXED, _NO_ATTENTION, _flattened),
    ),
)  # fmt: skip
