"""`models pull` against a local server that speaks the hub's protocol, with a made-up repo."""

from __future__ import annotations

import hashlib
import json
import shutil
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from lowpeak.engine.checkpoint import hub
from lowpeak.engine.checkpoint.catalogue import Part
from lowpeak.engine.checkpoint.hub import plan_pull, pull, read_record
from lowpeak.engine.errors import CheckpointError, DoesNotFit, RequestError

REPO = "lab/synthetic-h3"
COMMIT = "0123456789abcdef0123456789abcdef01234567"
LATER = "89abcdef0123456789abcdef0123456789abcdef"
FILES = {
    "cache/blocks/00.safetensors": b"first block " * 3000,
    "cache/blocks/01.safetensors": b"second block" * 300_000,
    "cache/root.safetensors": b"root" * 999,
    "cache/manifest.json": b'{"format": "x"}',
    "other/secret.bin": b"not asked for",
}
PART = Part(
    "synthetic", "a synthetic model", "transformer", REPO, ("cache/*",), "minimax-h3",
    "lowpeak/toy", None,
)  # fmt: skip


def git_oid(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


@dataclass
class Faults:
    """What the server does wrong, and what it saw."""

    cut_after: dict[str, list[int]] = field(default_factory=dict)  # path -> bytes, once each
    corrupt: set[str] = field(default_factory=set)
    forbidden: bool = False
    no_ranges: bool = False  # every answer is the whole file
    gone: set[str] = field(default_factory=set)
    head: str = COMMIT
    served: list[tuple[str, int]] = field(default_factory=list)  # path, first byte
    revisions: list[str] = field(default_factory=list)


class Server(ThreadingHTTPServer):
    """The hub on localhost."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.faults = Faults()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    """model_info, HEAD and ranged GET of resolve."""

    protocol_version = "HTTP/1.1"
    server: Server

    def log_message(self, *_args: Any) -> None:
        """Quiet."""

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def _answer(self, *, body: bool) -> None:
        faults, path = self.server.faults, unquote(urlsplit(self.path).path)
        if faults.forbidden:
            return self._send(403, b"no", {"X-Error-Code": "GatedRepo"})
        if path.startswith("/api/models/"):
            return self._info(path)
        _, revision, name = path.removeprefix(f"/{REPO}/").split("/", 2)
        faults.revisions.append(revision)
        if name not in FILES or name in faults.gone:
            return self._send(404, b"", {"X-Error-Code": "EntryNotFound"})
        data = FILES[name]
        digest = hashlib.sha256(data).hexdigest()
        headers = {"X-Repo-Commit": revision, "ETag": f'"{digest}"', "Accept-Ranges": "bytes"}
        if not body:
            return self._send(200, b"", {**headers, "Content-Length": str(len(data))})
        if name in faults.corrupt:
            data = bytes(len(data))
        return self._content(name, data, headers)

    def _info(self, path: str) -> None:
        if not path.startswith(f"/api/models/{REPO}"):
            return self._send(404, b"{}", {"X-Error-Code": "RepoNotFound"})
        revision = path.rpartition("/revision/")[2] if "/revision/" in path else ""
        sha = revision if revision in (COMMIT, LATER) else self.server.faults.head
        siblings = []
        for name, data in FILES.items():
            entry: dict[str, Any] = {"rfilename": name, "size": len(data), "blobId": git_oid(data)}
            if name.endswith(".safetensors"):
                digest = hashlib.sha256(data).hexdigest()
                entry["lfs"] = {"sha256": digest, "size": len(data), "pointerSize": 130}
            siblings.append(entry)
        text = json.dumps({"id": REPO, "modelId": REPO, "sha": sha, "siblings": siblings})
        return self._send(200, text.encode(), {"Content-Type": "application/json"})

    def _content(self, name: str, data: bytes, headers: dict[str, str]) -> None:
        faults = self.server.faults
        start = 0
        if "Range" in self.headers and not faults.no_ranges:
            start = int(self.headers["Range"].removeprefix("bytes=").split("-")[0])
            headers["Content-Range"] = f"bytes {start}-{len(data) - 1}/{len(data)}"
        faults.served.append((name, start))
        cuts = faults.cut_after.get(name)
        rest = data[start:]
        self.send_response(206 if start else 200)
        for key, value in {**headers, "Content-Length": str(len(rest))}.items():
            self.send_header(key, value)
        self.end_headers()
        if cuts:
            self.wfile.write(rest[: cuts.pop(0)])
            self.wfile.flush()
            self.close_connection = True
            self.connection.shutdown(2)
            return
        self.wfile.write(rest)

    def _send(self, status: int, data: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for key, value in {"Content-Length": str(len(data)), **headers}.items():
            self.send_header(key, value)
        self.end_headers()
        if data and self.command != "HEAD":
            self.wfile.write(data)


@pytest.fixture
def server(monkeypatch) -> Iterator[Server]:
    monkeypatch.setenv("HF_HUB_DISABLE_TELEMETRY", "1")
    found = Server()
    thread = threading.Thread(target=found.serve_forever, daemon=True)
    thread.start()
    yield found
    found.shutdown()
    found.server_close()
    thread.join()


def fetch(server: Server, models: Path, *, accept: bool = True, part: Part = PART):
    plan = plan_pull([part], models, endpoint=server.url, token=False)
    seen: list[tuple[int, int, str]] = []
    done = pull(
        plan, accept_licence=accept, endpoint=server.url, token=False,
        progress=lambda *step: seen.append(step),
    )  # fmt: skip
    return plan, done, seen


def check_whole(models: Path) -> None:
    for name, data in FILES.items():
        path = models / "lowpeak/toy" / name
        assert (path.read_bytes() == data) if name.startswith("cache/") else not path.exists()
    assert not (models / hub.STAGING).exists()
    assert not list(models.rglob("*.incomplete"))


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
    staged = tmp_path / hub.STAGING
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
    (tmp_path / hub.RECORD_FILE).unlink()
    path = tmp_path / "lowpeak/toy/cache/root.safetensors"
    path.write_bytes(bytes(path.stat().st_size))
    plan = plan_pull([PART], tmp_path, endpoint=server.url, token=False)
    assert "cache/root.safetensors" in [file.path for file in plan.files]
    assert "cache/blocks/01.safetensors" in [
        file.target.relative_to(tmp_path / "lowpeak/toy").as_posix() for file in plan.present
    ]


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


def test_a_full_disk_is_refused_before_a_byte_is_fetched(server, tmp_path, monkeypatch) -> None:
    usage = shutil.disk_usage(tmp_path)._replace(free=1000)
    monkeypatch.setattr(hub.shutil, "disk_usage", lambda path: usage)
    with pytest.raises(DoesNotFit) as caught:
        fetch(server, tmp_path)
    short = caught.value.short[0]
    assert (short.axis, short.have_bytes) == ("disk", 1000)
    assert server.faults.served == []


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


def test_one_of_several_files_is_chosen_by_its_size(server, tmp_path) -> None:
    size = len(FILES["cache/root.safetensors"])
    part = replace(PART, files=("*.safetensors",), size_bytes=size, by_size=True)
    plan = plan_pull([part], tmp_path, endpoint=server.url, token=False)
    assert [file.path for file in plan.files] == ["cache/root.safetensors"]
    with pytest.raises(CheckpointError, match=f"of {size + 1} bytes"):
        plan_pull([replace(part, size_bytes=size + 1)], tmp_path, endpoint=server.url, token=False)


def test_a_damaged_record_is_a_memo_only(tmp_path) -> None:
    (tmp_path / hub.RECORD_FILE).write_text("{")
    assert read_record(tmp_path)["files"] == {}
