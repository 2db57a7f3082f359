"""PyTorch: the schemas of its dispatcher, and what a function calls: seen by functions of Python, before operators that
consist of others are taken apart, and by the dispatcher, after."""

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

DTYPES = [
    *("float32", "float64", "float16", "bfloat16", "bool", "int8", "int16", "int32", "int64"),
    *("uint8", "uint16", "uint32", "uint64", "complex64", "complex128"),
]


def operator_of(schema):
    name = schema.name.removeprefix("aten::")
    return f"{name}.{schema.overload_name or 'default'}"


SCHEMAS = {operator_of(schema): schema for schema in torch._C._jit_get_all_schemas() if schema.name[:6] == "aten::"}


def kind_of(argument):
    """tensor, optional tensor, Scalar, or whatever its type is called."""
    return str(argument.real_type if hasattr(argument, "real_type") else argument.type)


def listed():
    found = {}
    for operator, schema in SCHEMAS.items():
        features = [f"is {one}" for one in tags_of(schema)]
        for argument in schema.arguments:
            name, kind = argument.name, kind_of(argument)
            if kind == "Tensor":
                continue
            if kind == "Optional[Tensor]":
                features += [f"operand {name}={how}" for how in ("absent", "tensor")]
            elif kind in ("number", "Optional[number]"):
                features += [f"operand {name}={how}" for how in ("int", "float")]
            elif kind == "bool":
                features += [f"attribute {name}={how}" for how in (False, True)]
            elif argument.has_default_value():
                features += [f"attribute {name}={how}" for how in ("default", "given")]
        found[operator] = features
    return found


def tags_of(schema):
    tensors = any("Tensor" in str(one.type) for one in (*schema.arguments, *schema.returns))
    if not tensors:
        yield "without tensors"
    if any(argument.is_out for argument in schema.arguments):
        yield "written to an out="
    elif any(argument.alias_info is not None and argument.alias_info.is_write for argument in schema.arguments):
        yield "in place"


def features(schema, args, kwargs):
    for number, argument in enumerate(schema.arguments):
        name, kind = argument.name, kind_of(argument)
        absent = number >= len(args) and name not in kwargs
        value = argument.default_value if absent else kwargs[name] if name in kwargs else args[number]
        if kind == "Optional[Tensor]":
            yield f"operand {name}={'absent' if value is None else 'tensor'}"
        elif isinstance(value, int | float) and kind in ("number", "Optional[number]"):
            yield f"operand {name}={'float' if isinstance(value, float) else 'int'}"
        elif kind == "bool":
            yield f"attribute {name}={bool(value)}"
        elif kind != "Tensor" and argument.has_default_value():
            yield f"attribute {name}={'default' if value == argument.default_value else 'given'}"


def tensors_of(values):
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from tensors_of(value)


class Recorder:
    """Notes each call once, and which dtypes the operator takes in place of that of its first tensor."""

    def __init__(self, note):
        self.note = note

    def called(self, function, schema, args, kwargs):
        tensors = list(tensors_of((*args, *kwargs.values())))
        operator = operator_of(schema)
        dtype = str(tensors[0].dtype).removeprefix("torch.") if tensors else ""
        self.note(operator, [*features(schema, args, kwargs), *([f"type {dtype}"] if dtype else [])])
        if dtype and operator not in TRIED:
            TRIED.add(operator)
            for other in DTYPES:
                if other == dtype or self.takes(function, tensors[0].dtype, getattr(torch, other), args, kwargs):
                    self.note(operator, [f"accepts type {other}"])

    def takes(self, function, old, new, args, kwargs):
        def changed(value):
            return value.to(new) if isinstance(value, torch.Tensor) and value.dtype == old else value

        try:
            function(*tree_map(changed, args), **tree_map(changed, kwargs))
        except Exception:
            return False
        return True


class Dispatched(TorchDispatchMode):
    def __init__(self, recorder):
        super().__init__()
        self.recorder = recorder

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if function._schema.name.startswith("aten::"):
            self.recorder.called(function, function._schema, args, kwargs)
        return function(*args, **kwargs)


class Functions(TorchFunctionMode):
    def __init__(self, recorder):
        super().__init__()
        self.recorder = recorder

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = getattr(function, "__name__", "")
        try:
            overload = torch._C._jit_resolve_packet(f"aten::{name}", *args, **kwargs)
        except (RuntimeError, TypeError):
            overload = None  # no native function
        if overload is not None:
            schema = SCHEMAS.get(f"{name}.{overload or 'default'}")
            if schema is not None:
                self.recorder.called(function, schema, args, kwargs)
        return function(*args, **kwargs)


RECORDER = Recorder(None)


def observe(program, note):
    arrays = plain_numbers({**program["INPUTS"], **program["PARAMETERS"]}, 1)
    tensors = [torch.from_numpy(array) if array.dtype.name != "bfloat16" else half(array) for array in arrays.values()]
    RECORDER.note = note
    with torch.no_grad(), Dispatched(RECORDER), Functions(RECORDER):
        program["model"](*tensors)


def half(array):
    return torch.from_numpy(array.astype("float32")).to(torch.bfloat16)
