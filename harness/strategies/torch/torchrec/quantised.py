"""PyTorch: TorchRec's tables, quantised for predictions after training, on one device or on several. They run in the
environment `torchrec` of environments.toml."""

from __future__ import annotations

from collections.abc import Mapping

from generators.training.runs import Training
from harness.strategies.strategy import Reason, Strategy
from harness.strategies.torch.torchrec.tables import ONE, torchrec

_KEPT = '''
def predict(subject, x):
    """By one process, with tables of a collection for inference, quantised."""
    current = parameters(subject)
    model = Model().to(DTYPE).eval()
    for name, parameter in model.named_parameters():
        parameter.copy_(current[name])
    for name, bag in list(model.named_children()):
        if isinstance(bag, torch.nn.EmbeddingBag):
            table = Table(bag)
            (weight,) = table.inner.parameters()
            weight.copy_(bag.weight)
            {split}table.inner.qconfig = torch.ao.quantization.QConfig(
                activation=torch.ao.quantization.PlaceholderObserver.with_args(dtype=torch.{output}),
                weight=torch.ao.quantization.PlaceholderObserver.with_args(dtype=torch.{dtype}),
            )
            table.inner = {spread}(torchrec.quant.EmbeddingBagCollection.from_float(table.inner))
{read}            setattr(model, name, table)
    return model(x)
'''
_SPLIT = """setattr(table.inner, MODULE_ATTR_QUANT_STATE_DICT_SPLIT_SCALE_BIAS, True)
            """
_READ = {
    "float32": "",
    "float16": "            table.register_forward_hook(lambda table, given, result: result.to(DTYPE))\n",
    # bytes, and behind them their scale and their bias
    "qint8": """            table.register_forward_hook(
                lambda table, given, result: torch.ops.fbgemm.Fused8BitRowwiseQuantizedToFloat(result)
            )
""",
}
"""What makes numbers of a table's results."""
_SPREAD = '''
def over_devices(table):
    """A quantised collection as a process serves it that drives as many devices as there are ranks."""
    world, sharder = dist.get_world_size(), QuantEmbeddingBagCollectionSharder()
    plan = sharding_plan.construct_module_sharding_plan(
        table, {{"table": {plan}}}, sharder, world, world, "cpu"
    )
    set_propogate_device(True)  # else devices are GPUs
    served = _shard_modules(
        module=torch.nn.Sequential(table), device=torch.device("cpu"), plan=ShardingPlan({{"0": plan}}),
        env=ShardingEnv.from_local(world, 0), sharders=[sharder],
    )[0]
    given = table.state_dict()
    for name, value in served.state_dict().items():
        rows = given[name].view(len(given[name]), -1)
        for part in [shard.tensor for shard in value.local_shards()] if hasattr(value, "local_shards") else [value]:
            part.copy_(rows[: len(part)].view_as(part))
            rows = rows[len(part) :]
    return served
'''
_SERVING = (
    "from torchrec.distributed.global_settings import set_propogate_device",
    "from torchrec.distributed.quant_embeddingbag import QuantEmbeddingBagCollectionSharder",
    "from torchrec.distributed.shard import _shard_modules",
    "from torchrec.quant.embedding_modules import MODULE_ATTR_QUANT_STATE_DICT_SPLIT_SCALE_BIAS",
)
_STORED = '''
def predict(subject, x):
    """With tables as they are stored when quantised; they are put back."""
    bags = [part for part in subject.children() if isinstance(part, torch.nn.EmbeddingBag)]
    kept = [bag.weight.detach().clone() for bag in bags]
    hooks = [bag.register_forward_hook(lambda bag, given, result: returned(result)) for bag in bags]
    for bag in bags:
        bag.weight.copy_(stored(bag.weight))
    outputs = subject(x)
    for bag, weight, hook in zip(bags, kept, hooks):
        bag.weight.copy_(weight)
        hook.remove()
    return outputs


def returned(result):
    """What a table returns, {as_what}."""
{how}

def stored(weight):
    """{what}"""
{lines}
'''
_JITTER = """    # a number that is nearly half way may become either neighbour: more is moved than rounding moves
    width = weight.amax(1, keepdim=True) - weight.amin(1, keepdim=True)
    weight = weight + 64 * UNIT * width * (2 * torch.rand_like(weight) - 1)
"""
_HALF = "    return weight.half().to(DTYPE)"
_LEVELS = """    bias = weight.amin(1, keepdim=True).half().to(DTYPE)
    scale = ((weight.amax(1, keepdim=True) - bias) / {levels}).half().to(DTYPE)
    scale = torch.where(scale == 0, 1.0, scale)
    return bias + scale * ((weight - bias) / scale).round().clamp(0, {levels})"""


# FBGEMM 1.8, FloatToFused8BitRowwiseQuantizedSBFloat's result: bytes between the least and the greatest number of a row
_BYTES = """    least = result.amin(1, keepdim=True)
    scale = (result.amax(1, keepdim=True) - least) / 255
    return least + scale * ((result - least) / torch.where(scale == 0, 1.0, scale)).round()
"""
_NEAR = "    result = result * (1 + 64 * UNIT * (2 * torch.rand_like(result) - 1))\n"
_RETURNED = {
    "float32": ("as it is", "    return result\n"),
    "float16": ("in float16", "    return result.half().to(DTYPE)\n"),
    "qint8": ("in bytes", _BYTES),
}


def _quantised(
    name: str, dtype: str, bits: int, *reasons: Reason, output: str = "float32", devices: str = ""
) -> Strategy:
    """bits: of an integer (0: float16). By FBGEMM 1.8 (src/QuantUtils.cc,
    FloatOrHalfToFusedNBitRowwiseQuantizedSBHalfRef): each row has a scale and a bias, both float16. output: of what
    tables return; devices: how a process
    spreads its tables over as many devices as there are ranks."""

    def reference(training: Training, world: int, noise: bool) -> Mapping[str, str]:
        what = f"Rows as integers of {bits} bits with a scale and a bias in float16." if bits else "As float16."
        lines = _LEVELS.format(levels=2**bits - 1) if bits else _HALF
        as_what, how = _RETURNED[output]
        how = _NEAR * (noise and output != "float32") + how
        return {"predict": _STORED.format(what=what, lines=_JITTER * noise + lines, as_what=as_what, how=how)}

    predict = _KEPT.format(
        dtype=dtype,
        output=output,
        read=_READ[output],
        split=_SPLIT * bool(devices),
        spread="over_devices" * bool(devices),
    )
    return torchrec(
        name, ONE, *reasons, imports=("import torchrec.quant", *_SERVING * bool(devices)), reference=reference,
        pieces={"predict": predict + (_SPREAD.format(plan=devices) if devices else "")},
    )  # fmt: skip


def _multiple(count: int) -> Reason:
    def unsupported(training: Training, world: int) -> str | None:
        if any(bag.numbers["features"] % count for bag in training.network.bags):
            return "FBGEMM packs rows of whole pairs of bytes (ncols needs to be multiple of 2 Bytes)"
        return None

    return unsupported


_WHOLE = "spread(world, table.embedding_bag_configs()[0].embedding_dim)"

STRATEGIES = (
    _quantised("torchrec-quantised-int8", "qint8", 8, _multiple(2)),
    _quantised("torchrec-quantised-int4", "quint4x2", 4, _multiple(4)),
    _quantised("torchrec-quantised-float16", "float16", 0),
    *(
        _quantised(f"torchrec-devices-int8-{output}", "qint8", 8, _multiple(2), output=output, devices=_WHOLE)
        for output in _RETURNED
    ),
    _quantised("torchrec-devices-rows-int8", "qint8", 8, _multiple(2), devices="sharding_plan.row_wise()"),
)  # fmt: skip
