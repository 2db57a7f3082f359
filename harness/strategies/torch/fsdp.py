"""PyTorch: parameters, gradients and optimiser state are spread over the ranks. FullyShardedDataParallel in its
sharding modes, and `fully_shard`."""

from __future__ import annotations

from collections.abc import Mapping

from generators.training.runs import Training
from harness.strategies.strategy import WORLDS, Reason, Strategy, first_reason, refuses
from harness.strategies.torch.ddp import APART, START, SUMMED, distribute
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


_SYNCHRONISED = '''
def backward(subject, x, y, coefficient, last, world):
    """Adds the gradients of these samples; returns their part of the loss. last: the optimiser steps next."""
    subject.set_requires_gradient_sync(last)
    loss = criterion(subject(x), y, coefficient)
    (loss * FACTOR(world)).backward()
    return loss.detach()
'''


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
)  # fmt: skip
