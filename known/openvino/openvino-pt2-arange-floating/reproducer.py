"""WrongValue: OpenVINO, torch.arange of floating numbers, exported.

Exit status 1: shows; 0: does not."""

import numpy as np
import openvino
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.arange(0, 1, 0.25) + x


x = torch.zeros(4)
converted = openvino.convert_model(torch.export.export(Model(), (x,)))
compiled = openvino.Core().compile_model(converted, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
got, right = np.array(compiled([x.numpy()])[0]), Model()(x).numpy()
print("got", got.dtype, got.tolist(), "right", right.dtype, right.tolist())
if (got != right).any():
    print("reproduced: wrong")
    raise SystemExit(1)
print("not reproduced")
