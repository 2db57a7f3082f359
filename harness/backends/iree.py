"""IREE's CPU back end at its optimisation levels, given the graph as an ONNX model, in an environment of its own."""

from __future__ import annotations

from generators.ops.spec import Unsupported
from harness.backends.programs.onnx_model import PROTO
from harness.backends.target.target import Level, Target
from harness.dialects import ONNX

_LOAD = f"""
def load(parameters):
    import iree.compiler
    import iree.runtime
    from iree.compiler.extras import onnx_importer
    from iree.compiler.ir import Context
{PROTO.format(inputs="INPUTS", outputs="OUTPUTS")}
    info = onnx_importer.ModelInfo(onnx.shape_inference.infer_shapes(proto, data_prop=True))
    imported = info.create_module(context=Context()).operation
    onnx_importer.NodeImporter.define_function(info.main_graph, imported).import_all()
    options = [
        "--iree-hal-target-device=local",
        "--iree-hal-local-target-device-backends=llvm-cpu",
        "--iree-llvmcpu-target-cpu=host",
        "--iree-input-demote-f64-to-f32=false",
        "--iree-opt-level=LEVEL",
    ]
    try:
        binary = iree.compiler.compile_str(imported.get_asm(), input_type="onnx", extra_args=options)
    except iree.compiler.CompilerToolError as error:  # many lines, of which one says why
        lines = str(error).splitlines()
        raise RuntimeError(next((line for line in lines if "error:" in line), " ".join(lines[:2]))) from None
    config = iree.runtime.Config("local-sync")
    compiled = iree.runtime.load_vm_module(iree.runtime.VmModule.copy_buffer(config.vm_instance, binary), config)

    def run(*inputs):
        results = compiled["dissent"](*inputs)
        return [result.to_host() for result in (results if isinstance(results, (tuple, list)) else [results])]

    return run
"""

_DECLINES = {
    "failed to legalize operation 'torch.operator'": "the importer of ONNX does not lower this operator",
}

TARGETS = tuple(
    Target(
        f"iree-O{level}",
        "iree",
        ("onnx", "iree", "iree.compiler", "iree.runtime"),
        ONNX,
        _LOAD.replace("LEVEL", f"O{level}"),
        {"iree-base-compiler": "3.13", "iree-base-runtime": "3.13", "onnx": "1.17"},
        Level("iree", level),
        sample_every=8,
        declines=_DECLINES,
        gradient=Unsupported("IREE compiles what it is given, and differentiates nothing"),
        environment="iree",
        opt_in=True,
    )
    for level in range(4)
)
