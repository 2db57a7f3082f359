"""PyTorch: sequences that are spread over the ranks along time. Layer normalisation works on some of the times on each
rank (SequenceParallel), and dense layers give such parts (reduce-scatter), or take them (all-gather)."""

from __future__ import annotations

from generators.training.runs import Training
from harness.strategies.strategy import WORLDS, Strategy, first_reason, refuses
from harness.strategies.torch.ddp import START, distribute
from harness.strategies.torch.fsdp import MESH, SHARDED, TENSOR, TIED, WHOLE
from harness.strategies.torch.tensor_parallel import TOGETHER

_LINES = """    mesh = init_device_mesh("cpu", (world,))
    plan = {{}}
    for name, layer in model.named_children():
        if isinstance(layer, torch.nn.LayerNorm):
            plan[name] = SequenceParallel()
        elif isinstance(layer, torch.nn.Linear):
            plan[name] = {style}
        if isinstance(layer, {spread}):
            layer.register_forward_pre_hook(lambda layer, given: spread(given[0], mesh))
    subject = parallelize_module(model, mesh, plan)
    for name in plan:
        getattr(model, name).register_forward_hook(lambda layer, given, result: whole(result))"""
_SPREAD = '''
def spread(value, mesh):
    """Some of the times of a tensor that all ranks have."""
    return DTensor.from_local(value, mesh, [Replicate()], run_check=False).redistribute(placements=[Shard(1)])
'''
_NO_CLIPPING = refuses("clipped", "clip_grad_norm_ takes no mixture (got mixed torch.Tensor and DTensor)")
_STYLES = "from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, SequenceParallel"


def _sequences(training: Training, world: int) -> str | None:
    shapes = training.network.shapes
    layers = [la for la in training.network.layers if la.kind in ("linear", "layer_norm")]
    return None if any(len(shapes[la.inputs[0]]) > 1 for la in layers) else "no dense layer or normalisation over times"


def _sequence(name: str, style: str, spread: str) -> Strategy:
    return Strategy(
        name, "torch", SHARDED, WORLDS,
        {
            "start": START, "spread": _SPREAD, "distribute": distribute(_LINES.format(style=style, spread=spread)),
            "share": TOGETHER, "whole": WHOLE,
        },
        imports=(_STYLES, "from torch.distributed.tensor.parallel import parallelize_module",
                 "from torch.distributed.tensor import Replicate, Shard", TENSOR, MESH),
        shards=False, policy="autocast", unsupported=first_reason(_sequences, _NO_CLIPPING, TIED),
    )  # fmt: skip


STRATEGIES = (
    Strategy(
        "torch-context-parallel",
        "torch",
        SHARDED,
        WORLDS,
        {},
        off="context_parallel of PyTorch 2.13 has ring attention for CUDA's kernels (flash, efficient, cuDNN), not for "
        "scaled_dot_product_flash_attention_for_cpu",
    ),
    _sequence(
        "torch-sequence-rows",
        "RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1), use_local_output=False)",
        "torch.nn.LayerNorm",
    ),
    _sequence(
        "torch-sequence-columns",
        "ColwiseParallel(input_layouts=Shard(1), output_layouts=Replicate())",
        "(torch.nn.LayerNorm, torch.nn.Linear)",
    ),
)
