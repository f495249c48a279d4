"""Transfers of `models pull` that break, and what is left of them; the server is hub_server.py."""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import replace
from typing import Any

import pytest
from hub_server import FILES, PART, check_whole, fetch, git_oid

from lowpeak.engine.checkpoint import hub
from lowpeak.engine.checkpoint.hub import plan_pull, pull
from lowpeak.engine.checkpoint.transfer import STAGING
from lowpeak.engine.errors import CheckpointError, DoesNotFit


def test_an_interrupted_transfer_goes_on_where_it_stopped(server, tmp_path, monkeypatch) -> None:
    name = "cache/blocks/01.safetensors"
    server.faults.cut_after[name] = [1_000_000] + [0] * 50  # the library tries again, in vain
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    monkeypatch.setattr("huggingface_hub.constants.DOWNLOAD_CHUNK_SIZE", 65536)
    with pytest.raises(CheckpointError, match="goes on where it stopped"):
        fetch(server, tmp_path)
    assert not (tmp_path / "lowpeak/toy" / name).exists()
    server.faults.cut_after.clear()
    server.faults.served.clear()
    fetch(server, tmp_path)
    check_whole(tmp_path)
    starts = [start for served, start in server.faults.served if served == name]
    assert starts and starts[0] > 0, "the second call asked for the rest only"


def test_a_short_break_is_bridged_without_help(server, tmp_path, monkeypatch) -> None:
    name = "cache/blocks/01.safetensors"
    server.faults.cut_after[name] = [1_000_000]
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    monkeypatch.setattr("huggingface_hub.constants.DOWNLOAD_CHUNK_SIZE", 65536)
    fetch(server, tmp_path)
    check_whole(tmp_path)
    assert [start > 0 for served, start in server.faults.served if served == name] == [False, True]


def test_a_wrong_hash_is_thrown_away_and_named(server, tmp_path) -> None:
    name = "cache/blocks/01.safetensors"
    server.faults.corrupt.add(name)
    with pytest.raises(CheckpointError, match="not what the server announced") as caught:
        fetch(server, tmp_path)
    assert name in caught.value.file
    assert hashlib.sha256(FILES[name]).hexdigest() in str(caught.value.expected)
    assert hashlib.sha256(bytes(len(FILES[name]))).hexdigest() in str(caught.value.found)
    assert not (tmp_path / "lowpeak/toy" / name).exists()
    assert (tmp_path / "lowpeak/toy/cache/blocks/00.safetensors").exists(), "kept what was right"
    assert not (tmp_path / "lowpeak/toy/cache/manifest.json").exists()
    server.faults.corrupt.clear()
    fetch(server, tmp_path)
    check_whole(tmp_path)


def test_a_small_file_has_a_hash_too(server, tmp_path) -> None:
    """Not a large file, so the server knows it by git's hash alone."""
    name = "cache/manifest.json"
    server.faults.corrupt.add(name)
    with pytest.raises(CheckpointError, match="not what the server announced") as caught:
        fetch(server, tmp_path)
    assert caught.value.expected == f"git {git_oid(FILES[name])}"
    assert not (tmp_path / "lowpeak/toy" / name).exists()
    server.faults.corrupt.clear()
    fetch(server, tmp_path)
    check_whole(tmp_path)


def test_a_pull_of_other_parts_leaves_a_partial_transfer_alone(
    server, tmp_path, monkeypatch
) -> None:
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    monkeypatch.setattr("huggingface_hub.constants.DOWNLOAD_CHUNK_SIZE", 65536)
    name = "cache/blocks/01.safetensors"
    server.faults.cut_after[name] = [1_000_000] + [0] * 50
    with pytest.raises(CheckpointError):
        fetch(server, tmp_path)
    fetch(server, tmp_path, part=replace(PART, files=("cache/root.safetensors",)))
    server.faults.cut_after.clear()
    server.faults.served.clear()
    fetch(server, tmp_path)
    check_whole(tmp_path)
    assert [start > 0 for served, start in server.faults.served if served == name] == [True]


def test_partial_transfers_of_other_files_are_no_room_for_this_one(
    server, tmp_path, monkeypatch
) -> None:
    staged = tmp_path / STAGING
    staged.mkdir()
    (staged / "something-else.incomplete").write_bytes(bytes(10_000_000))
    plan = plan_pull([PART], tmp_path, endpoint=server.url, token=False)
    free = plan.download_bytes + hub.SPARE_BYTES - 1
    usage = shutil.disk_usage(tmp_path)._replace(free=free)
    monkeypatch.setattr(hub.shutil, "disk_usage", lambda path: usage)
    with pytest.raises(DoesNotFit):
        pull(plan, accept_licence=True, endpoint=server.url, token=False)
    (staged / plan.files[0].staged_name).write_bytes(FILES[plan.files[0].path][:1])
    pull(plan, accept_licence=False, endpoint=server.url, token=False)


def test_a_server_that_cannot_go_on_sends_the_whole_file_again(
    server, tmp_path, monkeypatch
) -> None:
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    monkeypatch.setattr("huggingface_hub.constants.DOWNLOAD_CHUNK_SIZE", 65536)
    name = "cache/blocks/01.safetensors"
    server.faults.cut_after[name] = [1_000_000] + [0] * 50
    with pytest.raises(CheckpointError):
        fetch(server, tmp_path)
    server.faults.cut_after.clear()
    server.faults.no_ranges = True
    for _ in range(2):  # the first may find out that the pieces do not fit, and throw them away
        try:
            fetch(server, tmp_path)
            break
        except CheckpointError as refused:
            assert "again" in str(refused)
    check_whole(tmp_path)


def test_two_pulls_into_one_folder_do_not_mix(server, tmp_path) -> None:
    plan = plan_pull([PART], tmp_path, endpoint=server.url, token=False)
    second: list[str] = []

    def once_more(done: int, count: int, what: str) -> None:
        if not second:
            with pytest.raises(CheckpointError, match="another pull") as caught:
                pull(plan, accept_licence=True, endpoint=server.url, token=False)
            second.append(str(caught.value))

    pull(plan, accept_licence=True, endpoint=server.url, token=False, progress=once_more)
    assert second
    check_whole(tmp_path)


def test_refusals_say_what_to_do(server, tmp_path) -> None:
    server.faults.forbidden = True
    with pytest.raises(CheckpointError, match=r"403.*HF_TOKEN"):
        fetch(server, tmp_path)
    server.faults.forbidden = False
    with pytest.raises(CheckpointError, match="no such repository"):
        fetch(server, tmp_path, part=replace(PART, repo="lab/nowhere"))
    with pytest.raises(CheckpointError, match="no such files"):
        fetch(server, tmp_path, part=replace(PART, files=("nothing/*",)))
    server.faults.gone.add("cache/root.safetensors")
    with pytest.raises(CheckpointError, match="no such file") as caught:
        fetch(server, tmp_path)
    assert "cache/root.safetensors" in caught.value.file


def test_an_unreachable_server_is_a_checkpoint_error(server, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    plan = plan_pull([PART], tmp_path, endpoint=server.url, token=False)
    with pytest.raises(CheckpointError, match="transfer failed"):
        pull(plan, accept_licence=True, endpoint="http://127.0.0.1:9", token=False)


def test_a_disk_that_fills_up_midway_is_named(server, tmp_path, monkeypatch) -> None:
    import errno

    from huggingface_hub import file_download

    def full(*_args: Any, **_kwargs: Any) -> str:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(file_download, "http_get", full)
    with pytest.raises(DoesNotFit) as caught:
        fetch(server, tmp_path)
    assert caught.value.short[0].axis == "disk"


def test_a_server_cannot_write_outside_its_folder(server, tmp_path, monkeypatch) -> None:
    monkeypatch.setitem(FILES, "cache/../../../escape.safetensors", b"x")
    with pytest.raises(CheckpointError, match="outside its folder"):
        plan_pull([PART], tmp_path, endpoint=server.url, token=False)
