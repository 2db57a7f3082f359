"""Archives of torch.export. What EXECUTES names creates the marker when torch 2.13 loads or runs it."""

from __future__ import annotations

import io
import json
import pickle
import zipfile
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

from hostile.edit import Build, joined, parts


@cache
def good() -> dict[str, bytes]:
    """Members of a program with a weight, a symbolic size, a branch and a dictionary of inputs."""
    import torch

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.dense = torch.nn.Linear(4, 3)
            self.constant = torch.arange(3.0)

        def forward(self, x: Any, more: Any) -> Any:
            y = self.dense(x) * self.constant + more["k"] * ((x.shape[0] + 1) // 2)
            return {"y": torch.cond(x.sum() > 3, lambda a: a + 1, lambda a: a - 1, (y,))}

    rows = {0: torch.export.Dim("rows", min=2, max=64)}
    program = torch.export.export(Model(), (torch.ones(4, 4), {"k": torch.ones(3)}), dynamic_shapes=(rows, {"k": None}))
    stream = io.BytesIO()
    torch.export.save(program, stream)
    with zipfile.ZipFile(stream) as archive:
        return {name.split("/", 1)[1]: archive.read(name) for name in archive.namelist()}


def written(folder: Path, members: dict[str, bytes], root: str = "model/", method: int = zipfile.ZIP_STORED) -> Path:
    return joined(folder / "model.pt2", {root + name: data for name, data in members.items()}, method)


def edited(edit: Callable[[dict, str], None], folder: Path, marker: Path, member: str = "models/model.json") -> Path:
    """The good program with another JSON. edit: changes it; takes it and Python that creates the marker."""
    members = dict(good())
    told = json.loads(members[member])
    edit(told, f"open({str(marker)!r},'w').close()")
    return written(folder, members | {member: json.dumps(told).encode()})


def _graph(told: dict) -> dict:
    return told["graph_module"]["graph"]


def _guard(told: dict, code: str) -> None:
    told["guards_code"] = [code + " is None"]


def _guard_import(told: dict, code: str) -> None:
    told["guards_code"] = [f"__import__('builtins').{code} or True"]


def _expression(told: dict, code: str) -> None:
    _graph(told)["tensor_values"]["x"]["sizes"][0] = {"as_expr": {"expr_str": code, "hint": None}}


def _expression_attribute(told: dict, code: str) -> None:
    _expression(told, f"Symbol('s0').__class__.__mro__[-1].__subclasses__() and {code}")


def _large_power(told: dict, code: str) -> None:
    _expression(told, "Pow(Integer(9), Pow(Integer(9), Integer(999999999)))")


def _symbol(told: dict, code: str) -> None:
    told["range_constraints"][code] = {"min_val": 2, "max_val": 64}


def _input(told: dict, code: str) -> None:
    """The name is that of a parameter of generated code, which has a default with it."""
    text = json.dumps(told["graph_module"]).replace('"more_k"', json.dumps(f"more_k={code}"))
    told["graph_module"] = json.loads(text)


def _node(told: dict, code: str) -> None:
    _graph(told)["nodes"][0]["name"] = f"x = {code}; y"


def _target(target: str, told: dict, code: str) -> None:
    _graph(told)["nodes"][0]["target"] = target


def _keyword(told: dict, code: str) -> None:
    node = next(one for one in _graph(told)["nodes"] if "cond" in one["target"])
    node["inputs"][0] |= {"name": f"pred={code}, x", "kind": 2}


def _submodule(told: dict, code: str) -> None:
    node = next(one for one in _graph(told)["nodes"] if "cond" in one["target"])
    node["inputs"][1]["arg"]["as_graph"]["name"] = f"x'){code}#"


def _nested(told: dict, code: str) -> None:
    node = next(one for one in _graph(told)["nodes"] if "cond" in one["target"])
    node["inputs"][1]["arg"]["as_graph"]["graph"]["nodes"][0]["target"] = "torch.os.system"


def _parameter(told: dict, code: str) -> None:
    told["graph_module"]["signature"]["input_specs"][0]["parameter"]["parameter_name"] = f'a"), {code}, ("'


def _class(told: dict, code: str) -> None:
    told["graph_module"]["signature"]["input_specs"][0]["parameter"]["parameter_name"] = "__class__.forward"


def _argument(told: dict, code: str) -> None:
    told["graph_module"]["module_call_graph"][0]["signature"]["forward_arg_names"] = [f"x={code}", "more"]


def _tree(change: Callable[[dict, str], None], told: dict, code: str) -> None:
    signature = told["graph_module"]["module_call_graph"][0]["signature"]
    tree = json.loads(signature["in_spec"])
    change(tree[1]["children_spec"][0]["children_spec"][1], code)
    signature["in_spec"] = json.dumps(tree)


def _key(branch: dict, code: str) -> None:
    branch["context"] = json.dumps([f'k"+str({code})+"'])


def _factory(branch: dict, code: str) -> None:
    inner = {"default_factory_module": "os", "default_factory_name": "system", "dict_context": ["k"]}
    branch |= {"type": "collections.defaultdict", "context": inner}


def _built_in(branch: dict, code: str) -> None:
    inner = {"default_factory_module": "builtins", "default_factory_name": "breakpoint", "dict_context": ["k"]}
    branch |= {"type": "collections.defaultdict", "context": inner}


def _letters(told: dict, code: str) -> None:
    """Python reads these as __class__."""
    name = "\uff3f\uff3fclass\uff3f\uff3f"
    told["graph_module"]["signature"]["input_specs"][0]["parameter"]["parameter_name"] = name


def _enum(branch: dict, code: str) -> None:
    branch["context"] = json.dumps([{"__enum__": True, "fqn": "antigravity:x", "name": "y"}])


def _type(branch: dict, code: str) -> None:
    branch["type"] = "transformers.modeling_outputs.ModelOutput"


def _text(told: dict, code: str) -> None:
    place = len(_graph(told)["inputs"]) - 1
    _graph(told)["inputs"][place] = {"as_string": f"' + str({code}) + '"}


def _function(told: dict, code: str) -> None:
    _graph(told)["nodes"][0]["metadata"]["source_fn_stack"] = "x,torch.os.system"


def _custom(told: dict, code: str) -> None:
    _graph(told)["custom_obj_values"] = {"x": {"name": "x", "class_fqn": "a.B"}}


def _device(told: dict, code: str) -> None:
    _graph(told)["tensor_values"]["x"]["device"]["type"] = "privateuseone"


def _pickled(told: dict, code: str) -> None:
    next(iter(told["config"].values()))["use_pickle"] = True


def _elsewhere(told: dict, code: str) -> None:
    next(iter(told["config"].values()))["path_name"] = "../../models/model.json"


def _huge(told: dict, code: str) -> None:
    next(iter(told["config"].values()))["tensor_meta"]["sizes"][0] = {"as_int": 10**12}


class _Call:
    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> Any:
        return open, (str(self.marker), "w")


def _with(name: str, data: Callable[[Path], bytes], folder: Path, marker: Path) -> Path:
    return written(folder, dict(good()) | {name: data(marker)})


def _torch_pickle(marker: Path) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps(_Call(marker), 2))
    return stream.getvalue()


def _bomb(folder: Path, marker: Path) -> Path:
    members = dict(good()) | {"data/weights/weight_0": bytes(300 << 20)}
    return written(folder, members, method=zipfile.ZIP_DEFLATED)


def _changed(old: bytes, new: bytes, folder: Path, marker: Path) -> Path:
    """The first local header says something else than the directory."""
    path = written(folder, dict(good()))
    path.write_bytes(path.read_bytes().replace(old, new, 1))
    return path


def _around(before: bytes, after: bytes, folder: Path, marker: Path) -> Path:
    path = written(folder, dict(good()))
    path.write_bytes(before + path.read_bytes() + after)
    return path


def _twice(folder: Path, marker: Path) -> Path:
    members = dict(good())
    return written(folder, members | {"models/MODEL.json": members["models/model.json"]})


_CONFIG = "data/weights/model_weights_config.json"
_EDITS: dict[str, Callable[[dict, str], None]] = {
    "guard": _guard,
    "guard_import": _guard_import,
    "expression": _expression,
    "expression_attribute": _expression_attribute,
    "large_power": _large_power,
    "symbol": _symbol,
    "guard_lambda": lambda told, code: told.update(guards_code=[f"(lambda: {code})() is None"]),
    "guard_format": lambda told, code: told.update(guards_code=["f'{" + code + "}' == ''"]),
    "guard_class": lambda told, code: told.update(guards_code=["L['x'].__class__ == 1"]),
    "guard_repeated": lambda told, code: told.update(guards_code=["'a' * 10**10 == ''"]),
    "input_name": _input,
    "node_name": _node,
    "keyword_name": _keyword,
    "submodule_name": _submodule,
    "nested_target": _nested,
    "parameter_name": _parameter,
    "class_attribute": _class,
    "argument_name": _argument,
    "dictionary_key": partial(_tree, _key),
    "default_factory": partial(_tree, _factory),
    "called_factory": partial(_tree, _built_in),
    "letters": _letters,
    "enumeration": partial(_tree, _enum),
    "tree_type": partial(_tree, _type),
    "input_text": _text,
    "source_function": _function,
    "custom_object": _custom,
    "device": _device,
    **{
        f"target_{target.replace('.', '_')}": partial(_target, target)
        for target in (
            "torch.os.system",
            "torch.ops.load_library",
            "torch.ops.aten.from_file.default",
            "torch.ops.aten.save.default",
            "torch.load",
            "_operator.attrgetter",
            "_operator.methodcaller",
            "math.__loader__.load_module",
            "torch.ops.higher_order.inline_asm_elementwise",
            "#stranger:x",
            "torch.ops.higher_order.triton_kernel_wrapper_functional",
            "torch.ops.higher_order.call_torchbind",
            "torch.ops.aten.__class__.default",
            "torch.ops.c10d.broadcast_.default",
            "torch._functorch.predispatch.torch.load",
        )
    },
}
HOSTILE: dict[str, Build] = {
    **{name: partial(edited, edit) for name, edit in _EDITS.items()},
    "pickled_weight": partial(edited, _pickled, member=_CONFIG),
    "path_of_weight": partial(edited, _elsewhere, member=_CONFIG),
    "huge_weight": partial(edited, _huge, member=_CONFIG),
    "sample_pickle": partial(_with, "data/sample_inputs/model.pt", _torch_pickle),
    "sample_plain_pickle": partial(_with, "data/sample_inputs/model.pt", lambda marker: pickle.dumps(_Call(marker))),
    "old_weights": partial(_with, "data/weights/model.pt", _torch_pickle),
    "script_object": partial(_with, "data/constants/custom_obj_0", lambda marker: pickle.dumps(_Call(marker))),
    "opaque_object": partial(_with, "data/constants/opaque_obj_0", lambda marker: pickle.dumps(_Call(marker))),
    "compiled": partial(_with, "data/aotinductor/model/x.so", lambda marker: b"\x7fELF"),
    "outside": partial(_with, "../../outside.txt", lambda marker: b"x"),
    "deep": partial(_with, "models/other.json", lambda marker: b"[" * 100_000),
    "key_twice": partial(_with, "models/other.json", lambda marker: b'{"graph_module": 1, "graph_module": 2}'),
    "bomb": _bomb,
    "two_names": _twice,
    "header": partial(_changed, b"model/data", b"hello/data"),
    "before": partial(_around, b"#!/bin/sh\n", b""),
    "after": partial(_around, b"", b"more"),
}
EXECUTES = ("expression", "expression_attribute", "keyword_name", "input_name", "guard", "guard_import", "guard_lambda")
"""Those that create the marker without the gate when they are opened, or called, as the product does."""


def _exported(name: str, folder: Path, marker: Path) -> Path:
    import torch

    def module(function: Callable[..., Any]) -> Any:
        return type("Model", (torch.nn.Module,), {"forward": lambda self, *given: function(*given)})()

    x = torch.ones(2, 3)
    programs: dict[str, tuple[Any, tuple[Any, ...]]] = {
        "while_loop": (
            module(lambda a: torch.while_loop(lambda n: n.sum() < 20, lambda n: (n + 1,), (a,))[0]),
            (x,),
        ),
        "tuples": (module(lambda pair, names: {"torch": pair[0] + pair[1], "os": names["a b"]}), ((x, x), {"a b": x})),
        "numbers": (module(lambda a, n, t: a * n if t == "sum" else a), (x, 3, "sum")),
        "dtypes": (module(lambda a: (a.half(), a.bfloat16(), a.int(), a > 0, a.to(torch.complex64))), (x,)),
        "recurrent": (torch.nn.LSTM(3, 4), (x[None],)),
        "attention": (torch.nn.TransformerEncoderLayer(4, 2, 8, batch_first=True).eval(), (torch.ones(1, 3, 4),)),
        "convolution": (
            torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2), torch.nn.ReLU()),
            (torch.ones(1, 1, 5, 5),),
        ),
        "no_grad": (module(torch.no_grad()(lambda a: a.sin())), (x,)),
        "nonzero": (module(lambda a: a[a > 0].sum() + a.nonzero().shape[0]), (x,)),
    }
    model, given = programs[name]
    path = folder / "model.pt2"
    torch.export.save(torch.export.export(model, given), path)
    return path


HARMLESS: dict[str, Build] = {
    "good": lambda folder, marker: written(folder, dict(good())),
    **{
        name: partial(_exported, name)
        for name in (
            *("while_loop", "tuples", "numbers", "dtypes"),
            *("recurrent", "attention", "convolution", "no_grad", "nonzero"),
        )
    },
}


def mutable(folder: Path) -> dict[str, bytes]:
    """Members of the good file as it is on disk."""
    return parts(written(folder, dict(good())))
