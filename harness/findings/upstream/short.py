"""A program of at most 30 lines that shows a fault: inputs as literals, the operators as a user writes them, expected
and got side by side, and one assertion. Several ways to write it are offered, the shortest first, since what a target
of ours does step by step a user gets by one call; whoever runs them keeps the first that shows the fault."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from generators.graphs import Case
from harness.backends import Target
from harness.dialects import RELAX
from harness.findings.upstream.literals import NoProgramError, literal
from harness.findings.upstream.onnx_nodes import feeds, model_lines, nodes_of
from harness.findings.upstream.seen import Seen, checks

LONGEST = 30
"""Lines, without empty ones."""

_TORCH = {
    "torch-eager": "",
    "torch-aot-eager": '@torch.compile(backend="aot_eager")',
    "torch-inductor": "@torch.compile",
}
_TENSORFLOW = {"tf-eager": "", "tf-graph": "@tf.function", "tf-xla": "@tf.function(jit_compile=True)"}
_JAX = {"jax-eager": "", "jax-jit": "@jax.jit"}
DECORATORS = {**_TORCH, **_TENSORFLOW, **_JAX}
"""By target: what makes of a function of the framework what the target runs ("": nothing)."""

_LEVELS = {"ort-disable": "DISABLE_ALL", "ort-basic": "ENABLE_BASIC", "ort-extended": "ENABLE_EXTENDED", "ort-all": ""}
_KERNELS = {
    "litert-reference": "OpResolverType.BUILTIN_REF",
    "litert-builtin": "OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES",
    "litert-xnnpack": "",
}
_TVM_PASSES = (
    "CanonicalizeBindings, EliminateCommonSubexpr, FuseTransposeMatmul, CombineParallelMatmul",
    "CanonicalizeBindings, EliminateCommonSubexpr, LegalizeOps, FoldConstant",
)
"""Passes that TVM's default pipeline leaves out, and that levels of ours take."""

PREFERRED = (
    *("torch-eager", "tf-eager", "jax-jit", "jax-eager", "ort-all", "openvino", "litert-xnnpack", "tvm-O2", "tvm-O1"),
    *("torch-inductor", "tf-graph", "tf-xla", "ort-disable", "litert-builtin", "tvm-O3", "tvm-O0"),
)
"""Targets that need the fewest lines first."""


@dataclass(frozen=True)
class Family:
    """How programs of a framework read `y`. names: its dtype's name; item: the element {element} as a {kind}."""

    names: str
    item: str


_NUMPY = Family("str(y.dtype)", "{kind}({element})")
_FAMILIES = {
    "torch": Family('str(y.dtype).removeprefix("torch.")', "{element}.item()"),
    "tensorflow": Family("y.dtype.name", "{kind}({element})"),
    "jax": _NUMPY,
}


def programs(target: Target, case: Case, seen: Seen) -> Iterator[str]:
    """Programs that may show what was seen, the shortest first. Raises NoProgramError where none can be written."""
    if target.name in DECORATORS:
        bodies = _function(target, case, seen)
    elif target.name in _LEVELS or target.name == "openvino":
        bodies = _onnx(target, case, seen)
    elif target.name in _KERNELS:
        bodies = _litert(target, case, seen)
    elif re.fullmatch(r"tvm-O\d", target.name):
        bodies = _relax(case, seen)
    else:
        raise NoProgramError(f"no short program is written for {target.name}")
    for body in bodies:
        text = _tidy(body)
        count = sum(bool(line.strip()) for line in text.splitlines())
        if count > LONGEST:
            raise NoProgramError(f"the program has {count} lines, and a short one at most {LONGEST}")
        yield text


def _function(target: Target, case: Case, seen: Seen) -> Iterator[list[str]]:
    """Statements as they are where nothing is compiled, else a function of the inputs; PyTorch's parameters are inputs,
    too, the others' are constants of the function."""
    graph, dialect = case.graph, target.dialect
    decorator, maker = DECORATORS[target.name], dialect.name
    family = _FAMILIES[maker]
    leaves = [f"{leaf.name} = {literal(case.arrays[leaf.name], maker)}" for leaf in graph.leaves]
    nodes = [f"{node.name} = {dialect.node(graph, node)}" for node in graph.nodes]
    helpers = _bare(dialect.source(graph, "").split("def model(", 1)[0])
    returned = graph.outputs if seen.symptom == "outputs" else (graph.outputs[seen.output],)
    y = ", ".join(returned)
    head = [*dialect.imports.splitlines(), *helpers, *leaves]
    tail = checks(seen, family.names, family.item)
    last = nodes[-1].removeprefix(f"{y} = ")
    first = nodes[:-1] if last != nodes[-1] else nodes
    last = last if last != nodes[-1] else y
    if not decorator:
        yield [*head, *first, f"y = {last}", *tail]
        return
    inputs = [leaf.name for leaf in (graph.leaves if maker == "torch" else graph.inputs)]
    body = [f"    {line}" for line in [*first, f"return {last}"]]
    yield [*head, decorator, f"def f({', '.join(inputs)}):", *body, f"y = f({', '.join(inputs)})", *tail]


def _litert(target: Target, case: Case, seen: Seen) -> Iterator[list[str]]:
    """A function of TensorFlow, converted, and run by the interpreter."""
    graph, dialect, kernels = case.graph, target.dialect, _KERNELS[target.name]
    helpers = _bare(dialect.source(graph, "").split("def model(", 1)[0])
    names = ", ".join(leaf.name for leaf in graph.inputs)
    specs = ", ".join(f"tf.TensorSpec({list(leaf.type.shape)}, tf.{leaf.type.dtype})" for leaf in graph.inputs)
    resolver = f", experimental_op_resolver_type={kernels}" if kernels else ""
    yield [
        *dialect.imports.splitlines(),
        f"from ai_edge_litert.interpreter import Interpreter{', OpResolverType' if kernels else ''}",
        *helpers,
        *(f"{leaf.name} = {literal(case.arrays[leaf.name], 'tensorflow')}" for leaf in graph.parameters),
        f"@tf.function(input_signature=[{specs}])",
        f"def f({names}):",
        *(f"    {node.name} = {dialect.node(graph, node)}" for node in graph.nodes),
        f"    return {graph.outputs[seen.output]}",
        "converter = tf.lite.TFLiteConverter.from_concrete_functions([f.get_concrete_function()])",
        "converter.canonicalizing_inf_as_min_max_float = False",
        f"interpreter = Interpreter(model_content=converter.convert(){resolver})",
        "interpreter.allocate_tensors()",
        *(
            f'interpreter.set_tensor(interpreter.get_input_details()[{number}]["index"], '
            f"{literal(case.arrays[leaf.name], 'numpy')})"
            for number, leaf in enumerate(graph.inputs)
        ),
        "interpreter.invoke()",
        'y = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])',
        *checks(seen, _NUMPY.names, _NUMPY.item),
    ]


def _onnx(target: Target, case: Case, seen: Seen) -> Iterator[list[str]]:
    """A model of nodes, run by ONNX Runtime at the target's level, or by OpenVINO."""
    nodes = nodes_of(target.program(case.graph))
    given = feeds(case.graph, case)
    level = _LEVELS.get(target.name, "")
    if target.name == "openvino":
        run = [
            "core = openvino.Core()",
            'precision = {"INFERENCE_PRECISION_HINT": "f32"}',
            'compiled = core.compile_model(core.read_model(model.SerializeToString()), "CPU", precision)',
            f"y = compiled({given}){'' if seen.symptom == 'outputs' else f'[{seen.output}]'}",
        ]
    else:
        options = [
            "options = onnxruntime.SessionOptions()",
            f"options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_{level}",
        ]
        session = f"onnxruntime.InferenceSession(model.SerializeToString(){', options' if level else ''})"
        which = "" if seen.symptom == "outputs" else f"[{seen.output}]"
        run = [*(options if level else ()), f"session = {session}", f"y = session.run(None, {given}){which}"]
    imports = ["import numpy as np", f"import {'openvino' if target.name == 'openvino' else 'onnxruntime'}"]
    imports.append("from onnx import TensorProto, helper, numpy_helper")
    for apart in (False, True):
        yield [*imports, *model_lines(case, nodes, apart), *run, *checks(seen, _NUMPY.names, _NUMPY.item)]


def _relax(case: Case, seen: Seen) -> Iterator[list[str]]:
    """A function of Relax, compiled by TVM's default pipeline, or by it after passes that levels of ours take."""
    graph = case.graph
    helpers = _bare(RELAX.source(graph, "").split("def model(", 1)[0])
    arguments = ", ".join(leaf.name for leaf in graph.leaves)
    head = [
        *RELAX.imports.splitlines(),
        *helpers,
        "bb = relax.BlockBuilder()",
        *(
            f'{leaf.name} = relax.Var("{leaf.name}", relax.TensorType({leaf.type.shape}, "{leaf.type.dtype}"))'
            for leaf in graph.leaves
        ),
        f'with bb.function("main", [{arguments}]):',
        "    with bb.dataflow():",
        *(f"        {RELAX.line.format(name=n.name, expression=RELAX.node(graph, n))}" for n in graph.nodes),
        f"        y = bb.emit_output({graph.outputs[seen.output]})",
        "    bb.emit_func_output(y)",
        "module = bb.get()",
    ]
    bound = ", ".join(f'"{leaf.name}": {literal(case.arrays[leaf.name], "numpy")}' for leaf in graph.parameters)
    if bound:
        head.append(f'module = relax.transform.BindParams("main", {{{bound}}})(module)')
    given = ", ".join(f"tvm.runtime.tensor({literal(case.arrays[leaf.name], 'numpy')})" for leaf in graph.inputs)
    tail = [
        'machine = relax.VirtualMachine(tvm.compile(module, "llvm"), tvm.cpu())',
        f'y = machine["main"]({given}).numpy()',
        *checks(seen, _NUMPY.names, _NUMPY.item),
    ]
    yield [*head, *tail]
    for passes in _TVM_PASSES:
        named = ", ".join(f'"{name}"' for name in passes.split(", "))
        yield [*head, f"for name in ({named}):", "    module = getattr(relax.transform, name)()(module)", *tail]


def _bare(source: str) -> list[str]:
    """Functions without docstrings and comments, as lines."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node) and len(node.body) > 1:
            node.body = node.body[1:]
    return ast.unparse(tree).splitlines()


def _tidy(lines: list[str]) -> str:
    """The imports that are used, what has to stand before, and empty lines between the parts."""
    body = "\n".join(lines)
    used = [line for line in lines if line.startswith(("import ", "from "))]
    rest = [line for line in lines if line not in used]
    text = "\n".join(rest)
    if re.search(r"\b(nan|inf)\b", re.sub(r"np\.(nan|inf)", "", text)):
        used.insert(0, "from math import inf, nan")
    if re.search(r"(?<![\w.])math\.", text):
        used.insert(0, "import math")
    kept = [line for line in dict.fromkeys(used) if line != "import numpy as np" or re.search(r"\bnp\.", text)]
    if "x64" in body and not re.search(r"64\b", re.sub(r"jax_enable_x64", "", text)):
        rest = [line for line in rest if "jax_enable_x64" not in line]
    rest = [line for line in rest if line.strip()]
    rest = _spaced(rest)
    return "\n".join([*kept, "", *rest]) + "\n"


def _spaced(lines: list[str]) -> list[str]:
    """Empty lines around functions."""
    found: list[str] = []
    inside = False
    for line in lines:
        begins = line.startswith(("def ", "class ", "@"))
        ends = inside and not line.startswith((" ", "def ", "class ", "@"))
        if (begins and found and not found[-1].startswith("@")) or ends:
            found.append("")
        inside = begins or (inside and not ends)
        found.append(line)
    return found
