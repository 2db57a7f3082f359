"""Inductor: the entries of its pattern matcher whose passes run, those that match, and the passes that change a graph;
no kernel is generated."""

import torch
import torch._inductor.fx_passes.joint_graph as joint_graph
import torch._inductor.fx_passes.post_grad as post_grad
import torch._inductor.pattern_matcher as matcher
from torch._inductor.graph import GraphLowering

FIRED, LISTED = set(), set()
OUTSIDE = re.compile(
    r"cuda|triton|dropout|_training|random|auto_functionalized|b2b_gemm|partial_reduc|int_mm|decompose_map|scan_to"
    r"|quant|woq|qconv|qlinear|dynamic_fp16|mkldnn_rnn|gumbel|fix_iota_device|randperm|randint"
    r"|mm_plus_mm|^(add|b|)mm_pattern|fuse_pattern|prepare_softmax|unfuse_bias|efficient_conv_bn"
)
"""Entries for another device, for training, for what programs do not have, and those that are off by default."""


class Lowered(Exception):
    """The graph has been through all passes."""


def name_of(entry):
    """The function that is searched for, or that replaces."""
    check = getattr(entry, "extra_check", None)
    for number, free in enumerate(getattr(getattr(check, "__code__", None), "co_freevars", ())):
        if free == "search_fn":
            sought = check.__closure__[number].cell_contents
            return sought.__name__ + (" with dropout" if "dropout_p" in sought.__code__.co_varnames else "")
    handler = getattr(entry, "handler", None)
    if handler is None:
        return str(entry.pattern)[:60]
    return handler.__qualname__.replace(".<locals>", "")


def watched(kind):
    apply = kind.apply

    def noting(self, *arguments, **options):
        FIRED.add(name_of(self))
        return apply(self, *arguments, **options)

    kind.apply = noting


def passes_of(module, names):
    for name in names:
        whole = getattr(module, name, None)
        if whole is None:
            continue
        LISTED.add(name)

        def noting(graph, *arguments, whole=whole, name=name, **options):
            plain = getattr(graph, "graph", graph)
            before = [(node.op, str(node.target), str(node.args)) for node in plain.nodes]
            result = whole(graph, *arguments, **options)
            if before != [(node.op, str(node.target), str(node.args)) for node in plain.nodes]:
                FIRED.add(name)
            return result

        setattr(module, name, noting)


for one in (matcher.LoweringPatternEntry, matcher.GraphPatternEntry, matcher.ReplacementPatternEntry):
    watched(one)
passes_of(joint_graph, ("remove_no_ops", "remove_redundant_views", "constant_fold_uniform_value"))
passes_of(post_grad, ("remove_noop_ops", "reorder_for_locality"))
APPLY = matcher.PatternMatcherPass.apply


def apply_pass(self, *arguments, **options):
    for entries in self.patterns.values():
        LISTED.update(map(name_of, entries))
    return APPLY(self, *arguments, **options)


matcher.PatternMatcherPass.apply = apply_pass


def stop(self):
    raise Lowered


def fired_by(program, parameters, inputs):
    compile_to_module, GraphLowering.compile_to_module = GraphLowering.compile_to_module, stop
    torch._dynamo.reset()
    FIRED.clear()
    try:
        program["load"](parameters)(*inputs.values())
    except Exception as error:
        if "Lowered" not in f"{type(error).__name__}: {error}":
            raise
    finally:
        GraphLowering.compile_to_module = compile_to_module
    return [name for name in FIRED if not OUTSIDE.search(name)]


def listed():
    return [name for name in LISTED if not OUTSIDE.search(name)]
