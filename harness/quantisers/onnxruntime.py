"""ONNX Runtime's own quantisers: static, as QDQ pairs and as quantised operators, and dynamic."""

from __future__ import annotations

from generators.ops.spec import Unsupported
from harness.backends.onnxruntime import REFUSES
from harness.backends.target.target import Level
from harness.dialects import ONNX
from harness.quantisers.quantiser import Quantiser
from oracles.quantised.onnx import quantiser as onnx_quantiser

MODULES = ("onnx", "onnxruntime", "onnxruntime.quantization")
PACKAGES = {"onnxruntime|onnxruntime-gpu": "1.20", "onnx": "1.17"}

WRITTEN = """
def load(parameters):
    import tempfile
    from pathlib import Path

    from onnxruntime import quantization
    from onnxruntime.quantization import QuantFormat, QuantType

    def element(dtype):
        return helper.np_dtype_to_tensor_dtype(np.dtype(dtype))

    def types(listed):
        return [(element(dtype), shape) for dtype, shape in listed]

    g = Builder()
    results = model(g, *INPUTS, *PARAMETERS)
    proto = g.model(dict(zip(INPUTS, types(INPUTS.values()))), parameters, types(RESULTS), results)

    def run(*inputs):
        feeds = dict(zip(INPUTS, inputs))
        samples = calibration(feeds, SHARE)
        with tempfile.TemporaryDirectory() as folder:
            given, path = str(Path(folder, "model.onnx")), str(Path(folder, "quantised.onnx"))
            onnx.save(proto, given)  # given the proto itself, it moves weights of 1 KiB into a file that it deletes
            %quantise
            quantised = onnx.load(path)
        header = {"outputs": [item.name for item in proto.graph.output], "nodes": {"float": onnx_nodes(proto)}}
        header.update(inputs=list(INPUTS), symmetric=%symmetric, dynamic=%dynamic, share=SHARE)
        groups = {f"sample {i}": onnx_values(proto, sample) for i, sample in enumerate(samples)}
        groups["float"] = onnx_values(proto, feeds)
        %show
        return recorded(header, groups)

    return run
"""
"""A program that quantises a model: %quantise writes it, %show adds the runs of it to the header and the groups."""

_SHOW = """for level, nodes, values in onnx_levels(quantised, feeds):
            header["nodes"][level], groups[level] = nodes, values"""

STATIC = """quantization.quantize_static(
                given, path, Samples(samples), quant_format=QuantFormat.%format, per_channel=%channels,
                activation_type=QuantType.%activations, weight_type=QuantType.%weights,
                extra_options={"ActivationSymmetric": %symmetric},
            )"""
_DYNAMIC = """quantization.quantize_dynamic(given, path, per_channel=%channels, weight_type=QuantType.%weights)"""

KINDS = {"u8": "QUInt8", "s8": "QInt8", "u16": "QUInt16", "s16": "QInt16"}
_ALLOWS = "levels whose position float32 cannot tell from a tie may be either of two: kernels rescale in float32"
DECLINES = {
    "No data is collected": "nothing in the model is what the quantiser calibrates",
    r"Expected \w+ to be an initializer": "dynamic quantisation of a convolution whose weight is computed",
}


def written(template: str, show: str, **values: str) -> str:
    """The program with these texts, and with the values for their names."""
    load = WRITTEN.replace("%quantise", template).replace("%show", show)
    for key, value in values.items():
        load = load.replace(f"%{key}", value)
    return load


def _quantiser(name: str, template: str, **values: str) -> Quantiser:
    load = written(template, _SHOW, **values)
    return Quantiser(
        name, "onnxruntime", MODULES, ONNX, load, PACKAGES, Level(name, 0),
        refuses=REFUSES, refusals_file="onnxruntime",
        gradient=Unsupported("a quantised model"), judge=onnx_quantiser.judge,
        declines=DECLINES, allows=_ALLOWS,
    )  # fmt: skip


def _static(form: str, activations: str, weights: str, channels: bool, symmetric: bool) -> Quantiser:
    name = f"ort-{form.lower()}-{activations}{weights}" + "-channels" * channels
    return _quantiser(
        name, STATIC, format=form, channels=str(channels), activations=KINDS[activations],
        weights=KINDS[weights], symmetric=str(symmetric), dynamic="False",
    )  # fmt: skip


def _dynamic(weights: str, channels: bool) -> Quantiser:
    name = f"ort-dynamic-{weights}" + "-channels" * channels
    return _quantiser(name, _DYNAMIC, channels=str(channels), weights=KINDS[weights], symmetric="False", dynamic="True")


_PAIRS = (("u8", "s8"), ("s8", "s8"), ("u8", "u8"), ("s16", "s8"), ("u16", "u8"))

QUANTISERS = (
    *(_static("QDQ", a, w, channels, a == w == "s8") for a, w in _PAIRS for channels in (False, True)),
    *(_static("QOperator", a, w, channels, a == w == "s8") for a, w in _PAIRS[:3] for channels in (False, True)),
    *(_dynamic(w, channels) for w in ("s8", "u8") for channels in (False, True)),
)
