"""The panel's routes: read-only, bounded, and deaf to names that could be paths."""

from __future__ import annotations

import asyncio
import builtins
import contextlib
import io as streams
import json
import os
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lowpeak.engine.errors import CheckpointError, RequestError
from lowpeak.nodes import asked_forecast, routes
from lowpeak.nodes.asked_forecast import read_body

GRAPH = {
    "1": {"class_type": "LowpeakLoadModel", "inputs": {"checkpoint": "toy", "vram_gib": 4.0}},
    "2": {"class_type": "LowpeakLoadLora", "inputs": {"model": ["1", 0], "lora": "x"}},
    "3": {"class_type": "LowpeakKeyframes",
          "inputs": {"model": ["2", 0], "prompt": "secret words", "first_frame": ["9", 0]}},
    "4": {"class_type": "LowpeakSample",
          "inputs": {"model": ["2", 0], "conditioning": ["3", 0], "width": ["8", 0],
                     "height": 320, "seconds": 1.0, "quality": "high", "seed": 1}},
    "8": {"class_type": "PrimitiveInt", "inputs": {"value": 256}},
    "9": {"class_type": "LoadImage", "inputs": {"image": "a.png"}},
}  # fmt: skip


def client_for(pack: Any) -> TestClient:
    table = web.RouteTableDef()
    routes.add_routes(table, pack)
    app = web.Application()
    app.add_routes(table)
    return TestClient(TestServer(app))


def ask(pack: Any, method: str, path: str, **more: Any) -> tuple[int, Any]:
    async def go() -> tuple[int, Any]:
        async with client_for(pack) as client:
            answer = await client.request(method, path, **more)
            return answer.status, json.loads(await answer.text() or "null")

    return asyncio.run(go())


def test_state_is_enough_for_a_reloaded_panel(pack: Any) -> None:
    pack.notices.append("listens")
    pack.runs.end(pack.runs.begin("one"), "done")
    pack.runs.begin("two")
    status, state = ask(pack, "GET", "/lowpeak/state")
    assert status == 200 and state["active"]["run_id"] == "two"
    assert state["last"]["run_id"] == "one" and state["notices"] == ["listens"]
    assert state["machine"]["system"] == "linux" and state["version"] == routes.VERSION


def test_a_graph_is_followed_to_its_constants(pack: Any) -> None:
    status, plan = ask(pack, "POST", "/lowpeak/forecast", json={"prompt": GRAPH, "ram_gib": 16})
    assert status == 200 and plan["fits"], plan
    _, (request, model, capacities) = pack.engine.calls[-1]
    assert (request.geometry.width_px, request.geometry.height_px) == (256, 320)
    assert (request.quality, request.keyframes, len(request.loras)) == ("high", 1, 1)
    assert model.checkpoint.name == "toy"
    assert capacities == {"vram_limit_bytes": 4 << 30, "ram_bytes": 16 << 30}
    assert plan["asked"]["unknown"] == [] and plan["asked"]["node_id"] == "4"
    assert "secret" not in json.dumps(plan)


def lora_graph(**inputs: Any) -> dict[str, Any]:
    lora = {"class_type": "LowpeakLoadLora",
            "inputs": {"model": ["1", 0], "lora": "grain.safetensors", **inputs}}  # fmt: skip
    return {**GRAPH, "2": lora}


def test_loras_on_the_canvas_are_looked_up_and_counted(pack: Any) -> None:
    inputs = {"model": ["2", 0], "lora": "grain.safetensors", "strength": 0.0}
    second = {"class_type": "LowpeakLoadLora", "inputs": inputs}
    sampler = {**GRAPH["4"], "inputs": {**GRAPH["4"]["inputs"], "model": ["5", 0]}}  # type: ignore[dict-item]
    graph = {**lora_graph(strength=["8", 0], allow_partial=True), "5": second, "4": sampler,
             "8": {"class_type": "PrimitiveFloat", "inputs": {"value": 1.5}}}  # fmt: skip
    graph["4"]["inputs"]["width"] = 256
    _, plan = ask(pack, "POST", "/lowpeak/forecast", json={"prompt": graph})
    _, (request, model, _) = pack.engine.calls[-1]
    assert [item.strength for item in model.loras] == [1.5, 0.0]
    assert model.loras[0].file.name == "grain.safetensors" and model.loras[0].allow_partial
    assert request.loras == model.lora_choices and request.loras[0].rank is None
    assert plan["asked"]["loras"] == 1 and plan["asked"]["notices"] == []


def test_a_lora_that_is_not_here_counts_by_a_usual_rank(pack: Any) -> None:
    for name in ("../secret", "x", ["77", 0]):
        _, plan = ask(pack, "POST", "/lowpeak/forecast", json={"prompt": lora_graph(lora=name)})
        _, (request, model, _) = pack.engine.calls[-1]
        assert model.loras == () and [item.rank for item in request.loras] == [32]
        assert "1 of 1 LoRAs are not known here" in plan["asked"]["notices"][0]
        assert "secret" not in json.dumps(plan)
    body = {"request": {"width": 512, "height": 288, "frames": 39, "loras": 2, "lora_rank": 16}}
    ask(pack, "POST", "/lowpeak/forecast", json=body)
    assert [item.rank for item in pack.engine.calls[-1][1][0].loras] == [16, 16]


def test_a_lora_that_cannot_be_read_is_said_and_counted_by_rank(pack: Any) -> None:
    usual = pack.engine.forecast

    def damaged(request: Any, model: Any, capacities: Any) -> Any:
        if model.loras:
            raise CheckpointError("/home/me/loras/grain.safetensors: the header is cut off")
        return usual(request, model, capacities)

    pack.engine.forecast = damaged
    status, plan = ask(pack, "POST", "/lowpeak/forecast", json={"prompt": lora_graph()})
    assert status == 200 and plan["fits"]
    (notice,) = plan["asked"]["notices"]
    assert "grain.safetensors: the header is cut off" in notice and "/home" not in notice
    assert [item.rank for item in pack.engine.calls[-1][1][0].loras] == [32]


def test_what_only_a_run_can_know_is_named(pack: Any) -> None:
    graph = {**GRAPH, "8": {"class_type": "SomeMath", "inputs": {"a": ["9", 0]}}}
    _, plan = ask(pack, "POST", "/lowpeak/forecast", json={"prompt": graph})
    assert plan["asked"]["unknown"] == ["width"]


def test_a_loop_of_links_ends(pack: Any) -> None:
    graph = {**GRAPH, "8": {"class_type": "PrimitiveInt", "inputs": {"value": ["8", 0]}},
             "2": {"class_type": "LowpeakLoadLora", "inputs": {"model": ["2", 0]}}}  # fmt: skip
    status, plan = ask(pack, "POST", "/lowpeak/forecast", json={"prompt": graph})
    assert status == 200 and plan["asked"]["unknown"] == ["width"]


def test_core_latents_and_plans_give_the_size(pack: Any) -> None:
    empty = {"class_type": "EmptyMiniMaxH3LatentAV",
             "inputs": {"width": 512, "height": 288, "length": 39}}  # fmt: skip
    inputs = {**GRAPH["4"]["inputs"], "size_from": ["5", 0]}  # type: ignore[index]
    sampler = {"class_type": "LowpeakSample", "inputs": inputs}
    asked = read_body({"prompt": {**GRAPH, "5": empty, "4": sampler}})
    assert (asked.request.geometry.width_px, asked.request.geometry.frames) == (512, 39)
    plan = {"class_type": "LowpeakPlan",
            "inputs": {"model": ["1", 0], "width": 640, "height": 384, "seconds": 3.0,
                       "quality": "max"}}  # fmt: skip
    sampler = {**sampler, "inputs": {**inputs, "plan": ["6", 0]}}
    asked = read_body({"prompt": {**GRAPH, "5": empty, "6": plan, "4": sampler}})
    assert (asked.request.geometry.width_px, asked.request.quality) == (640, "max")
    assert asked.request.loras == ()


def test_a_request_for_another_machine(pack: Any) -> None:
    body = {"request": {"width": 512, "height": 288, "frames": 39, "loras": 2}, "vram_gib": 8,
            "ram_gib": 8.5, "card": "rtx-4060", "system": "windows"}  # fmt: skip
    status, plan = ask(pack, "POST", "/lowpeak/forecast", json=body)
    assert status == 200 and plan["asked"]["capacities"]["card"] == "rtx-4060"
    assert pack.engine.calls[-1][1][2]["ram_bytes"] == int(8.5 * 2**30)


def test_a_line_of_the_capacity_map(pack: Any) -> None:
    body = {"prompt": GRAPH, "ram_gib": 16, "each_vram_gib": [6, 8.5]}
    status, answer = ask(pack, "POST", "/lowpeak/forecast", json=body)
    assert status == 200 and set(answer) == {"cells", "asked"}
    cell = {"fits": True, "total_seconds": 6.0, "limited_by": "compute", "short": []}
    assert answer["cells"] == [{**cell, "vram_bytes": int(g * 2**30)} for g in (6, 8.5)]
    asked = [capacities for kind, (_, _, capacities) in
             [call for call in pack.engine.calls if call[0] == "forecast"]]  # fmt: skip
    assert [(item["vram_bytes"], item["ram_bytes"], item["brief"]) for item in asked] == [
        (6 << 30, 16 << 30, True), (int(8.5 * 2**30), 16 << 30, True),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "body",
    [None, [], {}, {"request": {}, "prompt": {}}, {"prompt": {}}, {"prompt": {"1": 5}},
     {"request": {"width": "512"}}, {"request": {"width": True}}, {"request": {"width": 1e300}},
     {"request": {"width": 100}}, {"request": {"passes": ["two"]}}, {"request": {"quality": 7}},
     {"request": {}, "vram_gib": -1}, {"request": {}, "vram_gib": 1e9},
     {"request": {}, "card": "x" * 65}, {"request": {"frames": 10**400}},
     {"request": {}, "each_vram_gib": []}, {"request": {}, "each_vram_gib": [8, "16"]},
     {"request": {}, "each_vram_gib": [8] * (asked_forecast.MAX_CELLS + 1)},
     {"prompt": {str(n): {} for n in range(asked_forecast.MAX_NODES + 1)}}],
    ids=lambda body: str(body)[:40],
)  # fmt: skip
def test_bad_bodies_are_refused_in_words(pack: Any, body: Any) -> None:
    status, answer = ask(pack, "POST", "/lowpeak/forecast", json=body)
    assert status == 400 and answer["error"] == "RequestError" and answer["message"]


def test_a_damaged_checkpoint_is_said_without_its_path(pack: Any) -> None:
    def damaged(folder: Path) -> Any:
        raise CheckpointError("header is damaged", file=folder / "root.safetensors")

    pack.engine.describe = damaged
    status, answer = ask(pack, "POST", "/lowpeak/forecast", json={"prompt": GRAPH})
    assert status == 409 and answer["error"] == "CheckpointError"
    assert "root.safetensors" in answer["message"]
    assert str(pack.folders.root) not in json.dumps(answer)


def test_bodies_are_bounded(pack: Any) -> None:
    big = streams.BytesIO(b" " * (routes.MAX_BODY_BYTES + 1))
    assert ask(pack, "POST", "/lowpeak/forecast", data=big)[0] == 413

    async def drip() -> Any:
        for _ in range(20):
            yield b"[" * (routes.MAX_BODY_BYTES // 10)

    assert ask(pack, "POST", "/lowpeak/forecast", data=drip())[0] == 413
    for text in (b"{", b"\xff\xfe", b"[" * 50_000, b'{"request": {"width": NaN}}', b""):
        assert ask(pack, "POST", "/lowpeak/forecast", data=text)[0] == 400, text[:20]


def test_routes_are_read_only(pack: Any) -> None:
    for method in ("PUT", "DELETE", "PATCH"):
        for path in ("/lowpeak/state", "/lowpeak/runs", "/lowpeak/runs/a", "/lowpeak/forecast"):
            assert ask_status(pack, method, path) == 405
    assert ask_status(pack, "POST", "/lowpeak/runs") == 405
    assert ask_status(pack, "GET", "/lowpeak/runs/..%2f..%2fetc%2fpasswd") == 404


def ask_status(pack: Any, method: str, path: str) -> int:
    async def go() -> int:
        async with client_for(pack) as client:
            return (await client.request(method, path)).status

    return asyncio.run(go())


def test_runs_are_listed_newest_first_and_fetched(pack: Any) -> None:
    for name in ("one", "two"):
        pack.runs.end(pack.runs.begin(name), "done")
    _, rows = ask(pack, "GET", "/lowpeak/runs")
    assert [row["run_id"] for row in rows["runs"]] == ["two", "one"]
    assert ask(pack, "GET", "/lowpeak/runs/one")[1]["status"] == "done"
    assert ask(pack, "GET", "/lowpeak/runs/three")[0] == 404


NASTY = st.sampled_from(["../../etc/passwd", "/etc/passwd", "toy", "two", "..", "a\0b"])
SCALARS = NASTY | st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
JSON = st.recursive(
    SCALARS,
    lambda x: st.lists(x, max_size=3) | st.dictionaries(st.text(max_size=9), x, max_size=3),
    max_leaves=6,
)
KINDS = st.sampled_from(["LowpeakSample", "LowpeakPlan", "LowpeakLoadModel", "LowpeakLoadLora",
                         "LowpeakRefine", "LowpeakKeyframes", "X",
                         "EmptyMiniMaxH3LatentAV"])  # fmt: skip
IDS = st.sampled_from(["1", "2", "3", "4"])
NAMES = st.sampled_from([*asked_forecast.FIELDS, "model", "conditioning", "plan", "size_from",
                         "checkpoint", "vram_gib", "value", "length", "first_frame"])  # fmt: skip
LINKS = st.tuples(IDS, st.integers(0, 3)).map(list)
NODES = st.fixed_dictionaries(
    {"class_type": KINDS | JSON, "inputs": st.dictionaries(NAMES, LINKS | JSON, max_size=8) | JSON}
)
BODIES = JSON | st.fixed_dictionaries(
    {}, optional={"prompt": st.dictionaries(IDS, NODES | JSON, max_size=4),
                  "request": st.dictionaries(NAMES | st.just("loras"), JSON, max_size=6),
                  "vram_gib": JSON, "ram_gib": JSON, "card": JSON, "system": JSON,
                  "each_vram_gib": JSON | st.lists(st.floats(0.1, 64), max_size=20)}
)  # fmt: skip
FUZZ = settings(
    max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@FUZZ
@given(body=BODIES)
def test_any_body_is_a_request_or_a_request_error(body: Any) -> None:
    try:
        asked = read_body(body)
    except RequestError:
        return
    assert asked.request.geometry.video_tokens > 0


@FUZZ
@given(body=BODIES)
def test_no_value_of_a_body_reaches_the_file_system(pack: Any, body: Any) -> None:
    """Every path that is opened, listed or asked about was known before the request came."""
    touched: list[str] = []

    def spy(function: Any) -> Any:
        def watched(path: Any, *rest: Any, **more: Any) -> Any:
            touched.append(os.fsdecode(path) if not isinstance(path, int) else "")
            return function(path, *rest, **more)

        return watched

    with pytest.MonkeyPatch.context() as patch:
        for owner, name in ((builtins, "open"), (os, "listdir"), (os, "stat"), (os, "scandir")):
            patch.setattr(owner, name, spy(getattr(owner, name)))
        with contextlib.suppress(RequestError):
            routes.forecast(pack, body)
    root = str(pack.folders.root)
    allowed = {root + "/models", root + "/models/toy", root + "/models/toy/root.safetensors"}
    assert set(touched) <= allowed


@FUZZ
@given(name=st.text(max_size=80))
def test_any_run_id_is_found_or_not_and_nothing_is_opened(pack: Any, name: str) -> None:
    pack.runs.end(pack.runs.begin("known"), "done")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(builtins, "open", lambda *a, **k: pytest.fail("opened"))
        patch.setattr(Path, "read_text", lambda *a, **k: pytest.fail("read"))
        assert (pack.runs.get(name) is not None) == (name == "known")


@pytest.mark.parametrize(
    ("listen", "warns"),
    [("127.0.0.1", False), ("localhost", False), ("::1", False), ("", False),
     ("0.0.0.0", True), ("0.0.0.0,::", True), ("192.168.1.5", True), ("127.0.0.1,10.0.0.1", True)],
)  # fmt: skip
def test_a_server_open_to_others_is_said(listen: str, warns: bool) -> None:
    assert (routes.listen_notice(listen) is not None) == warns


def test_what_a_forecast_has_to_say_is_among_its_notices(
    pack: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = pack.engine.forecast

    def forecast(*given: Any) -> dict[str, Any]:
        return {**plain(*given), "notices": ["history was damaged"]}

    monkeypatch.setattr(pack.engine, "forecast", forecast)
    body = {"request": {"width": 256, "height": 256, "seconds": 1.0}}
    status, plan = ask(pack, "POST", "/lowpeak/forecast", json=body)
    assert status == 200 and plan["asked"]["notices"] == ["history was damaged"]
