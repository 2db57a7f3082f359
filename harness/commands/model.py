"""The command on models that are given: `model PATH`."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from harness.commands.shared.bar import Bar
from harness.commands.shared.recorded import recorded
from harness.commands.shared.terminal import (
    Json,
    Known,
    console,
    fail,
    finite,
    interrupted,
    print_counts,
    print_wide,
    say,
    unwritten,
    write_json,
    write_text,
)
from harness.conversions.model_file import FormatError
from harness.execute.files import replace_text
from harness.execute.isolation import confinement
from harness.execute.isolation.signals import status_of
from harness.execute.pool import HarnessError
from harness.findings.known.entry import FOLDER
from harness.models.convert import DEPTH, unbuilt
from harness.models.examine import LIMITS, Options, examine
from harness.models.given.inputs import shapes_of, span_of
from harness.models.measure import Run
from harness.models.report import copies, glance, page, store, words
from harness.models.results import Results
from harness.models.rows import Row


def model(
    path: Annotated[
        str,
        typer.Argument(
            metavar="PATH",
            help="ONNX, .keras, SavedModel folder, .tflite, .pt2; a function that makes a model (module:function, "
            "keras.applications:ResNet50 say); or digits, the embedded one.",
        ),
    ],
    inputs: Annotated[
        Path | None,
        typer.Option(
            "--inputs", "--load-inputs", metavar="FILE|DIR", help=".npz, or a folder of images or recordings."
        ),
    ] = None,
    preprocess: Annotated[
        Path | None, typer.Option(metavar="FILE", help="How these become arrays; default: preprocessing.toml there.")
    ] = None,
    target_globs: Annotated[
        str, typer.Option("--targets", metavar="GLOB", help="Comma-separated globs of runners.")
    ] = "*",
    conversions: Annotated[bool, typer.Option(help="Convert to all formats that can be reached.")] = True,
    edges: Annotated[str, typer.Option(metavar="GLOB", help="Comma-separated globs of conversions.")] = "*",
    depth: Annotated[int, typer.Option(min=1, max=3, help="Most conversions one after the other.")] = DEPTH,
    runs: Annotated[int, typer.Option(min=0, help="Timed rounds; intervals need 5 at least.")] = 10,
    warm_up: Annotated[int, typer.Option(min=0, help="Calls before each timed one.")] = 1,
    iterations: Annotated[int, typer.Option(min=1, help="Sets of inputs that are drawn.")] = 4,
    layers: Annotated[bool, typer.Option(help="Errors by layer also of ONNX files that agree.")] = True,
    steps: Annotated[
        int, typer.Option(min=0, help="Steps of decoding of a model with a cache of keys and values; 0: none.")
    ] = 4,
    input_shapes: Annotated[
        list[str] | None, typer.Option(metavar="NAME:[1,3,224,224]", help="Where the signature leaves sizes open.")
    ] = None,
    val_range: Annotated[str, typer.Option(metavar="[LOW,HIGH]", help="Inputs are drawn uniformly from it.")] = "",
    weights: Annotated[Path | None, typer.Option(metavar="FILE", help="Weights for what a function makes.")] = None,
    seed: Annotated[int, typer.Option(help="The same seed draws the same inputs, noise and order of rounds.")] = 0,
    threads: Annotated[int, typer.Option(min=1, help="Threads of each framework's own pool.")] = 1,
    timeout: Annotated[
        float, typer.Option(min=1, callback=finite, help="Seconds a call or conversion may take.")
    ] = 300.0,
    trust: Annotated[bool, typer.Option("--trust", help="Open files that run code of their own (pickle).")] = False,
    again: Annotated[
        bool, typer.Option("--again", help="Run all anew; else what is kept in DIR of the same is not run again.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where results and the page go; default: models/NAME.")
    ] = None,
    save_inputs: Annotated[Path | None, typer.Option(metavar="FILE", help="The inputs as .npz, too.")] = None,
    save_outputs: Annotated[
        Path | None, typer.Option(metavar="FILE", help="What each variant returns as .npz, too.")
    ] = None,
    csv_file: Annotated[Path | None, typer.Option("--csv", metavar="FILE", help="All pairs as CSV.")] = None,
    labels: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Names of classes: one a line, or a list in .json.")
    ] = None,
    known_issues: Known = FOLDER,
    json_file: Json = None,
) -> None:
    """Run a model of your own on all runners and conversions: verdicts by a measured bound, agreement, times."""
    folder = out or Path("models") / (Path(path).stem if ":" not in path else path.replace(":", "-"))
    try:
        options = Options(
            path, folder, inputs, preprocess, target_globs, depth if conversions else 0, edges, runs, warm_up,
            iterations, layers, shapes_of(input_shapes or ()), span_of(val_range) if val_range else None, weights,
            seed, trust, replace(LIMITS, seconds=timeout, threads=threads), labels, known_issues, again,
            steps,
        )  # fmt: skip
        folder.mkdir(parents=True, exist_ok=True)
        log = recorded(folder, seed)
        if not trust and (why := confinement.missing()):
            say(f"not confined: {why} (docs/security.md)", style="yellow")
        columns = (SpinnerColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
        with Bar(*columns, console=console) as progress:
            task = progress.add_task(path)

            def tell(told: str) -> None:
                progress.update(task, description=told)
                if not console.is_terminal:
                    say(told)

            def finished(run: Run, row: Row) -> None:
                store.write_variant(folder, run, row)
                log.case("model", {row.status: 1}, row.seconds or 0.0, subject=row.variant.name)
                word = "is off" if row.status == "mismatch" else words.status_of(row)  # the verdict comes at the end
                told = " ".join(["  ", word, words.short(row.ratio), row.variant.name])
                progress.console.print(told, markup=False, highlight=False, soft_wrap=True)

            found = examine(options, tell, finished)
        results = found.results
        written = store.write(folder, results, found.runs, found.sets, trust)
        seen = glance.glance_of(results, trust)
        replace_text(folder / "report.html", page.html_of(results, found.runs, seen, folder))
        dropped = 0 if found.stop else copies.drop(results, folder / "converted")
        if save_inputs:
            np.savez(
                save_inputs, allow_pickle=False, **store.saved(found.sets[: len(found.runs[0].single)], results.inputs)
            )
        if save_outputs:
            np.savez(save_outputs, allow_pickle=False, **store.outputs_of(found.runs))
    except (FormatError, ValueError, HarnessError) as error:
        raise fail(str(error)) from error
    except OSError as error:
        raise fail(unwritten(error, folder)) from error
    except KeyboardInterrupt as stop:
        then = f"no variant had run; what was done is kept in {folder}: the same command goes on"
        raise interrupted(status_of(stop), then) from None
    for row in results.unexplained:
        log.finding(f"{row.symptom or row.status}-{folder.name}-{row.variant.name}", [row.variant.name], row.symptom)
    log.known(Counter(row.known for row in results.rows if row.known))
    show(results)
    for line in written:
        say(f"reproducer of {line}")
    say(f"{folder}/report.html, results.json, pairs.csv")
    write_json(json_file, store.to_json(results))
    write_text(csv_file, store.csv_of(results))
    if found.hits:
        told = f"{found.hits} of {found.hits + found.misses} programs had run before; --again runs them anew"
        say(told, style="dim")
    if dropped:
        told = f"{dropped / 1e6:.0f} MB of converted files are not kept: they agree; the same command makes them again"
        say(told, style="dim")
    if found.stop:
        then = f"all that was done is kept in {folder}: the same command goes on"
        raise interrupted(status_of(found.stop), then)
    if results.exit_status:
        raise typer.Exit(results.exit_status)


def show(results: Results) -> None:
    """The verdict, a line for each variant, what else was found, what was refused."""
    right = ("true top-1", "true top-5") if results.truth is not None else ()
    table = Table("variant", "verdict", "of allowed", "top-1", "RBO", "ms", "x first", "repeats", *right)
    for row in results.rows:
        table.add_row(*words.cells(results, row))
    print_wide(table)
    for row in [] if results.refused else results.unexplained:
        say(f"{row.variant.name}: {row.status}: {row.message}")
    print_counts("known: {count}", (f"{row.variant.name}: {row.known}" for row in results.rows if row.known))
    for one in results.layers:
        say(f"{one.variant}: {words.blamed(one, results)}")
    for regression in results.regressions:
        say(f"slower by {regression.kind}: {regression}", style="yellow")
    refusals, elsewhere = unbuilt(results.refusals)
    for why in dict.fromkeys(one.why for one in refusals):
        those = ", ".join(one.what for one in refusals if one.why == why)
        say(f"refused: {those}: {why}", style="dim")
    if elsewhere:
        say(elsewhere, style="dim")
    if results.decoding:
        say(f"decoding: {results.decoding}", style="dim")
    if results.drawn:
        say(f"inputs: {results.drawn}", style="dim")
    if results.decided is not None and results.decided < 1:
        share = f"{100 * (1 - results.decided):.3g} %"
        say(f"noise alone decides the first class of {share} of the samples", style="yellow")
    say(f"reference: {results.how}", style="dim")
    if results.doubt:
        say(f"doubt: {results.doubt}", style="yellow")
    say(results.headline, style="bold")


COMMANDS = (model,)
