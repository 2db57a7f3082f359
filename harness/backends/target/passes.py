"""Which passes of a compiler a program can leave out, and how its text then reads."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from harness.backends.target.text import swapped


@dataclass(frozen=True)
class Switches:
    """passes:  names of what can be left out, in the order in which it runs
    without: the text of a program, and some of these names -> the text of the program without them; a function of a
             module, since targets are sent to the processes of a hunt"""

    passes: tuple[str, ...]
    without: Callable[[str, Collection[str]], str]


LLVM = "llvm"
"""Stands for all that LLVM optimises: without it, its own level is 0."""

_LOWERING = (
    *("DispatchSampling", "RewriteDataflowReshape", "StaticPlanBlockMemory", "KillAfterLastUse", "ComputePrimValue"),
    *("s_tir.CanonicalizeLoop", "s_tir.CompactBufferAllocation", "s_tir.StmtSimplify", "s_tir.AnnotateIrregularLoop"),
    *("s_tir.InjectSoftwarePipeline", "tirx.NarrowDataType", "s_tir.LoopPartition", "tirx.VectorizeLoop"),
    *("tirx.StorageRewrite", "s_tir.HoistIfThenElse", "tirx.RemoveNoOp", "tirx.UnrollLoop"),
    *("s_tir.RenormalizeSplitPattern", "tirx.StmtSimplify", "s_tir.RewriteUnsafeSelect", "tirx.CommonSubexprElim"),
)
"""Passes of every pipeline after those that the level is about."""

_REFUSE = '''
@tvm.instrument.pass_instrument
class Without:
    """Leaves out the passes of these names."""

    def __init__(self, *names):
        self.names = names

    def should_run(self, module, info):
        return info.name not in self.names


def load('''


def _tvm(text: str, off: Collection[str]) -> str:
    if LLVM in off:
        text = re.sub(r'"opt-level": \d', '"opt-level": 0', text)
    refused = [name for name in off if name != LLVM]
    if not refused:
        return text
    load = next(mark for mark in ("\ndef load(", "\ndef compile_once(") if mark in text)
    text = swapped(text, (load, _REFUSE.replace("\ndef load(", load)))
    return re.sub(r"PassContext\((.*)\):", rf"PassContext(\1, instruments=[Without(*{refused!r})]):", text)


def tvm(pipeline: str) -> Switches:
    """Of a TVM target whose level is this text of Relax passes. LegalizeOps is not one that can be left out."""
    renamed = {"DataflowUseInplaceCalls": "DataflowInsertInPlaceCalls"}
    named = [found.group(1) for found in re.finditer(r"relax\.transform\.(\w+)\(", pipeline)]
    level = tuple(renamed.get(name, name) for name in named if name != "LegalizeOps")
    return Switches((*level, *_LOWERING, LLVM), _tvm)


ORT_RULES = (
    *("EliminateIdentity", "EliminateSlice", "UnsqueezeElimination", "EliminateDropout", "ExpandElimination"),
    *("CastElimination", "PreShapeNodeElimination", "NoopElimination", "DivMulFusion", "FuseReluClip"),
    *("GemmSumFusion", "GemmTransposeFusion", "NotWhereFusion", "ConvAddFusion", "ConvMulFusion", "ConvBNFusion"),
    *("Pad_Fusion", "MatMul_BatchNormalization_Fusion", "LabelEncoderFusion"),
)
_BASIC = (
    *ORT_RULES,
    *("DoubleQDQPairsRemover", "ConstantSharing", "CommonSubexpressionElimination", "ConstantFolding"),
    *("MatMulAddFusion", "ReshapeFusion", "SliceConcatToSpaceToDepthFusion", "GeluFusionL1", "LayerNormFusionL1"),
    *("QDQPropagationTransformer", "WeightBiasQuantization", "WhereDummyDq", "TransposeOptimizer"),
)
_EXTENDED = (
    *("ClipQuantRewrite", "ReluQuantRewrite", "TransposeOptimizer_CPUExecutionProvider", "QDQS8ToU8Transformer"),
    *("QDQSelectorActionTransformer", "GemmActivationFusion", "MatMulIntegerToFloatFusion"),
    *("DynamicQuantizeMatMulFusion", "ConvActivationFusion", "GeluFusionL2", "LayerNormFusionL2"),
    *("SimplifiedLayerNormFusion", "AttentionFusion", "EmbedLayerNormFusion", "GatherSliceToSplitFusion"),
    *("GatherToSliceFusion", "MatmulTransposeFusion", "BiasGeluFusion", "GroupQueryAttentionFusion"),
    *("SkipLayerNormFusion", "BiasSkipLayerNormFusion", "FastGeluFusion", "QuickGeluFusion", "BiasSoftmaxFusion"),
    *("BiasDropoutFusion", "MatMulScaleFusion", "MatMulActivationFusion", "MatMulNBitsFusion"),
    *("GroupQueryAttentionPreNormFusion", "QDQFinalCleanupTransformer"),
)
_ALL = ("NchwcTransformer", "NhwcTransformer", "ConvAddActivationFusion")
"""Graph transformers and rewrite rules of ONNX Runtime 1.31 by level (onnxruntime/core/optimizer/
graph_transformer_utils.cc). A name that it does not know it passes over in silence:
`tests/meta/harness/search/test_passes.py` asks its log for each."""


def _onnxruntime(text: str, off: Collection[str]) -> str:
    providers = 'providers=["CPUExecutionProvider"]'
    return swapped(text, (providers, f"{providers}, disabled_optimizers={list(off)!r}"))


def onnxruntime(level: int) -> Switches:
    """Of ONNX Runtime at optimisation level 0 to 3."""
    return Switches(tuple(name for names in ((), _BASIC, _EXTENDED, _ALL)[: level + 1] for name in names), _onnxruntime)


_XLA = (
    *("zero_sized_hlo_elimination", "batch-dot-simplification", "call-inliner", "conditional-to-select"),
    *("convolution-group-converter", "dynamic-dimension-simplifier", "reduce-window-rewriter"),
    *("convolution-canonicalization", "algsimp", "simplify-sorts", "tree_reduction_rewriter"),
    *("while-loop-invariant-code-motion", "tuple-simplifier", "while-loop-constant-sinking", "simplify-while-loops"),
    *("reshape-mover", "constant_folding", "simplify-conditional", "gemv-rewriter"),
    *("transpose-folding", "cse", "shape-canonicalizer", "literal-canonicalizer", "reshape-decomposer"),
    *("reduce-decomposer", "broadcast_canonicalizer", "dot-library-rewriter", "fusion"),
    *("cpu-parallel-task-assigner", "optimize_input_output_buffer_alias", "small-while-loop-hoisting"),
)
"""HLO passes of XLA's CPU compiler (JAX 0.10) that nothing after them needs."""


def _xla(text: str, off: Collection[str]) -> str:
    options: dict[str, Any] = {}
    disabled = [name for name in off if name != LLVM]
    if disabled:
        options["xla_disable_hlo_passes"] = ",".join(disabled)
    if LLVM in off:
        options["xla_backend_optimization_level"] = 0
    text, places = re.subn(r"jax\.jit\((\w+)\)", rf"jax.jit(\1, compiler_options={options!r})", text)
    if not places:
        raise ValueError(f"nothing is compiled by jax.jit in\n{text}")
    return text


XLA = Switches((*_XLA, LLVM), _xla)

_PATCHED = """

# what follows leaves out passes
import torch._inductor.config

complete = load


def load(parameters):
    with torch._inductor.config.patch({options!r}):
        run = complete(parameters)

    def without(*inputs):
        with torch._inductor.config.patch({options!r}):
            return run(*inputs)

    return without
"""

_FLAGS: Mapping[str, tuple[str, Any]] = {
    "pre_grad_passes": ("use_pre_grad_passes", False),
    "joint_graph_passes": ("use_joint_graph_passes", False),
    "joint_graph_constant_folding": ("joint_graph_constant_folding", False),
    "pattern_matcher": ("pattern_matcher", False),
    "post_grad_passes": ("use_post_grad_passes", False),
    "reorder_for_locality": ("reorder_for_locality", False),
    "layout_optimization": ("layout_optimization", False),
    "weight_prepack": ("cpp.weight_prepack", False),
    "fusion": ("max_fusion_size", 1),
    "epilogue_fusion": ("epilogue_fusion", False),
    "loop_orders": ("pick_loop_orders", False),
    "buffer_reuse": ("allow_buffer_reuse", False),
    "inplace_buffers": ("inplace_buffers", False),
    "vectorization": ("cpp.simdlen", 1),
    "floating_point_contract": ("cpp.enable_floating_point_contract_flag", "off"),
}
"""Steps of inductor and the option that leaves each out (torch/_inductor/config.py)."""

_OBSERVED = ("remove_noop_ops", "constant_fold_uniform_value", "fuse_conv_bn", "reinplace_inplaceable_ops")
"""Passes that inductor leaves out by name (its option `disabled_passes`)."""


def _inductor(text: str, off: Collection[str]) -> str:
    options: dict[str, Any] = dict(_FLAGS[name] for name in off if name in _FLAGS)
    observed = [name.upper() for name in off if name not in _FLAGS]
    if observed:
        options["disabled_passes"] = ",".join(observed)
    return text + _PATCHED.format(options=options)


INDUCTOR = Switches((*_OBSERVED, *_FLAGS), _inductor)

_OPTIONS = """

# what follows leaves out optimisers
complete = load


def load(parameters):
    run = complete(parameters)

    def without(*inputs):
        before = tf.config.optimizer.get_experimental_options()
        tf.config.optimizer.set_experimental_options({options!r})
        try:
            return run(*inputs)
        finally:
            tf.config.optimizer.set_experimental_options({{**{restored!r}, **before}})

    return without
"""

_GRAPPLER = (
    *("disable_model_pruning", "function_optimization", "shape_optimization", "constant_folding"),
    *("arithmetic_optimization", "layout_optimizer", "remapping", "loop_optimization", "dependency_optimization"),
    *("scoped_allocator_optimization", "implementation_selector"),
)


def _grappler(text: str, off: Collection[str]) -> str:
    options = {name: name.startswith("disable_") for name in off}
    return text + _OPTIONS.format(options=options, restored={name: not value for name, value in options.items()})


GRAPPLER = Switches(_GRAPPLER, _grappler)
"""Grappler's optimisers (tf.config.optimizer.set_experimental_options)."""
