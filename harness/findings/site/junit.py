"""What a night came to, as JUnit XML, which CI services show test by test: a case a command, and a case a finding."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from harness.findings.database.nights import Difference


def junit_of(found: Difference, steps: Sequence[tuple[str, int, float]], findings: Path) -> str:
    """steps: commands with exit status and seconds; one that failed is an error. What is new is a failure, with the
    text of its report; what was met before is skipped; what shows no more passes."""
    root = Element("testsuites", name="dissent nightly")
    commands = SubElement(root, "testsuite", name="commands", tests=str(len(steps)))
    for command, status, seconds in steps:
        case = SubElement(commands, "testcase", classname="commands", name=command, time=f"{seconds:.1f}")
        if status:
            SubElement(case, "error", message=f"exit status {status}")
    commands.set("errors", str(sum(status != 0 for _, status, _ in steps)))
    names = [*found.new, *found.again, *found.fixed]
    suite = SubElement(
        root, "testsuite", name="findings", tests=str(len(names)), failures=str(len(found.new)),
        skipped=str(len(found.again)),
    )  # fmt: skip
    for name in names:
        case = SubElement(suite, "testcase", classname="findings", name=name)
        if name in found.new:
            report = findings / name / "report.md"
            text = report.read_text(encoding="utf-8", errors="replace") if report.is_file() else ""
            SubElement(case, "failure", message="new").text = "".join(c for c in text if c.isprintable() or c == "\n")
        elif name in found.again:
            SubElement(case, "skipped", message="met before")
    indent(root)
    return tostring(root, encoding="unicode", xml_declaration=True) + "\n"
