"""What may stand beside a model: names inside its folder, no links out of it."""

from __future__ import annotations

from pathlib import Path, PurePosixPath, PureWindowsPath

from harness.conversions.gate.reading.protobuf import LARGEST, Refused, quoted

MOST_FILES = 10_000


def inside(folder: Path, name: str, where: str) -> Path:
    """The regular file of this name in a folder. Raises Refused for any other thing."""
    plain = PurePosixPath(name)
    if not name or "\0" in name or plain.is_absolute() or PureWindowsPath(name).drive or "\\" in name:
        raise Refused(f"{where}: {quoted(name)} is no relative path")
    if ".." in plain.parts:
        raise Refused(f"{where}: {quoted(name)} leaves the model's folder")
    path = folder
    for part in plain.parts:
        path = path / part
        if path.is_symlink():
            raise Refused(f"{where}: {quoted(name)} is a link")
    if not path.is_file():
        raise Refused(f"{where}: {quoted(name)} is not there")
    return path


def whole(folder: Path) -> list[Path]:
    """All files of a folder. Raises Refused for links, pipes and too much."""
    found: list[Path] = []
    size = 0
    for count, path in enumerate(folder.rglob("*")):
        name = quoted(str(path.relative_to(folder)))
        if count > MOST_FILES:
            raise Refused(f"more than {MOST_FILES} files in the folder")
        if path.is_symlink():
            raise Refused(f"{name} is a link")
        if path.is_file():
            found.append(path)
            size += path.stat().st_size
        elif not path.is_dir():
            raise Refused(f"{name} is no regular file")
    if size > LARGEST:
        raise Refused(f"{size} bytes in the folder, more than {LARGEST}")
    return found
