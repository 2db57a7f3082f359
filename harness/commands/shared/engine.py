"""Options of the commands whose work is shared out: by processes of this machine, or by tasks of Ray."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harness.commands.shared.terminal import fail, finite
from harness.execute.isolation.cluster import Cluster, capacity, check_installed
from harness.execute.isolation.jobs import JobError

ENGINES = ("processes", "ray")

Engine = Annotated[str, typer.Option(metavar="NAME", help="What does the work: processes of this machine, or ray.")]
Address = Annotated[
    str, typer.Option(metavar="HOST:PORT", help="Of a Ray that is there, or auto; without it one is started here.")
]
Gpus = Annotated[float, typer.Option(min=0, callback=finite, help="GPUs that each task of Ray takes; parts, too.")]
Resource = Annotated[
    str, typer.Option(metavar="NAME", help="A resource of Ray that a node has to have: an environment, say.")
]


def cluster_of(engine: str, address: str, gpus: float, resource: str, folder: Path, alone: str = "") -> Cluster | None:
    """Where tasks run; None: processes do the work. One clear line where it cannot be. folder, alone: of `Cluster`."""
    if engine not in ENGINES:
        raise fail(f"--engine: no engine is called {engine!r}; there are {', '.join(ENGINES)}")
    if engine == "processes":
        if address or gpus or resource:
            raise fail("--address, --gpus and --resource are of --engine ray")
        return None
    try:
        check_installed()
    except JobError as error:
        raise fail(str(error)) from error
    return Cluster(address=address, gpus=gpus, resource=resource, folder=folder.absolute(), alone=alone)


def room(cluster: Cluster) -> int:
    """As many jobs as there is room for. One clear line where Ray cannot be reached."""
    try:
        return capacity(cluster)
    except JobError as error:
        raise fail(str(error)) from error


def alone_by(url: str, folder: Path) -> str:
    """Why all that write to this store have to be on one machine; empty: they need not."""
    if not url.startswith("sqlite"):
        return ""
    return f"the store of {folder} is a file of SQLite, for one machine: name one of PostgreSQL in DISSENT_STORE"
