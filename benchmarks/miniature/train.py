"""Trains the miniature, alone and against the clock:

    python -m lowpeak.benchmarks.miniature.train --stage all --budget-seconds 1000 --out DIR

Stages: video, audio (beside it, in a process of its own), model (it and the upscaler share a pool
of encoded clips), upscaler, night, outline. State is five small files in DIR, written every half
minute; the same command goes on from them. A stage that fails is reported and the next one starts.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from .loop import Run, State

STAGES = ("video", "audio", "model", "upscaler", "night", "outline")
SHARES = {
    "video": 0.08, "audio": 0.10, "pool": 0.04, "model": 0.75, "upscaler": 0.05, "night": 0.03,
    "outline": 0.03,
}  # fmt: skip

PATIENCE_S = 1800.0  # for a stage beside: it may be paused


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stage", default="all", help="all, or names with commas")
    parser.add_argument("--budget-seconds", type=float, default=1000.0)
    parser.add_argument("--shares", default="", help="stage=share,... of the budget")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--scale", type=int, default=1, help="rehearsal: divide all sizes")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--progress", default="progress", help="name of the progress file")
    parser.add_argument("--resume", action="store_true", help="the default; kept for scripts")
    options = parser.parse_args()
    stages = STAGES if options.stage == "all" else tuple(options.stage.split(","))
    torch.set_float32_matmul_precision("high")
    torch.set_num_threads(min(4, torch.get_num_threads()))
    torch.backends.cuda.enable_cudnn_sdp(False)  # it plans anew for every new length
    run = Run(
        options.out, torch.device(options.device), options.scale, options.seed, options.progress
    )
    shares = SHARES | {
        name: float(value) for name, value in (p.split("=") for p in options.shares.split(",") if p)
    }
    began = time.monotonic()
    failed = Story(run, options.budget_seconds, shares, stages).play()
    run.say(f"all: {time.monotonic() - began:.0f} s; failed: {', '.join(failed) or 'nothing'}")
    if run.device.type == "cuda":
        run.say(f"peak {torch.cuda.max_memory_allocated() / 2**30:.1f} GiB")
    sys.exit(1 if failed else 0)


class Story:
    """The stages in order, each with its share of the budget."""

    def __init__(
        self, run: Run, budget_s: float, shares: dict[str, float], stages: tuple[str, ...]
    ) -> None:
        self.run, self.budget_s, self.shares, self.stages = run, budget_s, shares, stages
        self.pool: dict[Any, Any] = {}
        self.styles: dict[str, list[Any]] = {}
        self.failed: list[str] = []

    def play(self) -> list[str]:
        """Run them; gives the names of those that failed."""
        from . import train_dit, train_extras, train_vae

        run, beside = self.run, None
        if "audio" in self.stages and "video" in self.stages and self.shares["audio"] > 0:
            beside = self._beside("audio")
        self._stage("video", lambda s: train_vae.train_video(run, s))
        if beside is not None:
            self._join(beside, "audio")
        else:
            self._stage("audio", lambda s: train_vae.train_audio(run, s))

        self._stage("model", lambda s: train_dit.train_model(
            run, s, self._load("video"), self._load("audio"), self._pool()))  # fmt: skip
        self._stage("upscaler", lambda s: train_extras.train_upscaler(run, s, self._pool()))
        self.pool = {}
        for style in train_extras.STYLES:
            self._stage(
                style,
                lambda s, style=style: train_extras.train_style(  # type: ignore[misc]
                    run, style, s, self._load("model"), self._style(style)
                ),
            )
        return self.failed

    def _stage(self, name: str, work: Callable[[float], object]) -> None:
        seconds = self.shares.get(name, 0.0) * self.budget_s
        if name not in self.stages or seconds <= 0:
            return
        self.run.say(f"{name}: {seconds:.0f} s")
        try:
            work(seconds)
        except Exception:
            self.failed.append(name)
            self.run.note(name, failed=traceback.format_exc()[-1500:])
            traceback.print_exc()
        if self.run.device.type == "cuda":
            torch.cuda.empty_cache()

    def _load(self, name: str) -> State:
        state = self.run.load(name, "")
        if state is None:
            raise FileNotFoundError(f"{name}.safetensors is not there: run its stage first")
        return state

    def _pool(self) -> dict[Any, Any]:
        """Clips of all sizes, made when first asked for."""
        if not self.pool:
            from .train_dit import make_pool

            limit_s = self.shares["pool"] * self.budget_s
            self.pool = make_pool(self.run, self._load("video"), self._load("audio"), limit_s)
        return self.pool

    def _style(self, style: str) -> list[Any]:
        """Clips of a style, made when first asked for."""
        if style not in self.styles:
            from .train_extras import style_buckets

            limit_s = 0.15 * self.shares["pool"] * self.budget_s
            self.styles[style] = style_buckets(
                self.run, style, self._load("video"), self._load("audio"), limit_s
            )
        return self.styles[style]

    def _beside(self, name: str) -> subprocess.Popen[bytes]:
        run = self.run
        return subprocess.Popen(
            [sys.executable, "-m", "lowpeak.benchmarks.miniature.train", "--stage", name,
             "--budget-seconds", str(self.budget_s), "--shares", f"{name}={self.shares[name]}",
             "--out", str(run.folder), "--device", run.device.type, "--scale", str(run.scale),
             "--seed", str(run.seed), "--progress", name]
        )  # fmt: skip

    def _join(self, process: subprocess.Popen[bytes], name: str) -> None:
        """Wait for a stage beside, and take its progress over."""
        try:
            if process.wait(timeout=self.budget_s + PATIENCE_S):
                self.failed.append(name)
        except subprocess.TimeoutExpired:
            process.kill()
            self.failed.append(name)
        path = self.run.folder / f"{name}.json"
        if path.is_file():
            self.run.note(name, **json.loads(path.read_text()).get(name, {}))
            path.unlink()


if __name__ == "__main__":
    main()
