"""ValueMismatch: ONNX Runtime, LabelEncoderFusion of a key that stands twice.

Exit status 1: shows; 0: does not."""

import sys

import numpy as np
import onnxruntime as ort
from onnx.parser import parse_model

MODEL = parse_model("""<ir_version: 8, opset_import: ["": 17, "ai.onnx.ml": 4]>
g (int64[2] x) => (int64[2] y) {
    a = ai.onnx.ml.LabelEncoder<keys_int64s=[1, 2], values_int64s=[10, 20]>(x)
    y = ai.onnx.ml.LabelEncoder<keys_int64s=[10, 10, 20], values_int64s=[7, 8, 9]>(a)
}""")


def run(level):
    options = ort.SessionOptions()
    options.graph_optimization_level = level
    session = ort.InferenceSession(MODEL.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, {"x": np.array([1, 2])})[0].tolist()


plain, fused = (run(getattr(ort.GraphOptimizationLevel, f"ORT_{level}_ALL")) for level in ("DISABLE", "ENABLE"))
print("not reproduced" if plain == fused else f"reproduced: {fused} in place of {plain}")
sys.exit(plain != fused)
