"""StableHLO as jax.export writes it: calls of known targets, a signature of plain trees."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from harness.conversions.gate.reading import refused
from harness.conversions.gate.reading.protobuf import Refused, mapped, name_of, quoted

LARGEST = 1 << 30
"""Bytes of an artefact, which its parser copies."""
DEPTH = 32
MOST_OPERATIONS = 500_000
MOST_LEAVES = 100_000
TARGETS = re.compile(
    r"lapack_[a-z0-9]+(_ffi)?|Sharding|SPMDFullToShardShape|SPMDShardToFullShape|shape_assertion"
    r"|stablehlo\.dynamic_(rng_bit_generator|top_k|approx_top_k|reduce_window)|ApproxTopK|AllocateBuffer"
    r"|annotate_device_placement|mhlo\.(topk|erf|erf_inv|sinh|cosh|asin|acos|acosh|asinh|atanh)|chlo\.\w+"
    r"|Qr|Eigh|LuDecomposition|ProductOfElementaryHouseholderReflectors"
)
"""Targets of custom calls that JAX exports for CPUs. A callback of Python is a pointer, a kernel of another device
(Mosaic, Triton, TPU) is a program."""
DIALECTS = frozenset(["builtin", "func", "stablehlo", "chlo", "sdy", "vhlo"])
_SYMBOLIC = re.compile(r"[\w\s+\-*()^,.]{0,400}")
_CODE = re.compile(r"\*\*|\^ *\d{3}|\^ *[^\s\d]")


def check(path: Path) -> str | None:
    """Why an artefact of jax.export is refused unless it is trusted, in one line, or None."""
    try:
        data = mapped(path)
        if len(data) > LARGEST:
            raise Refused(f"{path.name} has {len(data)} bytes, more than {LARGEST}")
        _exported(data)
    except Refused as why:
        return str(why)
    except Exception as error:  # flatbuffers reads wild offsets as struct.error, TypeError, IndexError, ...
        return f"it is no artefact of jax.export: {quoted(f'{type(error).__name__}: {error}')}"
    return None


def _exported(data: memoryview) -> None:
    from jax._src.export.serialization_generated import Exported

    exported: Any = Exported.GetRootAs(bytearray(data), 0)
    depth = 0
    while exported is not None:
        if depth > 4:
            raise Refused("vjp: derivatives of derivatives deeper than 4")
        name_of(exported.FunctionName() or b"", "function name")
        left = [MOST_LEAVES]
        for side, tree in (("in_tree", exported.InTree()), ("out_tree", exported.OutTree())):
            _tree(tree, side, 0, left)
        for kind in ("InAvals", "OutAvals", "UniqueAvals"):
            _avals(exported, kind)
        for kind in ("OrderedEffects", "UnorderedEffects"):
            if getattr(exported, f"{kind}Length")():
                effect = getattr(exported, kind)(0).TypeName() or b""
                raise Refused(f"{kind}: effect {quoted(effect)}: it acts outside of the model")
        for i in range(exported.PlatformsLength()):
            name_of(exported.Platforms(i), "platforms")
        size = exported.MlirModuleSerializedLength()
        if not 0 < size <= len(data):
            raise Refused(f"module: {size} bytes in a file of {len(data)}")
        module(memoryview(exported.MlirModuleSerializedAsNumpy()), "module")
        exported, depth = exported.Vjp(), depth + 1


def _tree(tree: Any, where: str, depth: int, left: list[int]) -> None:
    left[0] -= 1
    if tree is None or depth > DEPTH or left[0] < 0:
        raise Refused(f"{where}: missing, deeper than {DEPTH} or of more than {MOST_LEAVES} leaves")
    name = tree.CustomName()
    if name == b"collections.OrderedDict":  # jax registers it itself, with its keys as JSON
        keys = refused.parsed(bytes(tree.CustomAuxdata(i) for i in range(tree.CustomAuxdataLength())), where)
        for key in keys if isinstance(keys, list) else [None]:
            name_of(key.encode() if isinstance(key, str) else b"\0", where)
    elif name:
        raise Refused(f"{where}: a node of the custom type {quoted(name)}")
    for i in range(tree.ChildrenNamesLength()):
        name_of(tree.ChildrenNames(i) or b"", where)
    for i in range(tree.ChildrenLength()):
        _tree(tree.Children(i), where, depth + 1, left)


def _avals(exported: Any, kind: str) -> None:
    count = getattr(exported, f"{kind}Length")()
    if count > MOST_LEAVES:
        raise Refused(f"{kind}: {count} of them")
    for i in range(count):
        aval = getattr(exported, kind)(i)
        if aval.ShapeLength() > 64:
            raise Refused(f"{kind}: {aval.ShapeLength()} dimensions")
        for d in range(aval.ShapeLength()):
            text = name_of(aval.Shape(d) or b"", kind)
            if (
                not _SYMBOLIC.fullmatch(text)
                or _CODE.search(text)
                or any(len(n) > 18 for n in re.findall(r"\d+", text))
            ):
                raise Refused(f"{kind}: dimension {quoted(text)} is no symbolic expression")


def module(data: memoryview, where: str) -> None:
    """Raises Refused for a portable artefact with calls of targets that are not known."""
    from jax._src.interpreters import mlir as jax_mlir
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import stablehlo

    context = jax_mlir.make_ir_context()
    context.allow_unregistered_dialects = False
    with context:
        try:
            parsed = stablehlo.deserialize_portable_artifact(context, bytes(data))
        except Exception as error:
            raise Refused(f"{where}: no portable artefact: {quoted(str(error))}") from error
        count = 0

        def visit(operation: Any) -> Any:
            nonlocal count
            count += 1
            if count > MOST_OPERATIONS:
                raise_later.append(f"{where}: more than {MOST_OPERATIONS} operations")
                return ir.WalkResult.INTERRUPT
            name = operation.name
            if name.split(".")[0] not in DIALECTS:
                raise_later.append(f"{where}: operation {quoted(name)} is not of StableHLO")
                return ir.WalkResult.INTERRUPT
            if name == "stablehlo.custom_call":
                target = ir.StringAttr(operation.attributes["call_target_name"]).value
                if not TARGETS.fullmatch(target):
                    raise_later.append(f"{where}: custom_call of {quoted(target)} is not known")
                    return ir.WalkResult.INTERRUPT
            elif name in ("stablehlo.infeed", "stablehlo.outfeed", "stablehlo.send", "stablehlo.recv"):
                raise_later.append(f"{where}: {name} talks to the host")
                return ir.WalkResult.INTERRUPT
            return ir.WalkResult.ADVANCE

        raise_later: list[str] = []
        parsed.operation.walk(visit)
    if raise_later:
        raise Refused(raise_later[0])
