"""The text of an issue, as the project's template asks for it (templates of 2026: the headings and their order)."""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from generators.ops import OPS
from harness.execute.templates import render
from harness.findings.site.values import in_ulps
from harness.findings.triage.instance import Instance
from harness.findings.triage.words import SYMPTOM, plain_reason, referred, title
from harness.findings.upstream.seen import Seen, lost
from harness.findings.upstream.tidy import LONGEST, counted

PROJECTS = {
    "torch": ("pytorch", "pytorch/pytorch", ""),
    "tensorflow": ("tensorflow", "tensorflow/tensorflow", ""),
    "jax": ("jax", "jax-ml/jax", ""),
    "xla": ("plain", "openxla/xla", ""),
    "onnxruntime": ("onnxruntime", "microsoft/onnxruntime", ""),
    "tvm": ("tvm", "apache/tvm", "[Bug] "),
    "openvino": ("openvino", "openvinotoolkit/openvino", "[Bug]: "),
    "litert": ("litert", "google-ai-edge/LiteRT", ""),
    "keras": ("plain", "keras-team/keras", ""),
    "executorch": ("plain", "pytorch/executorch", ""),
    "iree": ("plain", "iree-org/iree", ""),
    "onednn": ("plain", "uxlfoundation/oneDNN", ""),
    "ncnn": ("plain", "Tencent/ncnn", ""),
}
"""By the folder of an entry: template, repository, and what titles begin with."""


TOOLS = {
    "onnx2tf": "PINTO0309/onnx2tf",
    "onnx2torch": "ENOT-AutoDL/onnx2torch",
    "tf2onnx": "onnx/tensorflow-onnx",
    "onnx-reference": "onnx/onnx",
}
"""Repositories of converters, by how their entries are called."""
_FRAMEWORKS = {"import torch": "PyTorch", "import tensorflow": "TensorFlow", "onnx": "ONNX"}
"""Where a model comes from, by what its program has in it."""

MANY = 1e6
"""Ulps beyond which an allowed error is told as a number alone: the bound is absolute there."""


@dataclass(frozen=True)
class Issue:
    """repository: where it goes ("": Dissent knows none); title; text: Markdown."""

    repository: str
    title: str
    text: str


@dataclass(frozen=True)
class Shown:
    """A program that was run and shows a fault. target: on which ("": it is a program of its own); seen: what a graph
    showed there; printed: the end of what it wrote; versions: of packages."""

    target: str
    seen: Seen | None
    program: str
    printed: str
    versions: Mapping[str, str]


def issue_of(instance: Instance, shown: Shown, cpu: str, cause: Instance | None = None) -> Issue:
    """The issue on one fault. cpu: the processor's model name; cause: the entry whose cause it has, too, as its reason
    says."""
    seen, lines = shown.seen, counted(shown.program)
    tool = next((name for name in TOOLS if instance.id.startswith(name)), "") if instance.framework == "onnx" else ""
    template, repository, before = PROJECTS.get(instance.framework, ("plain", TOOLS.get(tool, ""), ""))
    reason = plain_reason(instance) if instance.kind != "finding" else ""
    text = render(
        f"findings/upstream/templates/{template}.md.j2",
        reason=f"{begun(reason)}\n\nThe cause is this one: {plain_reason(cause)}" if cause else reason,
        framework=next((name for module, name in _FRAMEWORKS.items() if module in shown.program), "Other"),
        why=why(seen) if seen else "",
        expected=expectation(seen) if seen else "",
        actual=actual(seen) if seen else "",
        program=shown.program,
        long=lines if lines > LONGEST else 0,
        printed=shown.printed.strip(),
        versions=shown.versions,
        package=next((v for k, v in shown.versions.items() if k not in ("python", "numpy", "onnx")), ""),
        system=platform.platform(),
        machine=platform.machine(),
        cpu=cpu,
        releases=instance.bisection,
    )
    return Issue(repository, before + title_of(instance, seen), text)


def begun(text: str) -> str:
    """With a capital, but for the name of an operator."""
    word = text.split(" ", 1)[0]
    return text[:1].upper() + text[1:] if word.isalpha() and word not in OPS else text


def title_of(instance: Instance, seen: Seen | None) -> str:
    """What is wrong, in one line; of a finding: which operator, of which dtype, and how."""
    if instance.kind != "finding" or seen is None:
        return named(instance, title(instance))
    dtype = f" of {seen.type.dtype}" if seen.type else ""
    what = f"{' + '.join(instance.operators)}{dtype}"
    if seen.symptom in ("value", "special"):
        return f"{what}: returns {seen.got} instead of {seen.value}"
    return f"{what}: {SYMPTOM[seen.symptom]}"


def named(instance: Instance, text: str) -> str:
    """A title with the operators in front, where the reason goes on from that of another entry."""
    names = [re.sub(r"_(mixed|scalar|same|otherwise|from_end)$", "", name) for name in instance.operators]
    plain = list(dict.fromkeys(name for name in names if "*" not in name))
    if not referred(instance) or not plain or any(name in text for name in plain):
        return text
    return f"{', '.join(plain[:2])}: {text}"


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
    if lost(seen):
        return "The expected value is that of a float64 evaluation: a number that the dtype holds."
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
    assert seen.type is not None
    return f"A tensor of {seen.type.dtype} with shape {list(seen.type.shape)}."


def actual(seen: Seen) -> str:
    """What came, in a sentence."""
    if seen.symptom in ("value", "special"):
        return f"`{seen.got}`."
    said = " ".join(seen.message.partition("\nin step ")[0].split())
    begins = {"crash": "The process ends", "timeout": "The call does not return", "rejected": "It is refused"}
    return f"{begins.get(seen.symptom, SYMPTOM[seen.symptom].capitalize())}: {_cut(said)}"


def _cut(text: str, most: int = 300) -> str:
    return text if len(text) <= most else text[:most].rsplit(" ", 1)[0] + " …"
