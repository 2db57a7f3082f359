"""The command `study rank-faults`: faults on one rank, in a layer of its replica or in a gradient after all-reduce."""

from __future__ import annotations

import zlib
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from generators.faults.fault import REDUCED
from generators.faults.models import MODELS, PUBLISHED
from harness.commands.shared.engine import Address, Engine, Gpus, Resource
from harness.commands.shared.record import Record, RecordError
from harness.commands.shared.recorded_jobs import cluster_with, here_or_together
from harness.commands.shared.terminal import (
    FOUND_IS_KEPT,
    Json,
    fail,
    interrupted,
    print_wide,
    say,
    write_json,
    write_text,
)
from harness.studies.faults.ranks import study as ranks
from harness.studies.faults.ranks.struck import ABLE
from harness.studies.faults.ranks.study import MOST_TURNS, RankFault, each_run, undone
from harness.studies.faults.rows import csv_of


def rank_faults(
    strategy: Annotated[str, typer.Option(help=f"Of {', '.join(ABLE)}.")] = "torch-ddp",
    world: Annotated[int, typer.Option(min=2, max=8, help="Ranks.")] = 2,
    runs: Annotated[int, typer.Option(min=1, help="Drawn training runs.")] = 20,
    each: Annotated[int, typer.Option(min=1, max=MOST_TURNS, help="Faults in each of them.")] = 5,
    stages: Annotated[
        str, typer.Option(metavar="NAME,...", help=f"Where they strike, of {', '.join(ranks.STAGES)}.")
    ] = REDUCED,
    models: Annotated[
        str, typer.Option(metavar="NAME,...", help="Fault models: the 18 published ones, or any that there are.")
    ] = "",
    seed: Annotated[int, typer.Option(min=0, help="The same seed draws the same runs and faults.")] = 0,
    record: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Keep each fault's line there, and go on with what is there.")
    ] = None,
    csv_file: Annotated[Path | None, typer.Option("--csv", metavar="FILE", help="Write all faults as CSV.")] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Processes that share the runs; with --record.")] = 1,
    engine: Engine = "processes",
    address: Address = "",
    gpus: Gpus = 0.0,
    resource: Resource = "",
    json_file: Json = None,
) -> None:
    """Faults of hardware on one rank, in a layer or in a gradient that is added up: does the oracle find them?"""
    if strategy not in ABLE:
        raise fail(f"no strategy of replicas is called {strategy!r}; there are {', '.join(ABLE)}")
    chosen = tuple(models.replace(",", " ").split()) or tuple(model.name for model in PUBLISHED)
    unknown = [name for name in chosen if name not in MODELS]
    if unknown:
        raise fail(f"no fault model is called {unknown[0]!r}; there are {', '.join(MODELS)}")
    where = tuple(stages.replace(",", " ").split())
    wrong = [name for name in where if name not in ranks.STAGES]
    if wrong or not where:
        raise fail(f"no stage is called {(wrong or [stages])[0]!r}; there are {', '.join(ranks.STAGES)}")
    able = [MODELS[name] for name in chosen if where != (REDUCED,) or MODELS[name].array in ("", "output")]
    if not able:
        raise fail(f"{', '.join(chosen)}: none of these strikes a result, as which a gradient is struck")
    plan = " ".join((strategy, str(world), str(each), *where, *chosen))
    head = {"plan": zlib.crc32(plan.encode()), "seed": seed}
    try:
        cluster = cluster_with(record, jobs, engine, address, gpus, resource)
        kept = Record.opened(record, head, RankFault)
    except RecordError as error:
        raise fail(str(error)) from error
    except OSError as error:
        raise fail(f"cannot use {error.filename}: {error.strerror}") from error
    todo = [number for number in range(runs) if number not in {one.number for one in kept.runs}]
    work = partial(
        each_run, strategy=strategy, world=world, stages=where, models=[one.name for one in able], seed=seed, turns=each
    )
    kept, code, failure = here_or_together(kept, RankFault, todo, "runs", jobs, work, undone, cluster)
    kept.close()
    found = sorted((one for one in kept.runs if one.number < runs), key=lambda one: (one.number, one.turn))
    _tell(found, runs)
    write_json(json_file, {"faults": [asdict(one) for one in found]})
    write_text(csv_file, csv_of(RankFault, found))
    if failure:
        raise fail(failure)
    if code:
        raise interrupted(code, FOUND_IS_KEPT)


def _tell(found: list[RankFault], runs: int) -> None:
    for title, group in (("fault model", "model"), ("stage", "stage")):
        print_wide(_table(title, found, [getattr(one, group) for one in found]))
    visible = [one for one in found if one.visible]
    say(
        f"{len({one.number for one in found})} of {runs} runs; {len(found)} faults, {len(visible)} of them visible, "
        f"{sum(one.caught for one in visible)} of these found; {sum(one.caught for one in found if not one.visible)} "
        "false alarms"
    )


def _table(title: str, found: list[RankFault], groups: list[str]) -> Table:
    """A line for each group of these faults."""
    table = Table(title, "faults", "visible", "found", "by replicas alone", "not finite")
    for group in dict.fromkeys(groups):
        own = [one for one, its in zip(found, groups, strict=True) if its == group]
        counts = (
            sum(one.visible for one in own), sum(one.visible and one.caught for one in own),
            sum("is apart from rank 0" in one.said for one in own), sum(not one.finite for one in own),
        )  # fmt: skip
        table.add_row(group, str(len(own)), *map(str, counts))
    return table


STUDIES = (rank_faults,)
