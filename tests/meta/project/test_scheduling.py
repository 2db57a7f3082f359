"""Which tests share a process of pytest-xdist."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def test_files_that_share_what_takes_long_to_make_have_one_process(request: pytest.FixtureRequest) -> None:
    plugin = request.config.pluginmanager.get_plugin(str(ROOT / "conftest.py"))
    assert plugin
    assert all((ROOT / file).is_file() for file in plugin.ONE_PROCESS)
    model, other = "tests/test_model.py", "tests/test_ops.py"
    assert plugin.scope_of(f"{model}::test_runner[ort-all]") == plugin.scope_of(f"{model}::test_other") == model
    assert plugin.scope_of(f"{other}::test_pair[a]") != plugin.scope_of(f"{other}::test_pair[b]")
