"""The rule by which PyTorch's operators are allowed in a program of a stranger, over the installed dispatcher."""

from __future__ import annotations

EXCEPTIONS = {
    "_cufft_clear_plan_cache": "it changes the process",
    "_cufft_get_plan_cache_max_size": "it tells of the process",
    "_cufft_get_plan_cache_size": "it tells of the process",
    "_cufft_set_plan_cache_max_size": "it changes the process",
    "_nnpack_available": "it tells of the host",
    "_print": "it writes to the terminal",
    "_use_cudnn_rnn_flatten_weight": "it tells of the host",
    "can_cast": "it takes and returns no tensors: no program has it",
    "from_file": "it maps a file, and creates it",
    "get_gradients": "distributed autograd",
    "is_vulkan_available": "it tells of the host",
    "maximum_value": "it takes and returns no tensors: no program has it",
    "minimum_value": "it takes and returns no tensors: no program has it",
    "promote_types": "it takes and returns no tensors: no program has it",
    "record_stream": "it takes a stream of the process",
}
SCRIPT = """Bool Complex ComplexImplicit Float FloatImplicit Int IntImplicit ScalarImplicit _grad_sum_to_size
    _list_to_tensor _ncf_unsqueeze _ncf_view _no_grad_embedding_renorm_ _no_grad_fill_ _no_grad_normal_
    _no_grad_uniform_ _no_grad_zero_ _pack_sequence _tensor_to_list as_tensor backward count cpu cuda dist_backward
    element_size grad is_non_overlapping_and_dense is_strides_like_format len remove sorted tensor"""
"""Of the interpreter of TorchScript alone; programs that were converted from there may have them."""


PRIMS = "empty full full_like uniform view_of_dtype"
"""Of `prims`, beside those that torch._prims lists; its compiler registers others while it is loaded."""


def allowed() -> list[str]:
    """Names of operators of `aten` and `prims` that only compute."""
    import torch
    import torch._prims

    found = {*SCRIPT.split(), *PRIMS.split()}
    for name in torch._C._dispatch_get_all_op_names():
        space, _, operator = name.partition("::")
        operator = operator.partition(".")[0]
        if space == "aten" or (space == "prims" and operator in torch._prims.__all__):
            found.add(operator)
    return sorted(name for name in found - set(EXCEPTIONS) if not name.startswith("_test_"))
