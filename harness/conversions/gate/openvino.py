"""OpenVINO's intermediate representation: layers of its own opsets, constants that lie in the file of weights."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from harness.conversions.gate.reading.folder import inside
from harness.conversions.gate.reading.protobuf import LARGEST, Refused, quoted

LARGEST_XML = 256 << 20
MOST_ELEMENTS = 2_000_000
DEPTH = 64
OPSETS = re.compile(r"opset([1-9]|1\d)|extension|ie_internal_opset")
TAGS = frozenset(
    [
        "net",
        "layers",
        "layer",
        "data",
        "input",
        "output",
        "port",
        "dim",
        "edges",
        "edge",
        "rt_info",
        "attribute",
        "body",
        "port_map",
        "back_edges",
        "then_body",
        "else_body",
        "then_port_map",
        "else_port_map",
        "cli_parameters",
        "meta_data",
        "map",
        "model_info",
        "conversion_parameters",
        "legacy_frontend",
        "quantization",
    ]
)
BITS = {"f64": 64, "f32": 32, "f16": 16, "bf16": 16, "i64": 64, "i32": 32, "i16": 16, "i8": 8, "i4": 4, "u64": 64,
        "u32": 32, "u16": 16, "u8": 8, "u6": 6, "u4": 4, "u3": 3, "u2": 2, "u1": 1, "boolean": 8, "nf4": 4, "f8e4m3": 8,
        "f8e5m2": 8, "f8e8m0": 8, "f4e2m1": 4, "string": 8}  # fmt: skip


def check(path: Path) -> str | None:
    """Why a network of OpenVINO is refused unless it is trusted, in one line, or None."""
    from xml.parsers import expat

    try:
        if path.is_symlink():
            raise Refused(f"{path.name} is a link")
        weights = inside(path.parent, path.with_suffix(".bin").name, "weights").stat()
        if max(path.stat().st_size / LARGEST_XML, weights.st_size / LARGEST) > 1:
            raise Refused(f"{path.name} has more than {LARGEST_XML} bytes, or its weights more than {LARGEST}")
        if weights.st_blocks * 512 < weights.st_size // 2 - (1 << 20):
            raise Refused(f"{path.with_suffix('.bin').name} has {weights.st_size} bytes that are mostly not there")
        with path.open("rb") as file:
            _Document(weights.st_size).parse(file)
    except Refused as why:
        return str(why)
    except (OSError, ValueError, expat.ExpatError) as error:
        return f"it cannot be read: {quoted(str(error))}"
    return None


class _Document:
    """Looks at elements as they come; keeps the names of those that are open and the layer it is in."""

    def __init__(self, weights: int) -> None:
        self.weights = weights
        self.open: list[str] = []
        self.layers: list[tuple[str, str]] = []
        self.elements = 0
        self.declared = 0
        self.size = 1
        self.dim = ""

    def parse(self, file: Any) -> None:
        from xml.parsers import expat

        parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartElementHandler = self.start
        parser.EndElementHandler = self.end
        parser.CharacterDataHandler = self.text
        parser.StartDoctypeDeclHandler = self.doctype
        parser.EntityDeclHandler = self.doctype
        parser.ProcessingInstructionHandler = self.instruction
        parser.ParseFile(file)

    def doctype(self, name: str, *_: object) -> None:
        raise Refused(f"document type {quoted(name)}: entities are not taken")

    def instruction(self, target: str, _: str) -> None:
        raise Refused(f"processing instruction {quoted(target)}")

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self.elements += 1
        if self.elements > MOST_ELEMENTS or len(self.open) > DEPTH:
            raise Refused(f"more than {MOST_ELEMENTS} elements, or deeper than {DEPTH}")
        if not self.open and tag != "net":
            raise Refused(f"it begins with {quoted(tag)}, not with net")
        self.open.append(tag)
        if "rt_info" in self.open[:-1]:
            self.information(tag, attributes)
            return
        if tag not in TAGS:
            raise Refused(f"element {quoted(tag)} is not of the format")
        for value in attributes.values():
            if not value.isprintable():
                raise Refused(f"element {quoted(tag)}: control characters: {quoted(value)}")
        if tag == "layer":
            self.layer(attributes)
        elif tag == "data" and self.layers:
            self.data(attributes)
        elif tag == "port":
            self.size = 1

    def information(self, tag: str, attributes: dict[str, str]) -> None:
        for value in (tag, *attributes.values()):
            if re.search(r"\.(so|dll|dylib)(\.\d+)*\b", value):
                raise Refused(f"rt_info: {quoted(value)} names a library")
            if not value.replace("\n", " ").replace("\t", " ").isprintable():
                raise Refused(f"rt_info: control characters: {quoted(value)}")

    def layer(self, attributes: dict[str, str]) -> None:
        kind, opset, name = (attributes.get(key, "") for key in ("type", "version", "name"))
        where = f"layer {quoted(name)}"
        if not OPSETS.fullmatch(opset):
            raise Refused(f"{where}: opset {quoted(opset)} of type {quoted(kind)} is not known")
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,60}", kind):
            raise Refused(f"{where}: type {quoted(kind)}")
        self.layers.append((kind, name))

    def data(self, attributes: dict[str, str]) -> None:
        kind, name = self.layers[-1]
        where = f"layer {quoted(name)}"
        told = attributes.get("element_type", "f32")
        width = BITS.get(told)
        if width is None and (kind == "Const" or (kind == "Parameter" and told != "dynamic")):
            raise Refused(f"{where}: element type {quoted(told)} is not known")
        if kind != "Const":
            return
        texts = [attributes.get(key, "") for key in ("offset", "size")]
        if not all(text.isascii() and text.isdigit() and len(text) < 20 for text in texts):
            raise Refused(f"{where}: offset and size are {quoted(', '.join(texts))}")
        offset, size = map(int, texts)
        if offset + size > self.weights:
            raise Refused(f"{where}: bytes {offset} to {offset + size} of weights that have {self.weights}")
        bits = width or 8
        for text in filter(None, (part.strip() for part in attributes.get("shape", "").split(","))):
            if not (text.isascii() and text.isdigit() and len(text) < 20):
                raise Refused(f"{where}: shape {quoted(attributes['shape'])}")
            bits *= int(text)
        if attributes.get("element_type") != "string" and (bits + 7) // 8 > size + 8:
            raise Refused(f"{where}: {size} bytes for shape {quoted(attributes.get('shape', ''))}")

    def text(self, text: str) -> None:
        if self.open and self.open[-1] == "dim":
            self.dim += text
            if len(self.dim) > 40:
                raise Refused(f"dimension {quoted(self.dim)}")

    def end(self, tag: str) -> None:
        self.open.pop()
        if tag == "layer" and "rt_info" not in self.open:
            self.layers.pop()
        if tag == "dim":
            text, self.dim = self.dim.strip(), ""
            if not re.fullmatch(r"-?\d{1,19}", text):
                raise Refused(f"dimension {quoted(text)}")
            self.size *= max(int(text), 1)
            if self.size > LARGEST:
                name = self.layers[-1][1] if self.layers else ""
                raise Refused(f"layer {quoted(name)}: a tensor of more than {LARGEST} elements")
