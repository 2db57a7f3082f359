"""Networks of OpenVINO that an attacker would send, and such that nobody should refuse."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

Build = Callable[[Path, Path], Path]

NET = """<?xml version="1.0"?>
<net name="n" version="11"><layers>
<layer id="0" name="w" type="Const" version="opset1"><data element_type="f32" shape="2" offset="0" size="8"/>
<output><port id="0" precision="FP32"><dim>2</dim></port></output></layer>
<layer id="1" name="y" type="Result" version="opset1"><input><port id="0"><dim>2</dim></port></input></layer>
</layers><edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/></edges><rt_info/></net>
"""


def _swapped(old: str, new: str) -> Build:
    def build(folder: Path, marker: Path) -> Path:
        assert old in NET
        path = folder / "model.xml"
        path.write_text(NET.replace(old, new.replace("MARKER", str(marker.with_name("secret.txt")))))
        path.with_suffix(".bin").write_bytes(bytes(8))
        return path

    return build


def _link(folder: Path, marker: Path) -> Path:
    path = _swapped("f32", "f32")(folder, marker)
    path.with_suffix(".bin").unlink()
    path.with_suffix(".bin").symlink_to(marker.with_name("secret.txt"))
    return path


def _sparse(folder: Path, marker: Path) -> Path:
    path = _swapped("f32", "f32")(folder, marker)
    with path.with_suffix(".bin").open("wb") as file:
        file.truncate(200 << 30)
    return path


def _alone(folder: Path, marker: Path) -> Path:
    path = _swapped("f32", "f32")(folder, marker)
    path.with_suffix(".bin").unlink()
    return path


def _laughs() -> str:
    lines = "".join(f'<!ENTITY l{i + 1} "{f"&l{i};" * 10}">' for i in range(9))
    return f'<?xml version="1.0"?><!DOCTYPE net [<!ENTITY l0 "ha">{lines}]>'


HOSTILE: dict[str, Build] = {
    "laughs": _swapped('<?xml version="1.0"?>', _laughs()),
    "entity": _swapped('<?xml version="1.0"?>', '<!DOCTYPE net [<!ENTITY e SYSTEM "file://MARKER">]>'),
    "weights-link": _link,
    "weights-sparse": _sparse,
    "weights-missing": _alone,
    "instruction": _swapped("<edges>", '<?include href="MARKER"?><edges>'),
    "element": _swapped("<edges>", '<include href="MARKER"/><edges>'),
    "negative": _swapped('offset="0"', 'offset="-8"'),
    "type": _swapped('type="Const"', 'type="../../evil"'),
    "beyond": _swapped('offset="0"', 'offset="4"'),
    "overflow": _swapped('shape="2"', 'shape="4294967296,4294967296,4"'),
    "size": _swapped('size="8"', 'size="18446744073709551615"'),
    "opset": _swapped('version="opset1"><data', 'version="evil"><data'),
    "library": _swapped("<rt_info/>", '<rt_info><plugin value="/tmp/evil.so"/></rt_info>'),
    "depth": _swapped("<edges>", "<body>" * 5000),
    "dimension": _swapped("<dim>2</dim>", "<dim>99999999999999</dim>"),
    "terminal": _swapped('name="w"', 'name="&#x9b;31m"'),
}


def _converted(folder: Path, marker: Path) -> Path:
    """A network with a branch and a loop as OpenVINO writes it."""
    import openvino
    from onnx import parser

    model = parser.parse_model("""<ir_version: 9, opset_import: ["" : 17]>
    g (float[N, 2] x, bool c) => (float[N, 2] y) {
        w = Constant <value = float[2, 2] {1.0, 2.0, 3.0, 4.0}> ()
        a = MatMul (x, w)
        n = Constant <value = int64 {3}> ()
        b = If (c) <then_branch = t () => (float[N, 2] p) { p = Relu (a) },
                    else_branch = e () => (float[N, 2] q) { q = Neg (a) }>
        y = Loop (n, c, b) <body = l (int64 i, bool d, float[N, 2] s) => (bool o, float[N, 2] r)
            { o = Identity (d) r = Exp (s) }>
    }""")
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    path = folder / "model.xml"
    openvino.save_model(openvino.convert_model(folder / "model.onnx"), path, compress_to_fp16=True)
    return path


HARMLESS: dict[str, Build] = {
    "converted": _converted,
    "plain": _swapped("f32", "f32"),
    "name": _swapped('name="w"', 'name="Gewicht-α"'),
    "information": _swapped("<rt_info/>", '<rt_info><Runtime_version value="2025"/></rt_info>'),
}
