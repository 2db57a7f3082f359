"""The command `bench`: what drawing costs, how it grows, how many cases a second are judged, and where the time goes.
Figures of one run on one machine: compare the ratios, not the seconds."""

from __future__ import annotations

import itertools
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated

import psutil
import typer
from rich import box
from rich.console import Console
from rich.table import Table

from generators.graphs import MAX_NODES, SeededDraw, build_graph, seeded_case
from generators.training.runs import seeded_training
from harness.backends import TARGETS, probe, select
from harness.conversions.route import target_of
from harness.execute.pool import Job, Pool
from harness.execute.ranks import RankPools
from harness.findings.known.issues import load
from harness.models.examine import Options, examine
from harness.questions.conversion import CONVERSION
from harness.questions.forward import FORWARD
from harness.search import hunt
from harness.search.laboratory import Laboratory
from harness.strategies import STRATEGIES
from harness.training import judge as training_judge

console = Console(width=None if sys.stdout.isatty() else 120)


def draw_cost(nodes: int, count: int) -> tuple[float, float]:
    """CPU milliseconds a drawn graph of exactly `nodes` nodes before pruning, and the mean left after it."""
    started = time.process_time()
    kept = [len(build_graph(SeededDraw(f"bench/{i}"), nodes, min_nodes=nodes).nodes) for i in range(count)]
    return 1000 * (time.process_time() - started) / len(kept), sum(kept) / len(kept)


def measure(targets: list[str], cases: int) -> tuple[hunt.Tally, float, float]:
    """A hunt without a time limit: its figures, its wall-clock seconds and this process' CPU seconds."""
    with tempfile.TemporaryDirectory() as folder:
        options = hunt.Options(
            tuple(TARGETS[name] for name in targets),
            3600.0,
            0,
            MAX_NODES,
            Path(folder),
            FORWARD.drawn,
            load(),
            cases=cases,
        )
        started, cpu = time.monotonic(), time.process_time()
        first: list[float] = []

        def progress(tally: hunt.Tally) -> None:
            if not first:  # the workers have started: from here on it is warm
                first.extend((time.monotonic(), time.process_time()))

        tally = hunt.run(options, progress)
        return tally, time.monotonic() - (first or [started])[0], time.process_time() - (first or [0, cpu])[1]


def split_row(table: Table, name: str, tally: hunt.Tally, wall: float, own: float) -> float:
    """One row of the split; returns the share of CPU time inside the frameworks."""
    parts = {key: tally.seconds[key] for key in ("reference", "print", "transfer", "judge")}
    draw = max(0.0, own - sum(parts.values()))
    inside = sum(value for key, value in tally.seconds.items() if key.startswith("run:"))
    whole = own + inside
    shares = [draw, parts["reference"], parts["print"], parts["transfer"], parts["judge"], inside]
    table.add_row(
        name,
        str(tally.cases),
        f"{tally.cases / wall:.1f}",
        f"{1000 * whole / tally.cases:.1f}",
        *(f"{100 * share / whole:.0f} %" for share in shares),
    )
    return inside / whole


TOOLS = ("ort-disable", "ort-all", "tvm-O0", "tvm-O3")
CONVERSION_ROUTE = "torch/torchscript-onnx/ort-all"


def beside_tools(nodes: int, count: int) -> tuple[float, float]:
    """CPU seconds of everything, and of the programs alone, for cases of so many nodes on two levels of ONNX Runtime
    and of TVM and by one conversion: drawn, evaluated, printed, sent, judged. A first case that starts the workers is
    not counted."""
    route = target_of(CONVERSION_ROUTE)
    with Pool() as pool:
        asked = [
            (Laboratory(pool), [TARGETS[name] for name in TOOLS]),
            (Laboratory(pool, CONVERSION), [route]),
        ]
        whole = inside = 0.0
        tried = done = 0
        while done <= count:
            started = time.process_time()
            case = seeded_case(0, tried, 2 * nodes)
            tried += 1
            if len(case.graph.nodes) != nodes or any(
                lab.question.why_not(target, case.graph) for lab, targets in asked for target in targets
            ):
                continue
            workers = _children()
            outcomes = [
                outcome
                for lab, targets in asked
                for outcome in lab.judge(case, targets, confirm=False).outcomes.values()
            ]
            if done:
                whole += time.process_time() - started + _children() - workers
                inside += sum(outcome.cpu for outcome in outcomes)
            done += 1
        return whole, inside


TRAINED = (("torch-ddp", 2), ("torch-fully-shard", 2), ("tf-mirrored", 2), ("jax-data", 2))
"""Strategies, and on how many ranks they train."""


def training_cost(name: str, world: int, count: int) -> tuple[float, float, float]:
    """Small training runs (at most 2 blocks) under a strategy: how many a second ranks that are there run, CPU
    seconds of all ranks for one, and how many a second are judged, with the runs on one device that this takes. A first
    one that starts the ranks is not counted."""
    strategy = STRATEGIES[name]
    drawn = (training_judge.adapted(seeded_training(0, number, 2), strategy, world) for number in itertools.count())
    runs = list(itertools.islice((run for run in drawn if strategy.refusal(run, world) is None), count + 1))
    with RankPools() as pools:
        judge = training_judge.TrainingJudge(pools)
        judge.examine(runs[0], strategy, world)
        started = time.monotonic()
        for run in runs[1:]:
            judge.returned(run, strategy, world)
        ran, started = time.monotonic() - started, time.monotonic()
        cpu = sum(judge.examine(run, strategy, world).cpu for run in runs[1:])
        return count / ran, cpu / count, count / (time.monotonic() - started)


GIVEN = ("ort-disable", "ort-all", "openvino")
"""What runs the given network."""
NETWORK = """
import numpy as np
import onnx
from onnx import helper, numpy_helper

INPUTS, PARAMETERS = [], []


def load(parameters):
    def run():
        rng, nodes, constants, value, width = np.random.default_rng(0), [], [], "x", 3
        for place, wide in enumerate(WIDTHS):
            kernel = (rng.standard_normal((wide, width, 3, 3)) * (2 / 9 / width) ** 0.5).astype(np.float32)
            constants.append(numpy_helper.from_array(kernel, f"w{place}"))
            sizes = dict(kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[1 + (wide > width)] * 2)
            nodes.append(helper.make_node("Conv", [value, f"w{place}"], [f"c{place}"], **sizes))
            nodes.append(helper.make_node("Relu", [f"c{place}"], [f"r{place}"]))
            value, width = f"r{place}", wide
        nodes.append(helper.make_node("GlobalAveragePool", [value], ["y"]))
        ports = [helper.make_tensor_value_info(n, 1, s) for n, s in (("x", [1, 3, 96, 96]), ("y", [1, width, 1, 1]))]
        graph = helper.make_graph(nodes, "network", ports[:1], ports[1:], constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.save(model, TARGET)
        return []

    return run
"""
WIDTHS = (32, 64, 64, 128, 128, 128, 256, 256, 256)


def given_cost() -> tuple[float, float, float]:
    """Megabytes of a network of convolutions as an ONNX file, CPU seconds of the command `model` on it, by GIVEN
    without conversions and timed rounds, and of its runners alone."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        path = folder / "network.onnx"
        with Pool() as pool:
            pool.run([Job("onnx", ("onnx",), f"TARGET, WIDTHS = {str(path)!r}, {WIDTHS!r}\n{NETWORK}", {})])
        started = sum(os.times()[:4])
        found = examine(Options(str(path), folder / "out", targets=",".join(GIVEN)))
        whole = sum(os.times()[:4]) - started
        alone = sum(outcome.cpu for run in found.runs for outcome in run.outcomes)
        return path.stat().st_size / 1e6, whole, alone


def _children() -> float:
    """CPU seconds of all worker processes that are there, and of those that they have waited for."""
    return sum(sum(child.cpu_times()[:4]) for child in psutil.Process().children(recursive=True))


def bench(
    cases: Annotated[int, typer.Option(help="Cases for each fast target.")] = 200,
    slow: Annotated[int, typer.Option(help="Cases for each slow target, and for all together.")] = 12,
) -> None:
    """Measure what drawing, judging and running cost."""
    drawing = Table("nodes drawn", "kept", "CPU ms a graph", "ms a node", box=box.SIMPLE_HEAD, title="Drawing")
    draw_cost(10, 50)
    for nodes in (5, 10, 20, 40):
        cost, kept = draw_cost(nodes, 300)
        drawing.add_row(str(nodes), f"{kept:.1f}", f"{cost:.2f}", f"{cost / nodes:.3f}")
    console.print(drawing)

    headings = ("target", "cases", "cases/s", "CPU ms a case", "draw", "reference", "print", "transfer", "judge", "run")
    table = Table(*headings, box=box.SIMPLE_HEAD, title="One target at a time, all on one core")
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    available = [target.name for target in select("*") if probe.probe(target).available]
    for name in available:
        split_row(table, name, *measure([name], cases if TARGETS[name].sample_every == 1 else slow))
    os.sched_setaffinity(0, cores)
    console.print(table)

    table = Table(*headings, box=box.SIMPLE_HEAD, title="All targets together, warm")
    share = split_row(table, "all", *measure(available, slow))
    console.print(table)
    console.print(f"{100 * share:.1f} % of the CPU time of a warm hunt is spent inside the frameworks")

    whole, inside = beside_tools(10, slow)
    console.print(
        f"{slow} graphs of 10 nodes on {', '.join(TOOLS)} and by {CONVERSION_ROUTE}: {whole / slow:.2f} CPU s each, "
        f"{whole / inside:.2f} times what the tools take alone"
    )

    size, whole, alone = given_cost()
    console.print(
        f"model on a network of {size:.0f} MB with {', '.join(GIVEN)}: {whole:.1f} CPU s, of which the runners take "
        f"{alone:.1f}: {whole - alone:.1f} s beside them, {whole / alone:.1f} times what they take alone"
    )

    trained = Table(
        "strategy", "ranks", "runs", "runs/s", "CPU s a run", "judged/s", box=box.SIMPLE_HEAD, title="Training"
    )
    for name, world in TRAINED:
        if training_judge.available(STRATEGIES[name]) is None:
            rate, cpu, judged = training_cost(name, world, slow)
            trained.add_row(name, str(world), str(slow), f"{rate:.1f}", f"{cpu:.2f}", f"{judged:.2f}")
    console.print(trained)


COMMANDS = (bench,)
