"""PyTorch's quantisation of FX graphs (torch.ao.quantization) for its engines: static with the engine's default
observers, dynamic for linear layers, and after training with fake quantisation."""

from __future__ import annotations

from collections.abc import Mapping

from generators.ops.spec import Unsupported
from harness.backends.target.target import Level
from harness.dialects import TORCH
from harness.quantisers.quantiser import Quantiser
from oracles.quantised.torch import quantiser as torch_quantiser

_MODULES = ("torch", "torch.ao.quantization.quantize_fx")
PACKAGES = {"torch": "2.9"}

MODULE = """
class Module(torch.nn.Module):
    def __init__(self, parameters):
        super().__init__()
        for name, array in parameters.items():
            self.register_parameter(name, torch.nn.Parameter(torch.from_numpy(array), requires_grad=False))

    def forward(self, %given):
        return model(%given, *[getattr(self, name) for name in PARAMETERS])
"""
"""A module whose parameters are the graph's."""

_LOAD = (
    MODULE
    + """

def load(parameters):
    import warnings

    from torch.ao import quantization
    from torch.ao.quantization import quantize_fx

    module = Module(parameters).eval()

    def run(*inputs):
        torch.backends.quantized.engine = "%engine"
        warnings.simplefilter("ignore")  # it is deprecated, and says so
        feeds = dict(zip(INPUTS, inputs))
        tensors = tuple(torch.from_numpy(x) for x in inputs)
        samples = calibration(feeds, SHARE)
        with torch.no_grad():
            %prepare
            observers, weights = %observers(prepared, seen)
            converted = %convert(prepared)
            recorder = Recorder(%recorded)
            recorder.run(*tensors)
            called, exact = converted(*tensors), module(*tensors)
        ends = [node.name for node in next(iter(reversed(recorder.module.graph.nodes))).args[0]]
        header = {"engine": "%engine", "observers": observers, "tensors": recorder.tensors, "outputs": ends}
        header.update(nodes={"converted": recorder.nodes}, share=SHARE)
        groups = {"converted": recorder.values, "weights": weights}
        groups["called"] = {str(i): output.numpy() for i, output in enumerate(called)}
        groups["float"] = {str(i): output.numpy() for i, output in enumerate(exact)}
        %further
        return recorded(header, groups)

    return run
"""
)

_CALIBRATED = """mapping = %mapping
            prepared = quantize_fx.prepare_fx(module, mapping, tensors)
            seen, stop = torch_watched(prepared)
            for sample in samples:
                prepared(*[torch.from_numpy(sample[name]) for name in INPUTS])
            stop()"""
_STUBBED = """stubbed = torch_stubbed(module)
            stubbed.qconfig = quantization.get_default_qconfig(torch.backends.quantized.engine)
            prepared = quantization.prepare(stubbed, inplace=True)  # a copy loses what it is to be quantised by
            seen, stop = torch_watched(prepared)
            for sample in samples:
                prepared(*[torch.from_numpy(sample[name]) for name in INPUTS])
            stop()"""
_TRAINED = """mapping = quantization.get_default_qat_qconfig_mapping(torch.backends.quantized.engine)
            prepared = quantize_fx.prepare_qat_fx(module.train(), mapping, tensors)
            seen, stop = torch_watched(prepared)
            torch_trained(prepared, [[torch.from_numpy(sample[name]) for name in INPUTS] for sample in samples])
            stop()
            faked = torch_faked(prepared.eval(), tensors)"""

_STATIC = "quantization.get_default_qconfig_mapping(torch.backends.quantized.engine)"
_DYNAMIC = "quantization.QConfigMapping().set_global(quantization.default_dynamic_qconfig)"
_ALLOWS = (
    "levels whose position float32 cannot tell from a tie may be either of two: kernels rescale in float32; QNNPACK "
    "adds by multipliers of 22 bits"
)

DECLINES = {
    "(works on|expects a) Float Tensor|(histogram|linspace|aminmax)_cpu.* not implemented": "only float32 is quantised",
    "Expecting input to have dtype torch.float32": "only float32 is quantised",
    "torch.histc: max must be larger": "only float32 is quantised",  # said of int64 near its ends
    "(dimension|rank) .*should be (larger than or equal to|>=) 2": "a quantised linear layer takes no vector",
}


_TRAINS = {"expected scalar type Float but found": "only float32 is trained with fake quantisation"}


_FX = ("torch_observers", "quantize_fx.convert_fx", "converted")
_EAGER = ("torch_eager_observers", "quantization.convert", "torch_lowered(converted)")
"""What says which observers there were, what converts, and what is recorded."""


def _quantiser(
    name: str,
    engine: str,
    prepare: str,
    further: str = "pass",
    declines: Mapping[str, str] = DECLINES,
    how: tuple[str, str, str] = _FX,
) -> Quantiser:
    load = _LOAD.replace("%prepare", prepare).replace("%further", further).replace("%engine", engine)
    for mark, text in zip(("%observers", "%convert", "%recorded"), how, strict=True):
        load = load.replace(mark, text)
    return Quantiser(
        name, "torch", _MODULES, TORCH, load, PACKAGES, Level(name, 0), gradient=Unsupported("a quantised model"),
        judge=torch_quantiser.judge, declines=declines, allows=_ALLOWS,
    )  # fmt: skip


QUANTISERS = (
    *(
        _quantiser(f"torch-static-{engine}", engine, _CALIBRATED.replace("%mapping", _STATIC))
        for engine in ("x86", "fbgemm", "onednn", "qnnpack")
    ),
    *(_quantiser(f"torch-eager-{engine}", engine, _STUBBED, how=_EAGER) for engine in ("x86", "qnnpack")),
    _quantiser("torch-dynamic", "x86", _CALIBRATED.replace("%mapping", _DYNAMIC)),
    *(
        _quantiser(
            f"torch-trained-{engine}",
            engine,
            _TRAINED,
            'header["faked"], groups["faked"] = faked',
            {**DECLINES, **_TRAINS},
        )
        for engine in ("x86", "qnnpack")
    ),
)
