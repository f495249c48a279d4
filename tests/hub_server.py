"""A local server that speaks the hub's protocol, with a made-up repository and faults on demand."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from lowpeak.engine.checkpoint.catalogue import Part
from lowpeak.engine.checkpoint.hub import plan_pull, pull
from lowpeak.engine.checkpoint.transfer import STAGING

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
    assert not (models / STAGING).exists()
    assert not list(models.rglob("*.incomplete"))
