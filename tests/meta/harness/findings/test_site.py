"""The site of all that was found: whole, without a network, and clicked through in a browser where there is one."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from examples.small_graphs import chain_case
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from harness.backends import TARGETS
from harness.commands.app import app_of
from harness.findings import written
from harness.findings.database import opened
from harness.findings.database.history import history, kind_of
from harness.findings.database.recorder import begin
from harness.findings.known.entry import FOLDER
from harness.findings.site.heat import heat_of
from harness.findings.site.highlight import highlighted
from harness.findings.site.hunted import Hunted, outcomes_of
from harness.findings.site.values import in_ulps, values_of
from harness.findings.store import Finding, Store, fingerprint
from harness.questions import QUESTIONS
from harness.search import coverage
from harness.search.coverage import Coverage
from oracles.judge.discrepancy import Discrepancy

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def stored(root: Path) -> Finding:
    """A finding of a hunt, with what the hunt covered."""
    case = chain_case()
    discrepancy = Discrepancy("special", "mismatched 1 of 6 (16.7 %)   first at (0, 1): expected <nan>, got 1.0")
    operators = case.graph.operators
    finding = Finding(
        fingerprint("forward", "torch", operators, discrepancy), "forward", "special", discrepancy.message,
        "torch-eager", ("torch-eager",), operators, len(case.graph.nodes), None,
        {"torch-eager": "mismatch", "torch-inductor": "mismatch", "ort-all": "agree"}, {"torch": "2.13.0"},
    )  # fmt: skip
    counted = Coverage()
    counted.cells["neg", "float32", "torch-eager", "mismatch"] = 3
    counted.cells["neg", "float32", "torch-eager", "agree"] = 9
    counted.elements["neg"] = 40
    coverage.save(begin(opened.url_of(root), "hunt", root, 0, {}, ""), {"forward": counted})
    run = begin(opened.url_of(root), "hunt", root, 0, {}, "")
    return Store(root, record=run).save(finding, QUESTIONS["forward"], TARGETS["torch-eager"], case)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All entries and a finding: the folder with findings/, site/, summary.md and log.sarif."""
    root = tmp_path_factory.mktemp("site")
    stored(root / "findings")
    arguments = ["--out", "site", "--findings", "findings", "--summary", "summary.md", "--sarif", "log.sarif"]
    placed = [argument if argument.startswith("--") else str(root / argument) for argument in arguments]
    result = CliRunner().invoke(app_of(), ["site", *placed])
    assert result.exit_code == 0, result.output
    return root


def test_runs_and_their_trend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two nights of one part each, a study whose page is copied, and a run that has no end."""
    folder, results = tmp_path / "findings", tmp_path / "study"
    folder.mkdir()
    results.mkdir()
    (tmp_path / "known").mkdir()
    (results / "report.html").write_text("<p>a study</p>")
    url = opened.url_of(folder)
    for night, found in (("one", ["a"]), ("two", ["a", "b"])):
        whole_ = begin(url, "harness nightly --budget 1h", folder, 0, {}, "", night)
        monkeypatch.setenv(opened.PART_OF, night)
        part = begin(url, "harness hunt", folder, 0, {}, "")
        monkeypatch.delenv(opened.PART_OF)
        for name in found:
            part.finding(name, ["torch-eager"], "value")
        part.finding("entry", ["torch-eager"], state="known")
        part.case("forward", {"agree": 2}, 0.1)
        part.end(1)
        whole_.end(1)
    begin(url, "harness study faults --seed 1", results, 1, {}, "").end(0)
    time.sleep(0.002)  # a run's start is kept to the millisecond
    begin(url, "harness model m.onnx", folder, 1, {}, "")
    past = history(url)
    assert [(run.kind, run.new, run.again, run.known, run.examined) for run in past] == [
        ("nightly", 1, 0, 1, 1), ("nightly", 1, 1, 1, 1), ("study faults", 0, 0, 0, 0), ("model", 0, 0, 0, 0),
    ]  # fmt: skip
    assert past[-1].seconds is None
    assert kind_of("harness") == "harness"
    assert kind_of("harness hunt 'x") == "hunt"
    done = CliRunner().invoke(
        app_of(),
        ["site", "--out", str(tmp_path / "site"), "--findings", str(folder), "--known-issues", str(tmp_path / "known")],
    )
    assert done.exit_code == 0, done.output
    text = (tmp_path / "site" / "runs.html").read_text()
    assert text.index("Nights and hunts") < text.index("Models") < text.index("Studies")
    assert "not yet, or killed" in text
    assert 'id="trend"' in text
    (report,) = (tmp_path / "site" / "runs").iterdir()
    assert report.read_text() == "<p>a study</p>"
    assert f'href="runs/{report.name}"' in text


def pages(root: Path) -> dict[Path, str]:
    return {path: path.read_text(encoding="utf-8") for path in sorted((root / "site").rglob("*.html"))}


@pytest.mark.slow
def test_every_link_leads_somewhere_and_nothing_is_loaded_from_elsewhere(made: Path) -> None:
    texts = pages(made)
    assert len(texts) > 400
    files = {path.resolve() for path in (made / "site").rglob("*") if path.is_file()}
    for path, whole in texts.items():
        text = re.sub(r"<script[^>]*>.*?</script>", "", whole, flags=re.DOTALL)  # Plotly's own text has links, too
        for link in re.findall(r'(?:href|src)="([^"]*)"', text):
            if not link.startswith(("http", "data:")):
                assert Path(os.path.normpath(path.parent / link.split("#")[0])) in files, (path, link)
        loaded = re.findall(r'<(?:script|link|img)\b[^>]*?\b(?:src|href)="(http[^"]*)"', text)
        loaded += re.findall(r'<script\b[^>]*?\bsrc="([^"]*)"', whole)
        assert [one for one in loaded if one.startswith("http")] == [], path
    assert "http" not in (made / "site/style.css").read_text() + (made / "site/site.js").read_text()


@pytest.mark.slow
def test_every_entry_has_its_page_with_program_and_command(made: Path) -> None:
    causes = [text for path, text in pages(made).items() if path.parent.name == "cause"]
    places = {place for text in causes for place in re.findall(r'<dd class="mono">(known/[^<]*)</dd>', text)}
    commands = {place for text in causes for place in re.findall(r"python (known/\S*)/reproducer\.py</code>", text)}
    folders = [*FOLDER.glob("*/*")]
    assert places == {f"known/{folder.parent.name}/{folder.name}" for folder in folders}
    assert commands == {
        f"known/{folder.parent.name}/{folder.name}" for folder in folders if (folder / "reproducer.py").is_file()
    }


def test_a_finding_is_new_and_its_text_cannot_become_markup(made: Path) -> None:
    index = (made / "site/index.html").read_text(encoding="utf-8")
    row = re.search(r'<li data-framework="torch"[^>]* data-state="new"[^>]*>.*?</li>', index, re.DOTALL)
    assert row
    assert "expected &lt;nan&gt;, got 1.0" in row[0]
    assert "<nan>" not in index
    today = datetime.now(UTC).strftime("%Y-%m-%d")
    page = re.search(r'href="(cause/[^"]+)"', row[0])
    assert page
    assert f", since {today[:7]}" in row[0]
    assert "0 days before this page" in (made / "site" / page[1]).read_text(encoding="utf-8")
    assert "torch-inductor" in (made / "site/hunt.html").read_text(encoding="utf-8")


def test_summary_and_sarif_tell_what_is_new(made: Path) -> None:
    summary = (made / "summary.md").read_text(encoding="utf-8")
    assert summary.startswith("## Dissent: 1 new fault\n")
    (run,) = json.loads((made / "log.sarif").read_text(encoding="utf-8"))["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert [rules[result["ruleIndex"]]["id"] for result in run["results"]] == [r["ruleId"] for r in run["results"]]
    assert [result["baselineState"] for result in run["results"]].count("new") == 1
    places = [r["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for r in run["results"]]
    assert all((FOLDER.parent / place).is_file() for place in places)
    assert len(places) == len(list(FOLDER.glob("*/*"))) + 1


PROBE = """<script>
addEventListener("load", async () => {
  const shown = () => [...document.querySelectorAll("#causes li")].filter((row) => !row.hidden);
  const told = { all: shown().length, back: getComputedStyle(document.body).backgroundColor };
  const type = (id, value) => {
    const field = document.getElementById(id);
    field.value = value;
    field.dispatchEvent(new Event("input", { bubbles: true }));
  };
  type("q", "LCM sigfpe");
  told.search = shown().map((row) => row.querySelector(".title").getAttribute("href"));
  told.address = location.hash;
  type("q", "no such words anywhere");
  told.nothing = [shown().length, document.getElementById("nothing").hidden];
  document.getElementById("reset").click();
  told.reset = shown().length;
  document.querySelector('[data-choose="framework"][data-value="jax"]').click();
  told.frameworks = [...new Set(shown().map((row) => row.dataset.framework))];
  type("severity", "hang");
  told.hangs = shown().length;
  location.hash = "#operator=softmax&framework=onnxruntime";
  await new Promise((done) => setTimeout(done, 100));
  told.linked = shown().map((row) => row.dataset.operator.split(" ").includes("softmax") && row.dataset.framework);
  const frame = document.createElement("iframe");
  const open = (page, width) => new Promise((done) => {
    frame.style.width = `${width}px`;
    frame.onload = () => done(frame.contentDocument);
    frame.src = page;
  });
  document.body.append(frame);
  told.wide = [];
  for (const page of PAGES) for (const width of [360, 1200]) {
    const inside = (await open(page, width)).documentElement;
    if (inside.scrollWidth > inside.clientWidth) told.wide.push([page, width, inside.scrollWidth]);
  }
  const page = await open("cause/torch-lcm-crash.html", 800);
  let copied = "";
  const clipboard = { writeText: async (text) => { copied = text; } };
  Object.defineProperty(frame.contentWindow.navigator, "clipboard", { value: clipboard });
  const button = page.querySelector('[data-copy="program-1"]');
  button.click();
  await new Promise((done) => setTimeout(done, 50));
  told.copied = copied;
  told.button = button.textContent;
  const answer = document.createElement("pre");
  answer.id = "told";
  answer.textContent = JSON.stringify(told);
  document.body.replaceChildren(answer);
});
</script>"""


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed here")
@pytest.mark.parametrize("dark", [False, True])
def test_clicked_through(made: Path, tmp_path: Path, dark: bool) -> None:
    site = made / "site"
    index = (site / "index.html").read_text(encoding="utf-8")
    looked_at = [
        "index.html",
        "operators.html",
        "hunt.html",
        "cause/torch-lcm-crash.html",
        "cause/ort-max-min-nan.html",
    ]
    probe = PROBE.replace("PAGES", json.dumps(looked_at))
    (site / f"probe{dark}.html").write_text(index.replace("</body>", f"{probe}</body>"), encoding="utf-8")
    command = [
        str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files", "--dump-dom",
        f"--user-data-dir={tmp_path}", "--virtual-time-budget=20000", *(["--force-dark-mode"] if dark else []),
        f"file://{site}/probe{dark}.html",
    ]  # fmt: skip
    shown = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    match = re.search(r'<pre id="told">(.*?)</pre>', shown.stdout, re.DOTALL)
    assert match, shown.stderr[-2000:]
    told = json.loads(html.unescape(match[1]))
    assert told["all"] == told["reset"] > 400
    assert told["search"] == ["cause/torch-lcm-crash.html"]
    assert told["address"] == "#q=LCM+sigfpe"
    assert told["nothing"] == [0, False]
    assert told["frameworks"] == ["jax"]
    assert told["hangs"] == 1
    assert told["linked"]
    assert set(told["linked"]) == {"onnxruntime"}
    assert told["wide"] == [], "pages that are wider than the window"
    assert told["copied"] == (FOLDER / "torch/torch-lcm-crash/reproducer.py").read_text(encoding="utf-8")
    assert told["button"] == "copied"
    assert (sum(map(int, re.findall(r"\d+", told["back"])[:3])) < 200) == dark


@given(st.text(st.sampled_from("def class \"'#\\\n<&> 1.5e-3 abc_if return r f()"), max_size=80))
def test_highlighting_changes_no_character(source: str) -> None:
    assert html.unescape(re.sub(r"</?i[^>]*>", "", highlighted(source))) == source


def test_reproducers_are_read_back(tmp_path: Path) -> None:
    finding = stored(tmp_path)
    program = written.read(Path(finding.path))
    assert program
    assert program.text == (Path(finding.path) / "reproducer.py").read_text(encoding="utf-8")
    case = chain_case()
    assert program.named["SYMPTOM"] == "special"
    for name, array in case.arrays.items():
        np.testing.assert_array_equal(program.named["ARRAYS"][name], array)
        assert program.named["ARRAYS"][name].dtype == array.dtype
    values = values_of(program)
    assert [one.size for one in values] == [case.graph.types[name].size for name in case.graph.outputs]
    assert all(float(error) >= 0 for one in values for _, _, error, _ in one.rows)


def test_errors_in_ulps() -> None:
    assert in_ulps(1.5, 3 * 2.0**-23, "float32") == "3"
    assert in_ulps(-2.0, 2.0**-51, "float64") == "1"
    assert in_ulps(0.0, 2.0**-126 * 2.0**-23, "float32") == "1"
    assert in_ulps(3.0, 1.0, "int32") == ""
    assert in_ulps(np.inf, 1.0, "float32") == ""


def test_agreement_counts_findings_on_which_both_had_a_result() -> None:
    votes = [
        {"a": "agree", "b": "within_bound_only", "c": "mismatch"},
        {"a": "crash", "b": "agree", "c": "unsupported"},
    ]
    names, square = Hunted("f", votes=votes).agreement
    assert names == ("a", "b", "c")
    assert square["a", "b"] == square["b", "a"] == (1, 2)
    assert square["a", "c"] == (0, 1)
    cells = {("neg", "int8", "t", "agree"): 2, ("neg", "int8", "t", "crash"): 1, ("abs", "int8", "t", "unsupported"): 4}
    assert outcomes_of(cells) == {"t": {"right": 2, "unsupported": 4, "wrong": 1}}


def test_heat_counts_causes() -> None:
    heat = heat_of([("torch", ["exp", "log"]), ("torch", ["exp"]), ("tvm", [])], ["torch", "tvm"])
    assert heat.rows == (("any operator", (0, 1), 1), ("exp", (2, 0), 2), ("log", (1, 0), 1))
    assert [heat.shade(count) for count in (0, 1, 2)] == [0, 1, 6]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "nothing to write"),
        (["--out", "full"], "there is something else in it"),
        (["--out", "out", "--findings", "none"], "no folder of findings"),
        (["--out", "out", "--findings", "broken"], "finding.json"),
    ],
)
def test_bad_input_is_one_line(tmp_path: Path, arguments: list[str], told: str) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full/letter.txt").write_text("mine")
    (tmp_path / "broken/a").mkdir(parents=True)
    (tmp_path / "broken/a/finding.json").write_text("{")
    placed = [argument if argument.startswith("--") else str(tmp_path / argument) for argument in arguments]
    result = CliRunner().invoke(app_of(), ["site", *placed])
    assert result.exit_code == 2
    assert told in result.output.replace("\n", "")
    assert (tmp_path / "full/letter.txt").read_text() == "mine"
