"""Files with some bytes changed: each gate says in one line why not, or lets them pass, whatever becomes of its parser.
It runs in a worker, as when a person gives a file: MLIR's reader crashes on some, and never ends on others."""

from __future__ import annotations

from pathlib import Path

import pytest
from hostile import keras, onnx_files, openvino_files, pt2, savedmodel_files, stablehlo_files, tflite_files
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.conversions.admit import pool_for, refusal
from harness.execute.pool import Pool

GATES = {
    "keras": keras.HARMLESS,
    "onnx": onnx_files.HARMLESS,
    "openvino": openvino_files.HARMLESS,
    "pt2": pt2.HARMLESS,
    "savedmodel": savedmodel_files.HARMLESS,
    "stablehlo": stablehlo_files.HARMLESS,
    "tflite": tflite_files.HARMLESS,
}

pytestmark = pytest.mark.filterwarnings("ignore")  # frameworks warn while files are made


@pytest.mark.parametrize("gate", GATES)
def test_mutated(gate: str, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    path = next(iter(GATES[gate].values()))(folder, tmp_path / "marker")
    file = path / "saved_model.pb" if path.is_dir() else path
    before = file.read_bytes()

    @settings(max_examples=40, deadline=None)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        changed = bytearray(before)
        for _ in range(data.draw(st.integers(1, 5))):
            changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
        file.write_bytes(changed[: data.draw(st.integers(1, len(changed)))] if data.draw(st.booleans()) else changed)
        why = refusal(gate, path, pool)
        assert why is None or (why and why.isprintable() and len(why) < 400)

    pool: Pool
    with pool_for(path) as pool:
        assert refusal(gate, path, pool) is None
        check()
    assert not (tmp_path / "marker").exists()
