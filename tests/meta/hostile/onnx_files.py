"""ONNX files that an attacker would send, and such that nobody should refuse."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Build = Callable[[Path, Path], Path]


def model(nodes: list[Any], initializers: list[Any] | None = None, **more: Any) -> Any:
    from onnx import TensorProto, helper

    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("x", "y")]
    graph = helper.make_graph(nodes, "g", ports[:1], ports[1:], initializers or [])
    opsets = [helper.make_opsetid("", 17), *(helper.make_opsetid(name, 1) for name in more.pop("domains", ()))]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9, **more)


def saved(proto: Any, folder: Path) -> Path:
    path = folder / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    return path


def _relu(**more: Any) -> Any:
    from onnx import helper

    return helper.make_node("Relu", ["x"], ["y"], **more)


def _external(location: str, dims: tuple[int, ...] = (2,), **entries: str) -> Any:
    from onnx import TensorProto

    tensor = TensorProto(name="w", data_type=1, dims=dims, data_location=TensorProto.EXTERNAL)
    for key, value in {"location": location, **entries}.items():
        tensor.external_data.add(key=key, value=value)
    return tensor


def _with(tensor: Callable[[Path, Path], Any]) -> Build:
    def build(folder: Path, marker: Path) -> Path:
        from onnx import helper

        return saved(model([helper.make_node("Add", ["x", "w"], ["y"])], [tensor(folder, marker)]), folder)

    return build


def _of(proto: Callable[[], Any]) -> Build:
    return lambda folder, marker: saved(proto(), folder)


def _link(folder: Path, marker: Path) -> Any:
    (folder / "w.data").symlink_to(marker.with_name("secret.txt"))
    return _external("w.data")


def _sparse_file(folder: Path, marker: Path) -> Any:
    with (folder / "w.data").open("wb") as file:
        file.truncate(200 << 30)
    return _external("w.data")


def _short(folder: Path, marker: Path) -> Any:
    (folder / "w.data").write_bytes(bytes(8))
    return _external("w.data", offset="4")


def _huge() -> Any:
    from onnx import TensorProto

    return model([_relu()], [TensorProto(name="w", data_type=1, dims=[10**12])])


def _node(operator: str, domain: str = "", **attributes: Any) -> Build:
    def build(folder: Path, marker: Path) -> Path:
        from onnx import helper

        given = {key: str(marker) if value is Path else value for key, value in attributes.items()}
        proto = model([helper.make_node(operator, ["x"], ["y"], domain=domain, **given)], domains=[domain or "a"])
        return saved(proto, folder)

    return build


def _recursive(functions: int) -> Any:
    from onnx import helper

    made = []
    for i in range(functions):
        nodes = [helper.make_node(f"f{(i + 1) % functions}", ["x"], ["y"], domain="d")]
        made.append(helper.make_function("d", f"f{i}", ["x"], ["y"], nodes, [helper.make_opsetid("d", 1)]))
    return model([helper.make_node("f0", ["x"], ["y"], domain="d")], functions=made, domains=["d"])


def _bomb() -> Any:
    from onnx import helper

    made = [helper.make_function("d", "f30", ["x"], ["y"], [_relu()], [helper.make_opsetid("", 17)])]
    for i in range(30):
        nodes = [
            helper.make_node(f"f{i + 1}", ["x"], ["a"], domain="d"),
            helper.make_node(f"f{i + 1}", ["a"], ["y"], domain="d"),
        ]
        made.append(helper.make_function("d", f"f{i}", ["x"], ["y"], nodes, [helper.make_opsetid("d", 1)]))
    return model([helper.make_node("f0", ["x"], ["y"], domain="d")], functions=made, domains=["d"])


def _nested(depth: int) -> Any:
    from onnx import TensorProto, helper

    port = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])
    node = _relu()
    for _ in range(depth):
        graph = helper.make_graph([node], "g", [], [port])
        node = helper.make_node("If", ["c"], ["y"], then_branch=graph, else_branch=graph) if depth < 8 else (
            helper.make_node("If", ["c"], ["y"], then_branch=graph)
        )  # fmt: skip
    return model([node], [helper.make_tensor("c", TensorProto.BOOL, [], [True])])


def _metadata() -> Any:
    proto = model([_relu()])
    proto.metadata_props.add(key="ort_config", value="{}")
    return proto


def _address(folder: Path, marker: Path) -> Any:
    """What ONNX Runtime takes for an address in its memory, beside a file of that name."""
    (folder / "*" / "_ORT_MEM_ADDR_").mkdir(parents=True)
    (folder / "*" / "_ORT_MEM_ADDR_" / "*").write_bytes(bytes(8))
    return _external("*/_ORT_MEM_ADDR_/*", offset="0", length="8")


def _two_places(folder: Path, marker: Path) -> Any:
    tensor = _kept(folder, marker)
    tensor.external_data.add(key="location", value=str(marker.with_name("secret.txt")))
    return tensor


def _made(operator: str, numbers: list[int], constant: bool = False) -> Build:
    """An operator whose result a constant makes huge."""

    def build(folder: Path, marker: Path) -> Path:
        from onnx import TensorProto, helper

        given = {"ConstantOfShape": ["w"]}.get(operator, ["x", "w"])
        shape = helper.make_tensor("w", TensorProto.INT64, [len(numbers)], numbers)
        before = [helper.make_node("Constant", [], ["w"], value=shape)] if constant else []
        nodes = [*before, helper.make_node(operator, given, ["y"])]
        return saved(model(nodes, [] if constant else [shape]), folder)

    return build


def _in_function() -> Any:
    from onnx import helper

    inner = helper.make_node("EPContext", ["x"], ["y"], domain="com.microsoft")
    function = helper.make_function("d", "f", ["x"], ["y"], [inner], [helper.make_opsetid("com.microsoft", 1)])
    return model([helper.make_node("f", ["x"], ["y"], domain="d")], functions=[function], domains=["d"])


def _in_branch(folder: Path, marker: Path) -> Path:
    """Data outside, of a constant of a branch."""
    from onnx import TensorProto, helper

    constant = helper.make_node("Constant", [], ["y"], value=_external(str(marker.with_name("secret.txt"))))
    port = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])
    graph = helper.make_graph([constant], "g", [], [port])
    node = helper.make_node("If", ["c"], ["y"], then_branch=graph, else_branch=graph)
    return saved(model([node], [helper.make_tensor("c", TensorProto.BOOL, [], [True])]), folder)


def _sparse() -> Any:
    from onnx import helper

    proto = model([_relu()])
    values = helper.make_tensor("w", 1, [1], [1.0])
    indices = helper.make_tensor("i", 7, [1], [0])
    proto.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [1 << 40]))
    return proto


HOSTILE: dict[str, Build] = {
    "data-address": _with(_address),
    "data-two-places": _with(_two_places),
    "data-in-branch": _in_branch,
    "data-long": _with(lambda folder, marker: (_kept(folder, marker), _external("w.data", length=str(2**63)))[1]),
    "data-offset": _with(lambda folder, marker: (_kept(folder, marker), _external("w.data", offset=str(2**64 - 8)))[1]),
    "huge-sparse": _of(_sparse),
    "huge-constant": _made("ConstantOfShape", [1 << 20, 1 << 20]),
    "huge-expanded": _made("Expand", [1 << 20, 1 << 20, 2], constant=True),
    "huge-tiles": _made("Tile", [1 << 40]),
    "ep-context-in-function": _of(_in_function),
    "data-absolute": _with(lambda folder, marker: _external(str(marker.with_name("secret.txt")))),
    "data-above": _with(lambda folder, marker: _external(os.path.relpath(marker.with_name("secret.txt"), folder))),
    "data-link": _with(_link),
    "data-sparse": _with(_sparse_file),
    "data-beyond": _with(_short),
    "data-negative": _with(lambda folder, marker: (_short(folder, marker), _external("w.data", offset="-4"))[1]),
    "data-missing": _with(lambda folder, marker: _external("none.data")),
    "data-itself": _with(lambda folder, marker: _external("model.onnx")),
    "huge": _of(_huge),
    "ep-context": _node("EPContext", "com.microsoft", ep_cache_context=Path, embed_mode=0),
    "python": _node("PythonOp", "com.microsoft", name="os.system"),
    "domain": _node("PyOp", "ai.onnx.contrib", module="os", compute="system"),
    "operator": _node("System"),
    "function-itself": _of(lambda: _recursive(1)),
    "functions-round": _of(lambda: _recursive(3)),
    "functions-unfold": _of(_bomb),
    "depth": _of(lambda: _nested(25)),
    "terminal": _of(lambda: model([_relu(name="\x1b]0;owned\x07")])),
    "metadata": _of(_metadata),
    "garbage": lambda folder, marker: _bytes(folder, b"\xff" * 4000),
    "empty": lambda folder, marker: _bytes(folder, b""),
}


def _bytes(folder: Path, data: bytes) -> Path:
    path = folder / "model.onnx"
    path.write_bytes(data)
    return path


def _kept(folder: Path, marker: Path) -> Any:
    (folder / "w.data").write_bytes(bytes(12))
    return _external("w.data", offset="4", length="8")


def _array(folder: Path, marker: Path) -> Any:
    from onnx import numpy_helper

    return numpy_helper.from_array(np.ones(2, np.float32), "w")


HARMLESS: dict[str, Build] = {
    "relu": _of(lambda: model([_relu()])),
    "array": _with(_array),
    "external": _with(_kept),
    "condition": _of(lambda: _nested(2)),
    "gelu": _node("Gelu", "com.microsoft"),
    "metadata": _of(lambda: model([_relu(name="Schicht-α")])),
}
