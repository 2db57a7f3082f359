"""TypeMismatch: OpenVINO, torch.linspace with a dtype, exported.

Exit status 1: shows; 0: does not."""

import numpy as np
import openvino
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.linspace(0, 10, 5, dtype=torch.int64) + x


x = torch.zeros(5, dtype=torch.int64)
converted = openvino.convert_model(torch.export.export(Model(), (x,)))
compiled = openvino.Core().compile_model(converted, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
got, right = np.array(compiled([x.numpy()])[0]), Model()(x).numpy()
print("got", got.dtype, got.tolist(), "right", right.dtype, right.tolist())
if got.dtype != right.dtype or (got != right).any():
    print("reproduced: wrong")
    raise SystemExit(1)
print("not reproduced")
