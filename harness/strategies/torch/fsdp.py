"""PyTorch: parameters, gradients and optimiser state are spread over the ranks. FullyShardedDataParallel in its
sharding modes, `fully_shard`, and layers that are themselves spread (tensor parallel)."""

from __future__ import annotations

from collections.abc import Mapping

from generators.training.runs import Training
from harness.strategies.strategy import WORLDS, Reason, Strategy, even_parts, first_reason, refuses
from harness.strategies.torch.ddp import APART, START, SUMMED, distribute, small_shards
from harness.strategies.torch.program import MODULES

SHARDED = (*MODULES, "torch.distributed.fsdp", "torch.distributed.tensor.parallel")
TENSOR = "from torch.distributed.tensor import DTensor"
MESH = "from torch.distributed.device_mesh import init_device_mesh"
WHOLE = '''
def whole(value):
    """All of a tensor that may be spread over the ranks."""
    return value.full_tensor() if isinstance(value, DTensor) else value
'''


_IDLE = refuses(
    "idle", "a layer that nothing uses has gradients of zero in a flat parameter, and is trained (weight decay, state)"
)
TIED = refuses(
    "tied", "layers that share a weight belong to one group (FSDP2 shards shared parameters only within one)"
)


# ---- FullyShardedDataParallel ------------------------------------------------------------------------

_FSDP = "from torch.distributed.fsdp import FullStateDictConfig, FullyShardedDataParallel, ShardingStrategy"
_FSDP_STATE = "from torch.distributed.fsdp import FullOptimStateDictConfig, StateDictType"
_FSDP_WRAP = "from torch.distributed.fsdp.wrap import CustomPolicy"
_FSDP_PIECES = {
    "gradients": """
def gradients(subject):
    with FullyShardedDataParallel.summon_full_params(subject, with_grads=True):
        named = subject.named_parameters()
        return {name: p.grad.clone() for name, p in named if p.requires_grad and p.grad is not None}
""",
    "clip": """
def clip(subject, limit):
    subject.clip_grad_norm_(limit)
""",
    "parameters": """
def parameters(subject):
    with FullyShardedDataParallel.summon_full_params(subject):
        return {name: parameter.detach().clone() for name, parameter in subject.named_parameters()}
""",
    "module": '''
def module(subject):
    """The model itself, with the names that it was given."""
    return subject.module
''',
    "states": '''
def states(subject, optimizer):
    """What the optimiser keeps of each parameter."""
    every = FullStateDictConfig(rank0_only=False), FullOptimStateDictConfig(rank0_only=False)
    with FullyShardedDataParallel.state_dict_type(subject, StateDictType.FULL_STATE_DICT, *every):
        kept = FullyShardedDataParallel.optim_state_dict(subject, optimizer)["state"]
    return {
        f"{name}.{key}": value
        for name, values in kept.items()
        for key, value in values.items()
        if isinstance(value, torch.Tensor)
    }
''',
}


def _fsdp(
    name: str, mode: str, mesh: str = "None", worlds: tuple[int, ...] = WORLDS, wrapped: str = "None",
    reason: Reason = _IDLE, precision: str = "", policy: str = "autocast", lossy: float = 0.0,
) -> Strategy:  # fmt: skip
    text = f"""    subject = FullyShardedDataParallel(
        model, use_orig_params=True, device_id=torch.device("cpu"), sharding_strategy=ShardingStrategy.{mode},
        device_mesh={mesh}, auto_wrap_policy={wrapped},{precision}
    )"""
    return Strategy(
        name, "torch", SHARDED, worlds,
        {"start": START, "distribute": distribute(text), "summed": SUMMED, **_FSDP_PIECES},
        imports=(_FSDP, _FSDP_STATE, MESH, _FSDP_WRAP, *([_FSDP_MIXED] if precision else [])), factor="world",
        policy=policy, lossy=lossy, reference=in_bfloat16 if policy == "all" else None,
        unsupported=first_reason(APART, _IDLE, reason),
    )  # fmt: skip


# ---- mixed precision: parameters are gathered in bfloat16, and so are the results of all layers -----------

_FSDP_MIXED = "from torch.distributed.fsdp import MixedPrecision"
_FULLY_MIXED = "from torch.distributed.fsdp import MixedPrecisionPolicy"
_IN_BFLOAT16 = {
    "distribute": '''
def distribute(model, rank, world):
    return InBfloat16(model), optimizer_of(model.parameters())


class InBfloat16(torch.nn.Module):
    """The model with its parameters and what it is given cast to bfloat16."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        parameters = {name: parameter.bfloat16() for name, parameter in self.model.named_parameters()}
        return torch.func.functional_call(self.model, parameters, x.bfloat16() if x.is_floating_point() else x)
''',
    "module": '''
def module(subject):
    """The model itself, with the names that it was given."""
    return subject.model
''',
}


def in_bfloat16(training: Training, world: int, noise: bool) -> Mapping[str, str]:
    """The same on one device; where there is noise, it has the cast."""
    return {} if noise else _IN_BFLOAT16


# ---- fully_shard --------------------------------------------------------------------------------------

FULLY = "from torch.distributed.fsdp import FSDPModule, fully_shard"
RESHARD = """
def predict(subject, x):
    outputs = subject(x)
    for part in subject.modules():  # the root stays whole after a forward pass: not the optimiser's parameters
        if isinstance(part, FSDPModule):
            part.reshard()
    return outputs
"""
EACH = """    mesh = init_device_mesh("cpu", {mesh})
    for child in model.children():
        if any(True for _ in child.parameters()):
            fully_shard(child, mesh=mesh{options})
    subject = fully_shard(model, mesh=mesh{options})"""
_ONCE = """    subject = fully_shard(model, mesh=init_device_mesh("cpu", {mesh}){options})"""


def _fully(
    name: str, lines: str = EACH, reason: Reason = TIED, mesh: str = "(world,)", worlds: tuple[int, ...] = WORLDS,
    options: str = "", pieces: Mapping[str, str] | None = None, policy: str = "autocast", lossy: float = 0.0,
) -> Strategy:  # fmt: skip
    return Strategy(
        name, "torch", SHARDED, worlds,
        {
            "start": START, "distribute": distribute(lines.format(mesh=mesh, options=options)), "summed": SUMMED,
            "whole": WHOLE, "predict": RESHARD, **(pieces or {}),
        },
        imports=(FULLY, TENSOR, MESH, *([_FULLY_MIXED] if policy == "all" else [])), factor="world", policy=policy,
        lossy=lossy, reference=in_bfloat16 if policy == "all" else None, unsupported=first_reason(APART, reason),
    )  # fmt: skip


# ---- tensor parallel ----------------------------------------------------------------------------------

_PARALLEL = "from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module"
_LAYOUTS = "from torch.distributed.tensor import Replicate"
_LOSS = "from torch.distributed.tensor.parallel import ColwiseParallel, loss_parallel, parallelize_module"
TOGETHER = '''
def share(part, rank, world):
    """Every rank sees the whole batch."""
    return part
'''


_SYNCHRONISED = '''
def backward(subject, x, y, coefficient, last, world):
    """Adds the gradients of these samples; returns their part of the loss. last: the optimiser steps next."""
    subject.set_requires_gradient_sync(last)
    loss = criterion(subject(x), y, coefficient)
    (loss * FACTOR(world)).backward()
    return loss.detach()
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

EVEN = (2, 4, 8)
BFLOAT16 = 2.0**-8
"""Its unit roundoff."""
_CAST = ", mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.{})"
_IN_FLIGHT = "\n        mixed_precision=MixedPrecision(param_dtype=torch.bfloat16, reduce_dtype=torch.{}),"
STRATEGIES = (
    _fsdp("torch-fsdp", "FULL_SHARD"),
    _fsdp("torch-fsdp-grad-op", "SHARD_GRAD_OP"),
    _fsdp("torch-fsdp-no-shard", "NO_SHARD"),
    _fsdp(
        "torch-fsdp-each", "FULL_SHARD", reason=TIED,
        wrapped="CustomPolicy({part for part in model.children() if list(part.parameters())}.__contains__)",
    ),
    _fsdp("torch-fsdp-hybrid", "HYBRID_SHARD", 'init_device_mesh("cpu", (world // 2, 2))', (4, 8)),
    _fsdp("torch-fsdp-bfloat16", "FULL_SHARD", precision=_IN_FLIGHT.format("float32"), policy="all"),
    _fsdp(
        "torch-fsdp-bfloat16-reduced", "FULL_SHARD", precision=_IN_FLIGHT.format("bfloat16"), policy="all",
        lossy=BFLOAT16,
    ),
    _fully("torch-fully-shard-bfloat16", options=_CAST.format("float32"), policy="all"),
    _fully("torch-fully-shard-bfloat16-reduced", options=_CAST.format("bfloat16"), policy="all", lossy=BFLOAT16),
    _fully("torch-fully-shard"),
    _fully("torch-fully-shard-once", _ONCE, APART),
    _fully("torch-fully-shard-kept", options=", reshard_after_forward=False"),
    _fully("torch-fully-shard-no-sync", pieces={"backward": _SYNCHRONISED}),
    _fully("torch-hsdp", mesh='(world // 2, 2), mesh_dim_names=("copies", "shards")', worlds=EVEN),
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
