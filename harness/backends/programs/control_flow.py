"""Programs with the model in a loop, and in the branches of a conditional. `load(parameters)` returns a function from
the inputs with an axis of lanes in front to the outputs with it: the loop goes over the lanes; the branch of a lane, of
which there is one each, is chosen by a number that the compiler does not know."""

from __future__ import annotations

_CHOSEN = """each = [compiled({number}, *lanes) for number in range(len(inputs[0]))]
{indent}return [np.stack(outputs) for outputs in zip(*each)]"""

_JAX = """
def load(parameters):
    with jax.default_device(jax.devices("cpu")[0]):  # also where there is a GPU
        bound = [jnp.asarray(parameters[name]) for name in PARAMETERS]

    {function}

    compiled = {compiled}

    def run(*inputs):
        with jax.default_device(jax.devices("cpu")[0]):
            lanes = [jnp.asarray(x) for x in inputs]
            {returns}

    return run
"""

_JAX_LOOP = """def whole(*lanes):
        return jax.lax.map(lambda lane: model(*lane, *bound), tuple(lanes))"""

_JAX_BRANCH = """def whole(number, *lanes):
        branches = [lambda lanes, k=k: model(*[x[k] for x in lanes], *bound) for k in range(len(lanes[0]))]
        return jax.lax.switch(number, branches, tuple(lanes))"""

_TENSORFLOW = """
def load(parameters):
    bound = [tf.constant(parameters[name]) for name in PARAMETERS]

    @tf.function{options}
    {function}

    def run(*inputs):
        lanes = [tf.constant(x) for x in inputs]
        {returns}

    return run
"""

_TENSORFLOW_LOOP = """def compiled(*lanes):
        types = tuple(tf.TensorSpec(shape[1:], dtype) for dtype, shape in OUTPUTS)
        return tf.map_fn(lambda lane: tuple(model(*lane, *bound)), tuple(lanes), fn_output_signature=types)"""

_TENSORFLOW_BRANCH = """def compiled(number, *lanes):
        branches = [lambda k=k: model(*[x[k] for x in lanes], *bound) for k in range(lanes[0].shape[0])]
        return tf.switch_case(number, branches)"""

_TORCH = """
def load(parameters):
    bound = [torch.from_numpy(parameters[name]) for name in PARAMETERS]

    def branch(k):
        # what branches return may be no view of what they take, and has the same strides
        return lambda *lanes: tuple(y.contiguous().clone() for y in model(*[x[k] for x in lanes], *bound))

    def chosen(number, *lanes):
        def rest(*lanes):
            return torch.cond(number == 1, branch(1), branch(2), lanes)

        return torch.cond(number == 0, branch(0), rest, lanes)

    compiled = {compiled}

    def run(*inputs):
        lanes = [torch.from_numpy(x) for x in inputs]
        with torch.no_grad():
            each = [compiled(torch.tensor(number), *lanes) for number in range(len(inputs[0]))]
        return [output.numpy() for output in map(torch.stack, zip(*each))]

    return run
"""

_INFOS = """
    def element(dtype):
        return helper.np_dtype_to_tensor_dtype(np.dtype(dtype))

    def of_lane(names, types):
        return [
            helper.make_tensor_value_info(name, element(dtype), shape[1:])
            for name, (dtype, shape) in zip(names, types)
        ]

    g = Builder()
    given = {name: (element(dtype), shape) for name, (dtype, shape) in INPUTS.items()}
"""

ONNX_LOOP = f"""{_INFOS}\
    lane = [f"{{name}}_lane" for name in INPUTS]
    made = [g.op("Identity", y) for y in model(g, *lane, *PARAMETERS)]
    body = helper.make_graph(g.nodes, "body", of_lane(lane, INPUTS.values()), of_lane(made, OUTPUTS))
    results = [f"scan.{{i}}" for i in range(len(OUTPUTS))]
    g.nodes = [helper.make_node("Scan", [*INPUTS], results, body=body, num_scan_inputs=len(INPUTS))]
    proto = g.model(given, parameters, [(element(dtype), shape) for dtype, shape in OUTPUTS], results)
"""
"""Binds `proto`, as `onnx_model.PROTO`: a Scan over the lanes."""

ONNX_BRANCH = f"""{_INFOS}\
    lanes = next(iter(INPUTS.values()))[1][0]
    asked = [g.op("Equal", "branch.number", g.const(k, "int64")) for k in range(lanes - 1)]
    branches = []
    for k in range(lanes):
        start = len(g.nodes)
        lane = [g.op("Gather", name, g.const(k, "int64"), axis=0) for name in INPUTS]
        made = [g.op("Identity", y) for y in model(g, *lane, *PARAMETERS)]
        branches.append(helper.make_graph(g.nodes[start:], f"branch{{k}}", [], of_lane(made, OUTPUTS)))

    def chosen(k):
        if k == lanes - 1:
            return branches[k]
        made = [f"chosen{{k}}.{{i}}" for i in range(len(OUTPUTS))]
        node = helper.make_node("If", [asked[k]], made, then_branch=branches[k], else_branch=chosen(k + 1))
        return helper.make_graph([node], f"from{{k}}", [], of_lane(made, OUTPUTS))

    whole = chosen(0)
    g.nodes = [*g.nodes[: len(asked)], *whole.node]
    proto = g.model(
        {{**given, "branch.number": (element("int64"), ())}},
        parameters,
        [(element(dtype), shape[1:]) for dtype, shape in OUTPUTS],
        [output.name for output in whole.output],
    )
"""
"""Binds `proto`: an If for each lane but the last, the next one in the branch that is taken otherwise. It takes
`branch.number` behind the inputs, and returns the outputs of one lane."""


def jax(compiled: str) -> dict[str, str]:
    """By the question's name. compiled: an expression of `whole`."""
    mapped = "return [np.asarray(output) for output in compiled(*lanes)]"
    chosen = _CHOSEN.format(number="number", indent=" " * 12)
    return {
        "loop": _JAX.format(function=_JAX_LOOP, compiled=compiled, returns=mapped),
        "branch": _JAX.format(function=_JAX_BRANCH, compiled=compiled, returns=chosen),
    }


def tensorflow(options: str) -> dict[str, str]:
    """By the question's name; the whole as one tf.function."""
    mapped = "return [output.numpy() for output in compiled(*lanes)]"
    chosen = _CHOSEN.format(number="tf.constant(number)", indent=" " * 8)
    return {
        "loop": _TENSORFLOW.format(options=options, function=_TENSORFLOW_LOOP, returns=mapped),
        "branch": _TENSORFLOW.format(options=options, function=_TENSORFLOW_BRANCH, returns=chosen),
    }


def torch(compiled: str) -> dict[str, str]:
    """By the question's name; PyTorch's loops are prototypes. compiled: an expression of `chosen`."""
    return {"branch": _TORCH.format(compiled=compiled)}
