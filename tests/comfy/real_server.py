"""A headless ComfyUI for tests: started from COMFYUI_DIR, driven over HTTP and its WebSocket."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

START_SECONDS, PROMPT_SECONDS = 240.0, 400.0
FINISHED = ("execution_success", "execution_error", "execution_interrupted")


def comfy_python(checkout: Path) -> str:
    """The interpreter that has ComfyUI's requirements."""
    named = os.environ.get("COMFYUI_PYTHON")
    places = [checkout / name / "bin/python" for name in ("venv", ".venv")]
    return named or next((str(path) for path in places if path.exists()), sys.executable)


@dataclass
class Outcome:
    """What one prompt did. `events` are (seconds since posting, type, data)."""

    prompt_id: str = ""
    events: list[tuple[float, str, Any]] = field(default_factory=list)
    refused: dict[str, Any] | None = None

    def of(self, kind: str) -> list[Any]:
        """Data of the events of a type."""
        return [data for _, name, data in self.events if name == kind]

    @property
    def ended(self) -> str:
        """The last event that ends a prompt, or "refused"."""
        ends = [name for _, name, _ in self.events if name in FINISHED]
        return "refused" if self.refused else ends[-1] if ends else "unfinished"

    @property
    def error(self) -> str:
        """Type and message of an execution_error."""
        found = self.of("execution_error")
        return " ".join(f"{e['exception_type']}: {e['exception_message']}" for e in found)


class ComfyServer:
    """One running server. Use `with`."""

    def __init__(self, checkout: Path, base: Path, pack: Path) -> None:
        self.base, self._checkout = base, checkout
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        for name in ("custom_nodes", "input", "output", "temp", "user", "models"):
            (base / name).mkdir(parents=True, exist_ok=True)
        (base / "custom_nodes/lowpeak").symlink_to(pack, target_is_directory=True)
        self.log = base / "server.log"

    def __enter__(self) -> ComfyServer:
        command = [
            comfy_python(self._checkout), "main.py", "--cpu", "--listen", "127.0.0.1",
            "--port", str(self.port), "--disable-api-nodes", "--disable-auto-launch",
            "--database-url", "sqlite:///:memory:", "--base-directory", str(self.base),
        ]  # fmt: skip
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                command,
                cwd=self._checkout,
                stdout=log,
                stderr=log,
                env={**os.environ, "LOWPEAK_HOME": str(self.base / "home")},
            )
        limit = time.monotonic() + START_SECONDS
        while time.monotonic() < limit:
            if self._process.poll() is not None:
                break
            try:
                self.get("/system_stats")
                return self
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.3)
        self.__exit__()
        raise AssertionError(f"ComfyUI did not start:\n{self.log.read_text()[-3000:]}")

    def __exit__(self, *failure: object) -> None:
        self._process.terminate()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    @property
    def pid(self) -> int:
        """The server's process."""
        return self._process.pid

    def url(self, path: str) -> str:
        """Address of a route."""
        return f"http://127.0.0.1:{self.port}{path}"

    def get(self, path: str) -> Any:
        """JSON, or text that is none."""
        with urllib.request.urlopen(self.url(path), timeout=30) as answer:
            text = answer.read().decode()
        return json.loads(text) if text[:1] in ("{", "[") else text

    def post(self, path: str, body: Any) -> Any:
        """Post JSON; gives JSON or None."""
        data = json.dumps(body).encode()
        request = urllib.request.Request(
            self.url(path), data, {"Content-Type": "application/json"}, method="POST"
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            text = answer.read().decode()
        return json.loads(text) if text[:1] in ("{", "[") else None

    def run(
        self,
        prompt: dict[str, Any],
        on_event: Callable[[Outcome, str, Any], Awaitable[None]] | None = None,
    ) -> Outcome:
        """Post a prompt and follow it to its end."""
        return asyncio.run(asyncio.wait_for(self._run(prompt, on_event), PROMPT_SECONDS))

    async def _run(self, prompt: dict[str, Any], on_event: Any) -> Outcome:
        client, outcome = uuid.uuid4().hex, Outcome()
        async with (
            aiohttp.ClientSession() as session,
            session.ws_connect(self.url(f"/ws?clientId={client}"), max_msg_size=0) as stream,
        ):
            body = {"prompt": prompt, "client_id": client}
            async with session.post(self.url("/prompt"), json=body) as answer:
                reply = await answer.json()
            began = time.monotonic()
            if answer.status != 200:
                outcome.refused = reply
                return outcome
            outcome.prompt_id = reply["prompt_id"]
            async for message in stream:
                if message.type is not aiohttp.WSMsgType.TEXT:
                    continue
                event = json.loads(message.data)
                outcome.events.append((time.monotonic() - began, event["type"], event["data"]))
                if on_event is not None:
                    await on_event(outcome, event["type"], event["data"])
                if event["type"] in FINISHED:
                    break
            await self._linger(stream, outcome, began)
        return outcome

    async def _linger(self, stream: Any, outcome: Outcome, began: float) -> None:
        """Take what the calm event stream still sends after the end."""
        limit = time.monotonic() + 3.0
        while (left := limit - time.monotonic()) > 0:
            try:
                message = await stream.receive(timeout=left)
            except TimeoutError:
                return
            if message.type is aiohttp.WSMsgType.TEXT:
                event = json.loads(message.data)
                outcome.events.append((time.monotonic() - began, event["type"], event["data"]))
