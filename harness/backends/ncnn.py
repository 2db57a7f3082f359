"""ncnn in an environment of its own: the graph as TorchScript, converted by pnnx, in float32."""

from __future__ import annotations

from generators.graph import EVERY
from generators.ops.spec import Unsupported
from harness.backends.target.arithmetic import NCNN_FAST
from harness.backends.target.target import Level, Target
from harness.dialects import TORCH

_LOAD = """
def load(parameters):
    import os
    import re
    import subprocess
    import tempfile

    import ncnn
    import pnnx

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            for name in PARAMETERS:
                self.register_buffer(name, torch.from_numpy(parameters[name]))

        def forward(self, *inputs):
            return model(*inputs, *[getattr(self, name) for name in PARAMETERS])

    shapes = [shape for _, shape in [*INPUTS.values(), *OUTPUTS]]
    if any(len(shape) not in range(1, 5) or 0 in shape for shape in shapes):
        raise NotImplementedError("ncnn has no tensor of rank 0 or above 4, and none without elements")
    examples = tuple(torch.zeros(shape) for _, shape in INPUTS.values())
    shapes = ",".join(f"[{','.join(map(str, shape))}]f32" for _, shape in INPUTS.values())
    net = ncnn.Net()
    net.opt.num_threads = 1
    for name in ("use_fp16_arithmetic", "use_fp16_packed", "use_fp16_storage"):
        setattr(net.opt, name, False)
    with tempfile.TemporaryDirectory() as folder:
        torch.jit.trace(Model(), examples, check_trace=False).save(f"{folder}/m.pt")
        command = [os.path.join(os.path.dirname(pnnx.__file__), "pnnx"), "m.pt", f"inputshape={shapes}", "fp16=0"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"pnnx ended with status {done.returncode}: {done.stderr[-300:]}")
        with open(f"{folder}/m.ncnn.param") as file:
            layers = [line.split()[0] for line in file.readlines()[2:]]
        unknown = [layer for layer in layers if ncnn.layer_to_index(layer) < 0]
        if unknown:
            raise NotImplementedError(f"ncnn has no layer {unknown[0]}")
        with open(f"{folder}/m_ncnn.py") as file:  # an axis that pnnx takes for the batch is not in the Mat (233: none)
            example = file.read()
        batch = {
            name: int(axis)
            for name, axis in re.findall(r"(in\\d+|out\\d+)\\.numpy\\((?:\\), )?batch_index=(\\d+)", example)
        }
        if net.load_param(f"{folder}/m.ncnn.param") or net.load_model(f"{folder}/m.ncnn.bin"):
            raise RuntimeError("ncnn does not load what pnnx wrote")

    ports = dict([(f"in{i}", shape) for i, (_, shape) in enumerate(INPUTS.values())])
    ports |= {f"out{i}": shape for i, (_, shape) in enumerate(OUTPUTS)}
    for name, axis in batch.items():
        if axis < 4 and ports[name][axis] > 1:
            raise NotImplementedError("ncnn has no batches: of one element only")

    def run(*inputs):
        extractor = net.create_extractor()
        for i, x in enumerate(inputs):
            extractor.input(f"in{i}", ncnn.Mat(x, batch_index=batch[f"in{i}"]).clone())
        outputs = []
        for i in range(len(OUTPUTS)):
            status, output = extractor.extract(f"out{i}")
            if status:
                raise RuntimeError(f"extract returned {status}")
            outputs.append(output.numpy(batch_index=batch[f"out{i}"]).copy())
        return outputs

    return run
"""

_NOT = {dtype: f"ncnn computes in float32, not in {dtype}" for dtype in EVERY if dtype != "float32"}

TARGETS = (
    Target(
        "ncnn",
        "ncnn",
        ("torch", "ncnn", "pnnx"),
        TORCH,
        _LOAD,
        {"ncnn": "1.0.20261020", "pnnx": "20261020", "torch": "2.9"},
        Level("ncnn", 0),
        sample_every=8,
        refuses={("*", dtype): why for dtype, why in _NOT.items()},
        declines={"NotImplementedError: (ncnn has no .*)": "ncnn has no such layer or tensor"},
        arithmetic=NCNN_FAST,
        gradient=Unsupported("ncnn does inference only"),
        environment="ncnn",
        opt_in=True,
    ),
)
