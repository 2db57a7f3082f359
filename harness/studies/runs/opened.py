"""The folder of a study of training runs: one study, one process at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from harness.execute.files import replace_text, sole
from harness.execute.reading import FileError, read_json


@contextmanager
def opened(folder: Path, about: Mapping[str, str]) -> Iterator[None]:
    """about: what results depend on; a folder of another study is refused. Raises FileError."""
    path = folder / "study.json"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = sole(path)
    except BlockingIOError as error:
        raise FileError(f"{path}: another process is writing to it") from error
    except OSError as error:
        raise FileError(f"cannot use {folder}: {error.strerror}") from error
    with lock:
        if path.exists():
            found = read_json(path, dict[str, str])
            other = [f"{key} {found.get(key)}, not {value}" for key, value in about.items() if found.get(key) != value]
            if other:
                raise FileError(f"{path} is of another study: {'; '.join(other)}")
        else:
            try:
                replace_text(path, json.dumps(dict(about), indent=1) + "\n")
            except OSError as error:
                raise FileError(f"cannot use {path}: {error.strerror}") from error
        yield
