"""Runs baits through compilers that tell which of their rules fire, in workers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from msgspec import Struct

from generators.baits import BAITS
from generators.baits.cases import baited, places
from generators.graphs import Case
from generators.schema import converted, parsed
from harness.backends import TARGETS, Target
from harness.backends.target import passes
from harness.execute.pool import HarnessError, Job, Pool
from oracles.judge.outcome import Unsupported, Value

HELPERS = Path(__file__).with_name("helpers")
CHUNK = 16
"""Programs of one job."""


@dataclass(frozen=True)
class Optimiser:
    """name: before the slash in the rewrites of baits
    helper:  the file of helpers/ that watches it
    targets: whose programs it compiles
    rules:   that are known to be there; the worker adds those that it lists
    out:     rules that no graph of ours can have fire, and why
    places:  of each bait, so many are compiled by default"""

    name: str
    helper: str
    targets: tuple[str, ...]
    rules: tuple[str, ...] = ()
    out: dict[str, str] = field(default_factory=dict)
    places: int = 12


def _switched(*targets: str) -> tuple[str, ...]:
    found = [switches.passes for name in targets if (switches := TARGETS[name].switches)]
    return tuple(dict.fromkeys(name for names in found for name in names if name != passes.LLVM))


_NO_LOOPS = "no kernel that TVM makes of our operators has such loops"
_TVM_OUT = {
    "ComputePrimValue": "shapes are static here",
    "DispatchSampling": "our operators draw no random numbers",
    "s_tir.AnnotateIrregularLoop": _NO_LOOPS,
    "s_tir.CanonicalizeLoop": _NO_LOOPS,
    "s_tir.InjectSoftwarePipeline": _NO_LOOPS,
    "s_tir.LoopPartition": _NO_LOOPS,
}
_ORT_OUT = {
    "LabelEncoderFusion": "an operator on texts",
    "PreShapeNodeElimination": "shapes of our models are constants: no model has the operator Shape",
    "EliminateDropout": "our models are for inference, and have no Dropout",
    "BiasDropoutFusion": "our models are for inference, and have no Dropout",
    "MatMulNBitsFusion": "an operator of ONNX Runtime alone, which we do not write",
    "GroupQueryAttentionFusion": "an operator of ONNX Runtime alone, which we do not write",
    "GroupQueryAttentionPreNormFusion": "an operator of ONNX Runtime alone, which we do not write",
    "MatMulIntegerToFloatFusion": "an operator that only quantisers write",
    "DynamicQuantizeMatMulFusion": "an operator that only quantisers write",
    "GeluFusionL2": "for models of older opsets than ours: in these, GeluFusionL1 has done it",
    "LayerNormFusionL2": "for models of older opsets than ours: in these, LayerNormFusionL1 has done it",
    "EliminateSlice": "slices that end at 2**63 - 1, which forms of a model alone have",
    "GemmSumFusion": "Gemm without a third operand, which forms of a model alone have",
    "GatherToSliceFusion": "indices that the operator Range makes",
    "QDQFinalCleanupTransformer": "on request only (session.enable_quant_qdq_cleanup)",
    "BiasSoftmaxFusion": "for CUDA and ROCm only",
    "MatMulActivationFusion": "for DirectML only",
}
_INDUCTOR_OUT = {
    f"_sfdp_pattern_{hidden}": f"without dropout it is pattern {first}, which is tried first"
    for hidden, first in ((3, 1), (8, 7), (10, 9), (12, 11), (16, 14))
}
OPTIMISERS = {
    one.name: one
    for one in (
        Optimiser("onnxruntime", "onnxruntime", ("ort-all",), _switched("ort-all"), _ORT_OUT, 1000),
        Optimiser(
            "tvm", "tvm", ("tvm-O1", "tvm-O3", "tvm-O3-dlight"), _switched("tvm-O1", "tvm-O2", "tvm-O3"), _TVM_OUT, 4
        ),
        Optimiser("torch-inductor", "inductor", ("torch-inductor", "torch-inductor-frozen"), (), _INDUCTOR_OUT),
        Optimiser("xla", "xla", ("jax-jit",), _switched("jax-jit")),
    )
}


class Told(Struct, frozen=True):
    """What a worker answers."""

    listed: list[str]
    fired: dict[str, list[int]]
    failed: dict[str, int]


@dataclass
class Fired:
    """programs: that were compiled; rules: all there are; by: how often each fired, by bait; failed: what could not be
    compiled, by reason; refused: places that a target cannot run, as is written down"""

    optimiser: Optimiser
    programs: int = 0
    rules: set[str] = field(default_factory=set)
    by: dict[str, Counter[str]] = field(default_factory=dict)
    failed: Counter[str] = field(default_factory=Counter)
    refused: int = 0

    @property
    def reachable(self) -> list[str]:
        """Rules that count."""
        return sorted(self.rules - set(self.optimiser.out))

    @property
    def never(self) -> list[str]:
        """Those of them that did not fire."""
        return [rule for rule in self.reachable if rule not in self.by]


Progress = Callable[[str, int, int], None]


def measure(pool: Pool, optimiser: Optimiser, most: int, progress: Progress, names: Sequence[str] = ()) -> Fired:
    """What fires over the baits (all, or those named), at most so many places of each. Raises HarnessError where a
    worker fails as a whole."""
    found = Fired(optimiser, rules=set(optimiser.rules))
    chosen = list(names or BAITS)
    for target in (TARGETS[name] for name in optimiser.targets):
        for number, name in enumerate(chosen):
            progress(f"{optimiser.name} {target.name}", number, len(chosen))
            cases = list(_cases(target, name, most, found))
            for first in range(0, len(cases), CHUNK):
                _ask(pool, target, name, cases[first : first + CHUNK], found)
        pool.restart_worker(f"baits-{optimiser.name}")
    return found


def _cases(target: Target, name: str, most: int, found: Fired) -> Iterator[Case]:
    for turn in range(min(most, len(places(name)))):
        case = baited(name, turn, 1).case(0)
        if target.unsupported(case.graph):
            found.refused += 1
        else:
            yield case


def _ask(pool: Pool, target: Target, bait: str, cases: Sequence[Case], found: Fired) -> None:
    optimiser = found.optimiser
    arrays = {f"c{i}_{name}": array for i, case in enumerate(cases) for name, array in case.arrays.items()}
    head = (
        f"INPUTS, PARAMETERS = [], {list(arrays)!r}\nRULES = {list(passes.ORT_RULES)!r}\n"
        f"PROGRAMS = {[target.program(case.graph) for case in cases]!r}\n"
    )
    parts = [(HELPERS / f"{name}.py").read_text(encoding="utf-8") for name in ("meeting", optimiser.helper)]
    job = Job(f"baits-{optimiser.name}", target.modules, head + "\n\n\n".join(parts), arrays)
    (outcome,) = pool.run([job], confirm=False)
    if isinstance(outcome, Unsupported):
        raise HarnessError(f"{optimiser.name}: {outcome.why}")
    if not isinstance(outcome, Value):  # a crash is for the hunt to find; it is counted here
        found.failed[f"{bait}: {type(outcome).__name__}"] += len(cases)
        return
    told = converted(parsed(outcome.outputs[0].tobytes().decode()), Told)
    found.programs += len(cases)
    found.rules.update(told.listed)
    found.failed.update(told.failed)
    for rule, numbers in told.fired.items():
        found.by.setdefault(rule, Counter())[bait] += len(numbers)
