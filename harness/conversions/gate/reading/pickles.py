"""Pickles of tensors as torch.save writes them: the names and opcodes that torch.load takes with weights_only."""

from __future__ import annotations

import io
import pickletools
import re

from harness.conversions.gate.reading.archives import content, opened
from harness.conversions.gate.reading.refused import Refused, quoted
from harness.conversions.gate.reading.words import words

LARGEST = 16 << 20
"""Bytes of a pickle; tensors stand beside it."""
GLOBALS = re.compile(
    r"collections (OrderedDict)"
    r"|torch (\w+Storage|Size|Tensor|device|(u?int|float|complex|bits|qu?int)\d\w*|bool|bfloat16|per_\w+)"
    r"|torch\.storage (Untyped|Typed)Storage"
    r"|torch\.nn\.parameter Parameter"
    r"|torch\.serialization _get_layout"
    r"|torch\._tensor _rebuild_from_type_v2"  # a tensor with attributes, as one of a dynamic size
    r"|torch\._utils _rebuild_(parameter|tensor|tensor_v2|tensor_v3|qtensor|sparse_tensor|meta_tensor_no_storage)"
    r"|(builtins|__builtin__) (set|complex)"
    r"|_codecs encode"
)
OPCODES = words(
    """PROTO GLOBAL REDUCE BUILD APPEND APPENDS SETITEM SETITEMS MARK TUPLE TUPLE1 TUPLE2 TUPLE3 NONE NEWFALSE NEWTRUE
    EMPTY_TUPLE EMPTY_LIST EMPTY_DICT EMPTY_SET BININT BININT1 BININT2 BINFLOAT BINUNICODE SHORT_BINSTRING LONG1 BINGET
    LONG_BINGET BINPUT LONG_BINPUT BINPERSID STOP"""
)
_MEMBER = re.compile(
    r"[\w.-]+/(data\.pkl|byteorder|version|\.format_version|\.storage_alignment|\.data/\w+|data/\d+)", re.ASCII
)


def tensors(data: bytes, spot: str) -> None:
    """What torch.save wrote. Raises Refused."""
    with opened(io.BytesIO(data), spot) as archive:
        names = archive.namelist()
        for name in names:
            if not _MEMBER.fullmatch(name):
                raise Refused(f"{spot} has a member that torch.save does not write: {quoted(name)}")
        pickles = [name for name in names if name.endswith("/data.pkl")]
        if len(pickles) != 1:
            raise Refused(f"{spot} has {len(pickles)} pickles")
        scanned(content(archive, pickles[0], LARGEST), spot)


def scanned(data: bytes, spot: str) -> None:
    """A pickle, by its opcodes; nothing is executed. Raises Refused."""
    end = 0
    for opcode, argument, place in pickletools.genops(data):
        if opcode.name not in OPCODES:
            raise Refused(f"{spot}: the pickle has the opcode {opcode.name}")
        if opcode.name == "GLOBAL" and not GLOBALS.fullmatch(str(argument)):
            raise Refused(f"{spot}: the pickle names {quoted(argument)}")
        end = (place or 0) + 1
    if end != len(data):
        raise Refused(f"{spot}: the pickle has data behind its end")
