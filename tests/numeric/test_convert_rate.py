"""The limit that the conversion benchmark runs under: asked for, and done without where refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from lowpeak.benchmarks import convert_rate


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that looks like cgroups of version 2."""
    (tmp_path / "cgroup.controllers").write_text("cpu memory")
    monkeypatch.setattr(convert_rate, "CGROUP", tmp_path)
    monkeypatch.setattr(convert_rate.time, "sleep", lambda seconds: None)
    return tmp_path


def test_the_group_above_passes_the_memory_controller_on(groups: Path) -> None:
    with convert_rate.cgroup(4) as (join, peak):
        assert join is not None and peak() is None
        (group,) = (path for path in groups.iterdir() if path.is_dir())
        assert (group / "memory.max").read_text() == str(4 << 30)
    assert (groups / "cgroup.subtree_control").read_text() == "+memory"


def test_a_refused_limit_is_said_and_left_out(
    groups: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (groups / "cgroup.subtree_control").mkdir()  # cannot be written
    with convert_rate.cgroup(4) as (join, peak):
        assert join is None and peak() is None
    assert "no cgroup" in capsys.readouterr().out
    assert [path.name for path in groups.iterdir() if path.is_dir()] == ["cgroup.subtree_control"]
