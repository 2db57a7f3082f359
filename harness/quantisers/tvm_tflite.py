"""TVM on models that TFLite's converter quantised, by TVM's importer of TFLite."""

from __future__ import annotations

from generators.ops.spec import Unsupported
from harness.backends.target.target import Level
from harness.backends.tvm.levels import BEFORE
from harness.dialects import TENSORFLOW
from harness.quantisers import tensorflow
from harness.quantisers.quantiser import Quantiser
from oracles.quantised.tflite import elsewhere

_SHOW = f"""import tvm
        from tvm import relax

        passes = [
            {BEFORE[3].replace(chr(10) + " " * 8, chr(10) + " " * 12)}
        ]
        values, given, outputs = tflite_values(content, feeds, "BUILTIN_REF")
        groups["source"], groups["alone"] = values, {{}}
        for part, taken, returned in tflite_parts(content):
            groups["alone"].update(tflite_on_tvm(part, taken, returned, values, [{BEFORE[0]}], 0))
        groups["whole"] = tflite_on_tvm(content, list(given.values()), outputs, values, passes, 3)
        if not groups["alone"]:
            raise tvm.error.OpNotImplemented("the model has no operator that TVM's importer takes")
        header["nodes"].update(source=nodes, alone=nodes, whole=nodes)
        header["inputs"], header["outputs"] = given, outputs"""

_ALLOWS = "nothing but what float32 loses in the operators between: levels at a tie may be either of two"
_DECLINES = {
    **tensorflow.DECLINES,
    **tensorflow.REFUSED_FILES,
    r"KeyError: 10\b": "TVM's importer has no inputs of float64",
    "no operator that TVM's importer takes": "TVM's importer has no such operators",
}
_ROUTE = "tensorflow/tflite/tvm-tflite/tvm"
"""The same importer on files that are not quantised."""
_NAMES = (
    *("tflite-int8", "tflite-int8-tensor", "tflite-int8-io", "tflite-uint8-io", "tflite-int8-or-float"),
    "tflite-float16",
)

QUANTISERS = tuple(
    Quantiser(
        f"tvm-{name}", "tvm", ("tvm", "tvm.relax", "tflite", "tensorflow"), TENSORFLOW,
        tensorflow.written(tensorflow.OPTIONS[name], _SHOW),
        {"apache-tvm": "0.27", "tflite": "2.18", **tensorflow.PACKAGES}, Level(f"tvm-{name}", 0), sample_every=2,
        refusals_file="tensorflow", gradient=Unsupported("a quantised model"), judge=elsewhere.tvm,
        allows=_ALLOWS, declines=_DECLINES, further=True,
        inherits=("tvm-O0", "tvm-O3", _ROUTE, *tensorflow.inherited(name, "tvm-")),
    )
    for name in _NAMES
)  # fmt: skip
