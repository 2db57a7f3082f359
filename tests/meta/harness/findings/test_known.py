"""The folder of what is known: what is read from it, what is refused, and which of several entries is counted."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from examples.small_graphs import chain_case

from generators import caseio
from harness.execute.globs import any_of
from harness.execute.pool import Pool
from harness.findings.known import deviations, issues, programs
from harness.findings.known.entry import FOLDER, KnownFileError
from harness.findings.store import Store
from harness.models import known as models
from harness.questions import QUESTIONS
from harness.search.campaign import Campaign
from harness.search.laboratory import Laboratory
from oracles.judge.discrepancy import Discrepancy

ISSUE = """targets = ["torch-*"]
symptoms = ["value"]
operators = ["neg"]
reason = "planted"
"""
DEVIATION = """kind = "deviation"
strategies = ["torch-ddp"]
parts = ["state.*"]
symptoms = ["value"]
world = 2
reason = "planted"
"""
MODEL = """kind = "model"
symptoms = ["value"]
runners = ["ort-*"]
versions = { onnxruntime = "<=1.31.1" }
reason = "planted"
"""
PROGRAM = """kind = "program"
symptoms = ["value"]
targets = ["torch-export"]
package = "torch"
versions = "<=2.13.0"
reason = "planted"
"""


def written(root: Path, place: str, text: str, case: bool = True) -> Path:
    """The folder of an entry with this text."""
    folder = root / place
    folder.mkdir(parents=True)
    (folder / "issue.toml").write_text(text)
    if case:
        (folder / "case.json").write_text(caseio.dumps(chain_case()))
    return folder


def test_entries_of_each_kind_are_read(tmp_path: Path) -> None:
    places = [
        written(tmp_path, "torch/b", ISSUE),
        written(tmp_path, "tvm/a", ISSUE.replace("torch-*", "tvm-*")),
        written(tmp_path, "torch/deviates", DEVIATION),
        written(tmp_path, "onnxruntime/of-models", MODEL, case=False),
        written(tmp_path, "torch/of-itself", PROGRAM, case=False),
    ]
    (places[-1] / "reproducer.py").write_text("raise SystemExit(1)")
    (tmp_path / ".hidden").touch()
    assert [issue.folder for issue in issues.load(tmp_path)] == places[:2]
    issue = issues.load(tmp_path)[0]
    assert (issue.id, issue.targets, issue.threads) == ("b", ("torch-*",), 1)
    assert caseio.loads(issue.case.read_text()).graph == chain_case().graph
    assert issue.reproducer == places[0] / "reproducer.py"
    assert [(one.id, one.world) for one in deviations.load(tmp_path)] == [("deviates", 2)]
    assert [(one.id, one.versions) for one in models.load(tmp_path)] == [("of-models", {"onnxruntime": "<=1.31.1"})]
    assert [(one.id, one.package) for one in programs.load(tmp_path)] == [("of-itself", "torch")]
    (places[-1] / "reproducer.py").unlink()
    with pytest.raises(KnownFileError, match=r"of-itself: no reproducer\.py"):
        programs.load(tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nonsense", "known/torch/x/issue.toml: not TOML: Expected '=' after a key"),
        (
            'kind = "thing"',
            "known/torch/x/issue.toml: $.kind: unknown kind 'thing'; there are issue, deviation, model, program",
        ),
        (ISSUE + 'color = "red"', "known/torch/x/issue.toml: $.color: unknown key"),
        (ISSUE + 'case = "x.json"', "known/torch/x/issue.toml: $.case: unknown key"),
        (
            ISSUE.replace('reason = "planted"', ""),
            "known/torch/x/issue.toml: $: Object missing required field",
        ),
        (ISSUE.replace("value", "ugly"), "known/torch/x/issue.toml: $.symptoms[0]: unknown symptom 'ugly'"),
        (ISSUE + "threads = true", "known/torch/x/issue.toml: $.threads: Expected `int`, got `bool`"),
        (
            ISSUE + 'message = "("',
            "known/torch/x/issue.toml: $.message: no regular expression: missing ), unterminated",
        ),
    ],
)
def test_an_issue_that_cannot_be(text: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One clear line, which names the file as the folder is named."""
    monkeypatch.chdir(tmp_path)
    written(Path("known"), "torch/x", text)
    with pytest.raises(KnownFileError) as caught:
        issues.load(Path("known"))
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('kind = "deviation"', "$: Object missing required field `strategies`"),
        (DEVIATION.replace("torch-ddp", "torch-dpd"), "no strategy matches 'torch-dpd'"),
        (DEVIATION.replace("2", '"two"'), "$.world: Expected `int`, got `str`"),
        (DEVIATION + 'versions = "two"', "Invalid specifier: 'two'"),
        (DEVIATION + 'message = "*"', "$.message: no regular expression: nothing to repeat"),
    ],
)
def test_a_deviation_that_cannot_be(text: str, message: str, tmp_path: Path) -> None:
    folder = written(tmp_path, "torch/x", text)
    with pytest.raises(KnownFileError, match=re.escape(f"{folder}/issue.toml: {message}")):
        deviations.load(tmp_path)


def test_globs_match_what_one_of_them_does() -> None:
    found = any_of(("torch-*", "ort-all"))
    assert [bool(found.match(name)) for name in ("torch-eager", "ort-all", "ort-all-2", "a/torch-x")] == [1, 1, 0, 0]
    assert not any_of(()).match("torch-eager")


def test_folders_that_cannot_be(tmp_path: Path) -> None:
    def refused(message: str, *wrong: Path) -> None:
        with pytest.raises(KnownFileError) as caught:
            issues.load(tmp_path / "known")
        assert str(caught.value).replace(str(tmp_path), "…") == message
        for path in wrong:
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    refused("…/known: No such file or directory")
    (tmp_path / "known").touch()
    refused("…/known: Not a directory", tmp_path / "known")
    root = tmp_path / "known"
    good = written(root, "torch/good", ISSUE)
    (root / "torch/empty").mkdir()
    refused("…/known/torch/empty: no issue.toml", root / "torch/empty")
    bare = written(root, "torch/bare", ISSUE, case=False)
    refused("…/known/torch/bare: no case.json", bare)
    (root / "notes.md").touch()
    refused("…/known/notes.md: Not a directory", root / "notes.md")
    high = written(root, "high", ISSUE)
    refused("…/known/high/case.json: entries are folders, …/known/FRAMEWORK/ID", high)
    deep = written(root, "torch/linear/deep", ISSUE)
    refused("…/known/torch/linear: no issue.toml", deep.parent)
    again = written(root, "tvm/good", MODEL)
    refused("…/known/tvm/good: another entry has this id: …/known/torch/good", again)
    assert [issue.folder for issue in issues.load(root)] == [good]


def test_what_the_project_knows_is_whole() -> None:
    found = [*issues.load(), *deviations.load(), *models.load(), *programs.load()]
    assert {one.folder for one in found} == {path.parent for path in FOLDER.glob("*/*/issue.toml")}
    assert all(one.reason.strip() for one in found)
    expected = {"issue.toml", "case.json", "reproducer.py", "data.npz"}
    assert {path.name for path in FOLDER.glob("*/*/*")} == expected


COUNTED = """
litert-empty-result tensorflow/tflite/litert v0 rejected alone litert-empty-tensor
litert-round-minus-zero litert-builtin v0 special alone litert-constant-minus-zero
litert-sin-xnnpack tensorflow/tflite/litert v2 value alone litert-xnnpack-sine
openvino-empty-logical onnx/openvino-onnx/openvino v5 type alone openvino-empty-initializer
openvino-onnx-split-empty onnx/openvino-onnx/openvino v1 rejected alone openvino-empty-initializer
ort-expand-to-empty ort-basic v6 type together ort-expand-to-empty
ort-max-pool-lowest-half ort-disable v3 special together ort-max-pool-lowest-half
ort-quantise-gemm-bias-matrix ort-qoperator-u8s8-channels v3 rejected alone ort-quantise-gemm-weight-as-bias
ort-reduce-composed-negative-axis-of-empty ort-disable v0 type alone ort-reduce-negative-axis-of-empty
tf-argmax-nan tf-graph v0 value alone tf-argmax-nan
tf-gelu-gradient-constants tf-eager v0 value alone tf-gelu-constants
tf-graph-argmax-of-sign tf-graph v6 value together tf-graph-argmax-of-sign
tf-log1p tf-graph v7 value alone tf-log1p
tf-max-pool-nan tf-graph v0 special alone tf-max-pool-nan
tf-max-pool3d-nan tf-graph v0 special alone tf-max-pool3d-nan
tf2onnx-integer-remainder tensorflow/tf2onnx/openvino-onnx/openvino v0 value alone openvino-int32-in-floating-point
tf2onnx-tflite-fully-connected-bias tensorflow/tflite/tf2onnx-tflite/tvm-onnx/tvm v1 value alone tvm-tanhshrink
torch-avg-pool3d-gradient-padding torch-eager v0 rejected alone torch-avg-pool3d-padding-not-counted
torch-instance-norm-gradient-empty torch-eager v0 rejected alone torch-instance-norm-empty-batch
torch-onnx-hard-sigmoid-double torch/torch-onnx/ort-all v3 value together torch-onnx-hard-sigmoid-double
tvm-bucketize-empty tvm-O3 v4 rejected alone tvm-cumulative-divide-by-zero
tvm-combine-parallel-matmul-constant tvm-O3 v0 rejected alone tvm-combine-parallel-matmul-constant
tvm-fuse-transpose-matmul-same tvm-O3 v1 rejected alone tvm-fuse-transpose-matmul-same
tvm-fused-difference-with-itself tvm-O2 v8 special together tvm-fused-difference-with-itself
tvm-integer-minimum-difference tvm-O2 v0 value alone tvm-integer-minimum-difference
tvm-meta-empty tvm-O3-meta v0 rejected alone tvm-cumulative-divide-by-zero
tvm-min-of-infinities tvm-O0 v2 special alone tvm-clip-nan-composed
xla-asinh-zero-sign jax-jit v1 special together xla-asinh-zero-sign
xla-division-of-a-quotient tf-xla v3 special together xla-division-by-a-quotient
xla-exp-of-infinity-in-a-fusion tf-xla v3 special together xla-exponential-of-constant-nan
xla-logarithm-of-rsqrt tf-xla v4 special together xla-logarithm-of-rsqrt
"""
"""Stored cases that several entries explain: the entry of the case, the target, the node that is wrong, the symptom,
whether it is wrong alone or together with other nodes only; which entry is counted."""
MESSAGES = {
    "litert-empty-result": "Invalid tensor size",
    "litert-round-minus-zero": "expected -0.0, got 0.0",
    "openvino-onnx-split-empty": "Accessing out-of-range dimension",
    "ort-quantise-gemm-bias-matrix": "truth value of an array",
    "torch-avg-pool3d-gradient-padding": "smaller than kernel size",
    "torch-instance-norm-gradient-empty": "index 0 out of range\nselect()",
    "tvm-bucketize-empty": "Divide by zero",
    "tvm-combine-parallel-matmul-constant": "GenericConst",
    "tvm-fuse-transpose-matmul-same": "Index out of range. size: 1, got index 1",
    "tvm-meta-empty": "Divide by zero",
}
"""What entries look for in the messages of these cases."""


@pytest.mark.slow(one_in=5, ci=3)
@pytest.mark.parametrize("row", COUNTED.split("\n")[1:-1], ids=lambda row: row.split()[0])
def test_of_several_entries_the_same_one_is_counted(row: str, pool: Pool, tmp_path: Path) -> None:
    name, target, wrong, symptom, how, counted = row.split()
    known = {issue.id: issue for issue in issues.load()}
    if name not in known:
        pytest.skip(f"{name} is no longer known")
    question = QUESTIONS[known[name].oracle]
    graph = caseio.loads(known[name].case.read_text(encoding="utf-8")).graph
    (node,) = (node for node in graph.nodes if node.name == wrong)
    campaign = Campaign(Laboratory(pool, question), (), Store(tmp_path), tuple(known.values()))
    shown = Discrepancy(symptom, MESSAGES.get(name, ""))
    found = campaign.excuses.asked(question.targets[target], graph, node, shown, how == "together")
    assert found[0].id == counted


def test_deviations_that_ask_for_more_come_first() -> None:
    """A run that is clipped and has an embedding: both entries cover what it returns."""
    names = [known.id for known in deviations.load()]
    assert names.index("tf-repeated-rows") < names.index("tf-fit-clip")
    assert names.index("tf-central-batch-norm") < names.index("tf-central-nadam")


def test_programs_of_deviations_start_their_ranks_as_new_ones_do() -> None:
    """What a rank that ends late, or otherwise, means was mended once: stored programs are not written again by it."""
    template = (FOLDER.parent / "harness" / "training" / "check.py.j2").read_text(encoding="utf-8")
    start = template[template.index("def main():") :].rstrip()
    stored = [one for one in deviations.load() if one.reproducer.is_file()]
    assert len(stored) > 30
    assert [one.id for one in stored if start not in one.reproducer.read_text(encoding="utf-8")] == []
