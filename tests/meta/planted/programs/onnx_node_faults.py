"""A conversion from ONNX to ONNX that makes the result of one node wrong. Read as text, behind constants that say what:
OUTPUT, the name of that result, KIND, SIZE, SHAPE, and HIDDEN: do values on the way lose their names?"""

import numpy as np
import onnx
from onnx import helper, numpy_helper


def convert(source, target):
    model = onnx.load(source)
    graph = model.graph
    place = next(at for at, node in enumerate(graph.node) if OUTPUT in node.output)
    if not changed(graph.node[place]):
        node = onnx.NodeProto()
        node.CopyFrom(graph.node[place])
        inserted = Inserted("right")
        PLANTS[KIND](inserted, "right")
        inserted.nodes[-1].output[0] = OUTPUT
        node.output[list(node.output).index(OUTPUT)] = "right"
        graph.node[place].CopyFrom(called(model, node, inserted.nodes))
    if HIDDEN:
        rename(graph)
    onnx.save(model, target)


def called(model, node, behind):
    """The call of a function that is a node with others behind it, as one operator: runners show no value inside."""
    inputs, outputs = list(dict.fromkeys(filter(None, node.input))), [name for name in node.output if name]
    outputs[outputs.index("right")] = OUTPUT
    names = {name: f"in{place}" for place, name in enumerate(inputs)}
    names |= {name: f"out{place}" for place, name in enumerate(outputs)}
    for one in (node, *behind):
        for side in (one.input, one.output):
            side[:] = [names.get(name, name) for name in side]
    sides = list(names)[: len(inputs)], list(names)[len(inputs) :]
    body = "planted", "Planted", *([names[name] for name in side] for side in sides), [node, *behind]
    model.functions.append(helper.make_function(*body, model.opset_import))
    model.opset_import.append(helper.make_opsetid("planted", 1))
    return helper.make_node("Planted", *sides, name=node.name, domain="planted")


def rename(graph):
    """All values that nodes make and that are no outputs; graphs inside of nodes see the new names, too."""
    kept = {one.name for one in graph.output}
    made = [name for node in graph.node for name in node.output if name and name not in kept]
    names = {name: f"hidden{place}" for place, name in enumerate(made)}

    def walk(nodes):
        for node in nodes:
            for side in (node.input, node.output):
                side[:] = [names.get(name, name) for name in side]
            for attribute in node.attribute:
                if attribute.type == onnx.AttributeProto.GRAPH:
                    walk(attribute.g.node)
                    for one in attribute.g.output:
                        one.name = names.get(one.name, one.name)

    walk(graph.node)
    del graph.value_info[:]


def changed(node):
    """Is the node itself made wrong? Then nothing is inserted behind it."""
    if KIND == "epsilon":
        epsilon = next((one for one in node.attribute if one.name == "epsilon"), None)
        value = epsilon.f if epsilon is not None else 1e-5
        if epsilon is not None:
            node.attribute.remove(epsilon)
        node.attribute.append(helper.make_attribute("epsilon", 100 * value))
        return True
    if KIND == "axis" and node.op_type == "Concat":  # the other way round
        names = list(node.input)[::-1]
        del node.input[:]
        node.input.extend(names)
        return True
    return False


class Inserted:
    """Nodes behind one."""

    def __init__(self, name):
        self.name, self.nodes = name, []

    def __call__(self, operator, *inputs, **attributes):
        name = f"{self.name}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [name], **attributes))
        return name

    def number(self, value):
        return self("Constant", value=numpy_helper.from_array(np.array(value, np.float32)))


def scaled(put, y):
    put("Mul", y, put.number(1 + SIZE))


def shifted(put, y):
    """By a part of the greatest element."""
    top = put("ReduceMax", put("Abs", y), keepdims=0)
    put("Add", y, put("Mul", top, put.number(SIZE)))


def scattered(put, y):
    """Each element by a part of itself, up or down."""
    sign = put("Cos", put("Mul", y, put.number(1e4)))
    put("Add", y, put("Mul", put("Mul", y, sign), put.number(SIZE)))


def rounded(put, y):
    """To whole 2048ths of the greatest element."""
    step = put("Mul", put("ReduceMax", put("Abs", y), keepdims=0), put.number(2.0**-11))
    step = put("Max", step, put.number(1e-30))  # where all elements are tiny
    half = put("Add", put("Div", y, step), put.number(0.5))
    put("Mul", put("Floor", half), step)  # Round is of opset 11


def saturated(put, y):
    """The upper tenth of its range."""
    top, bottom = put("ReduceMax", y, keepdims=0), put("ReduceMin", y, keepdims=0)
    span = put("Sub", top, bottom)
    put("Min", y, put("Sub", top, put("Mul", span, put.number(0.1))))


def turned(put, y):
    """Two axes of one length swapped."""
    axes = list(range(len(SHAPE)))
    one, other = next((i, j) for j in axes for i in axes[:j] if SHAPE[i] == SHAPE[j] > 1)
    axes[one], axes[other] = other, one
    put("Transpose", y, perm=axes)


PLANTS = {
    "scale": scaled,
    "offset": shifted,
    "scatter": scattered,
    "rounding": rounded,
    "saturation": saturated,
    "axis": turned,
}
