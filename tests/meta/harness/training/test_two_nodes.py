"""A stored program on several machines: two agents of torchrun, on this one's loopback, with a rank each."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from planted.faults.strategies import FAULTS
from planted.faults.strategy_fault import StrategyFault

from generators.training.runs import Training, seeded_training
from harness.execute.ranks import RankPools
from harness.strategies import STRATEGIES, Strategy
from harness.training.findings import Deviation, write_reproducer
from harness.training.judge import TrainingJudge, adapted

FAULT: StrategyFault = next(fault for fault in FAULTS if fault.name == "all ranks see the first share")


def stored(folder: Path, training: Training, strategy: Strategy) -> Path:
    """The program of a run on two ranks, with what is expected of it."""
    found = Deviation("f", "value", strategy.name, 2, "loss.0", "", None, training.network.kinds, {})
    with RankPools() as pools:
        judge = TrainingJudge(pools)
        expected = judge.expected(training, strategy, 2)
        write_reproducer(folder, training, strategy, 2, expected, found, judge.arrays(training))
    return folder / "reproducer.py"


def nodes(script: Path) -> list[tuple[int, str]]:
    """Exit status and output of each of two agents, as a person would start one on each machine."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        sys.executable, "-m", "torch.distributed.run", "--nnodes=2", "--nproc-per-node=1", "--rdzv-backend=c10d",
        f"--rdzv-endpoint=127.0.0.1:{port}", "--rdzv-id=dissent", str(script),
    ]  # fmt: skip
    environment = os.environ | {"GLOO_SOCKET_IFNAME": "lo"}
    agents = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for _ in range(2)
    ]
    try:
        outputs = [agent.communicate(timeout=300)[0] for agent in agents]
    finally:
        for agent in agents:
            agent.kill()
    return [(agent.returncode, output) for agent, output in zip(agents, outputs, strict=True)]


@pytest.mark.nightly
@pytest.mark.distributed
@pytest.mark.parametrize("name", ["torch-ddp", "torch-fully-shard"])
def test_a_sound_run_passes_on_two_nodes(name: str, tmp_path: Path) -> None:
    strategy = STRATEGIES[name]
    training = adapted(seeded_training(50, 0, 2), strategy, 2)
    for status, output in nodes(stored(tmp_path, training, strategy)):
        assert status == 0, output


@pytest.mark.nightly
@pytest.mark.distributed
def test_a_fault_is_reproduced_on_two_nodes(tmp_path: Path) -> None:
    training = adapted(seeded_training(50, 0, 2), STRATEGIES[FAULT.strategy], 2)
    found = nodes(stored(tmp_path, training, FAULT.planted()))
    assert all(status != 0 for status, _ in found)
    told = "\n".join(output for _, output in found)
    assert re.search(r"rank [01]: (loss|gradient|parameter|prediction)", told), told
