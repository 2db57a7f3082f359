"""How packages are installed: what pip is told, uv is told, too; pip where there is no uv."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from harness.execute import install

LISTED = """:env:.find-links='/folder'
:env:.timeout='180'
global.constraint='one.txt two.txt'
global.extra-index-url='file:///a/simple file:///b/simple'
global.find-links='/elsewhere'
global.index-url='file:///general'
install.index-url='file:///own'
"""


def test_what_pip_is_configured_with_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "check_output", lambda *_, **__: LISTED + "global.cert='/certificates'\n")
    monkeypatch.setattr(install, "has_uv", lambda: True)
    start = install.command("python")
    assert start[:7] == ["env", "SSL_CERT_FILE=/certificates", sys.executable, "-m", "uv", "pip", "install"]
    assert start[start.index("--python") + 1] == "python"
    assert {option for option in start if "=" in option} == {
        "SSL_CERT_FILE=/certificates",
        "--index-strategy=unsafe-best-match",
        "--default-index=file:///own",
        "--index=file:///a/simple",
        "--index=file:///b/simple",
        "--find-links=/folder",
        "--constraints=one.txt",
        "--constraints=two.txt",
    }


def test_pip_installs_where_there_is_no_uv(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(install, "has_uv", lambda: False)
    assert install.command("python")[:4] == ["python", "-m", "pip", "install"]


@pytest.mark.parametrize("there", [True, False])
def test_what_is_loaded_may_have_a_folder_of_its_own(there: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(install, "has_uv", lambda: there)
    start = install.command("python", Path("/releases/downloads"))
    assert start[start.index("--cache-dir") + 1] == "/releases/downloads"
    assert "--cache-dir" not in install.command("python")
