"""An engine for node tests: right shapes, right events, no model. Imports the pack by the name it
was loaded under, so that it works inside a real ComfyUI too."""

from __future__ import annotations

import importlib
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

TEXT_WIDTH = 32


class FakeEngine:
    """Follows nodes/engine_seam.py. `step_seconds` slows it; `calls` records what was asked."""

    def __init__(self, package: str = "lowpeak", step_seconds: float = 0.0) -> None:
        self._seam = importlib.import_module(f"{package}.nodes.engine_seam")
        self._events = importlib.import_module(f"{package}.engine.events")
        self._errors = importlib.import_module(f"{package}.engine.errors")
        self.step_seconds = step_seconds
        self.calls: list[tuple[str, Any]] = []
        self.held = (0, 0)
        self.keep_after_run = (0, 0)
        self.released = 0
        self.refusal: Any = None  # raised before anything runs
        self.failure: Any = None  # raised after the first pass

    def describe(self, checkpoint: Path) -> Mapping[str, Any]:
        self.calls.append(("describe", checkpoint))
        return {"blocks": 2, "weight_format": "toy"}

    def bind_lora(self, model: Any, lora: Path, *, allow_partial: bool) -> list[str]:
        self.calls.append(("bind_lora", (lora, allow_partial)))
        return ["4 of 4 tensors bound"]

    def machine(self) -> Mapping[str, Any]:
        return {"system": "linux", "device_name": "none"}

    def forecast(self, request: Any, model: Any, capacities: Mapping[str, Any]) -> dict[str, Any]:
        self.calls.append(("forecast", (request, model, dict(capacities))))
        geometry = request.geometry.as_json()
        phases = [
            {"phase": name, "vram_peak_bytes": 2**30, "ram_peak_bytes": 2**31, "seconds": 2.0,
             "steps": 4, "seconds_per_step": 0.5, "limited_by": "compute", "terms": []}
            for name in ("encode", "sample_high", "decode")
        ]  # fmt: skip
        return {"fits": True, "geometry": geometry, "request": request.as_json(), "reasons": [],
                "phases": phases, "total_seconds": 6.0}  # fmt: skip

    def encode(self, model: Any, request: Any, pictures: Any, host: Any) -> Any:
        self.calls.append(("encode", (request, pictures)))
        self._steps(host, "encode", 2)
        rows = max(1, len(request.prompt.split()))
        g = request.geometry
        keyframes = [
            {"frame": frame, "latent": torch.zeros(1, 24, 1, g.latent_height, g.latent_width)}
            for frame, picture in ((0, pictures.first_frame), (g.frames - 1, pictures.last_frame))
            if picture is not None
        ]
        references = [{"kind": "image", "latent": torch.zeros(1, 24, 1, 8, 8), "latent_h": 8,
                       "latent_w": 8} for _ in pictures.images]  # fmt: skip
        return self._seam.Conditions(
            torch.zeros(rows, TEXT_WIDTH), torch.ones(rows, dtype=torch.long),
            tuple(keyframes), tuple(references),
        )  # fmt: skip

    def sample(self, model: Any, request: Any, conditions: Any, host: Any, keep_first: Any) -> Any:
        self.calls.append(("sample", (request, conditions)))
        if self.refusal is not None:
            raise self.refusal
        host.describe(request.as_json(), self.forecast(request, model, {}))
        first = None if request.two_pass is False else self._latents(request)
        if first is not None:
            self._steps(host, "sample_low", 2)
            keep_first(first)
        if self.failure is not None:
            raise self.failure
        self._steps(host, "sample_high", 8)
        report = {"latents_sha256": "0" * 64}
        return self._seam.Sampled(self._latents(request), first, report)

    def refine(self, model: Any, request: Any, conditions: Any, first: Any, host: Any) -> Any:
        self.calls.append(("refine", (request, first)))
        self._steps(host, "sample_high", 3)
        return self._seam.Sampled(self._latents(request))

    def decode(self, model: Any, latents: Any, out: Path, host: Any, *, with_sound: bool) -> Any:
        import av

        self.calls.append(("decode", (out, with_sound)))
        frames = (latents.video.shape[2] - 2) // 5 * 17 + 5
        with av.open(str(out), "w") as container:
            stream = container.add_stream("libx264", rate=24)
            stream.width, stream.height, stream.pix_fmt = 64, 64, "yuv420p"
            for number in range(frames):
                picture = torch.full((64, 64, 3), number * 5 % 256, dtype=torch.uint8).numpy()
                container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
            container.mux(stream.encode())
        self._steps(host, "decode", 2)
        sound = torch.zeros(2, frames * 32000 // 24) if with_sound else None
        return self._seam.Decoded(out, sound, 32000, {"files": {"video": str(out)}})

    def release(self) -> int:
        given, self.held = self.held[0], (0, 0)
        self.released += 1
        return given

    def held_bytes(self) -> tuple[int, int]:
        return self.held

    def _latents(self, request: Any) -> Any:
        g = request.geometry
        return self._seam.Latents(
            torch.full((1, 24, g.latent_frames, g.latent_height, g.latent_width), 0.5),
            torch.full((1, 32, 2, g.audio_latents), 0.25),
        )

    def _steps(self, host: Any, phase: str, steps: int) -> None:
        event = self._events.Event
        host.emit(event("forecast", phase, seconds=1.0, vram_peak_bytes=2**30))
        for step in range(1, steps + 1):
            if host.is_cancelled():
                raise self._errors.Cancelled(phase)
            time.sleep(self.step_seconds)
            host.emit(event("progress", phase, step=step, steps=steps, vram_bytes=2**29))
        host.emit(event("measured", phase, seconds=1.1, vram_peak_bytes=2**29))
        self.held = self.keep_after_run
