"""TVM on models that ONNX Runtime's static quantiser wrote as QDQ pairs, by TVM's importer of ONNX."""

from __future__ import annotations

from generators.ops.spec import Unsupported
from harness.backends.onnxruntime import REFUSES
from harness.backends.target.target import Level
from harness.backends.tvm.levels import BEFORE
from harness.dialects import ONNX
from harness.quantisers import onnxruntime
from harness.quantisers.quantiser import Quantiser
from oracles.quantised import tvm as tvm_quantiser

_SHOW = f"""from tvm import relax

        passes = {{
            0: [
                {BEFORE[0].replace(chr(10) + " " * 8, chr(10) + " " * 16)}
            ],
            3: [
                {BEFORE[3].replace(chr(10) + " " * 8, chr(10) + " " * 16)}
            ],
        }}
        nodes = onnx_nodes(quantised)
        header["nodes"].update(source=nodes, O0=nodes, O3=nodes)
        groups["source"] = {{**onnx_constants(quantised), **feeds}}
        groups["O0"] = {{**groups["source"], **onnx_on_tvm(onnx_shown(quantised), feeds, passes[0], 0)}}
        groups["O3"] = onnx_on_tvm(quantised, feeds, passes[3], 3)"""

_ALLOWS = "nothing but what float32 loses in the operators between: levels at a tie may be either of two"
_DECLINES = {
    "OpNotImplemented": "TVM's importer has no such operator",
}
_SCHEMES = (("u8", "s8", False), ("s8", "s8", True), ("u8", "u8", False), ("s16", "s8", False))


def _quantiser(activations: str, weights: str, channels: bool) -> Quantiser:
    name = f"tvm-qdq-{activations}{weights}" + "-channels" * channels
    load = onnxruntime.written(
        onnxruntime.STATIC, _SHOW, format="QDQ", channels=str(channels), activations=onnxruntime.KINDS[activations],
        weights=onnxruntime.KINDS[weights], symmetric=str(activations == weights), dynamic="False",
    )  # fmt: skip
    return Quantiser(
        name, "tvm", ("tvm", "tvm.relax", *onnxruntime.MODULES), ONNX, load,
        {"apache-tvm": "0.27", **onnxruntime.PACKAGES}, Level(name, 0), sample_every=2, refuses=REFUSES,
        refusals_file="onnxruntime",
        gradient=Unsupported("a quantised model"), judge=tvm_quantiser.judge, allows=_ALLOWS,
        declines={**onnxruntime.DECLINES, **_DECLINES}, inherits=("tvm-O0", "tvm-O3"),
    )  # fmt: skip


QUANTISERS = tuple(_quantiser(*scheme) for scheme in _SCHEMES)
