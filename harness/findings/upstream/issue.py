"""The text of an issue, as the project's template asks for it (templates of 2026: the headings and their order)."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from harness.execute.templates import render
from harness.findings.site.values import in_ulps
from harness.findings.triage.instance import Instance
from harness.findings.triage.words import SYMPTOM, plain_reason, title
from harness.findings.upstream.seen import Seen

PROJECTS = {
    "torch": ("pytorch", "pytorch/pytorch", ""),
    "tensorflow": ("tensorflow", "tensorflow/tensorflow", ""),
    "jax": ("jax", "jax-ml/jax", ""),
    "xla": ("plain", "openxla/xla", ""),
    "onnxruntime": ("onnxruntime", "microsoft/onnxruntime", ""),
    "tvm": ("tvm", "apache/tvm", "[Bug] "),
    "openvino": ("openvino", "openvinotoolkit/openvino", "[Bug]: "),
    "litert": ("litert", "google-ai-edge/LiteRT", ""),
}
"""By the folder of an entry: template, repository, and what titles begin with."""


MANY = 1e6
"""Ulps beyond which an allowed error is told as a number alone: the bound is absolute there."""


@dataclass(frozen=True)
class Issue:
    """repository: where it goes ("": Dissent knows none); title; text: Markdown."""

    repository: str
    title: str
    text: str


def issue_of(
    instance: Instance, seen: Seen, target: str, program: str, printed: str, versions: Mapping[str, str], cpu: str
) -> Issue:
    """The issue on one fault. program: that shows it; printed: what it wrote; versions: of packages; cpu: the
    processor's model name."""
    template, repository, before = PROJECTS.get(instance.framework, ("plain", "", ""))
    package = next((v for k, v in versions.items() if k not in ("python", "numpy", "onnx")), "")
    reason = plain_reason(instance) if instance.kind != "finding" else ""
    text = render(
        f"findings/upstream/templates/{template}.md.j2", reason=reason, why=why(seen), program=program,
        printed=printed.strip(), versions=versions, package=package, system=platform.platform(),
        machine=platform.machine(), cpu=cpu, expected=expectation(seen), actual=actual(seen), target=target,
        releases=instance.bisection,
    )  # fmt: skip
    return Issue(repository, before + title_of(instance, seen), text)


def title_of(instance: Instance, seen: Seen) -> str:
    """What is wrong, in one line; of a finding: which operator, of which dtype, and how."""
    if instance.kind != "finding":
        return title(instance)
    dtype = f" of {seen.type.dtype}" if seen.type else ""
    what = f"{' + '.join(instance.operators)}{dtype}"
    if seen.symptom in ("value", "special"):
        return f"{what}: returns {seen.got} instead of {seen.value}"
    return f"{what}: {SYMPTOM[seen.symptom]}"


def why(seen: Seen) -> str:
    """Why it is a bug: the float64 value with its allowed error, or what a program may expect."""
    assert seen.type is not None
    if seen.symptom in ("type", "outputs"):
        return "Types follow from the operators and the types of their inputs."
    if seen.symptom not in ("value", "special"):
        return "The program is valid: each operator is given types and values that its documentation allows."
    if not isinstance(seen.value, np.inexact | float):
        return "Operations on integers and truth values are exact."
    if not np.isfinite(seen.value):
        return "The value follows from IEEE 754 arithmetic on the inputs; no rounding changes it."
    if seen.value == 0 and seen.got == 0:
        return "The sign of this zero follows from IEEE 754 arithmetic on the inputs."
    ulps = in_ulps(float(np.real(seen.value)), seen.error, seen.type.dtype)
    told = f", {ulps} ulps of {seen.type.dtype}" if ulps and float(ulps) < MANY else ""
    with np.errstate(all="ignore"):
        off = abs(complex(seen.got) - complex(seen.value))  # type: ignore[call-overload]
    result = in_ulps(float(np.real(seen.value)), float(off), seen.type.dtype)
    far = f", {result} ulps" if result and told else ""
    off_by = f" The result is off by {off:.3g}{far}." if np.isfinite(off) else ""
    return (
        f"The expected value is that of a float64 evaluation. A correct {seen.type.dtype} evaluation, each operator "
        f"within the accuracy that is usual for it, can differ from it by {seen.error:.2g}{told} at most.{off_by}"
    )


def expectation(seen: Seen) -> str:
    """What was to be expected, in a sentence."""
    if seen.symptom in ("value", "special"):
        return f"`{seen.value}` at {list(seen.place)}." if seen.place else f"`{seen.value}`."
    return f"A result of type {seen.type}."


def actual(seen: Seen) -> str:
    """What came, in a sentence."""
    if seen.symptom in ("value", "special"):
        return f"`{seen.got}`."
    return {"crash": "The process ends", "timeout": "The call does not return"}.get(
        seen.symptom, f"{SYMPTOM[seen.symptom].capitalize()}"
    ) + f": {' '.join(seen.message.split())[:300]}"
