"""A small ComfyUI for the browser: the real frontend or a stage, our real routes, recorded rest.

The four /lowpeak routes are the pack's own, over a planner that sees a fixed machine, so the panel
is tested against the JSON it will get. A queued prompt is "run" by replaying engine events.
"""

from __future__ import annotations

import asyncio
import functools
import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from aiohttp import WSMsgType, web

from lowpeak.engine.events import Event
from lowpeak.engine.forecast import forecast
from lowpeak.engine.planner.types import HardwareSnapshot, ModelFacts
from lowpeak.engine.snapshot import snapshot_from_options
from lowpeak.engine.units import GIB
from lowpeak.nodes.pack import Pack
from lowpeak.nodes.routes import add_routes
from lowpeak.nodes.runs import RunBook
from lowpeak.nodes.tables import ALL, In, NodeTable

REPOSITORY = Path(__file__).resolve().parents[2]
STAGE = Path(__file__).resolve().parent / "stage"
START_SECONDS = 60
CHECKPOINT = "vdn-minimax-h3-edge"
EVENT_SECONDS = 0.02
FOLDERS = SimpleNamespace(checkpoints=lambda: [CHECKPOINT], checkpoint=lambda name: STAGE)
KINDS = {"int": "INT", "float": "FLOAT", "string": "STRING", "bool": "BOOLEAN", "combo": "COMBO"}
ANSWERS: dict[str, Any] = {
    "/extensions": ["/extensions/lowpeak/lowpeak.js"],
    "/users": {"storage": "server", "migrated": True},
    "/features": {"supports_preview_metadata": True},
    "/system_stats": {
        "system": {"os": "linux", "comfyui_version": "0.33.0", "python_version": "3.11",
                   "required_frontend_version": "1.49.6", "argv": [], "ram_total": 0,
                   "ram_free": 0, "pytorch_version": "2.13", "embedded_python": False},
        "devices": [],
    },
    "/queue": {"queue_running": [], "queue_pending": []},
    "/history": {},
    "/jobs": {"jobs": [], "pagination": {"offset": 0, "limit": 200, "total": 0,
                                         "has_more": False}},
    "/embeddings": [], "/models": [], "/experiment/models": [], "/userdata": [], "/i18n": {},
    "/workflow_templates": {}, "/node_replacements": {}, "/global_subgraphs": {},
    "/v2/userdata": [],
}  # fmt: skip


class FixedEngine:
    """Plans on a fixed machine. `broken` makes the next forecasts fail."""

    def __init__(self) -> None:
        self.snapshot = HardwareSnapshot(
            system="linux", device_name="NVIDIA GeForce RTX 4060", capability=(8, 9),
            vram_total_bytes=8 * GIB, vram_free_bytes=int(7.4 * GIB), ram_total_bytes=32 * GIB,
            ram_available_bytes=26 * GIB,
        )  # fmt: skip
        self.broken: Exception | None = None
        self.use(8)

    def describe(self, folder: Path) -> dict[str, Any]:
        """Every checkpoint is as published."""
        return {}

    def machine(self) -> Mapping[str, Any]:
        return self.snapshot.as_json()

    def use(self, vram_gib: float, ram_gib: float = 32) -> None:
        """Other memory in this machine, all of it free."""
        vram, ram = int(vram_gib * GIB), int(ram_gib * GIB)
        self.snapshot = replace(
            self.snapshot, vram_total_bytes=vram, vram_free_bytes=vram,
            ram_total_bytes=ram, ram_available_bytes=ram,
        )  # fmt: skip

    def forecast(self, request: Any, model: Any, capacities: Mapping[str, Any]) -> dict[str, Any]:
        if self.broken is not None:
            raise self.broken
        other = {f"{axis}_gib": capacities[f"{axis}_bytes"] / GIB for axis in ("vram", "ram")
                 if f"{axis}_bytes" in capacities}  # fmt: skip
        if "card" in capacities:
            other["card"] = capacities["card"]
        machine = self.snapshot
        if other:
            machine = snapshot_from_options(**other, here=lambda: self.snapshot)
        if "card" not in other:  # as the real engine: the speed is this card's
            same = {"device_name": self.snapshot.device_name, "capability": (8, 9)}
            machine = replace(machine, **same)  # type: ignore[arg-type]
        brief = capacities.get("brief")
        return forecast(request, machine, ModelFacts(), what_if=not brief)


@dataclass
class Replay:
    """What a queued prompt does, event by event (None: wait until `go` is set); how it ends."""

    events: list[Event | None]
    report: dict[str, Any]
    status: str = "done"
    error: dict[str, Any] | None = None
    others: dict[str, int] = field(default_factory=dict)


class BrowserHost:
    """The server of one test, in a thread of its own. `url` is known once it is entered.

    frontend: static folder of ComfyUI's frontend; None serves the stage in its place.
    settings: what the user has set in ComfyUI.
    """

    def __init__(self, frontend: Path | None = None, **settings: Any) -> None:
        self.engine = FixedEngine()
        self.settings = {"Comfy.TutorialCompleted": True, "Comfy.InstalledVersion": "1.49.6",
                         **settings}  # fmt: skip
        self.runs = RunBook()
        self.replay: Callable[[dict[str, Any]], Replay] | None = None
        self.prompts: list[dict[str, Any]] = []
        self.forecasts = 0
        self.go = threading.Event()
        self.url = ""
        self._frontend = frontend
        self._sockets: set[web.WebSocketResponse] = set()
        self._loop = asyncio.new_event_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> BrowserHost:
        self._thread.start()
        assert self._ready.wait(START_SECONDS), "the test server did not start"
        return self

    def __exit__(self, *failure: object) -> None:
        self.go.set()  # a run that a failed test left waiting
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        runner = web.AppRunner(self._app())
        self._loop.run_until_complete(runner.setup())
        site = web.TCPSite(runner, "127.0.0.1", 0)
        self._loop.run_until_complete(site.start())
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        self._ready.set()
        self._loop.run_forever()
        for task in self._tasks:
            task.cancel()
        for socket in list(self._sockets):
            self._loop.run_until_complete(socket.close())
        self._loop.run_until_complete(runner.cleanup())
        self._loop.close()

    def _app(self) -> web.Application:
        folders: Any = FOLDERS
        pack = Pack(engine=self.engine, runs=self.runs, folders=folders,  # type: ignore[arg-type]
                    host=lambda pack, node: None, convert=None)  # fmt: skip
        table = web.RouteTableDef()
        add_routes(table, pack)
        table.get("/object_info")(self._object_info)
        table.post("/prompt")(self._prompt)
        table.get("/settings")(self._settings)
        for path, answer in ANSWERS.items():
            table.get(path)(_says(answer))
        for path in ("/settings", "/settings/{id}", "/userdata/{id}"):
            table.post(path)(_says({}))
        app = web.Application(middlewares=[self._count], client_max_size=1 << 24)
        app.router.add_get("/ws", self._socket)
        for route in table:
            assert isinstance(route, web.RouteDef)
            for prefix in ("/api", ""):
                app.router.add_route(route.method, prefix + route.path, route.handler)
        app.router.add_static("/extensions/lowpeak", REPOSITORY / "web/dist")
        if self._frontend is None:
            app.router.add_get("/scripts/{name}.js", _stage_script)
            app.router.add_static("/stage", STAGE)
        app.router.add_get("/", self._index)
        if self._frontend is not None:
            app.router.add_static("/", self._frontend)
        return app

    @web.middleware
    async def _count(self, request: web.Request, handler: Any) -> Any:
        self.forecasts += request.path.endswith("/lowpeak/forecast")
        return await handler(request)

    async def _index(self, request: web.Request) -> web.FileResponse:
        return web.FileResponse((self._frontend or STAGE) / "index.html")

    async def _settings(self, request: web.Request) -> web.Response:
        return web.json_response(self.settings)

    async def _object_info(self, request: web.Request) -> web.Response:
        return web.json_response(text=object_info())

    async def _socket(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        self._sockets.add(socket)
        status = {"exec_info": {"queue_remaining": 0}}
        await socket.send_json({"type": "status", "data": {"status": status, "sid": "browser"}})
        async for message in socket:
            if message.type == WSMsgType.ERROR:
                break
        self._sockets.discard(socket)
        return socket

    async def _prompt(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.prompts.append(body["prompt"])
        run_id = f"replay-{len(self.prompts)}"
        task = asyncio.create_task(self._run(run_id, body["prompt"]))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return web.json_response({"prompt_id": run_id, "number": 1, "node_errors": {}})

    async def _run(self, run_id: str, prompt: dict[str, Any]) -> None:
        from lowpeak.nodes.routes import forecast as route_forecast

        pack: Any = SimpleNamespace(engine=self.engine, folders=FOLDERS)
        plan = await asyncio.to_thread(route_forecast, pack, {"prompt": prompt})
        assert self.replay is not None, "the test set no replay"
        replay, node = self.replay(plan), plan["asked"]["node_id"]
        self.runs.begin(run_id)
        self.runs.describe(run_id, request=plan["request"], plan=plan)
        base = {"prompt_id": run_id}
        await self._send("execution_start", base)
        await self._send("executing", {**base, "node": node, "display_node": node})
        for event in replay.events:
            if event is None:
                await asyncio.to_thread(self.go.wait, 120)
                continue
            await asyncio.sleep(EVENT_SECONDS)
            others = replay.others if event.kind == "progress" else {}
            sequence = self.runs.take(run_id, event, others)
            message = {**event.as_json(), **others, "run_id": run_id, "node_id": node,
                       "sequence": sequence}  # fmt: skip
            await self._send("lowpeak.run", message)
        self.runs.end(run_id, replay.status, report=replay.report, error=replay.error)
        if replay.error is not None:
            detail = {**base, "node_id": node, "node_type": "LowpeakSample", "executed": [],
                      "exception_message": replay.error["message"], "traceback": [],
                      "exception_type": replay.error["error"]}  # fmt: skip
            await self._send("execution_error", detail)
        else:
            await self._send("execution_success", base)
        await self._send("executing", {**base, "node": None})

    async def _send(self, kind: str, data: dict[str, Any]) -> None:
        for socket in list(self._sockets):
            await socket.send_json({"type": kind, "data": data})


def _says(answer: Any) -> Any:
    async def handler(request: web.Request) -> web.Response:
        return web.json_response(answer)

    return handler


async def _stage_script(request: web.Request) -> web.Response:
    """`app` and `api` where the panel imports them from."""
    text = f'export {{ {request.match_info["name"]} }} from "/stage/comfy.js";'
    return web.Response(text=text, content_type="text/javascript")


@functools.cache
def object_info() -> str:
    """Core's nodes as recorded, ours from their tables; JSON."""
    recorded = json.loads((REPOSITORY / "tests/data/core_nodes.json").read_text("utf-8"))
    return json.dumps({**recorded["nodes"], **{table.id: _described(table) for table in ALL}})


def _described(table: NodeTable) -> dict[str, Any]:
    groups: dict[str, dict[str, Any]] = {"required": {}, "optional": {}}
    for item in table.inputs:
        if item.kind != "many":
            groups["optional" if item.optional else "required"][item.id] = _input(item)
    return {
        "input": groups, "input_order": {name: list(group) for name, group in groups.items()},
        "output": [out.kind for out in table.outputs],
        "output_is_list": [False for _ in table.outputs],
        "output_name": [out.id for out in table.outputs],
        "name": table.id, "display_name": table.display_name, "description": table.description,
        "category": "Lowpeak", "output_node": table.is_output,
        "python_module": "custom_nodes.lowpeak",
    }  # fmt: skip


def _input(item: In) -> list[Any]:
    options: dict[str, Any] = {"tooltip": item.tooltip}
    for name, value in (("default", item.default), ("min", item.least), ("max", item.most),
                        ("step", item.step), ("multiline", item.multiline or None),
                        ("advanced", item.advanced or None)):  # fmt: skip
        if value is not None:
            options[name] = value
    if item.kind == "combo":
        named = isinstance(item.choices, str)
        options["options"] = [CHECKPOINT] if named else list(item.choices)
    return [KINDS.get(item.kind, item.kind), options]
