"""What became of a training run in which a fault struck? One of seven outcomes, by rules on the curves after the fault.

The names are those of the study of hardware failures in training (Y. He et al., ISCA 2023). Nothing is compared with a
constant: what is out of the ordinary is more than a further fault-free run would show, by the prediction interval of
the fault-free runs with other seeds (t distribution; G. J. Hahn, W. Q. Meeker, Statistical Intervals, 1991, section
4.7), each of which is held against the others in the same way; and what one of them showed is never out of it.

The steps after the fault are split into PARTS parts, and a run's training accuracy is averaged over each. Its gap is
the mean of the fault-free runs' minus its own. In this order:

| outcome | rule |
|---|---|
| Immediate INFs/NaNs | the loss, a parameter or a statistic is not finite in the step of the fault |
| Short-term INFs/NaNs | one is not in a later step |
| SharpSlowDegrade | the gap is out of the ordinary at the end, and half of its greatest in the first SHARP parts |
| SlowDegrade | it is at the end, without having grown so at once |
| SharpDegrade | somewhere, but not at the end |
| LowTestAccuracy | nowhere, but that of test accuracy is |
| Masked | nothing is |

The end is the mean of the last SHARP parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
import scipy

MASKED, IMMEDIATE, SHORT_TERM = "Masked", "Immediate INFs/NaNs", "Short-term INFs/NaNs"
SLOW, SHARP_SLOW, SHARP_ONLY = "SlowDegrade", "SharpSlowDegrade", "SharpDegrade"
LOW_TEST = "LowTestAccuracy"
OUTCOMES = (MASKED, IMMEDIATE, SHORT_TERM, SLOW, SHARP_SLOW, SHARP_ONLY, LOW_TEST)
LATENT = (SLOW, SHARP_SLOW, SHARP_ONLY, LOW_TEST)
"""Outcomes that no NaN or infinity shows."""
PARTS = 10
SHARP = 2
LEVEL = 0.999
"""Of the prediction interval, one-sided: one fault-free run in a thousand is beyond it."""


@dataclass(frozen=True, eq=False)
class Curves:
    """What is seen of a run from the step of the fault on. loss, accuracy: of training, by step; finite: whether
    parameters and statistics were after each step; test: accuracy at the end; history, variance: the greatest magnitude
    of any gradient history (what the optimiser keeps of gradients) and of any moving variance, by step. batch, tested:
    samples that an accuracy is of. Shapes (steps,); NaN accuracies are those of a run that is not finite."""

    loss: np.ndarray
    accuracy: np.ndarray
    finite: np.ndarray
    test: float
    history: np.ndarray
    variance: np.ndarray
    batch: int
    tested: int

    def __post_init__(self) -> None:
        lengths = {len(a) for a in (self.loss, self.accuracy, self.finite, self.history, self.variance)}
        if len(lengths) != 1 or lengths == {0}:
            raise ValueError(f"curves of {sorted(lengths)} steps")

    @property
    def broken(self) -> int | None:
        """The first step in which the loss, a parameter or a statistic was not finite."""
        wrong = np.flatnonzero(~(np.isfinite(self.loss) & self.finite))
        return int(wrong[0]) if len(wrong) else None

    @property
    def parts(self) -> np.ndarray:
        """Mean training accuracy of each part: as many as there are steps for, at most PARTS."""
        return np.array([part.mean() for part in np.array_split(self.accuracy, min(PARTS, len(self.accuracy)))])


@dataclass(frozen=True)
class Gaps:
    """How far a run is below fault-free ones: sharp, in the first parts at most; most, in any part; end, in the last
    ones; test, in test accuracy. Shares of samples."""

    sharp: float
    most: float
    end: float
    test: float


@dataclass(frozen=True, eq=False)
class Band:
    """Fault-free runs: their mean, by part and of test accuracy; the greatest gaps that are ordinary; the greatest
    history and moving variance that any of them had."""

    parts: np.ndarray
    test: float
    ordinary: Gaps
    history: float
    variance: float
    runs: int


@dataclass(frozen=True)
class Classified:
    """outcome: of OUTCOMES; broken: the step in which it was no longer finite; gaps (None: not finite); low_test: test
    accuracy is out of the ordinary, whatever training is; history, variance: necessary conditions, the greatest values
    in the two steps after the fault as multiples of the greatest in fault-free runs (infinite where not finite)."""

    outcome: str
    broken: int | None
    gaps: Gaps | None
    low_test: bool
    history: float
    variance: float


def band_of(runs: Sequence[Curves]) -> Band:
    """What fault-free runs with other seeds show. Raises ValueError for fewer than three, for curves of different
    lengths, and for one that is not finite."""
    if len(runs) < 3:
        raise ValueError(f"{len(runs)} fault-free runs, which are too few to tell what is ordinary")
    if len({len(run.loss) for run in runs}) > 1:
        raise ValueError("fault-free runs of different lengths")
    if any(run.broken is not None for run in runs):
        raise ValueError("a fault-free run that is not finite")
    parts, tests = np.array([run.parts for run in runs]), np.array([run.test for run in runs])
    left = [_gaps(run, np.delete(parts, i, 0).mean(0), float(np.delete(tests, i).mean())) for i, run in enumerate(runs)]
    # one sample in a part, and in the test data, is the least that can differ
    shortest = len(runs[0].loss) // len(parts[0])
    grain = 1 / (runs[0].batch * shortest)
    ordinary = Gaps(
        *(max(grain, _ordinary([getattr(gap, name) for gap in left])) for name in ("sharp", "most", "end")),
        test=max(1 / runs[0].tested, _ordinary([gap.test for gap in left])),
    )
    return Band(
        parts.mean(0), float(tests.mean()), ordinary, max(float(run.history.max()) for run in runs),
        max(float(run.variance.max()) for run in runs), len(runs),
    )  # fmt: skip


def further(values: Sequence[float], level: float = LEVEL) -> float:
    """The one-sided prediction bound of a further value: mean + t s sqrt(1 + 1/n)."""
    n = len(values)
    t = float(scipy.stats.t.ppf(level, n - 1))
    return float(np.mean(values) + t * np.std(values, ddof=1) * sqrt(1 + 1 / n))


def _ordinary(values: Sequence[float]) -> float:
    """The greatest that is: of a further run, or of one that there was (their tails may be longer than normal ones)."""
    return max(further(values), *values)


def _gaps(run: Curves, parts: np.ndarray, test: float) -> Gaps:
    below = parts - run.parts
    last = min(SHARP, len(below))
    return Gaps(float(below[:SHARP].max()), float(below.max()), float(below[-last:].mean()), test - run.test)


def classify(run: Curves, band: Band) -> Classified:
    """The outcome of a run with a fault, by the rules above. Raises ValueError for curves of another length."""
    if len(run.parts) != len(band.parts):
        raise ValueError(f"{len(run.parts)} parts, not {len(band.parts)}")
    history, variance = _multiple(run.history[:2], band.history), _multiple(run.variance[:2], band.variance)
    broken = run.broken
    if broken is not None:
        return Classified(SHORT_TERM if broken else IMMEDIATE, broken, None, True, history, variance)
    gaps, ordinary = _gaps(run, band.parts, band.test), band.ordinary
    low_test = not gaps.test <= ordinary.test
    if gaps.end > ordinary.end:
        outcome = SHARP_SLOW if gaps.sharp > max(ordinary.sharp, gaps.most / 2) else SLOW
    elif gaps.most > ordinary.most:
        outcome = SHARP_ONLY
    else:
        outcome = LOW_TEST if low_test else MASKED
    return Classified(outcome, None, gaps, low_test, history, variance)


def _multiple(values: np.ndarray, greatest: float) -> float:
    if not np.isfinite(values).all():
        return float("inf")
    most = float(values.max())
    return most / greatest if greatest else (float("inf") if most else 0.0)
