"""torchao: PT2E (an exported graph, quantised for inductor on x86 or as XNNPACK wants it), run as written and compiled
by inductor; and `quantize_`, which puts quantised weights into linear layers."""

from __future__ import annotations

from generators.ops.spec import Unsupported
from harness.backends.target.target import Level
from harness.dialects import TORCH
from harness.quantisers import torch
from harness.quantisers.quantiser import Quantiser
from oracles.quantised.torch import pt2e
from oracles.quantised.torch import torchao as torchao_quantiser

_PACKAGES = {**torch.PACKAGES, "torchao": "0.17"}

_PT2E = """
%module

def load(parameters):
    import warnings

    import torch._inductor.config
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    %quantizer

    module = Module(parameters).eval()

    def run(*inputs):
        warnings.simplefilter("ignore")
        feeds = dict(zip(INPUTS, inputs))
        tensors = tuple(torch.from_numpy(x) for x in inputs)
        samples = calibration(feeds, SHARE)
        with torch.no_grad():
            # the quantisers look for what strict export notes: where a node came from
            traced = torch.fx.symbolic_trace(module)
            exported = torch.export.export(traced, tensors, strict=True).module()
            prepared = prepare_pt2e(exported, quantizer)
            seen, stop = torch_watched(prepared)
            for sample in samples:
                prepared(*[torch.from_numpy(sample[name]) for name in INPUTS])
            stop()
            observers, weights = torch_observers(prepared, seen)
            converted = convert_pt2e(prepared)
            recorder = Recorder(converted)
            recorder.run(*tensors)
            called, exact = converted(*tensors), module(*tensors)
            with torch._inductor.config.patch(freezing=True):  # or inductor takes no kernels of integers
                compiled = torch.compile(converted)(*tensors)
        ends = [node.name for node in next(iter(reversed(converted.graph.nodes))).args[0]]
        header = {"engine": "%engine", "observers": observers, "tensors": recorder.tensors, "outputs": ends}
        header.update(nodes={"converted": recorder.nodes}, share=SHARE)
        groups = {"converted": recorder.values, "weights": weights}
        for group, outputs in {"called": called, "inductor": compiled, "float": exact}.items():
            groups[group] = {str(i): output.numpy() for i, output in enumerate(outputs)}
        return recorded(header, groups)

    return run
"""

_X86 = """from torchao.quantization.pt2e.quantizer import x86_inductor_quantizer as x86

    quantizer = x86.X86InductorQuantizer()
    quantizer.set_global(x86.get_default_x86_inductor_quantization_config(is_dynamic=%dynamic))"""
_XNNPACK = """from torchao.testing.pt2e._xnnpack_quantizer import XNNPACKQuantizer, get_symmetric_quantization_config

    quantizer = XNNPACKQuantizer().set_global(get_symmetric_quantization_config(is_per_channel=True))"""

_WAYS = {
    "torchao-pt2e-x86": ("inductor", _X86.replace("%dynamic", "False")),
    "torchao-pt2e-x86-dynamic": ("inductor", _X86.replace("%dynamic", "True")),
    "torchao-pt2e-xnnpack": ("xnnpack", _XNNPACK),
}
_ALLOWS = (
    "levels whose position float32 cannot tell from a tie may be either of two; of what inductor compiled only outputs "
    "are seen, and all levels before them are worked out so"
)


def _quantiser(name: str, engine: str, quantizer: str) -> Quantiser:
    load = _PT2E.replace("%module", torch.MODULE).replace("%quantizer", quantizer).replace("%engine", engine)
    return Quantiser(
        name, "torch", ("torch",), TORCH, load, _PACKAGES, Level(name, 0), sample_every=3,
        gradient=Unsupported("a quantised model"), judge=pt2e.judge, declines=torch.DECLINES, allows=_ALLOWS,
    )  # fmt: skip


_LAYERS = """
%module

def load(parameters):
    from torchao import quantization
    from torchao.quantization.granularity import PerAxis

    module = torch_layers(Module(parameters).eval())

    def run(*inputs):
        tensors = tuple(torch.from_numpy(x) for x in inputs)
        with torch.no_grad():
            exact, weights = module(*tensors), layer_weights(module)
            quantization.quantize_(module, quantization.%config)
            recorder = LayerRecorder(module)
            recorder.run(*tensors)
            called = module(*tensors)
        ends = [node.name for node in next(iter(reversed(module.graph.nodes))).args[0]]
        header = {"outputs": ends, "nodes": {"converted": recorder.nodes}}
        groups = {"converted": recorder.values, "weights": weights}
        for group, outputs in {"called": called, "float": exact}.items():
            groups[group] = {str(i): output.numpy() for i, output in enumerate(outputs)}
        return recorded(header, groups)

    return run
"""

_CONFIGS = {
    "torchao-int8-weight": "Int8WeightOnlyConfig(set_inductor_config=False)",
    "torchao-int4-weight": "IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=PerAxis(0))",
    "torchao-int8-dynamic": "Int8DynamicActivationInt8WeightConfig(set_inductor_config=False)",
    "torchao-int8-dynamic-int4": (
        "Int8DynamicActivationIntxWeightConfig(weight_dtype=torch.int4, weight_granularity=PerAxis(0))"
    ),
}
_ROWS = (
    "real numbers: what float32 loses, and where operands are quantised row by row a level of one that lies at a tie, "
    "since their levels are not shown"
)
_REAL = "only layers of float32, float16 and bfloat16 are quantised"
_DECLINES = {"Unsupported input dtype: torch": _REAL, r"torch.finfo\(\) requires a floating point": _REAL}


def _layers(name: str, config: str) -> Quantiser:
    return Quantiser(
        name, "torch", ("torch",), TORCH, _LAYERS.replace("%module", torch.MODULE).replace("%config", config),
        _PACKAGES, Level(name, 0), gradient=Unsupported("a quantised model"), judge=torchao_quantiser.judge,
        declines=_DECLINES, allows=_ROWS, takes=("linear", "matmul"),
    )  # fmt: skip


QUANTISERS = (
    *(_quantiser(name, *way) for name, way in _WAYS.items()),
    *(_layers(name, config) for name, config in _CONFIGS.items()),
)
