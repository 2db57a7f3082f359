"""The points of fault-free runs in the folder of a study, so that a study is gone on with at once."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from generators.schema import SchemaError, converted
from harness.execute.files import whole
from harness.execute.reading import FileError
from harness.studies.faults.protocol import Start
from oracles.outcomes import Band, Gaps


def save(folder: Path, about: Mapping[str, str], starts: Sequence[Start]) -> None:
    """Write them into a folder of their own. Raises OSError."""
    arrays: dict[str, np.ndarray] = {"about": np.array(json.dumps(dict(about), sort_keys=True))}
    for number, start in enumerate(starts):
        arrays |= {f"{number}/state/{name}": array for name, array in start.state.items()}
        arrays |= {f"{number}/bounds/{name}": array for name, array in start.bounds.items()}
        band = start.band
        rest = {
            "ordinary": asdict(band.ordinary), "test": band.test, "history": band.history, "variance": band.variance,
            "runs": band.runs, "alarmed": start.alarmed, "again": start.again, "steps": start.steps,
        }  # fmt: skip
        arrays |= {f"{number}/parts": band.parts, f"{number}/band": np.array(json.dumps(rest))}
    with whole(folder) as scratch:
        np.savez(scratch / "arrays.npz", **arrays)  # type: ignore[arg-type]


def load(folder: Path, about: Mapping[str, str]) -> list[Start] | None:
    """What `save` wrote, or None where there is nothing, or what was written for another plan. Raises FileError."""
    path = folder / "arrays.npz"
    if not path.exists():
        return None
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = dict(file)
        if str(arrays.pop("about")) != json.dumps(dict(about), sort_keys=True):
            return None
        return [_start(arrays, number) for number in sorted({int(name.split("/")[0]) for name in arrays})]
    except OSError as error:
        raise FileError(f"{path}: {error.strerror or error}") from error
    except (ValueError, KeyError, TypeError, EOFError, SchemaError, zipfile.BadZipFile) as error:
        raise FileError(
            f"{path}: not the points of a fault-free run ({error}); remove it, and they are made anew"
        ) from error


def _start(arrays: Mapping[str, np.ndarray], number: int) -> Start:
    def under(kind: str) -> dict[str, np.ndarray]:
        begin = f"{number}/{kind}/"
        return {name.removeprefix(begin): array for name, array in arrays.items() if name.startswith(begin)}

    rest = json.loads(str(arrays[f"{number}/band"]))
    band = Band(
        arrays[f"{number}/parts"], rest["test"], converted(rest["ordinary"], Gaps), rest["history"], rest["variance"],
        rest["runs"],
    )  # fmt: skip
    return Start(under("state"), under("bounds"), band, tuple(rest["alarmed"]), rest["again"], rest["steps"])
