"""What programs of several dialects call that run a model in TVM. Read as text; a program carries the source of what it
uses."""


def run_on_tvm(module, arrays, passes, level):
    """The outputs of an imported module, compiled with these passes before the lowering and LLVM's optimisation at this
    level."""
    import tvm
    from tvm import relax

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
    returned = machine["main"](*[tvm.runtime.tensor(array) for array in arrays])
    return [result.numpy() for result in ([returned] if hasattr(returned, "numpy") else returned)]
