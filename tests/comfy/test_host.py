"""ComfyUI as the engine's host, against stand-ins of the modules it asks."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch

from lowpeak.engine.errors import Cancelled, RequestError
from lowpeak.engine.events import Event, Host
from lowpeak.nodes import host as host_module
from lowpeak.nodes.host import ComfyHost
from lowpeak.nodes.privacy import without_paths


class Interrupt(BaseException):
    """Stands for InterruptProcessingException, which is no Exception."""


class Comfy:
    """What ComfyUI's modules know and were told."""

    def __init__(self) -> None:
        self.stop = False
        self.method = "auto"
        self.bar: list[Any] = []
        self.sent: list[Any] = []
        self.freed: list[Any] = []

    def throw(self) -> None:
        if self.stop:
            self.stop = False
            raise Interrupt


@pytest.fixture
def comfy(monkeypatch: pytest.MonkeyPatch) -> Comfy:
    known = Comfy()
    manager = SimpleNamespace(
        InterruptProcessingException=Interrupt,
        processing_interrupted=lambda: known.stop,
        throw_exception_if_processing_interrupted=known.throw,
        current_loaded_models=[],
        get_torch_device=lambda: torch.device("cpu"),
        free_memory=lambda *a, **k: known.freed.append((a, k)),
        soft_empty_cache=lambda: None,
    )
    bar = SimpleNamespace(update_absolute=lambda *a: known.bar.append(a))
    factors = [[0.02, 0.0, 0.0]] * 24
    modules = {
        "comfy": {"model_management": manager,
                  "latent_formats": SimpleNamespace(MiniMaxH3Video=SimpleNamespace(
                      latent_rgb_factors=factors, latent_rgb_factors_bias=[0.0, -1.0, 1.0]))},
        "comfy.model_management": vars(manager),
        "comfy.utils": {"ProgressBar": lambda total, node_id: bar},
        "comfy.cli_args": {"args": SimpleNamespace(
            preview_method=SimpleNamespace(value=known.method), preview_size=64)},
        "comfy_execution": {},
        "comfy_execution.utils": {
            "get_executing_context": lambda: SimpleNamespace(prompt_id="p-1")},
        "server": {"PromptServer": SimpleNamespace(instance=SimpleNamespace(
            send_sync=lambda name, data: known.sent.append((name, data))))},
    }  # fmt: skip
    for name, content in modules.items():
        module = ModuleType(name)
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(host_module, "previews_wanted", lambda: known.method != "none")
    return known


def test_a_run_is_the_prompt_and_its_events_carry_names(comfy: Comfy, pack: Any) -> None:
    with ComfyHost(pack, "12") as host:
        assert isinstance(host, Host)
        host.emit(Event("progress", "decode", step=1, steps=4))
        host.keep({"latents_sha256": "x", "files": {"video": "/home/me/secret/a.mp4"}})
    name, message = comfy.sent[0]
    assert name == "lowpeak.run"
    assert (message["run_id"], message["node_id"], message["sequence"]) == ("p-1", "12", 1)
    assert comfy.bar == [(250, 1000, None)]
    run = pack.runs.get("p-1")
    assert run["status"] == "done" and run["report"]["files"] == {"video": "a.mp4"}


def test_cancelled_becomes_comfyuis_own_interrupt_and_clears_its_flag(
    comfy: Comfy, pack: Any
) -> None:
    for flagged in (True, False):
        with pytest.raises(Interrupt), ComfyHost(pack, "1") as host:
            comfy.stop = flagged
            assert host.is_cancelled() is flagged
            host.emit(Event("progress", "decode", step=2, steps=4))
            raise Cancelled("decode")
        assert not comfy.stop and pack.runs.get("p-1")["status"] == "cancelled"
    assert len(comfy.bar) == 1, "the bar is not moved once stop was pressed: it would raise"


def test_an_interrupt_raised_elsewhere_is_a_cancelled_run(comfy: Comfy, pack: Any) -> None:
    with pytest.raises(Interrupt), ComfyHost(pack, "1"):
        raise Interrupt
    assert pack.runs.get("p-1")["status"] == "cancelled"


def test_other_errors_pass_unchanged_and_are_kept_without_paths(comfy: Comfy, pack: Any) -> None:
    with pytest.raises(RequestError, match="no good"), ComfyHost(pack, "1"):
        raise RequestError("no good", field="/etc/x")
    run = pack.runs.get("p-1")
    assert run["status"] == "failed" and run["error"]["field"] == "x"
    with pytest.raises(torch.OutOfMemoryError), ComfyHost(pack, "1"):
        raise torch.OutOfMemoryError("short")
    assert pack.runs.get("p-1")["error"] == {"error": "OutOfMemoryError"}


def test_previews_are_paced_and_use_cores_factors(comfy: Comfy, pack: Any) -> None:
    made: list[int] = []

    def latents() -> torch.Tensor:
        made.append(1)
        return torch.ones(24, 7, 4, 6)

    with ComfyHost(pack, "1") as host:
        host.emit(Event("progress", "decode", step=1, steps=2))
        for _ in range(50):
            host.preview(latents)
    assert len(made) == 1, "not even computed when it is too soon"
    position, _, (form, picture, largest) = comfy.bar[-1]
    assert (position, form, largest, picture.size) == (500, "JPEG", 64, (6, 4))
    assert picture.getpixel((0, 0)) == (189, 0, 255)
    comfy.method = "none"
    with ComfyHost(pack, "1") as host:
        host.preview(latents)
    assert len(made) == 1


def test_a_core_without_factors_shows_no_preview_and_goes_on(
    comfy: Comfy, pack: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules["comfy"], "latent_formats", SimpleNamespace())
    with ComfyHost(pack, "1") as host:
        host.preview(lambda: torch.ones(24, 7, 4, 6))
    assert pack.runs.get("p-1")["status"] == "done"


def test_other_models_are_asked_to_leave_and_ours_may_stay(comfy: Comfy, pack: Any) -> None:
    ours, theirs = SimpleNamespace(model="our patcher"), SimpleNamespace(model="x")
    sys.modules["comfy"].model_management.current_loaded_models = [theirs, ours]
    pack.memory = SimpleNamespace(patcher="our patcher", track=lambda: None)
    with ComfyHost(pack, "1") as host:
        host.release_memory(123)
    [((need, _), options)] = comfy.freed
    assert need == 123 and options["keep_loaded"] == [ours]


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (
            "wrong; file /home/me/models/a.safetensors; tensor x",
            "wrong; file a.safetensors; tensor x",
        ),
        ("file C:\\Users\\me\\a.bin, expected 3", "file a.bin, expected 3"),
        ("'/srv/my-models/toy'", "'toy'"),
        ("0.84 s/step, 3/4 and/or x", "0.84 s/step, 3/4 and/or x"),
        ("models/lowpeak stays", "models/lowpeak stays"),
        ("/home/my files/a b.mp4", "a b.mp4"),
        (Path("/q/r"), "r"),
        (3, 3),
    ],
)
def test_paths_are_cut_wherever_they_stand(given: Any, kept: Any) -> None:
    assert without_paths(given) == kept
    assert without_paths({"a": [given, (given,)]}) == {"a": [kept, [kept]]}


def test_idle_gpus_are_said() -> None:
    assert host_module.spare_gpu_notice(0) is None is host_module.spare_gpu_notice(1)
    assert "3 GPUs" in str(host_module.spare_gpu_notice(3))
