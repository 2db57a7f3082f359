"""A finding: its text, its folder, its count, its reproducer, and what a known issue does to it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from examples.small_graphs import chain_case
from planted.targets import FaultyDialect, planted
from syrupy.assertion import SnapshotAssertion

from generators import caseio
from generators.graph import TensorType
from generators.graphs import Case
from generators.ops.spec import Call, Unsupported
from generators.retype import float64_twin
from harness.backends import TARGETS, Target
from harness.execute import machine
from harness.execute.pool import Pool
from harness.findings.known import issues as known_issues
from harness.findings.known.entry import KnownFileError
from harness.findings.reproducer import looked_for, write
from harness.findings.store import Finding, Store, failure_text, fingerprint
from harness.questions.forward import FORWARD
from harness.questions.question import reproduction_of
from harness.search import known_cases
from harness.search.campaign import Campaign
from harness.search.laboratory import Laboratory
from oracles.judge.discrepancy import Discrepancy

WRONG_NEG = "torch.neg({0}) * 1.0001"


@dataclass(frozen=True)
class BothFaulty(FaultyDialect):
    """Two operators spelled wrongly."""

    second: tuple[str, str] = ("", "")

    def spelling(self, operator: str, call: Call) -> str | Unsupported:
        return self.second[1] if operator == self.second[0] else super().spelling(operator, call)


@pytest.fixture(scope="module")
def lab() -> Iterator[Laboratory]:
    with Pool() as pool:
        yield Laboratory(pool)


@pytest.fixture
def campaign(lab: Laboratory, tmp_path: Path) -> Campaign:
    return Campaign(lab, [TARGETS["torch-eager"], TARGETS["ort-all"]], Store(tmp_path / "findings"))


def find(campaign: Campaign, target: Target, case: Case) -> Finding:
    verdict = campaign.lab.examine(case, [target]).verdicts[target.name]
    assert verdict.discrepancy is not None
    finding = campaign.investigate(target, case, verdict.discrepancy)
    assert finding is not None
    return finding


def exit_status(reproducer: Path) -> int:
    return subprocess.run([sys.executable, str(reproducer)], capture_output=True, timeout=120).returncode


def test_failure_text_is_an_interface(campaign: Campaign, snapshot: SnapshotAssertion) -> None:
    finding = find(campaign, planted("neg", WRONG_NEG), chain_case())
    case = caseio.loads((Path(finding.path) / "graph.json").read_text())
    text = failure_text(finding, case).replace(str(campaign.store.root), "findings")
    assert text == snapshot
    report = (Path(finding.path) / "report.md").read_text()
    assert re.sub(r"\| [\d.]+\S* \|", "| VERSION |", report.replace(str(campaign.store.root), "findings")) == snapshot


def test_reproducer_is_the_program_that_ran(campaign: Campaign) -> None:
    target = planted("neg", WRONG_NEG)
    finding = find(campaign, target, chain_case())
    case = caseio.loads((Path(finding.path) / "graph.json").read_text())
    assert target.program(case.graph) in (Path(finding.path) / "reproducer.py").read_text()


def test_minimal_and_confirmed(campaign: Campaign) -> None:
    finding = find(campaign, planted("neg", WRONG_NEG), chain_case())
    assert finding.nodes == 1
    assert finding.operators == ("neg",)
    assert (finding.reproduced, finding.tried) == (2, 2)
    assert finding.votes == {"torch-eager": "agree", "ort-all": "agree"}
    assert finding.twin == "mismatch"
    assert exit_status(Path(finding.path) / "reproducer.py") == 1


def test_reproducer_exits_with_0_once_it_is_right(campaign: Campaign) -> None:
    finding = find(campaign, planted("neg", WRONG_NEG), chain_case())
    path = Path(finding.path) / "reproducer.py"
    path.write_text(path.read_text().replace(" * 1.0001", ""))
    assert exit_status(path) == 0


def test_reproducer_exits_with_77_without_its_framework(campaign: Campaign) -> None:
    finding = find(campaign, planted("neg", WRONG_NEG), chain_case())
    path = Path(finding.path) / "reproducer.py"
    path.write_text(path.read_text().replace("for module in ['torch']", "for module in ['absent_framework']"))
    assert exit_status(path) == 77


def test_reproducer_looks_for_all_packages_and_for_each_before_its_modules() -> None:
    program = "import os\nimport numpy as np\n\ndef convert():\n    import another.part\n    from torch import fx\n"
    assert looked_for(("torch", "absent.inner.module"), program) == [
        *("torch", "absent", "absent.inner", "absent.inner.module", "another")
    ]


def test_reproducer_for_a_gpu_exits_with_77_without_one(lab: Laboratory, tmp_path: Path) -> None:
    """Whatever its symptom: that CUDA does not start is no rejection of the graph."""
    issue = next(one for one in known_issues.load() if one.id == "tvm-cuda-empty-schedule")
    case = caseio.loads(issue.case.read_text(encoding="utf-8"))
    shown = reproduction_of(FORWARD, TARGETS["tvm-cuda"], case)
    assert shown.device == "cuda"
    path = write(tmp_path, shown, "rejected", "a title", 60.0)
    done = subprocess.run(
        [sys.executable, path], capture_output=True, text=True, env={"PATH": str(tmp_path)}, check=False
    )
    assert (done.returncode, done.stdout) == (77, "not available: a CUDA device\n")
    on_cpu = reproduction_of(FORWARD, TARGETS["tvm-O0"], case)
    assert "nvidia-smi" not in write(tmp_path, on_cpu, "rejected", "a title", 60.0).read_text(encoding="utf-8")


@pytest.mark.slow(one_in=2)
@pytest.mark.parametrize(
    ("wrong", "symptom"),
    [
        ("torch.neg({0}).double()", "type"),
        ("torch.neg({0}) / 0", "special"),
        ("torch.neg({0}, no_such_argument=1)", "rejected"),
        ("__import__('os').abort()", "crash"),
    ],
)
def test_reproducers_of_every_symptom(campaign: Campaign, wrong: str, symptom: str) -> None:
    finding = find(campaign, planted("neg", wrong), chain_case())
    assert finding.symptom == symptom
    assert exit_status(Path(finding.path) / "reproducer.py") == 1


def test_large_arrays_go_beside_the_reproducer(campaign: Campaign) -> None:
    import numpy as np

    from generators.graph import Graph, Leaf, Node, TensorType

    wide = TensorType("float32", (300,))
    graph = Graph((Leaf("x0", wide),), (Node("v0", "neg", ("x0",), (), wide),), ("v0",))
    case = Case(graph, {"x0": np.arange(300, dtype=np.float32)})
    # right for fewer than 256 elements, so that it cannot shrink below
    target = planted("neg", "-{0} if {0}.numel() < 256 else -{0} * 1.01")
    finding = find(campaign, target, case)
    assert (Path(finding.path) / "data.npz").exists()
    assert exit_status(Path(finding.path) / "reproducer.py") == 1


def test_duplicates_are_folded_and_counted(campaign: Campaign) -> None:
    target = planted("neg", WRONG_NEG)
    first, second = find(campaign, target, chain_case()), find(campaign, target, chain_case())
    assert first.fingerprint == second.fingerprint
    assert second.count == 2
    assert len(list(campaign.store.root.glob("*/finding.json"))) == 1


def test_fingerprint_tells_bugs_apart() -> None:
    def of(symptom: str, message: str, *operators: str) -> str:
        return fingerprint("forward", "torch", operators, Discrepancy(symptom, message))

    assert of("value", "mismatched 3 of 4", "neg") == of("value", "mismatched 1 of 9", "neg")
    assert of("value", "", "neg") != of("value", "", "exp")
    assert of("value", "", "neg") != of("special", "", "neg")
    assert of("rejected", "RuntimeError: no kernel", "neg") != of("rejected", "RuntimeError: bad rank", "neg")


def issues_folder(folder: Path, **changes: object) -> Path:
    """A folder of what is known with one issue."""
    entry = {
        "targets": ["torch-eager"],
        "symptoms": ["value"],
        "operators": ["neg"],
        "reason": "planted",
        "dtypes": ["float32"],
        **changes,
    }
    own = folder / "known/torch/neg-scaled"
    own.mkdir(parents=True, exist_ok=True)
    (own / "issue.toml").write_text("".join(f"{k} = {json.dumps(v)}\n" for k, v in entry.items()))
    (own / "case.json").write_text(caseio.dumps(chain_case()))
    return folder / "known"


def explained(lab: Laboratory, folder: Path, wrong: str, **changes: object) -> bool:
    """Does the issue explain what torch-eager with a wrong `neg` or `exp` does to the chain?"""
    operator = "exp" if "exp" in wrong else "neg"
    target = replace(planted(operator, wrong), name="torch-eager")
    campaign = Campaign(lab, [target], Store(folder / "f"), known_issues.load(issues_folder(folder, **changes)))
    verdict = lab.examine(chain_case(), [target]).verdicts["torch-eager"]
    assert verdict.discrepancy is not None
    rest = campaign.unexplained(target, chain_case(), verdict.discrepancy)
    assert sum(campaign.excused.values()) == (rest is None)
    return rest is None


def test_a_known_issue_explains_its_own_bug(lab: Laboratory, tmp_path: Path) -> None:
    assert explained(lab, tmp_path, WRONG_NEG)


@pytest.mark.parametrize(
    "changes",
    [
        {"symptoms": ["special"]},
        {"targets": ["tvm-*"]},
        {"operators": ["matmul"]},
        {"dtypes": ["float64"]},
        {"versions": "<2"},
        {"message": "no such text"},
        {"empty": True},
        {"threads": 2},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_a_known_issue_explains_nothing_else(lab: Laboratory, tmp_path: Path, changes: dict) -> None:
    assert not explained(lab, tmp_path, WRONG_NEG, **changes)


def test_an_issue_of_other_processors_explains_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "features", lambda: frozenset({"avx2"}))
    for cpu, here in (("avx2", True), ("!avx2", False), ("avx512f", False), ("!avx512f", True)):
        (issue,) = known_issues.load(issues_folder(tmp_path, cpu=cpu))
        assert issue.here is here
        assert bool(known_cases.targets_of(issue)) is here


def test_a_known_issue_does_not_hide_another_bug_in_the_same_graph(lab: Laboratory, tmp_path: Path) -> None:
    """The graph holds a neg, but it is exp that is wrong."""
    assert not explained(lab, tmp_path, "torch.exp({0}) * 1.0001")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"symptoms": ["ugly"]}, "known/torch/neg-scaled/issue.toml: $.symptoms[0]: unknown symptom 'ugly'"),
        ({"oracle": "forwards"}, "unknown oracle 'forwards'"),
        ({"targets": ["trch"]}, "no target matches 'trch'"),
        ({"operators": ["softmux"]}, "no operator matches 'softmux'"),
        ({"versions": "two"}, "Invalid specifier"),
        ({"empty": 1}, "$.empty: Expected `bool | str`, got `int`"),
        ({"together": "yes"}, "$.together: Invalid enum value 'yes'"),
        ({"threads": "two"}, "$.threads: Expected `int`, got `str`"),
        ({"seconds": "two"}, "$.seconds: Expected `float`, got `str`"),
        ({"first": 1}, "$.first: Expected `bool`, got `int`"),
        ({"reason": 3}, "$.reason: Expected `str`, got `int`"),
        ({"targets": "torch-eager"}, "$.targets: Expected `array`, got `str`"),
        ({"message": "("}, "$.message: no regular expression: missing ), unterminated subpattern"),
        ({"cpu": "fast ones"}, "cpu must be the name of a feature"),
        ({"color": "red"}, "$.color: unknown key"),
    ],
)
def test_a_wrong_known_issue_is_refused(tmp_path: Path, changes: dict, message: str) -> None:
    with pytest.raises(KnownFileError, match=re.escape(message)):
        known_issues.load(issues_folder(tmp_path, **changes))


def test_the_float64_twin_is_a_valid_graph() -> None:
    twin = float64_twin(chain_case())
    assert twin is not None
    assert {t.dtype for t in twin.graph.types.values()} == {"float64"}
    assert float64_twin(twin) is None


def test_a_known_issue_hides_nothing_behind_it(lab: Laboratory, tmp_path: Path) -> None:
    """exp is wrong and known, neg after it is wrong and not: neg remains."""
    text = "torch.exp({0}) * 1.0001"
    target = replace(planted("exp", text), name="torch-eager")
    dialect = BothFaulty(**{**vars(target.dialect), "second": ("neg", WRONG_NEG)})
    both = replace(target, dialect=dialect)
    issues = known_issues.load(issues_folder(tmp_path, operators=["exp"]))
    campaign = Campaign(lab, [both], Store(tmp_path / "f"), issues)
    verdict = lab.examine(chain_case(), [both]).verdicts["torch-eager"]
    assert verdict.discrepancy is not None
    rest = campaign.unexplained(both, chain_case(), verdict.discrepancy)
    assert rest is not None
    assert rest[0].graph.operators == ("neg",)


def beside_others(
    lab: Laboratory, folder: Path, wrong: str, before: tuple[known_issues.KnownIssue, ...] = (), **changes: object
) -> bool:
    """Does the issue, which stands after others, explain a `neg` that is wrong in the whole chain only, not alone?"""
    alone = "len(INPUTS) == 1 and 'x0' not in INPUTS"
    target = replace(planted("neg", f"torch.neg({{0}}) if {alone} else {wrong}"), name="torch-eager")
    issues = (*before, *known_issues.load(issues_folder(folder, **changes)))
    campaign = Campaign(lab, [target], Store(folder / "f"), issues)
    verdict = lab.examine(chain_case(), [target]).verdicts["torch-eager"]
    assert verdict.discrepancy is not None
    assert verdict.discrepancy.symptom in issues[-1].symptoms
    return campaign.unexplained(target, chain_case(), verdict.discrepancy) is None


@pytest.mark.parametrize(("operator", "known"), [("neg", True), ("exp", False)])
def test_a_crash_is_known_where_it_goes_with_the_known_node(
    lab: Laboratory, tmp_path: Path, operator: str, known: bool
) -> None:
    """Damage to memory shows only sometimes: no node is guilty alone. Without neg all is well, without exp not."""
    assert beside_others(lab, tmp_path, "__import__('os').abort()", operators=[operator], symptoms=["crash"]) == known


@pytest.mark.parametrize(
    ("operator", "together", "known"), [("neg", True, True), ("neg", False, False), ("exp", True, False)]
)
def test_an_issue_of_nodes_together_explains_what_goes_with_the_known_node(
    lab: Laboratory, tmp_path: Path, operator: str, together: bool, known: bool
) -> None:
    assert beside_others(lab, tmp_path, "-{0} * 1.0001", operators=[operator], together=together) == known


def test_an_issue_of_a_node_alone_does_not_stand_before_one_of_nodes_together(lab: Laboratory, tmp_path: Path) -> None:
    alone = known_issues.load(issues_folder(tmp_path))
    assert beside_others(lab, tmp_path, "-{0} * 1.0001", before=alone, together=True)


def test_entries_of_parameters_cover_no_inputs() -> None:
    empty, whole = TensorType("float32", (0, 2)), TensorType("float32", (3, 2))
    issue = known_issues.KnownIssue(Path("a"), ("openvino",), ("type",), ("*",), "why", empty="parameter")
    assert issue.covers("add", empty, [whole, empty], [empty])
    assert not issue.covers("add", empty, [whole, empty], [whole])
    issue = replace(issue, empty=False, constant=True)
    assert issue.covers("add", whole, [whole, whole], [whole, whole])
    assert not issue.covers("add", whole, [whole, whole], [whole])
