"""SpecialValue: OpenVINO, infinities of float64.

Exit status 1: shows; 0: does not."""

import numpy as np
import openvino
from openvino import opset13

x = opset13.parameter([3], np.float64)
model = openvino.Model([opset13.is_inf(x)], [x])
compiled = openvino.Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
got = np.array(compiled([np.array([np.inf, -np.inf, 1.0])])[0]).astype(bool).tolist()
right = [True, True, False]
print("got", got, "right", right)
if got != right:
    print("reproduced: wrong")
    raise SystemExit(1)
print("not reproduced")
