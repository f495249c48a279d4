"""`models pull`: plans, records, what is fetched again; the server is hub_server.py."""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import replace

import pytest
from hub_server import COMMIT, FILES, LATER, PART, check_whole, fetch

from lowpeak.engine.checkpoint import hub
from lowpeak.engine.checkpoint.hub import plan_pull
from lowpeak.engine.checkpoint.pull_record import RECORD_FILE, read_record
from lowpeak.engine.errors import CheckpointError, DoesNotFit, RequestError


def test_a_plan_names_bytes_files_commit_and_licence_first(server, tmp_path) -> None:
    plan = plan_pull([PART], tmp_path, endpoint=server.url, token=False)
    wanted = {name: data for name, data in FILES.items() if name.startswith("cache/")}
    assert plan.download_bytes == sum(map(len, wanted.values()))
    assert {file.path for file in plan.files} == set(wanted)
    assert {file.revision for file in plan.files} == {COMMIT}
    assert plan.files[-1].path == "cache/manifest.json", "a manifest means whole: it comes last"
    assert "MiniMax H3 Community License" in plan.text() and plan.text().isascii()
    assert server.faults.served == [] and list(tmp_path.iterdir()) == []


def test_nothing_is_fetched_before_the_licence_is_accepted(server, tmp_path) -> None:
    with pytest.raises(RequestError, match="MiniMax H3 Community License") as caught:
        fetch(server, tmp_path, accept=False)
    assert caught.value.field == "accept_license"
    assert server.faults.served == []
    fetch(server, tmp_path, accept=True)
    assert "minimax-h3" in read_record(tmp_path)["licences"]
    shutil.rmtree(tmp_path / "lowpeak")
    fetch(server, tmp_path, accept=False)  # asked once
    check_whole(tmp_path)


def test_files_arrive_with_record_and_progress(server, tmp_path) -> None:
    plan, done, seen = fetch(server, tmp_path)
    check_whole(tmp_path)
    assert done["bytes"] == plan.download_bytes and len(done["fetched"]) == 4
    assert [step[0] for step in seen] == sorted(step[0] for step in seen)
    assert all(step[1] == plan.download_bytes for step in seen)
    entry = read_record(tmp_path)["files"]["lowpeak/toy/cache/root.safetensors"]
    assert entry["sha256"] == hashlib.sha256(FILES["cache/root.safetensors"]).hexdigest()
    assert entry["revision"] == COMMIT


def test_what_is_here_is_not_fetched_again(server, tmp_path) -> None:
    fetch(server, tmp_path)
    server.faults.served.clear()
    (tmp_path / "lowpeak/toy/cache/root.safetensors").unlink()
    plan, done, _ = fetch(server, tmp_path)
    assert [file.path for file in plan.files] == ["cache/root.safetensors"]
    assert len(done["present"]) == 3
    assert {name for name, _ in server.faults.served} == {"cache/root.safetensors"}
    check_whole(tmp_path)


def test_the_commit_stays_pinned_when_the_branch_moves(server, tmp_path) -> None:
    fetch(server, tmp_path)
    server.faults.head = LATER
    (tmp_path / "lowpeak/toy/cache/root.safetensors").unlink()
    plan, _, _ = fetch(server, tmp_path)
    assert {file.revision for file in plan.files} == {COMMIT}
    assert set(server.faults.revisions) == {COMMIT}
    fixed = replace(PART, revision=LATER)
    other = plan_pull([fixed], tmp_path / "new", endpoint=server.url, token=False)
    assert {file.revision for file in other.files} == {LATER}


def test_a_file_that_was_written_to_since_is_hashed_and_fetched_again(server, tmp_path) -> None:
    fetch(server, tmp_path)
    path = tmp_path / "lowpeak/toy/cache/root.safetensors"
    path.write_bytes(bytes(path.stat().st_size))
    plan, _, _ = fetch(server, tmp_path)
    assert [file.path for file in plan.files] == ["cache/root.safetensors"]
    check_whole(tmp_path)
    path.touch()
    plan, _, _ = fetch(server, tmp_path)
    assert not plan.files, "the same bytes at another time"


def test_a_damaged_file_of_the_right_size_is_fetched_again(server, tmp_path) -> None:
    fetch(server, tmp_path)
    (tmp_path / RECORD_FILE).unlink()
    path = tmp_path / "lowpeak/toy/cache/root.safetensors"
    path.write_bytes(bytes(path.stat().st_size))
    plan = plan_pull([PART], tmp_path, endpoint=server.url, token=False)
    assert "cache/root.safetensors" in [file.path for file in plan.files]
    assert "cache/blocks/01.safetensors" in [
        file.target.relative_to(tmp_path / "lowpeak/toy").as_posix() for file in plan.present
    ]


def test_a_full_disk_is_refused_before_a_byte_is_fetched(server, tmp_path, monkeypatch) -> None:
    usage = shutil.disk_usage(tmp_path)._replace(free=1000)
    monkeypatch.setattr(hub.shutil, "disk_usage", lambda path: usage)
    with pytest.raises(DoesNotFit) as caught:
        fetch(server, tmp_path)
    short = caught.value.short[0]
    assert (short.axis, short.have_bytes) == ("disk", 1000)
    assert server.faults.served == []


def test_one_of_several_files_is_chosen_by_its_size(server, tmp_path) -> None:
    size = len(FILES["cache/root.safetensors"])
    part = replace(PART, files=("*.safetensors",), size_bytes=size, by_size=True)
    plan = plan_pull([part], tmp_path, endpoint=server.url, token=False)
    assert [file.path for file in plan.files] == ["cache/root.safetensors"]
    with pytest.raises(CheckpointError, match=f"of {size + 1} bytes"):
        plan_pull([replace(part, size_bytes=size + 1)], tmp_path, endpoint=server.url, token=False)


def test_a_damaged_record_is_a_memo_only(tmp_path) -> None:
    (tmp_path / RECORD_FILE).write_text("{")
    assert read_record(tmp_path)["files"] == {}
