"""An edge: one tool that converts model files of one format to another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Edge:
    """name:     e.g. torch-onnx
    source, target: names of formats
    modules:     what the program text imports (a reproducer looks for them)
    packages:    PyPI distributions and the least version that this was written for; the first is the tool
    convert:     source of `def convert(source, target)`, which reads the file at one path and writes the other
    environment: that it runs in, where it is not ours (a name of environments.toml)
    inherits:    targets that compile a graph as it does, whose known issues hold for its files
    form:        it says the same model in another way: drawn graphs take it in front of what converts such files, too;
                 models of your own only where it is named
    parts:       edges of which it is one behind the other, whose known issues hold for it
    optimises:   it writes what its own optimiser makes of the model, perhaps by operators of its own, which other tools
                 may read: drawn graphs take it in front of these, too
    on_request:  only a route that is named takes it
    refuses:     (regular expression of "class: message", why, with its groups as fields): what it documents not to do
    """

    name: str
    source: str
    target: str
    modules: tuple[str, ...]
    packages: Mapping[str, str]
    convert: str
    environment: str = ""
    inherits: tuple[str, ...] = ()
    form: bool = False
    parts: tuple[str, ...] = ()
    optimises: bool = False
    on_request: bool = False
    refuses: tuple[tuple[str, str], ...] = ()

    @property
    def tool(self) -> str:
        """The distribution that converts."""
        return next(iter(self.packages))
