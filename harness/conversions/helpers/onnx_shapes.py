"""The same ONNX model with sizes that are computed from shapes, as exporters of models with open sizes write them, and
with open sizes. Read as text, behind onnx_forms.py; the program of an edge carries both."""

SIZED = {
    "CenterCropPad": (1,),
    "ConstantOfShape": (0,),
    "Expand": (1,),
    "Gather": (1,),
    "OneHot": (1,),
    "Pad": (1,),
    "Range": (0, 1, 2),
    "Reshape": (1,),
    "Resize": (3,),
    "Slice": (1, 2),
    "Split": (1,),
    "Tile": (1,),
    "TopK": (1,),
    "Trilu": (1,),
}
"""Operands that exporters compute from shapes: sizes, numbers of elements, places."""


class Sizes:
    """Nodes that compute whole numbers from the shapes of values that stand before them."""

    def __init__(self, model):
        self.graph, self.opset = model.graph, opset_of(model)
        self.shapes, self.constants = ranks_of(model), constants_of(model.graph)
        held = {tensor.name for tensor in model.graph.initializer}
        self.inputs = [one.name for one in model.graph.input if one.name not in held]
        self.nodes, self.turn, self.count = [], 0, 0

    def name(self):
        self.count += 1
        return f"size.{self.count}"

    def const(self, value, dtype="int64"):
        tensor = numpy_helper.from_array(np.asarray(value, dtype), self.name())
        self.graph.initializer.append(tensor)
        return tensor.name

    def op(self, kind, *operands, **attributes):
        self.nodes.append(helper.make_node(kind, operands, [self.name()], **attributes))
        return self.nodes[-1].output[0]

    def next(self, options):
        """One way after the other, beginning anywhere."""
        self.turn += 1
        return options[self.turn % len(options)]

    def length(self, name, axis):
        """The size of a value along an axis, without dimensions."""
        way = self.next(("gathered", "sliced", "part"))
        if way == "part" and self.opset >= 15:
            part = self.op("Shape", name, start=axis, end=axis + 1)
            return self.op("Squeeze", part, self.const([0])) if self.opset >= 13 else part
        whole = self.op("Shape", name)
        if way == "sliced" and self.opset >= 13:
            part = self.op("Slice", whole, self.const([axis]), self.const([axis + 1]), self.const([0]))
            return self.op("Squeeze", part, self.const([0]))
        return self.op("Gather", whole, self.const(axis), axis=0)

    def number(self, value, sources):
        """A number without dimensions; None where it has to be written."""
        if value in (-1, 0) or abs(value) > 2**31:
            return None
        axes = [(name, axis) for name in sources for axis, size in enumerate(self.shapes[name]) if size == value]
        if axes:
            return self.length(*self.next(axes))
        for name in sources:
            shape = self.shapes[name]
            if len(shape) > 1 and np.prod(shape) == value:
                return self.op("Size", name)
        bases = [(name, axis) for name in sources for axis, size in enumerate(self.shapes[name]) if size > 1]
        if not bases:
            return None
        name, axis = self.next(bases)
        size, base = self.shapes[name][axis], self.length(name, axis)
        if value > 0 and value % size == 0:
            return self.op("Mul", base, self.const(value // size))
        if value > 0 and size // (size // value or 1) == value:
            return self.op("Div", base, self.const(size // value))
        return (
            self.op("Sub", base, self.const(size - value))
            if value < size
            else self.op("Add", base, self.const(value - size))
        )

    def array(self, values, sources):
        """What computes the numbers, or None. sources: names of values whose shapes are known."""
        if not values.ndim:
            return self.number(int(values), sources)
        same = [name for name in sources if self.shapes[name] == tuple(values.tolist())]
        if same and self.next((True, False)):
            return self.op("Shape", same[0])
        parts, some = [], False
        for value in values.tolist():
            number = self.number(value, sources)
            some = some or number is not None
            parts.append(self.const([value]) if number is None else self.op("Unsqueeze", number, self.const([0])))
        if not some:
            return None
        return parts[0] if len(parts) == 1 else self.op("Concat", *parts, axis=0)


def inferred(array, wanted, shape):
    """A shape of which one size follows from the others, where it does."""
    if wanted and array.size > 1 and (array > 0).all() and shape is not None and None not in shape:
        array = array.copy()
        array[int(np.argmax(array))] = -1
    return array


def shaped(model):
    """Sizes and places are computed from the shapes of inputs and of what a node takes."""
    sizes, nodes = Sizes(model), []
    for node in model.graph.node:
        sizes.nodes = []
        for place in SIZED.get(node.op_type, ()) if node.domain in ("", "ai.onnx") and sizes.opset >= 13 else ():
            array = sizes.constants.get(node.input[place]) if len(node.input) > place else None
            if array is None or array.dtype != np.int64 or array.ndim > 1 or not array.size:
                continue
            near = [*node.input[:1], *sizes.inputs]
            known = [sizes.shapes.get(name) for name in near]
            sources = [name for name, shape in zip(near, known) if shape and None not in shape]
            sizes.turn = sum(sum(sizes.shapes[name]) for name in sources) + place
            if node.op_type == "Reshape":
                array = inferred(array, sizes.next((True, False, False)), sizes.shapes.get(node.input[0]))
            made = sizes.array(array, list(dict.fromkeys(sources)))
            node.input[place] = made or node.input[place]
        nodes += [*sizes.nodes, node]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    onnx.checker.check_model(model, full_check=True)


def opened(model, names="n{}"):
    """Sizes of inputs are open: those that are the same have one name, or none has a name. A size of 1 stays, which
    decides what is repeated; sizes of outputs are not said."""
    held = {tensor.name for tensor in model.graph.initializer}
    for value in model.graph.input:
        if value.name not in held:
            for dim in value.type.tensor_type.shape.dim:
                if dim.dim_value > 1 and names:
                    dim.dim_param = names.format(dim.dim_value)
                elif dim.dim_value > 1:
                    dim.Clear()
    del model.graph.value_info[:]
    for value in model.graph.output:
        for dim in value.type.tensor_type.shape.dim:
            dim.Clear()
    onnx.checker.check_model(model)
