"""The rule by which TensorFlow's operators are allowed in a model of a stranger, over the installed registry."""

from __future__ import annotations

import importlib

MODULES = (
    "array",
    "audio",
    "bitwise",
    "candidate_sampling",
    "clustering",
    "control_flow",
    "count",
    "ctc",
    "data_flow",
    "functional",
    "image",
    "linalg",
    "list",
    "logging",
    "lookup",
    "manip",
    "map",
    "math",
    "nn",
    "optional",
    "parsing",
    "ragged_array",
    "ragged_conversion",
    "ragged_math",
    "random_index_shuffle",
    "random",
    "resource_variable",
    "rnn",
    "set",
    "sparse",
    "special_math",
    "spectral",
    "state",
    "stateful_random",
    "stateless_random",
    "stateless_random_ops_v2",
    "string",
    "training",
    "uniform_quant",
)
"""Groups of TensorFlow's registry that compute: `tensorflow.python.ops.gen_*_ops`. Not among them: files, summaries,
checkpoints, data sets, scripts, collectives, TPUs, debugging, boosted trees, protocol buffers read from files."""

EXCEPTIONS = {
    "Abort": "it ends the process",
    "AudioSummary": "summary",
    "AudioSummaryV2": "summary",
    "Copy": "its debug_ops_spec names files and addresses",
    "CopyHost": "its debug_ops_spec names files and addresses",
    "DebugGradientIdentity": "debugging",
    "DebugGradientRefIdentity": "debugging",
    "DebugIdentity": "its debug_urls name files and addresses",
    "DebugIdentityV2": "it writes to tfdbg_run_id's folder",
    "DebugIdentityV3": "its debug_urls name files and addresses",
    "DebugNanCount": "its debug_urls name files and addresses",
    "DebugNumericSummary": "its debug_urls name files and addresses",
    "DebugNumericSummaryV2": "debugging",
    "DeviceIndex": "it tells of the host's devices",
    "DumpTensor": "it writes files",
    "FakeQueue": "it takes a handle of another process",
    "GetSessionHandle": "it keeps tensors in the runtime",
    "GetSessionHandleV2": "it keeps tensors in the runtime",
    "GetSessionTensor": "it reads tensors of the runtime",
    "DeleteSessionTensor": "it removes tensors of the runtime",
    "ImmutableConst": "it maps a file",
    "ImageSummary": "summary",
    "InitializeTableFromDataset": "data sets read files",
    "InitializeTableFromTextFile": "it reads a file: allowed where that is an asset of the model",
    "InitializeTableFromTextFileV2": "it reads a file: allowed where that is an asset of the model",
    "FixedUnigramCandidateSampler": "its vocab_file names a file",
    "Print": "it writes to the terminal",
    "PrintV2": "its output_stream names a file",
    "RecordInput": "it reads files",
    "RemoteCall": "it runs on another device",
    "Save": "it writes files",
    "StubResourceHandleOp": "test",
    "Timestamp": "it reads the clock",
}


def allowed() -> list[str]:
    """Names of operators that neither reach files, the network, the host's Python nor another runtime."""
    found = set()
    for name in MODULES:
        module = importlib.import_module(f"tensorflow.python.ops.gen_{name}{'' if '_ops' in name else '_ops'}")
        found |= {one for one in vars(module) if one[0].isupper() or one.startswith("_")}
    from tensorflow.python.framework import op_def_registry

    names = {one for one in found if op_def_registry.get(one) is not None}
    return sorted((names | {"_Arg", "_Retval"}) - set(EXCEPTIONS))
