"""Relax: its operators, and the calls of a module."""

import tvm
from tvm import relax


def listed():
    found = {}
    for name in tvm.ir.Op.list_op_names():
        if name.startswith("relax."):
            operator = tvm.ir.Op.get(name)
            arguments = operator.arguments or ()
            features = []
            for one in arguments:
                features += [f"operand {one.name}={kind}" for kind in ("tensor", "constant")]
            found[name.removeprefix("relax.")] = features
    return found


def observe(program, note):
    types = {**program["INPUTS"], **program["PARAMETERS"]}
    bb = relax.BlockBuilder()
    arguments = [relax.Var(name, relax.TensorType(shape, dtype)) for name, (dtype, shape) in types.items()]
    with bb.function("main", arguments):
        with bb.dataflow():
            results = bb.emit_output(relax.Tuple(program["model"](bb, *arguments)))
        bb.emit_func_output(results)
    constants = set(arguments[len(program["INPUTS"]) :])
    for function in bb.get().functions.values():
        if isinstance(function, relax.Function):
            relax.analysis.post_order_visit(function, lambda expression: observe_call(expression, constants, note))


def observe_call(expression, constants, note):
    if not isinstance(expression, relax.Call) or not isinstance(expression.op, tvm.ir.Op):
        return
    operator = expression.op.name.removeprefix("relax.")
    features, names = [], [one.name for one in expression.op.arguments or ()]
    for number, operand in enumerate(expression.args):
        if not names:
            break
        constant = "Const" in type(operand).__name__ or any(operand.same_as(one) for one in constants)
        features.append(f"operand {names[min(number, len(names) - 1)]}={'constant' if constant else 'tensor'}")
    for name, value in attributes_of(expression.attrs):
        if isinstance(value, bool):  # the other one is worth a case, too
            features += [f"attribute {name}={value}"]
            note(operator, [f"accepts attribute {name}={how}" for how in (False, True)])
    note(operator, features)


def attributes_of(attributes):
    if attributes is None:
        return
    for name in dir(attributes):
        if not name.startswith("_"):
            try:
                value = getattr(attributes, name)
            except Exception:
                continue
            if not callable(value):
                yield name, value
