"""Short programs of conversions: a model as a user has it in its framework, the call of each tool, and what runs the
result."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from generators.graphs import Case
from harness.backends import Target
from harness.conversions.edges import Edge
from harness.conversions.route import Route, route_of
from harness.dialects import TENSORFLOW, TORCH
from harness.findings.upstream import runners
from harness.findings.upstream.literals import literal
from harness.findings.upstream.onnx_nodes import model_lines, model_of
from harness.findings.upstream.parts import bound, by_name, ending, head, inputs_of, statements, tuple_of
from harness.findings.upstream.seen import Seen
from harness.questions.conversion import step_of


@dataclass(frozen=True)
class Given:
    """names: of the inputs; arrays: expressions of them for what runs the result, in order; as_list: does that take a
    list of them rather than a dict?; variables: names of those that the model reads; outputs: how many it has"""

    names: list[str]
    arrays: list[str]
    as_list: bool
    variables: tuple[str, ...] = ()
    outputs: int = 1

    @property
    def dict(self) -> str:
        """By name."""
        return by_name(self.names, self.arrays)

    @property
    def openvino(self) -> str:
        """What a compiled model is called with."""
        return f"[{', '.join(self.arrays)}]" if self.as_list else self.dict


_RUN = {
    "onnx": (*runners.LEVELS, "onnx-reference"),
    "tflite": tuple(runners.KERNELS),
    "openvino": ("openvino",),
    "relax": ("tvm",),
}
"""By format: runners whose lines are written."""


def way_not_written(target: Target) -> str | None:
    """Why no program of this route is written, whatever the graph; None: one is tried."""
    route = route_of(target)
    if route.writer not in ("onnx", "torch", "tensorflow", "tensorflow-variables"):
        return f"none is written for models of {route.writer}"
    forms = [edge.form for edge in route.edges]
    if any(form and not all(forms[:place]) for place, form in enumerate(forms)) or (
        forms[:1] == [True] and route.writer != "onnx"
    ):
        return "another form of a model that a tool has written is none that a user has"
    tool = next((edge.name for edge in route.edges if not edge.form and edge.name not in _CALLS), None)
    if tool:
        return f"none is written for the tool {tool}"
    name = route.runner.name.replace("tf.lite", "litert")
    return None if name in _RUN.get(route.formats[-1].name, ()) else f"none is written for {route.runner.name}"


def conversions(target: Target, case: Case, seen: Seen) -> Iterator[list[str]]:
    """Programs of a route that one is written for. What a tool refuses ends with the call of that tool."""
    route = route_of(target)
    steps = list(route.edges)
    if route.writer == "onnx":
        forms = [edge for edge in steps if edge.form]
        sources, steps = _onnx(case, forms, seen), steps[len(forms) :]
    elif route.writer == "torch":
        sources = _module(case, seen)
    else:
        sources = _function(case, seen, route.writer.endswith("variables"))
    for made, given, place in sources:
        for calls in _converted(route, steps, given, replace(seen, output=place)):
            yield [*made, *calls]


Source = Iterator[tuple[list[str], Given, int]]
"""Lines that make the model, its inputs, and which of its outputs is wrong."""


def _onnx(case: Case, forms: Sequence[Edge], seen: Seen) -> Source:
    model = model_of(case, forms)
    names = [leaf.name for leaf in case.graph.inputs]
    given = Given(names, inputs_of(case), as_list=False, outputs=len(model.outputs))
    for made in (model.bare(), model):
        yield model_lines(made), given, seen.output


def _module(case: Case, seen: Seen) -> Source:
    """A module of PyTorch with parameters as buffers."""
    graph = case.graph
    inputs, held = ([leaf.name for leaf in leaves] for leaves in (graph.inputs, graph.parameters))
    returned = graph.outputs if seen.symptom == "outputs" else (graph.outputs[seen.output],)
    first, last = ending(statements(graph, TORCH), returned)
    buffers = [f'self.register_buffer("{name}", {literal(case.arrays[name], "torch")})' for name in held]
    state = ["def __init__(self):", "    super().__init__()", *(f"    {line}" for line in buffers)]
    body = [*(f"{name} = self.{name}" for name in held), *first, f"return {last}"]
    lines = [
        *head(graph, TORCH),
        "class Model(torch.nn.Module):",
        *(f"    {line}" for line in (*(state if held else ()), f"def forward({', '.join(['self', *inputs])}):")),
        *(f"        {line}" for line in body),
        *bound(case.arrays, inputs, "torch"),
    ]
    yield lines, Given(inputs, [f"{name}.numpy()" for name in inputs], as_list=True), 0


def traced(case: Case, seen: Seen) -> Iterator[list[str]]:
    """A module of PyTorch that torch.fx traces, taken over by TVM's importer."""
    types = [(leaf.type.shape, leaf.type.dtype) for leaf in case.graph.inputs]
    for made, given, place in _module(case, seen):
        call = [
            "from tvm.relax.frontend.torch import from_fx",
            f"module = from_fx(torch.fx.symbolic_trace(Model()), {types})",
        ]
        # there is one device, and from_fx knows no such argument
        plain = [re.sub(r", device=\w+\.device\b", "", line) for line in made]
        yield [*plain, *call, *runners.relax(given.arrays, replace(seen, output=place))]


def tensorflow_function(case: Case, returned: Sequence[str], variables: bool = False) -> list[str]:
    """Lines that bind `f`, a function of the inputs. variables: are parameters such?"""
    graph = case.graph
    specs = ", ".join(f"tf.TensorSpec({list(leaf.type.shape)}, tf.{leaf.type.dtype})" for leaf in graph.inputs)
    first, last = ending(statements(graph, TENSORFLOW), returned)
    held = [(leaf.name, literal(case.arrays[leaf.name], "tensorflow")) for leaf in graph.parameters]
    return [
        *head(graph, TENSORFLOW),
        *(f"{name} = tf.Variable({array})" if variables else f"{name} = {array}" for name, array in held),
        f"@tf.function(input_signature=[{specs}])",
        f"def f({', '.join(leaf.name for leaf in graph.inputs)}):",
        *(f"    {line}" for line in [*first, f"return {last}"]),
    ]


EXACT_LIMITS = "converter.canonicalizing_inf_as_min_max_float = False"
"""Infinities stay what they are."""


def to_tflite(*options: str, of: str = "from_concrete_functions([f.get_concrete_function()])") -> list[str]:
    """Lines that bind `content`, the bytes of a TFLite file, with options of the converter."""
    return [f"converter = tf.lite.TFLiteConverter.{of}", *options, "content = converter.convert()"]


def _function(case: Case, seen: Seen, variables: bool) -> Source:
    """A function of TensorFlow; as a SavedModel where that is what a tool takes."""
    graph = case.graph
    names = [leaf.name for leaf in graph.inputs]
    returned = graph.outputs if seen.symptom == "outputs" else (graph.outputs[seen.output],)
    kept = tuple(leaf.name for leaf in graph.parameters) if variables else ()
    yield tensorflow_function(case, returned, variables), Given(names, inputs_of(case), len(names) == 1, kept), 0


def _converted(route: Route, edges: Sequence[Edge], given: Given, seen: Seen) -> Iterator[list[str]]:
    """The calls of the tools, and what runs the last result; where a tool refuses it, no more than that. What is
    imported into TVM is also compiled."""
    lines: list[str] = []
    refused = step_of(seen.message) if seen.symptom == "rejected" else ""
    for edge in edges:
        lines += _CALLS[edge.name](given)
        if refused == edge.name:
            yield lines
            if edge.target != "relax":
                return
    yield [*lines, *_run(route, given, seen)]


def _run(route: Route, given: Given, seen: Seen) -> list[str]:
    name, last = route.runner.name, route.formats[-1].name
    if last == "onnx" and name in runners.LEVELS:
        return runners.onnxruntime(name, given.dict, seen)
    if last == "onnx":
        return runners.evaluator(given.dict, seen)
    if last == "openvino":
        return runners.openvino("converted", given.openvino, seen)
    if last == "tflite":
        return runners.litert(name, given.arrays, seen)
    tuple_ = given.outputs > 1 or "pt2" in [one.name for one in route.formats]
    return runners.relax(given.arrays, seen, f"[{seen.output}]" if tuple_ else "")


def _inputs(given: Given) -> str:
    return tuple_of(given.names) if given.names else "()"


_EXPORTED = "torch.export.export(Model(), {inputs})"
_FILE = 'pathlib.Path("model.tflite").write_bytes(content)'


def _lines(*texts: str) -> Callable[[Given], list[str]]:
    """Lines with the inputs in them, and a list of their names."""

    def lines(given: Given) -> list[str]:
        names = "[" + ", ".join(f'"{name}"' for name in given.names) + "]"
        return [text.replace("{inputs}", _inputs(given)).replace("{names}", names) for text in texts]

    return lines


def _saved(*texts: str) -> Callable[[Given], list[str]]:
    """Lines behind those that write a SavedModel."""

    def lines(given: Given) -> list[str]:
        kept = [f"module.kept = [{', '.join(given.variables)}]"] if given.variables else []
        save = 'tf.saved_model.save(module, "model", signatures=f)'
        return ["module = tf.Module()", "module.f = f", *kept, save, *texts]

    return lines


def _tflite(given: Given) -> list[str]:
    """What is no SavedModel is converted as it is."""
    if given.variables:
        return [*_saved()(given), *to_tflite(EXACT_LIMITS, of='from_saved_model("model")')]
    return to_tflite(EXACT_LIMITS)


_CALLS: dict[str, Callable[[Given], list[str]]] = {
    "torch-onnx": _lines("model = torch.onnx.export(Model(), {inputs}, dynamo=True, verbose=False).model_proto"),
    "torchscript-onnx": _lines(
        "import io",
        "import onnx",
        "file = io.BytesIO()",
        "torch.onnx.export(Model(), {inputs}, file, input_names={names}, dynamo=False, opset_version=18)",
        "model = onnx.load_from_string(file.getvalue())",
    ),
    "openvino-pt2": _lines("import openvino", f"converted = openvino.convert_model({_EXPORTED})"),
    "openvino-script": _lines("import openvino", "converted = openvino.convert_model(Model(), example_input={inputs})"),
    "tvm-pt2": _lines(
        "from tvm.relax.frontend.torch import from_exported_program",
        f"module = from_exported_program({_EXPORTED}, run_ep_decomposition=True)",
    ),
    "tvm-pt2-whole": _lines(
        "from tvm.relax.frontend.torch import from_exported_program",
        f"module = from_exported_program({_EXPORTED}, run_ep_decomposition=False)",
    ),
    "tflite": _tflite,
    "openvino-savedmodel": _saved("import openvino", 'converted = openvino.convert_model("model")'),
    "tf2onnx": _lines(
        "import tf2onnx", "model, _ = tf2onnx.convert.from_function(f, input_signature=f.input_signature, opset=18)"
    ),
    "openvino-tflite": _lines(
        "import openvino", "import pathlib", _FILE, 'converted = openvino.convert_model("model.tflite")'
    ),
    "tf2onnx-tflite": _lines(
        "import pathlib", "import tf2onnx", _FILE, 'model, _ = tf2onnx.convert.from_tflite("model.tflite", opset=18)'
    ),
    "tvm-tflite": _lines(
        "import tflite",
        "from tvm.relax.frontend.tflite import from_tflite",
        "module = from_tflite(tflite.Model.GetRootAsModel(content, 0))",
    ),
    "openvino-onnx": _lines("import openvino", "converted = openvino.Core().read_model(model.SerializeToString())"),
    "tvm-onnx": _lines(
        "from tvm.relax.frontend.onnx import from_onnx", "module = from_onnx(model, keep_params_in_input=False)"
    ),
    "tvm-onnx-parameters": _lines(
        "from tvm import relax",
        "from tvm.relax.frontend import detach_params",
        "from tvm.relax.frontend.onnx import from_onnx",
        "module, kept = detach_params(from_onnx(model, keep_params_in_input=True))",
        'values = kept.get("main", [])',
        'names = [one.name for one in module["main"].params][-len(values) :] if values else []',
        'module = relax.transform.BindParams("main", dict(zip(names, values)))(module)',
    ),
    "ort-optimised": _lines(
        "import onnx",
        "import onnxruntime",
        "options = onnxruntime.SessionOptions()",
        "options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED",
        'options.optimized_model_filepath = "optimised.onnx"',
        "onnxruntime.InferenceSession(model.SerializeToString(), options)",
        'model = onnx.load("optimised.onnx")',
    ),
    "onnx-version": _lines(
        "from onnx import version_converter",
        "model = version_converter.convert_version(model, model.opset_import[0].version + 1)",
    ),
}
"""By edge: what a user writes."""
