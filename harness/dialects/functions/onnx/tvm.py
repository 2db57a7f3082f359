"""What programs call that run an ONNX model in TVM. Read as text; a program carries the source of what it uses."""


def onnx_on_tvm(proto, feeds, passes, level):
    """The outputs of the model by name, imported into Relax and compiled with these passes before the lowering and
    LLVM's optimisation at this level."""
    from tvm.relax.frontend.onnx import from_onnx

    module = from_onnx(proto, keep_params_in_input=False)
    arrays = [feeds[item.name] for item in proto.graph.input]
    results = run_on_tvm(module, arrays, passes, level)  # noqa: F821 - functions/shared
    return {item.name: result for item, result in zip(proto.graph.output, results)}
