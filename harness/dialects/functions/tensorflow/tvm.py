"""What programs call that run a TFLite model in TVM. Read as text; a program carries the source of what it uses."""


def tflite_on_tvm(content, taken, returned, values, passes, level):
    """The outputs of a model by their numbers, imported into Relax and compiled with these passes before the lowering
    and LLVM's optimisation at this level; nothing where the importer says that it does not implement an operator.
    taken, returned: the numbers of inputs and outputs, in order; values: of the inputs."""
    import tflite
    import tvm
    from tvm.relax.frontend.tflite import from_tflite

    if not set(taken) <= set(values):
        return {}  # of a kernel's scratch memory
    try:
        module = from_tflite(tflite.Model.GetRootAsModel(content, 0))
    except tvm.error.OpNotImplemented:
        return {}
    results = run_on_tvm(module, [values[name] for name in taken], passes, level)  # noqa: F821 - functions/shared
    return dict(zip(returned, results))
