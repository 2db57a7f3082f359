"""LiteRT with XNNPACK, as it runs unless told otherwise, on models that TFLite's converter quantised."""

from __future__ import annotations

from generators.ops.spec import Unsupported
from harness.backends.target.target import Level
from harness.dialects import TENSORFLOW
from harness.quantisers import tensorflow
from harness.quantisers.quantiser import Quantiser
from oracles.quantised.tflite import elsewhere

_SHOW = """values, given, outputs = tflite_values(content, feeds, "BUILTIN_REF")
        groups["source"], groups["alone"] = values, {}
        for part, taken, returned in tflite_parts(content):
            groups["alone"].update(tflite_on_litert(part, taken, returned, values))
        groups["whole"] = tflite_on_litert(content, list(given.values()), outputs, values)
        header["nodes"].update(source=nodes, alone=nodes, whole=nodes)
        header["inputs"], header["outputs"] = given, outputs"""

_ALLOWS = "what XNNPACK's kernels lose that rescale in float32, and what TFLite's fixed point does"

QUANTISERS = tuple(
    Quantiser(
        f"litert-{name}", "litert", ("tensorflow", "ai_edge_litert", "ai_edge_litert.interpreter"), TENSORFLOW,
        tensorflow.written(tensorflow.OPTIONS[name], _SHOW), {"ai-edge-litert": "2.3", **tensorflow.PACKAGES},
        Level(f"litert-{name}", 0), sample_every=2, refusals_file="tensorflow",
        gradient=Unsupported("a quantised model"), judge=elsewhere.xnnpack, allows=_ALLOWS,
        declines={**tensorflow.DECLINES, **tensorflow.REFUSED_FILES}, further=True,
        inherits=("litert-xnnpack", *tensorflow.inherited(name, "litert-")),
    )
    for name in tensorflow.OPTIONS
)  # fmt: skip
