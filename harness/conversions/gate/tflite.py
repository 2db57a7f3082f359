"""TensorFlow Lite's flatbuffer: buffers that are there, operators that the interpreters have."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from harness.conversions.gate.reading.protobuf import LARGEST, Reader, Refused, mapped, name_of, quoted
from harness.conversions.gate.tensorflow_nodes import allow, node

MOST = 300_000
"""Tensors, operators and buffers of a file, each."""
DEPTH = 16
BUILTIN_LAST = 210
"""Codes of built-in operators end there: room for those to come."""
CUSTOM = frozenset(
    [
        "TFLite_Detection_PostProcess",
        "Mfcc",
        "AudioSpectrogram",
        "NumericVerify",
        "RandomUniform",
        "RandomStandardNormal",
        "Multinomial",
        "HashTable",
        "AtanGrad",
        "Atan2",
        "Sign",
        "Roll",
        "Cumsum",
        "Irfft2d",
        "Convolution2DTransposeBias",
        "MaxPoolingWithArgmax2D",
        "MaxUnpooling2D",
        "Landmarks2TransformMatrix",
        "TransformLandmarks",
        "TransformTensorBilinear",
        "Tfl_Custom",
        "ReadVariable",
        "AssignVariable",
        "VarHandle",
        "odml.rms_norm",
        "STABLEHLO_COMPOSITE",
    ]
)
"""Custom operators that LiteRT, tf.lite and MediaPipe register."""
_BYTES = {0: 4, 1: 2, 2: 4, 3: 1, 4: 8, 5: 1, 6: 1, 7: 2, 8: 8, 9: 1, 10: 8, 11: 16, 12: 8, 15: 4, 16: 2, 18: 2}
_CALLS = {
    118: ("BuiltinOptions", "IfOptions", ("ThenSubgraphIndex", "ElseSubgraphIndex")),
    119: ("BuiltinOptions", "WhileOptions", ("CondSubgraphIndex", "BodySubgraphIndex")),
    129: ("BuiltinOptions", "CallOnceOptions", ("InitSubgraphIndex",)),
    174: ("BuiltinOptions2", "StablehloReduceOptions", ("BodySubgraphIndex",)),
    190: ("BuiltinOptions2", "StablehloScatterOptions", ("UpdateComputationSubgraphIndex",)),
    198: ("BuiltinOptions2", "StablehloReduceWindowOptions", ("BodySubgraphIndex",)),
    199: ("BuiltinOptions2", "StablehloSortOptions", ("ComparatorSubgraphIndex",)),
    200: ("BuiltinOptions2", "StablehloWhileOptions", ("CondSubgraphIndex", "BodySubgraphIndex")),
    206: ("BuiltinOptions2", "StableHLOCompositeOptions", ("DecompositionSubgraphIndex",)),
}
"""Builtin operators that run other subgraphs: which options name them."""


def check(path: Path) -> str | None:
    """Why a TFLite file is refused unless it is trusted, in one line, or None."""
    try:
        _model(mapped(path))
    except Refused as why:
        return str(why)
    except Exception as error:  # flatbuffers reads wild offsets as struct.error, TypeError, IndexError, ...
        return f"it is no TFLite file: {quoted(f'{type(error).__name__}: {error}')}"
    return None


def _model(data: memoryview) -> None:
    import tflite

    model: Any = tflite.Model.GetRootAsModel(data, 0)  # type: ignore[arg-type]
    total = 0
    counts = {
        "buffers": model.BuffersLength(),
        "operator codes": model.OperatorCodesLength(),
        "subgraphs": model.SubgraphsLength(),
        "signatures": model.SignatureDefsLength(),
        "metadata": model.MetadataLength(),
    }
    for what, count in counts.items():
        if not 0 <= count <= min(MOST, len(data)):
            raise Refused(f"{count} {what}")
    sizes = [_buffer(model.Buffers(i), i, data) for i in range(counts["buffers"])]
    if sum(sizes) > LARGEST:
        raise Refused(f"buffers of more than {LARGEST} bytes")
    codes = [_code(model.OperatorCodes(i), i) for i in range(counts["operator codes"])]
    calls: dict[int, set[int]] = {}
    for i in range(counts["subgraphs"]):
        graph = model.Subgraphs(i)
        where = f"subgraph {i}"
        if max(graph.TensorsLength(), graph.OperatorsLength()) > min(MOST, len(data)):
            raise Refused(f"{where}: more than {MOST} tensors or operators")
        name_of(graph.Name() or b"", where)
        for t in range(graph.TensorsLength()):
            total += _tensor(graph.Tensors(t), f"{where}: tensor {t}", sizes)
            if total > LARGEST:
                raise Refused(f"{where}: tensors of more than {LARGEST} bytes are declared")
        for side in ("Inputs", "Outputs"):
            _indices(graph, side, graph.TensorsLength(), where)
        calls[i] = set()
        for o in range(graph.OperatorsLength()):
            one, here = graph.Operators(o), f"{where}: operator {o}"
            if one.OpcodeIndex() >= len(codes):
                raise Refused(f"{here}: code {one.OpcodeIndex()} of {len(codes)}")
            for side in ("Inputs", "Outputs"):
                _indices(one, side, graph.TensorsLength(), here)
            builtin, custom = codes[one.OpcodeIndex()]
            if custom.startswith("Flex"):
                _flex(one, custom, here, data)
            calls[i] |= _called(one, builtin, here, counts["subgraphs"])
    _no_cycles(calls)
    for i in range(counts["signatures"]):
        signature = model.SignatureDefs(i)
        where = f"signature {i}"
        name_of(signature.SignatureKey() or b"", where)
        if signature.SubgraphIndex() >= counts["subgraphs"]:
            raise Refused(f"{where}: subgraph {signature.SubgraphIndex()} of {counts['subgraphs']}")
        tensors = model.Subgraphs(signature.SubgraphIndex()).TensorsLength()
        for side in ("Inputs", "Outputs"):
            for one in map(getattr(signature, side), range(getattr(signature, f"{side}Length")())):
                name_of(one.Name() or b"", where)
                if one.TensorIndex() >= tensors:
                    raise Refused(f"{where}: tensor {one.TensorIndex()} of {tensors}")
    for i in range(counts["metadata"]):
        entry = model.Metadata(i)
        name_of(entry.Name() or b"", f"metadata {i}")
        if entry.Buffer() >= counts["buffers"]:
            raise Refused(f"metadata {i}: buffer {entry.Buffer()} of {counts['buffers']}")


def _buffer(buffer: Any, i: int, data: memoryview) -> int:
    size = buffer.DataLength()
    table = buffer._tab
    # offset, size: fields 1 and 2, for what lies behind the flatbuffer; 3, 4: in another file
    places = [table.Offset(at) for at in (6, 8, 10, 12)]
    offset, length = (table.Get(_u64(), table.Pos + at) if at else 0 for at in places[:2])
    if any(places[2:]):
        raise Refused(f"buffer {i}: it lies in another file")
    if offset > 1 and offset + length > len(data):
        raise Refused(f"buffer {i}: bytes {offset} to {offset + length} of a file of {len(data)}")
    if size and table.Vector(table.Offset(4)) + size > len(data):
        raise Refused(f"buffer {i}: {size} bytes in a file of {len(data)}")
    return size or (length if offset > 1 else 0)


def _u64() -> Any:
    from flatbuffers import number_types

    return number_types.Uint64Flags


def _code(code: Any, i: int) -> tuple[int, str]:
    builtin = max(code.BuiltinCode(), code.DeprecatedBuiltinCode())
    custom = name_of(code.CustomCode() or b"", f"operator code {i}")
    if not 0 <= builtin <= BUILTIN_LAST:
        raise Refused(f"operator code {i}: {builtin} is not known")
    if builtin == 32 and custom not in CUSTOM and not re.fullmatch(r"Flex\w+", custom):
        raise Refused(f"operator code {i}: custom operator {quoted(custom)} is not known")
    return builtin, custom if builtin == 32 else ""


def _indices(one: Any, side: str, tensors: int, where: str) -> None:
    values = getattr(one, f"{side}AsNumpy")()
    if getattr(one, f"{side}Length")() and (values.min() < -1 or values.max() >= tensors):
        raise Refused(f"{where}: {side.lower()} outside of {tensors} tensors")


def _tensor(tensor: Any, where: str, sizes: list[int]) -> int:
    name_of(tensor.Name() or b"", where)
    kind, buffer = tensor.Type(), tensor.Buffer()
    if buffer >= len(sizes):
        raise Refused(f"{where}: buffer {buffer} of {len(sizes)}")
    if tensor.ShapeLength() > 32:
        raise Refused(f"{where}: {tensor.ShapeLength()} dimensions")
    count = 1
    for d in range(tensor.ShapeLength()):
        size = tensor.Shape(d)
        if size < -1:
            raise Refused(f"{where}: a dimension of {size}")
        count *= max(size, 0) if size >= 0 else 1
        if count > LARGEST:
            raise Refused(f"{where}: more than {LARGEST} elements")
    if sizes[buffer] and kind in _BYTES and tensor.Sparsity() is None and sizes[buffer] < count * _BYTES[kind]:
        raise Refused(f"{where}: {sizes[buffer]} bytes of data for {count} elements")
    return sizes[buffer] if sizes[buffer] else count * _BYTES.get(kind, 1) if count > 1 << 28 else 0


def _flex(one: Any, custom: str, where: str, data: memoryview) -> None:
    """The delegate of TensorFlow runs the NodeDef that stands in the options: a flexbuffer of (name, NodeDef)."""
    from flatbuffers import flexbuffers

    size = one.CustomOptionsLength()
    if not 0 < size < 1 << 24:
        raise Refused(f"{where}: {quoted(custom)} has options of {size} bytes")
    items = flexbuffers.GetRoot(bytearray(one.CustomOptionsAsNumpy())).AsVector
    if len(items) != 2:
        raise Refused(f"{where}: {quoted(custom)} has options that are no pair")
    name, body = items[0], items[1]
    told = name.AsString if name.IsString else ""
    raw = bytes(body.AsBlob) if body.IsBlob else bytes(body.AsStringBytes if body.IsString else b"")
    definition = node(Reader(), memoryview(raw), where)
    if told != definition.operator or told != custom.removeprefix("Flex"):
        raise Refused(f"{where}: {quoted(custom)} is {quoted(told)} and {quoted(definition.operator)}")
    if definition.calls:
        raise Refused(f"{where}: {quoted(custom)} calls function {quoted(min(definition.calls))}")
    allow(definition, where, (), frozenset())


def _called(one: Any, builtin: int, where: str, subgraphs: int) -> set[int]:
    import tflite

    found: set[int] = set()
    place, kind, fields = _CALLS.get(builtin, ("BuiltinOptions", "", ()))
    table = getattr(one, place)()
    if fields and table is not None:
        options = getattr(tflite, kind)()
        options.Init(table.Bytes, table.Pos)
        found = {getattr(options, name)() for name in fields}
    wrong = [i for i in found if not 0 <= i < subgraphs]
    if wrong:
        raise Refused(f"{where}: subgraph {wrong[0]} of {subgraphs}")
    return found


def _no_cycles(calls: dict[int, set[int]]) -> None:
    depths: dict[int, int] = {}

    def depth(i: int, stack: tuple[int, ...]) -> int:
        if i in stack or len(stack) > DEPTH:
            raise Refused(f"subgraph {i} calls itself, or calls are deeper than {DEPTH}")
        if i not in depths:
            depths[i] = 1 + max((depth(one, (*stack, i)) for one in calls[i]), default=0)
        return depths[i]

    for i in calls:
        depth(i, ())
