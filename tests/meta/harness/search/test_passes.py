"""The guilty pass: found among simulated ones, named where one is planted, and where the cause of a known issue is
known; the passes that a program leaves out are those that the compiler has."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from examples.small_graphs import chain_case
from planted.faults.passes import FAULTS, PassFault, cases_with
from planted.targets import planted
from syrupy.assertion import SnapshotAssertion

from generators import caseio
from generators.ops import DRAWN
from harness.backends import TARGETS, select
from harness.backends.probe import probe
from harness.backends.target import passes
from harness.backends.target.passes import Switches
from harness.backends.target.text import swapped
from harness.execute.pool import Job, Limits, Pool, ProgramError
from harness.findings.known import issues as known_issues
from harness.findings.known.entry import FOLDER
from harness.findings.store import Finding, Store, failure_text
from harness.search import hunt
from harness.search.blame.guilty_pass import Shown, find
from harness.search.campaign import Campaign
from harness.search.hunting import turns
from harness.search.laboratory import Laboratory
from harness.search.reduce import Budget
from oracles.judge.outcome import Rejected, Value

ROOT = Path(__file__).parents[4]
TEN = tuple("abcdefghij")
NIGHTLY = pytest.mark.nightly


@pytest.fixture(scope="module")
def lab() -> Iterator[Laboratory]:
    with Pool(Limits(seconds=300)) as pool:
        yield Laboratory(pool)


def simulated(*needed: str) -> Callable[[Collection[str]], Shown]:
    """Fails in the same way as long as all of these passes run."""
    return lambda off: "right" if set(off) & set(needed) else "same"


def search(run: Callable[[Collection[str]], Shown], runs: int = 100) -> tuple[tuple[str, ...], str]:
    found = find(TEN, run, Budget(runs=runs).spend)
    return found.names, found.text


@pytest.mark.parametrize("name", TEN)
def test_one_pass(name: str) -> None:
    assert search(simulated(name)) == ((name,), name)


def test_the_last_of_those_that_it_takes() -> None:
    assert search(simulated("b", "f")) == (("f",), "f, right also without b")


def test_two_passes_that_fail_each() -> None:
    names, text = search(lambda off: "right" if {"c", "g"} <= set(off) else "same")
    assert names == ("c", "g")
    assert text == "c and g, right only without all of them"


def test_no_pass() -> None:
    assert search(lambda off: "same") == ((), "none, it fails without any of 10")


def test_what_comes_and_goes() -> None:
    assert search(lambda off: "right") == ((), "unknown, it comes and goes")


def test_another_failure_is_not_mended() -> None:
    """Without b alone nothing works; the search goes round that."""

    def run(off: Collection[str]) -> Shown:
        return "other" if "b" in off and "h" not in off else "right" if "h" in off else "same"

    assert search(run) == (("h",), "h")
    assert search(lambda off: "other" if off else "same")[1] == "unknown, without any of 10 it fails in another way"
    alone: dict[tuple[str, ...], Shown] = {(): "same", ("d",): "right"}
    assert search(lambda off: alone.get(tuple(off), "other")) == (("d",), "d")


def test_the_budget_is_kept() -> None:
    assert search(simulated("e"), runs=3) == ((), "unknown, the time for it was spent")
    assert search(simulated("e"), runs=8) == (("e",), "e")


def test_a_pass_that_is_not_there_is_refused() -> None:
    with pytest.raises(ValueError, match=r"tvm-O0 has no pass 'FuseOps' that can be left out; known: DispatchSampling"):
        TARGETS["tvm-O0"].without(("FuseOps",))
    with pytest.raises(ValueError, match="ort-disable has no pass"):
        TARGETS["ort-disable"].without(("ConstantFolding",))


def test_name_of_what_is_left() -> None:
    target = TARGETS["tvm-O3"].without(("llvm", "FuseOps"))
    assert (target.name, target.whole, target.off) == ("tvm-O3~FuseOps~llvm", "tvm-O3", ("FuseOps", "llvm"))


def test_targets_without_passes_by_name() -> None:
    chosen = select("ort-all,ort-e*~FuseReluClip~DivMulFusion")
    assert [target.name for target in chosen] == ["ort-all", "ort-extended~DivMulFusion~FuseReluClip"]
    with pytest.raises(ValueError, match="ort-all has no pass 'Fuse'"):
        select("ort-all~Fuse")


SWITCHED = tuple(
    pytest.param(name, marks=NIGHTLY) if target.sample_every > 4 else name
    for name, target in TARGETS.items()
    if target.switches
)


@pytest.mark.slow(one_in=4)
@pytest.mark.parametrize("name", SWITCHED)
def test_right_without_any_pass(name: str, lab: Laboratory) -> None:
    target = TARGETS[name]
    assert target.switches
    bare = target.without(target.switches.passes)
    assert lab.judge(chain_case(), [bare]).verdicts[bare.name].discrepancy is None


def test_passes_of_tvm_are_there(lab: Laboratory) -> None:
    """Each name is one that TVM tells an instrument of."""
    target, case = TARGETS["tvm-O3"], chain_case()
    assert target.switches
    seen = told(
        lab, target.framework, target.modules, named_by_instrument(target.program(case.graph)), dict(case.arrays)
    )
    assert set(target.switches.passes) - {passes.LLVM} <= set(seen.split())


def named_by_instrument(program: str) -> str:
    """A TVM program that returns the names of the passes that it ran."""
    text = program.replace("PassContext(opt_level=3)", "PassContext(opt_level=3, instruments=[Names()])")
    assert text != program
    return (
        text
        + """

seen = []


@tvm.instrument.pass_instrument
class Names:
    def run_before_pass(self, module, info):
        seen.append(info.name)


complete = load


def load(parameters):
    complete(parameters)
    return lambda *inputs: [np.frombuffer(" ".join(seen).encode(), "uint8")]
"""
    )


def told(lab: Laboratory, framework: str, modules: tuple[str, ...], program: str, arrays: dict) -> str:
    """The text that a program returns as bytes."""
    outcome = lab.pool.run([Job(framework, modules, program, arrays)])[0]
    assert isinstance(outcome, Value), outcome
    return outcome.outputs[0].tobytes().decode()


ORT_LOG = """
import contextlib
import os
import tempfile
from pathlib import Path

TARGET, INPUTS, PARAMETERS, OUTPUTS = "ort-all", {}, {}, []


def load(parameters):
    import onnxruntime

    a, b = (helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2]) for name in "ab")
    graph = helper.make_graph([helper.make_node("Neg", ["a"], ["b"])], "g", [a], [b])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 0
    kept = os.dup(2)
    with tempfile.TemporaryFile() as log:
        os.dup2(log.fileno(), 2)
        onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"], disabled_optimizers=OFF
        )
        os.dup2(kept, 2)
        log.seek(0)
        told = log.read()
    return lambda *inputs: [np.frombuffer(told, "uint8")]


import numpy as np
import onnx
from onnx import helper
"""


def test_optimisers_of_onnx_runtime_are_there(lab: Laboratory) -> None:
    """Transformers run by their names and are gone without them, as the log says; rules are not in the log, but their
    names are in the library. A name that ONNX Runtime does not know it ignores."""
    target = TARGETS["ort-all"]
    assert target.switches
    names = target.switches.passes

    def transformers(off: tuple[str, ...]) -> set[str]:
        log = told(lab, target.framework, target.modules, f"OFF = {off!r}\n{ORT_LOG}", {})
        return set(re.findall(r"GraphTransformer (\w+) modified", log))

    run, left = transformers(()), transformers(names)
    rules = set(names) - run
    assert not left & set(names)
    assert len(rules) == 21
    library = next(Path(onnxruntime_folder()).glob("onnxruntime_pybind11_state*.so")).read_bytes()
    assert [name for name in sorted(rules) if b"\0" + name.encode() + b"\0" not in library] == []
    # the rest runs on every level, or is not an optimisation
    assert {name for name in run - set(names) if "Fusion" in name or "Elimination" in name} == set()


def onnxruntime_folder() -> str:
    spec = importlib.util.find_spec("onnxruntime")
    assert spec is not None
    assert spec.submodule_search_locations
    return f"{spec.submodule_search_locations[0]}/capi"


FEW = ("tvm-O3-avx2", "tvm-O3-c", "tvm-O3-meta", "tvm-O3-lifted", "tvm-O0-structured")
VARIANTS = [target.name for target in select("tvm-O3-*,tvm-O0-structured") if probe(target).available]


@pytest.mark.parametrize("name", [name if name in FEW else pytest.param(name, marks=NIGHTLY) for name in VARIANTS])
def test_other_settings_of_tvm_right_and_wrong(name: str, lab: Laboratory) -> None:
    wrong = planted("neg", "relax.op.multiply({0}, {0})", of=name)
    found = lab.judge(chain_case(), [TARGETS[name], wrong]).verdicts
    assert (found[name].status, found["planted"].status) == ("agree", "mismatch")


_TELL = """        text = str([(name.name_hint, str(mod[name])) for name, _ in functions])
        others = sum(str(mod[name]) != str(function) for name, function in functions)
        raise ValueError(f"{others} of {len(functions)} scheduled, {zlib.crc32(text.encode())}")
"""


def test_schedules_are_drawn(lab: Laboratory) -> None:
    """One for each fused function, and the same ones in another process."""
    target = TARGETS["tvm-O3-meta"]
    telling = replace(target, load="import zlib\n" + swapped(target.load, ("        return mod\n", _TELL)))
    said = []
    for _ in range(2):
        lab.pool.restart_worker(target.framework)
        (outcome,) = lab.outcomes([(telling, chain_case())], confirm=False)
        assert isinstance(outcome, Rejected)
        said.append(outcome.message)
    assert said[0] == said[1]
    numbers = [int(word) for word in said[0].split()[:3:2]]
    assert numbers[0] == numbers[1] > 0


def test_they_run_only_where_asked_for() -> None:
    assert not set(VARIANTS) & {target.name for target in select("*")}
    assert "tvm-O3-c" in {target.name for target in select("tvm-*")}


def test_a_device_that_cannot_be_reached_is_no_finding(lab: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISSENT_TVM_DEVICE", "nowhere")
    lab.pool.restart_worker("tvm-rpc")
    with pytest.raises(ProgramError, match="no device behind DISSENT_TVM_DEVICE='nowhere'"):
        lab.judge(chain_case(), [TARGETS["tvm-O3-rpc"]])
    lab.pool.restart_worker("tvm-rpc")


CAUSES = {
    "ort-matmul-add-fusion-empty": ("ort-all", "MatMulAddFusion"),
    "ort-matmul-selu-fusion-double": ("ort-all", "MatMulScaleFusion"),
    "ort-relu-clip-fusion-double": ("ort-basic", "FuseReluClip"),
    "ort-expand-elimination-empty": ("ort-extended", "ExpandElimination"),
    "ort-max-min-nan": ("ort-all", None),
    "tvm-combine-parallel-matmul-constant": ("tvm-O3", "CombineParallelMatmul"),
    "tvm-rms-norm-double": ("tvm-O3", None),
    "xla-logarithm-of-exp": ("jax-jit", "algsimp"),
    "xla-grouped-conv-infinity": ("jax-jit", "convolution-group-converter"),
}
"""Known issues whose cause their entries name, None: a kernel."""


@pytest.mark.slow(one_in=3, ci=2)
@pytest.mark.parametrize("name", CAUSES)
def test_causes_of_known_issues(name: str, lab: Laboratory, tmp_path: Path) -> None:
    issue = next(issue for issue in known_issues.load() if issue.id == name)
    case = caseio.loads(issue.case.read_text())
    target, cause = TARGETS[CAUSES[name][0]], CAUSES[name][1]
    campaign = Campaign(lab, [target], Store(tmp_path))
    shown = campaign.verdict(target, case).discrepancy
    assert shown is not None
    guilt = campaign.guilty_pass(target, case, shown)
    assert guilt is not None
    assert guilt.names == ((cause,) if cause else ())
    assert guilt.text.startswith(cause or "none, it fails without any of")


def investigated(fault: PassFault, seed: int, lab: Laboratory, folder: Path) -> Finding:
    """What a campaign makes of the first drawn graph that the fault makes wrong."""
    issues = known_issues.load()
    campaign = Campaign(
        lab, [TARGETS["torch-eager"]], Store(folder), issues, reduction=lambda: Budget(20, 60), confirmations=0
    )
    for case in cases_with(fault, seed):
        shown = lab.examine(case, [fault.target]).verdicts[fault.target.name].discrepancy
        rest = campaign.unexplained(fault.target, case, shown) if shown else None
        finding = campaign.investigate(fault.target, *rest) if rest else None
        if finding:
            return finding
    raise AssertionError(f"seed {seed} does not show {fault.operator}")


def test_failure_text_names_the_pass(lab: Laboratory, tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    fault = FAULTS[0]()
    finding = investigated(fault, 0, lab, tmp_path)
    case = caseio.loads((Path(finding.path) / "graph.json").read_text())
    assert failure_text(finding, case).replace(str(tmp_path), "findings") == snapshot
    assert "Guilty pass of tvm-O3: **Planted**." in (Path(finding.path) / "report.md").read_text()
    assert named_right(fault, finding)


def test_the_same_operator_by_another_pass_is_another_finding(lab: Laboratory, tmp_path: Path) -> None:
    """Found again it is counted; where what is stored was of another pass, it is another one."""
    case = caseio.loads((FOLDER / "onnxruntime/ort-matmul-add-fusion-empty/case.json").read_text())
    target = TARGETS["ort-all"]
    campaign = Campaign(lab, [target], Store(tmp_path), reduction=lambda: Budget(80, 60), confirmations=2)
    shown = campaign.verdict(target, case).discrepancy
    assert shown is not None
    first, again = (campaign.investigate(target, case, shown) for _ in range(2))
    assert first is not None
    assert again is not None
    assert (again.fingerprint, again.count) == (first.fingerprint, 2)
    assert first.fingerprint.endswith("-MatMulAddFusion")
    other = first.fingerprint.replace("MatMulAddFusion", "FuseReluClip")
    (tmp_path / first.fingerprint).rename(tmp_path / other)
    record = tmp_path / other / "finding.json"
    record.write_text(record.read_text().replace("MatMulAddFusion", "FuseReluClip"))
    third = campaign.investigate(target, case, shown)
    assert third is not None
    assert (third.fingerprint, third.count) == (first.fingerprint, 1)
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == sorted([first.fingerprint, other])


def named_right(fault: PassFault, finding: Finding) -> bool:
    """Do both the node and the pass stand in the finding?"""
    return fault.named in finding.operators and finding.nodes == 1 and finding.passes == (fault.name,)


@pytest.mark.nightly
def test_node_and_pass_are_right_in_19_of_20(lab: Laboratory, tmp_path: Path) -> None:
    faults = [make() for make in FAULTS]
    found = [investigated(fault, seed, lab, tmp_path / str(seed)) for seed, fault in enumerate(faults)]
    wrong = [finding for fault, finding in zip(faults, found, strict=True) if not named_right(fault, finding)]
    assert len(faults) == 20
    assert len(wrong) <= 1, [(finding.operators, finding.guilty_pass) for finding in wrong]


def test_a_hunt_without_drawn_passes(tmp_path: Path) -> None:
    """The same ones for the same case, and each case with all passes, too."""
    target = TARGETS["ort-all"]
    drawn = [turns.left_out(5, index, target).off for index in range(40)]
    assert drawn == [turns.left_out(5, index, target).off for index in range(40)]
    assert {1} < {len(off) for off in drawn}
    assert len(set(drawn)) > 30
    options = hunt.Options((target,), 60.0, 5, 3, tmp_path, DRAWN, cases=4, passes=True)
    tally = hunt.run(options, lambda tally: None)
    assert {label: sum(counts.values()) for label, counts in tally.statuses.items()} == {"ort-all": 4, "ort-all~*": 4}


def test_what_fails_without_passes_is_blamed_on_the_fewest(lab: Laboratory, tmp_path: Path) -> None:
    """A compiler that is wrong without two of its passes: the finding is of the target without these."""
    good = TARGETS["ort-all"]
    assert good.switches
    two = {"FuseReluClip", "ConvAddFusion"}
    call = "return lambda *inputs: [-x for x in right(parameters)(*inputs)]"
    negated = f"\nright = load\n\n\ndef load(parameters):\n    {call}\n"
    switches = Switches(good.switches.passes, lambda text, off: text + negated if two <= set(off) else text)
    target = replace(good, switches=switches)
    campaign, case = Campaign(lab, [target], Store(tmp_path)), chain_case()
    bare = target.without([*two, "ConstantFolding", "DivMulFusion", "TransposeOptimizer"])
    shown = campaign.verdict(bare, case).discrepancy
    assert shown is not None
    assert campaign.fewest_left_out(bare, case, shown).name == "ort-all~FuseReluClip~ConvAddFusion"
