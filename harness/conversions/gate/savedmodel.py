"""TensorFlow's SavedModel: operators of the list in graph and functions, files that stay in the folder."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from harness.conversions.gate.reading.folder import inside, whole
from harness.conversions.gate.reading.protobuf import Reader, Refused, mapped, message, name_of, quoted
from harness.conversions.gate.tensorflow_nodes import SAVER, TABLE_FROM_FILE, Node, allow, node

MOST_NODES = 300_000
MOST_UNFOLDED = 3_000_000
"""Nodes after all calls are unfolded, as inlining does."""
DEPTH = 64
LARGEST_GRAPH = 2 << 30
"""Bytes of saved_model.pb: no message of protobuf is larger."""
_INIT = ("__saved_model_init_op", "__saved_model_train_op")


@dataclass
class _Function:
    name: str = ""
    arguments: list[str] = field(default_factory=list)
    nodes: dict[str, Node] = field(default_factory=dict)


@dataclass
class _Graph:
    """A MetaGraphDef. roots: tensors that something runs; exported: function -> objects that it is bound to."""

    main: _Function = field(default_factory=_Function)
    functions: dict[str, _Function] = field(default_factory=dict)
    gradients: dict[str, str] = field(default_factory=dict)
    roots: set[str] = field(default_factory=set)
    assets: set[str] = field(default_factory=set)
    exported: dict[str, list[int]] = field(default_factory=dict)
    asset_objects: set[int] = field(default_factory=set)
    filename: str = ""
    restore: str = ""
    read: int = 0


def check(path: Path) -> str | None:
    """Why a SavedModel is refused unless it is trusted, in one line, or None."""
    try:
        whole(path)
        for name in ("saved_model.cpb", "saved_model.pbtxt"):
            if (path / name).exists():
                raise Refused(f"{name} is there beside saved_model.pb: which of them is read?")
        data, reader, count = mapped(inside(path, "saved_model.pb", "folder")), Reader(), 0
        if len(data) > LARGEST_GRAPH:
            raise Refused(f"saved_model.pb has {len(data)} bytes, more than {LARGEST_GRAPH}")
        for number, value in reader.fields(data, "saved_model.pb"):
            if number == 2:
                count += 1
                _judge(_read(reader, message(value, "meta_graphs"), path), "graph")
        if not count:
            raise Refused("saved_model.pb has no graph")
    except Refused as why:
        return str(why)
    except (OSError, ValueError, RecursionError) as error:
        return f"it cannot be read: {quoted(str(error))}"
    return None


def _read(reader: Reader, data: memoryview, folder: Path) -> _Graph:
    graph = _Graph()
    for number, value in reader.fields(data, "meta_graphs"):
        match number:
            case 2:
                _graph_def(reader, message(value, "graph_def"), graph)
            case 3:
                texts = {1: "", 2: "", 3: ""}
                for inner, text in reader.fields(message(value, "saver_def"), "saver_def"):
                    if inner in texts:
                        texts[inner] = name_of(message(text, "saver_def"), "saver_def")
                graph.filename, graph.restore = _node_of(texts[1]), _node_of(texts[3])
            case 4:
                _collection(reader, message(value, "collection_def"), graph)
            case 5:
                _signature(reader, message(value, "signature_def"), graph)
            case 6:
                _asset(reader, message(value, "asset_file_def"), graph, folder)
            case 7:
                _objects(reader, message(value, "object_graph_def"), graph)
    return graph


def _graph_def(reader: Reader, data: memoryview, graph: _Graph) -> None:
    for number, value in reader.fields(data, "graph"):
        if number == 1:
            _add(reader, message(value, "graph"), "graph", graph.main, graph)
        elif number == 2:
            for inner, one in reader.fields(message(value, "library"), "library"):
                if inner == 1:
                    _function(reader, message(one, "library"), graph)
                elif inner == 2:
                    texts = {1: "", 2: ""}
                    for key, text in reader.fields(message(one, "gradient"), "gradient"):
                        texts[key] = name_of(message(text, "gradient"), "gradient")
                    graph.gradients[texts[1]] = texts[2]


def _add(reader: Reader, data: memoryview, where: str, into: _Function, graph: _Graph) -> None:
    graph.read += 1
    if graph.read > MOST_NODES:
        raise Refused(f"{where}: more than {MOST_NODES} nodes")
    one = node(reader, data, where)
    if one.name in into.nodes:
        raise Refused(f"{where}: node {quoted(one.name)} is there twice")
    into.nodes[one.name] = one


def _function(reader: Reader, data: memoryview, graph: _Graph) -> None:
    found, bodies, implements = _Function(), [], False
    for number, value in reader.fields(data, "function"):
        match number:
            case 1:
                for inner, one in reader.fields(message(value, "function"), "function"):
                    if inner == 1:
                        found.name = name_of(message(one, "function"), "function")
                    elif inner == 2:
                        for key, text in reader.fields(message(one, "function"), "function"):
                            if key == 1:
                                found.arguments.append(name_of(message(text, "function"), "function"))
            case 3:
                bodies.append(message(value, "function"))
            case 5:
                for inner, text in reader.fields(message(value, "function"), "function"):
                    implements |= inner == 1 and bytes(message(text, "function")) == b"api_implements"
    where = f"function {quoted(found.name)}"
    if found.name in graph.functions:
        raise Refused(f"{where} is there twice")
    for body in bodies:
        _add(reader, body, where, found, graph)
    if implements:
        graph.exported.setdefault(found.name, [])  # Grappler may put it in the place of another one
    graph.functions[found.name] = found


def _collection(reader: Reader, data: memoryview, graph: _Graph) -> None:
    key, names = "", []
    for number, value in reader.fields(data, "collection_def"):
        if number == 1:
            key = name_of(message(value, "collection_def"), "collection_def")
        elif number == 2:
            for inner, one in reader.fields(message(value, "collection_def"), "collection_def"):
                if inner == 1:
                    for last, text in reader.fields(message(one, "collection_def"), "collection_def"):
                        if last == 1:
                            names.append(name_of(message(text, "collection_def"), "collection_def"))
    if key in ("saved_model_main_op", "legacy_init_op", "saved_model_train_op"):
        graph.roots |= {_node_of(name) for name in names}


def _signature(reader: Reader, data: memoryview, graph: _Graph) -> None:
    for number, value in reader.fields(data, "signature_def"):
        if number == 1:
            name_of(message(value, "signature_def"), "signature_def")
        elif number == 2:
            for side, pairs in reader.fields(message(value, "signature_def"), "signature_def"):
                if side == 4:
                    continue
                if side == 3:
                    name_of(message(pairs, "signature_def"), "signature_def")
                    continue
                for inner, info in reader.fields(message(pairs, "signature_def"), "signature_def"):
                    if inner == 1:
                        name_of(message(info, "signature_def"), "signature_def")
                    elif inner == 2:
                        graph.roots |= _tensor_names(reader, message(info, "signature_def"), 0)


def _tensor_names(reader: Reader, data: memoryview, depth: int) -> set[str]:
    """Nodes that a TensorInfo names, also one of parts."""
    found: set[str] = set()
    for number, value in reader.fields(data, "tensor info"):
        if number == 1:
            found.add(_node_of(name_of(message(value, "tensor info"), "tensor info")))
        elif number in (4, 5) and depth < 4:
            for inner, text in reader.fields(message(value, "tensor info"), "tensor info"):
                if number == 4 and inner in (1, 2, 3):
                    found.add(_node_of(name_of(message(text, "tensor info"), "tensor info")))
                elif number == 5 and inner == 2:
                    found |= _tensor_names(reader, message(text, "tensor info"), depth + 1)
    return found


def _asset(reader: Reader, data: memoryview, graph: _Graph, folder: Path) -> None:
    for number, value in reader.fields(data, "asset_file_def"):
        if number == 1:
            graph.assets |= _tensor_names(reader, message(value, "asset_file_def"), 0)
        elif number == 2:
            name = name_of(message(value, "asset_file_def"), "asset_file_def")
            inside(folder / "assets", name, "asset_file_def")


def _objects(reader: Reader, data: memoryview, graph: _Graph) -> None:
    at = 0
    for number, value in reader.fields(data, "object graph"):
        if number == 1:
            for inner, _ in reader.fields(message(value, "object graph"), "object graph"):
                if inner == 5:
                    graph.asset_objects.add(at)
            at += 1
        elif number == 2:
            name, bound = "", []
            for inner, one in reader.fields(message(value, "object graph"), "object graph"):
                if inner == 1:
                    name = name_of(message(one, "object graph"), "object graph")
                elif inner == 2:
                    for key, objects in reader.fields(message(one, "object graph"), "object graph"):
                        if key == 2:
                            bound += reader.integers(objects, "object graph")
            graph.exported[name] = bound


def _node_of(tensor: str) -> str:
    return tensor.removeprefix("^").split(":")[0]


def _called(one: Node, graph: _Graph) -> set[str]:
    names = {one.operator, *one.calls} & graph.functions.keys()
    return names | {graph.gradients[name] for name in names if graph.gradients.get(name) in graph.functions}


def _ancestors(graph: _Graph, roots: Iterable[str]) -> set[str]:
    found: set[str] = set()
    waiting = [name for name in roots if name in graph.main.nodes]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            inputs = map(_node_of, graph.main.nodes[name].inputs)
            waiting += [one for one in inputs if one in graph.main.nodes]
    return found


def _judge(graph: _Graph, where: str) -> None:
    """Raises Refused for what may not be run, wherever it stands: what nothing calls may be called by an optimiser."""
    everything = {where: graph.main} | {f"function {quoted(name)}": one for name, one in graph.functions.items()}
    for place, function in everything.items():
        for one in function.nodes.values():
            if one.operator == "" or (one.operator in graph.functions and one.operator in SAVER):
                raise Refused(f"{place}: node {quoted(one.name)} has no operator")
            allow(one, place, graph.functions, SAVER | TABLE_FROM_FILE)
    calls = {
        name: [call for one in function.nodes.values() for call in _called(one, graph)]
        for name, function in graph.functions.items()
    }
    sizes: dict[str, int] = {}
    if sum(_unfolded(name, calls, graph, sizes, ()) for name in graph.functions) > MOST_UNFOLDED * 10:
        raise Refused(f"functions unfold to more than {MOST_UNFOLDED} nodes")
    saver: dict[str, frozenset[str]] = {}
    for name in sorted(graph.functions, key=lambda name: sizes[name]):
        own = {one.operator for one in graph.functions[name].nodes.values()} & SAVER
        saver[name] = frozenset(own).union(*(saver.get(call, frozenset()) for call in calls[name]))
    _savers(graph, saver)
    _tables(graph, everything)


def _unfolded(
    name: str, calls: dict[str, list[str]], graph: _Graph, sizes: dict[str, int], stack: tuple[str, ...]
) -> int:
    if name in stack:
        raise Refused(f"function {quoted(name)} calls itself")
    if len(stack) > DEPTH:
        raise Refused(f"function {quoted(name)}: calls deeper than {DEPTH}")
    if name not in sizes:
        inner = sum(_unfolded(one, calls, graph, sizes, (*stack, name)) for one in calls[name])
        sizes[name] = 1 + len(graph.functions[name].nodes) + inner
        if sizes[name] > MOST_UNFOLDED:
            raise Refused(f"function {quoted(name)} unfolds to more than {MOST_UNFOLDED} nodes")
    return sizes[name]


def _savers(graph: _Graph, saver: dict[str, frozenset[str]]) -> None:
    """Operators of checkpoints are for the saver alone, and its restoring reads what the loader names."""
    for name in graph.exported:
        if saver.get(name):
            raise Refused(f"function {quoted(name)}: it is exported and has operator {quoted(min(saver[name]))}")
    restoring = _ancestors(graph, [graph.restore])
    for name in _ancestors(graph, graph.roots | {graph.restore}):
        one = graph.main.nodes[name]
        used = ({one.operator} & SAVER).union(*(saver[call] for call in _called(one, graph)))
        if not used:
            continue
        if name not in restoring or used != {"RestoreV2"} or name in _ancestors(graph, graph.roots):
            raise Refused(f"graph: node {quoted(name)}: it runs operator {quoted(min(used))}")
        if not one.inputs or _origin(graph.main, one.inputs[0])[0] != graph.filename:
            raise Refused(f"graph: node {quoted(name)} restores from a place that the loader does not name")
        for call in _called(one, graph):
            function = graph.functions[call]
            for inner in function.nodes.values():
                if _called(inner, graph) or (
                    inner.operator == "RestoreV2"
                    and _origin(function, inner.inputs[0])[0] not in function.arguments[:1]
                ):
                    raise Refused(f"function {quoted(call)}: node {quoted(inner.name)} restores from another place")


def _origin(function: _Function, tensor: str) -> tuple[str, bool]:
    """(name, is it a node?) of where a tensor comes from that is only passed on."""
    name = _node_of(tensor)
    for _ in range(len(function.nodes) + 1):
        one = function.nodes.get(name)
        if one is None or one.operator != "Identity" or not one.inputs:
            break
        name = _node_of(one.inputs[0])
    return name, name in function.nodes


def _tables(graph: _Graph, everything: dict[str, _Function]) -> None:
    """Tables are filled from assets only."""
    for place, function in everything.items():
        for one in function.nodes.values():
            if one.operator in TABLE_FROM_FILE and (
                len(one.inputs) < 2 or not _is_asset(graph, function, one.inputs[1], 0)
            ):
                raise Refused(f"{place}: node {quoted(one.name)}: operator {quoted(one.operator)} reads no asset")


def _is_asset(graph: _Graph, function: _Function, tensor: str, depth: int) -> bool:
    name, is_node = _origin(function, tensor)
    if is_node and function is graph.main and name not in graph.assets and depth <= 8:
        # TensorFlow keeps the path of an asset in a variable
        one, nodes = function.nodes[name], function.nodes.values()
        handle = _origin(function, one.inputs[0]) if one.operator == "ReadVariableOp" and one.inputs else ("", False)
        given = [
            other.inputs[1]
            for other in nodes
            if other.operator == "AssignVariableOp" and _origin(function, other.inputs[0]) == handle
        ]
        return bool(given) and all(_is_asset(graph, function, other, depth + 1) for other in given)
    if is_node:
        return function is graph.main and name in graph.assets
    if depth > 8 or name not in function.arguments:
        return False
    place = function.arguments.index(name)
    bound = graph.exported.get(function.name)
    from_objects = True
    if bound is not None:
        at = place - (len(function.arguments) - len(bound))
        from_objects = at >= 0 and bound[at] in graph.asset_objects
    callers = [
        (caller, one)
        for caller in (graph.main, *graph.functions.values())
        for one in caller.nodes.values()
        if function.name in _called(one, graph)
    ]
    if bound is None and not callers:
        return True  # nothing runs it
    return from_objects and all(
        # conditions and loops have inputs of their own, so these are not followed
        one.operator in ("PartitionedCall", "StatefulPartitionedCall", function.name)
        and len(one.inputs) > place
        and _is_asset(graph, caller, one.inputs[place], depth + 1)
        for caller, one in callers
    )
