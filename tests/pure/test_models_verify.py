"""`models verify` in the wrong place: bounded, shown, and honest about files it does not know."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

from lowpeak.engine.checkpoint import walk as walking
from lowpeak.engine.checkpoint.edge import find_caches
from lowpeak.engine.checkpoint.header import write_tensors
from lowpeak.engine.checkpoint.recognise import weight_files
from lowpeak.engine.checkpoint.verify import verify
from lowpeak.engine.checkpoint.walk import stores_nothing, subfolders, walk
from lowpeak.engine.errors import CheckpointError

LINUX = pytest.mark.skipif(not walking.MOUNTS.exists(), reason="no /proc/self/mountinfo here")


def other_model(path: Path) -> None:
    write_tensors(path, {"model.diffusion_model.input_blocks.0.weight": torch.ones(4, 4)})


@LINUX
def test_a_file_system_without_files_is_refused_by_its_kind() -> None:
    assert stores_nothing(Path("/proc/self")) == "proc" and stores_nothing(Path.cwd()) == ""
    with pytest.raises(CheckpointError, match="a proc file system holds no model files"):
        verify(Path("/proc"))
    assert Path("/proc") not in subfolders(Path("/")) and Path("/tmp") in subfolders(Path("/"))


def test_links_that_go_round_are_walked_once(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "up").symlink_to(tmp_path)
    (tmp_path / "nowhere").symlink_to(tmp_path / "gone")
    assert len(walk(tmp_path).folders) == 3


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_among_the_files_is_no_weight_file_and_nobody_waits_for_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.safetensors")
    (tmp_path / "gone.safetensors").symlink_to(tmp_path / "nowhere")
    found = [path.name for path in weight_files(tmp_path)]
    assert found == ["gone.safetensors"], "a link to nowhere is a file that is missing"


def test_a_huge_folder_is_looked_at_in_part_and_it_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "abcdefgh":
        (tmp_path / name).mkdir()
    other_model(tmp_path / "x.safetensors")
    monkeypatch.setattr(walking, "MAX_FOLDERS", 4)
    seen: list[tuple[int, int, str]] = []
    found = verify(tmp_path, progress=lambda *at: seen.append(at))
    assert [item.message for item in found.findings] == ["more than is looked at in one go"]
    walked = [at for at in seen if at[1] == 0]
    assert len(walked) == 4, "folders are counted while nobody knows how many there are"
    assert seen[len(walked)][1:] == (1, "x.safetensors"), "then files, of how many"


def test_a_folder_that_may_not_be_read_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "closed").mkdir()
    other_model(tmp_path / "x.safetensors")
    real = os.scandir

    def scandir(path: Path):  # type: ignore[no-untyped-def]
        if Path(path).name == "closed":
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(walking.os, "scandir", scandir)
    found = verify(tmp_path)
    assert found.sound and "may not be read" in found.text() and "closed" in found.text()


def test_no_weight_file_is_no_sound_folder(tmp_path: Path) -> None:
    found = verify(tmp_path)
    assert not found.sound and "no weight file is here" in found.text()


@pytest.mark.parametrize(
    ("start", "what"),
    [
        (b"<!DOCTYPE html><title>Log in</title>", "a web page"),
        (b"PK\x03\x04" + bytes(60), "a zip or PyTorch archive"),
        (b"GGUF" + bytes(60), "a GGUF file"),
        (b"\xff" * 40, "not a safetensors file"),
    ],
)
def test_nobody_is_told_to_pull_a_file_that_pull_never_fetched(
    tmp_path: Path, start: bytes, what: str
) -> None:
    (tmp_path / "mine.safetensors").write_bytes(start)
    (found,) = verify(tmp_path).findings
    assert what in found.message and found.severity == "error"
    assert "`lowpeak models pull` did not fetch this file" in found.remedy


def test_what_the_files_are_is_counted(tmp_path: Path) -> None:
    other_model(tmp_path / "sdxl.safetensors")
    lora = {f"transformer_blocks.0.attn.to_q.lora_{x}.weight": torch.ones(2, 2) for x in "AB"}
    write_tensors(tmp_path / "style.safetensors", lora)
    found = verify(tmp_path)
    assert found.sound and found.as_json()["kinds"] == {"lora": 1, "of_another_model": 1}
    assert "(1 lora, 1 of another model)" in found.text()


def test_a_folder_of_code_named_blocks_is_no_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "blocks").mkdir()
    (tmp_path / "blocks" / "layout.py").write_text("")
    assert find_caches(tmp_path) == []
    (tmp_path / "blocks" / "00.safetensors.incomplete").write_text("")
    assert find_caches(tmp_path) == [tmp_path]
