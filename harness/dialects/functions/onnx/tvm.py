"""What programs call that run ONNX models on TVM. Read as text; a program carries the source of what it uses."""


def onnx_on_tvm(proto, feeds, passes, level):
    """The outputs of the model by name, imported into Relax and compiled with these passes before the lowering and
    LLVM's optimisation at this level."""
    import tvm
    from tvm import relax
    from tvm.relax.frontend.onnx import from_onnx

    module = from_onnx(proto, keep_params_in_input=False)
    target = tvm.target.Target({"kind": "llvm", "opt-level": level})
    lowering = [
        relax.backend.DispatchSampling(),
        relax.backend.DispatchSortScan(),
        *passes,
        relax.transform.RewriteDataflowReshape(),
        relax.transform.ToNonDataflow(),
        relax.transform.RemovePurityChecking(),
        relax.transform.CallTIRRewrite(),
        relax.transform.StaticPlanBlockMemory(),
        relax.transform.LowerAllocTensor(),
        relax.transform.KillAfterLastUse(),
        relax.transform.LowerRuntimeBuiltin(),
        relax.transform.ComputePrimValue(),
        relax.transform.VMShapeLower(),
        relax.transform.AttachGlobalSymbol(),
    ]
    with target, tvm.transform.PassContext(opt_level=level):
        executable = tvm.compile(module, target, relax_pipeline=tvm.transform.Sequential(lowering))
    machine = relax.VirtualMachine(executable, tvm.cpu())
    given = [tvm.runtime.tensor(feeds[item.name]) for item in proto.graph.input]
    returned = machine["main"](*given)
    results = [returned] if hasattr(returned, "numpy") else list(returned)
    return {item.name: result.numpy() for item, result in zip(proto.graph.output, results)}
