"""Which targets run a drawn case, by its number."""

from __future__ import annotations

import random
from collections.abc import Sequence

from harness.backends import Target

ROUND = 16
"""Cases after which the turn of slow targets moves on by one: what most of them have as `sample_every`."""


def turn_of(targets: Sequence[Target], index: int) -> list[Target]:
    """Who runs the drawn case of this number: slow targets one case in `sample_every`, the slower ones among the cases
    of the faster ones. Their turn moves on by one with each round; otherwise every job but the first, which has the
    multiples of the number of jobs, would have none of them."""
    least, turn = min(target.sample_every for target in targets), index + index // ROUND
    return [target for target in targets if turn % max(1, target.sample_every // least) == 0]


def left_out(seed: int, index: int, target: Target) -> Target:
    """The target without passes that the case's number draws: one in half of the cases, else each with even chances."""
    assert target.switches
    draw, passes = random.Random(f"{seed}/{index}/{target.name}"), target.switches.passes
    some = [name for name in passes if draw.random() < 0.5] if draw.random() < 0.5 else []
    return target.without(some or [draw.choice(passes)])
