"""Read-only JSON for the panel, under /lowpeak. No value of a request reaches the file system.

    GET  /lowpeak/state      machine, running and last run, notices
    POST /lowpeak/forecast   a graph or a request, perhaps for another machine -> plan document,
                             or with each_vram_gib one line of the capacity map
    GET  /lowpeak/runs       rows of the history, newest first
    GET  /lowpeak/runs/{id}  one run

Names are looked up among names that the server listed itself. Bodies are bounded. Answers hold no
prompt text and no path.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from ..engine.errors import CheckpointError, LowpeakError, RequestError
from ..engine.planner.adapters import USUAL_RANK
from .asked_forecast import Asked, read_body
from .handles import LoraHandle, ModelHandle, file_identity
from .pack import Pack
from .privacy import without_paths

MAX_BODY_BYTES = 1 << 20
MAX_NOTICE = 400
VERSION = 1
log = logging.getLogger(__name__)


def add_routes(table: Any, pack: Pack) -> None:
    """Put the four routes into an aiohttp RouteTableDef."""
    from aiohttp import web

    def answer(document: Any, status: int = 200) -> Any:
        text = json.dumps(document, default=str, allow_nan=False)
        return web.Response(text=text, status=status, content_type="application/json",
                            headers={"Cache-Control": "no-store"})  # fmt: skip

    def guarded(make: Callable[[Any], Awaitable[Any]]) -> Callable[[Any], Awaitable[Any]]:
        """A handler whose refusals and errors are JSON, without paths of this machine."""

        async def handler(request: Any) -> Any:
            try:
                return answer(await make(request))
            except _Refused as refused:
                return answer({"error": "Refused", "message": str(refused)}, refused.status)
            except LowpeakError as problem:
                status = 400 if isinstance(problem, RequestError) else 409
                return answer({"error": type(problem).__name__,
                               "message": without_paths(str(problem)),
                               "field": getattr(problem, "field", "")}, status)  # fmt: skip

        return handler

    async def get_state(request: Any) -> Any:
        return await asyncio.to_thread(state, pack)

    async def post_forecast(request: Any) -> Any:
        body = await _bounded_body(request)
        return await asyncio.to_thread(forecast, pack, body)

    async def get_runs(request: Any) -> Any:
        return {"runs": pack.runs.summaries()}

    async def get_run(request: Any) -> Any:
        run = pack.runs.get(request.match_info["run_id"])
        if run is None:
            raise _Refused(404, "there is no run of that id")
        return run

    table.get("/lowpeak/state")(guarded(get_state))
    table.post("/lowpeak/forecast")(guarded(post_forecast))
    table.get("/lowpeak/runs")(guarded(get_runs))
    table.get("/lowpeak/runs/{run_id}")(guarded(get_run))


def state(pack: Pack) -> dict[str, Any]:
    """What a freshly opened panel needs."""
    rows = pack.runs.summaries()
    active = pack.runs.active
    last = next((row["run_id"] for row in rows if row["run_id"] != active), None)
    return {
        "version": VERSION,
        "machine": dict(pack.engine.machine()),
        "checkpoints": pack.folders.checkpoints(),
        "active": None if active is None else pack.runs.get(active),
        "last": None if last is None else pack.runs.get(last),
        "notices": list(pack.notices),
    }


def forecast(pack: Pack, body: Any) -> dict[str, Any]:
    """The plan document for a body, with what was asked and what stayed unknown."""
    asked = read_body(body)
    model, notices = None, list(asked.notices)
    if asked.checkpoint in pack.folders.checkpoints():
        folder = pack.folders.checkpoint(asked.checkpoint)
        model = ModelHandle(folder, file_identity(folder), facts=pack.engine.describe(folder))
    elif asked.checkpoint is not None:
        notices.append("That checkpoint is not here; sizes of the published model are used.")
    asked, model = _with_loras(pack, asked, model, notices)
    try:
        document = _document(pack, asked, model)
    except CheckpointError as problem:
        if model is None or not model.loras:
            raise
        notices.append(f"A LoRA cannot be read as it is: {problem}"[:MAX_NOTICE])
        asked, model = _by_rank(asked), replace(model, loras=())
        document = _document(pack, asked, model)
    notices += document.get("notices", ())
    document["asked"] = {
        "node_id": asked.node_id,
        "unknown": list(asked.unknown),
        "notices": [without_paths(text) for text in notices],
        "capacities": dict(asked.capacities),
        "loras": sum(item.strength != 0 for item in asked.request.loras),
    }
    return document


def _document(pack: Pack, asked: Asked, model: ModelHandle | None) -> dict[str, Any]:
    if asked.each_vram_bytes:
        return {"cells": [_cell(pack, asked, model, size) for size in asked.each_vram_bytes]}
    return dict(pack.engine.forecast(asked.request, model, asked.capacities))


def _with_loras(
    pack: Pack, asked: Asked, model: ModelHandle | None, notices: list[str]
) -> tuple[Asked, ModelHandle | None]:
    """The files of a graph's LoRAs on its model; where one is missing, usual ranks for all."""
    if not asked.loras or model is None:
        return asked, model
    there = pack.folders.loras()
    if missing := [item for item in asked.loras if item.name not in there]:
        notices.append(
            f"{len(missing)} of {len(asked.loras)} LoRAs are not known here; a rank of "
            f"{USUAL_RANK} is assumed for each."
        )
        return asked, model
    for item in asked.loras:
        file = pack.folders.lora(str(item.name))
        handle = LoraHandle(file, item.strength, item.allow_partial, file_identity(file))
        model = model.with_lora(handle)
    return replace(asked, request=replace(asked.request, loras=model.lora_choices)), model


def _by_rank(asked: Asked) -> Asked:
    """The same with usual ranks in place of files."""
    loras = tuple(replace(item, rank=USUAL_RANK) for item in asked.request.loras)
    return replace(asked, request=replace(asked.request, loras=loras))


def _cell(pack: Pack, asked: Asked, model: Any, vram_bytes: int) -> dict[str, Any]:
    """One cell of the capacity map: whether it fits, how long it takes, what limits it."""
    capacities = {**asked.capacities, "vram_bytes": vram_bytes, "brief": True}
    plan = pack.engine.forecast(asked.request, model, capacities)
    phases = [phase for phase in plan.get("phases", ()) if phase.get("seconds") is not None]
    longest = max(phases, key=lambda phase: phase["seconds"], default={})
    return {
        "vram_bytes": vram_bytes,
        "fits": plan["fits"],
        "total_seconds": plan.get("total_seconds"),
        "limited_by": longest.get("limited_by"),
        "short": sorted({item["axis"] for item in plan.get("short", ())}),
    }


def listen_notice(listen: str) -> str | None:
    """A sentence if the server can be reached from other machines."""
    open_to = [name.strip() for name in listen.split(",") if not _is_loopback(name.strip())]
    if not open_to:
        return None
    return (
        f"ComfyUI listens on {', '.join(open_to)}: whoever reaches it can read Lowpeak's forecasts "
        "and run history (sizes, seconds, bytes; no prompts, no paths), as they can ComfyUI's own."
    )


def _is_loopback(name: str) -> bool:
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name in ("", "localhost")


class _Refused(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


async def _bounded_body(request: Any) -> Any:
    """The JSON of a body of at most MAX_BODY_BYTES."""
    if request.content_length is not None and request.content_length > MAX_BODY_BYTES:
        raise _Refused(413, f"the body is larger than {MAX_BODY_BYTES} bytes")
    taken = bytearray()
    async for chunk in request.content.iter_chunked(1 << 16):
        taken += chunk
        if len(taken) > MAX_BODY_BYTES:
            raise _Refused(413, f"the body is larger than {MAX_BODY_BYTES} bytes")
    try:
        return json.loads(taken.decode("utf-8"))
    except (ValueError, RecursionError) as problem:
        raise RequestError(f"the body is not JSON: {problem}", field="body") from problem
