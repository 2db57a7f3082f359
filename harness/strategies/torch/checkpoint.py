"""PyTorch: a run that is saved half way (torch.distributed.checkpoint: parameters and the optimiser's state) and goes
on with another model, spread otherwise. It must give what one device gives that is never interrupted."""

from __future__ import annotations

from harness.strategies.strategy import WORLDS, Strategy, first_reason, refuses
from harness.strategies.torch.ddp import APART, DDP, START, distribute
from harness.strategies.torch.fsdp import EACH, FULLY, MESH, RESHARD, SHARDED, TENSOR, TIED, WHOLE

_IMPORTS = (
    "import tempfile",
    DDP,
    FULLY,
    TENSOR,
    MESH,
    "from torch.distributed import checkpoint",
    "from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict",
)
_WRAPPED = {
    "alone": "    subject = model",
    "ddp": "    subject = DistributedDataParallel(model, find_unused_parameters=True)",
    "fully-shard": EACH.format(mesh="(world,)", options=""),
}
_RESUMED = '''
TOGETHER = [{before}]  # do the ranks share the samples, now? One device, which each of them is, has them all


def resumed(subject, optimizer, rank, world):
    """A new model, spread otherwise, with what a checkpoint of this one has."""
    folder = [tempfile.mkdtemp() if rank == 0 else None]
    dist.broadcast_object_list(folder)
    saved = dict(zip(("model", "optimizer"), get_state_dict(subject, optimizer)))
    checkpoint.save(saved, checkpoint_id=folder[0])
    model = Model().to(DTYPE)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name not in FROZEN)
{wrapped}
    optimizer = optimizer_of(subject.parameters())
    own = dict(zip(("model", "optimizer"), get_state_dict(subject, optimizer)))
    checkpoint.load(own, checkpoint_id=folder[0])
    set_state_dict(subject, optimizer, model_state_dict=own["model"], optim_state_dict=own["optimizer"])
    dist.barrier()
    if rank == 0:
        shutil.rmtree(folder[0])
    optimizer.zero_grad()
    TOGETHER.append({after})
    subject.train()
    return subject, optimizer
'''
_SHARE = '''
def share(part, rank, world):
    """The samples of a batch that this rank has."""
    return np.array_split(part, world)[rank] if TOGETHER[-1] else part
'''
_BACKWARD = '''
def backward(subject, x, y, coefficient, last, world):
    """Adds the gradients of these samples; returns their part of the loss. last: the optimiser steps next."""
    loss = criterion(subject(x), y, coefficient)
    (loss * (FACTOR(world) if TOGETHER[-1] else 1)).backward()
    return loss.detach()
'''
_SUMMED = '''
def summed(value, world):
    """The sum over all ranks that share the samples."""
    value = value.clone()
    if TOGETHER[-1]:
        dist.all_reduce(value)
    return value
'''
_MODULE = '''
def module(subject):
    """The model itself, with the names that it was given."""
    return subject.module if isinstance(subject, DistributedDataParallel) else subject
'''
_IDLE = refuses("idle", "a new optimiser gets state of parameters that never had a gradient, which no checkpoint has")


def _resumed(before: str, after: str) -> Strategy:
    pieces = {
        "start": START, "distribute": distribute(_WRAPPED[before]), "share": _SHARE, "backward": _BACKWARD,
        "summed": _SUMMED, "module": _MODULE, "whole": WHOLE, "predict": RESHARD,
        "resumed": _RESUMED.format(before=before != "alone", after=after != "alone", wrapped=_WRAPPED[after]),
    }  # fmt: skip
    return Strategy(
        f"torch-resume-{before}-{after}", "torch", (*SHARDED, "torch.distributed.checkpoint"), WORLDS, pieces,
        imports=("import shutil", *_IMPORTS), factor="world", policy="autocast",
        unsupported=first_reason(APART, _IDLE, TIED),
    )  # fmt: skip


STRATEGIES = (
    _resumed("alone", "ddp"),
    _resumed("alone", "fully-shard"),
    _resumed("ddp", "fully-shard"),
    _resumed("fully-shard", "ddp"),
    _resumed("fully-shard", "alone"),
)
