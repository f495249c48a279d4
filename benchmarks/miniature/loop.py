"""What every training stage shares: a time budget, a guarded optimiser, an average, files.

Budgets are seconds, not steps, because the machine is lent: the learning rate follows the clock.
A stage keeps an exponential average of its weights, and that average is what is saved and used.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

if TYPE_CHECKING:
    from .graphs import Gradients

State = dict[str, Tensor]
WARMUP_STEPS = 100
SAVE_EVERY_S = 30.0
LOG_EVERY_S = 5.0
BAD_STEPS = 20
PAUSE = "PAUSE"  # a file in a run's folder: training waits while it is there


@dataclass
class Run:
    """One training run: its folder, device, and what it has done so far.

    scale: divides sizes and batches, for a rehearsal on a small machine.
    name: of the file that keeps progress; a stage that runs beside others has its own.
    """

    folder: Path
    device: torch.device
    scale: int = 1
    seed: int = 0
    name: str = "progress"
    progress: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{self.name}.json"
        if path.is_file():
            self.progress = json.loads(path.read_text())

    @property
    def fast(self) -> torch.dtype:
        """bfloat16 on a card, float32 elsewhere."""
        return torch.bfloat16 if self.device.type == "cuda" else torch.float32

    def batch(self, size: int) -> int:
        """A batch size, smaller in a rehearsal."""
        return max(2, size // self.scale)

    def say(self, text: str) -> None:
        """One line of the log."""
        print(time.strftime("%H:%M:%S ") + text, flush=True)

    def note(self, stage: str, **values: Any) -> None:
        """Keep numbers of a stage in progress.json."""
        self.progress.setdefault(stage, {}).update(values)
        text = json.dumps(self.progress, indent=None, separators=(",", ":"))
        temporary = self.folder / f".{self.name}.part"
        temporary.write_text(text)
        temporary.replace(self.folder / f"{self.name}.json")

    def pause(self) -> float:
        """Seconds waited while the folder held a file PAUSE: others measure on the same card.

        The device is idle meanwhile, and PAUSED.{name} says so. Budgets do not count this time.
        """
        if not (self.folder / PAUSE).exists():
            return 0.0
        began, sign = time.monotonic(), self.folder / f"PAUSED.{self.name}"
        if self.device.type == "cuda":
            torch.cuda.synchronize()
        sign.touch()
        while (self.folder / PAUSE).exists():
            time.sleep(0.2)
        sign.unlink(missing_ok=True)
        return time.monotonic() - began

    def spent(self, stage: str) -> float:
        """Seconds that earlier attempts gave to a stage."""
        return float(self.progress.get(stage, {}).get("seconds", 0.0))

    def save(self, name: str, state: State, dtype: torch.dtype | None = None) -> None:
        """Write `name`.safetensors; tensors of other prefixes in the file stay."""
        path = self.folder / f"{name}.safetensors"
        held = load_file(path) if path.is_file() else {}
        new = {k: v.detach().to("cpu", dtype or v.dtype).contiguous() for k, v in state.items()}
        temporary = self.folder / f".{name}.part"
        save_file(held | new, temporary)
        temporary.replace(path)

    def load(self, name: str, prefix: str) -> State | None:
        """Tensors under `prefix` of `name`.safetensors, without it, float32 on the device."""
        path = self.folder / f"{name}.safetensors"
        if not path.is_file():
            return None
        held = load_file(path)
        found = {k.removeprefix(prefix): v for k, v in held.items() if k.startswith(prefix)}
        return {k: v.float().to(self.device) for k, v in found.items()} or None


@dataclass
class Trainer:
    """AdamW under a clock over a dictionary of float32 weights."""

    run: Run
    stage: str
    weights: State
    budget_s: float
    rate: float
    frozen: Callable[[str], bool] = lambda name: False
    decay: float = 0.01
    average: float = 0.998
    keep: Callable[[State], None] | None = None
    floor: float = 0.03
    warmup: int = WARMUP_STEPS

    def __post_init__(self) -> None:
        for name, value in self.weights.items():
            value.requires_grad_(not self.frozen(name))
        self.names = [n for n, v in self.weights.items() if v.requires_grad]
        self.params = [self.weights[n] for n in self.names]
        groups: list[dict[str, Any]] = [
            {"params": [p for p in self.params if p.ndim > 1], "weight_decay": self.decay},
            {"params": [p for p in self.params if p.ndim <= 1], "weight_decay": 0.0},
        ]
        groups = [g for g in groups if g["params"]]
        self.optimizer = torch.optim.AdamW(groups, lr=self.rate, betas=(0.9, 0.98), fused=True)
        self.mean = [p.detach().clone() for p in self.params]
        self.good = [p.detach().clone() for p in self.params]
        self.gradients: Gradients | None = None
        device = self.params[0].device
        self.bad, self.norm = torch.zeros((), device=device), torch.zeros((), device=device)
        self.steps, self.slower = 0, 1.0
        self.before = self.run.spent(self.stage)
        self.started = self.saved = self.logged = time.monotonic()
        self.names_of_parts: tuple[str, ...] = ()
        self.sums = torch.zeros(0)
        self.count = 0
        self.curve: list[list[float]] = self.run.progress.get(self.stage, {}).get("curve", [])

    @property
    def elapsed(self) -> float:
        """Seconds of this attempt."""
        return time.monotonic() - self.started

    @property
    def done(self) -> float:
        """Share of the stage's whole budget that is spent, 0..1."""
        return min(1.0, (self.before + self.elapsed) / max(1e-6, self.before + self.budget_s))

    def running(self) -> bool:
        """Whether time is left; waits while the run is paused."""
        waited = self.run.pause()
        self.started, self.saved, self.logged = (
            moment + waited for moment in (self.started, self.saved, self.logged)
        )
        return self.elapsed < self.budget_s

    def step(self, losses: dict[str, Tensor]) -> None:
        """One update by the sum of `losses`; a step that is not finite is left out."""
        total = torch.stack([v.float() for v in losses.values()])
        self.optimizer.zero_grad(set_to_none=True)
        total.sum().backward()
        for p in self.params:
            if p.grad is None:
                p.grad = torch.zeros_like(p)
        self.update(tuple(losses), total.detach())

    def step_of(
        self,
        key: Hashable,
        names: tuple[str, ...],
        inputs: Sequence[Tensor],
        loss: Callable[[Sequence[Tensor]], Tensor],
    ) -> None:
        """One update by the sum of `loss(inputs)`, parts `names`; captured (see graphs.py)."""
        if self.gradients is None:
            from .graphs import Gradients

            self.gradients = Gradients(self.run, self.params, len(names))
        self.update(names, self.gradients(key, inputs, loss))

    def update(self, names: tuple[str, ...], parts: Tensor) -> None:
        """One update by the gradients that are there, without waiting for the device.

        A gradient that is not finite changes nothing (`found_inf` of the fused optimiser).
        """
        norm = torch.nn.utils.clip_grad_norm_(self.params, 1.0)
        wrong = (~torch.isfinite(norm)).float()
        self.bad = (self.bad + wrong) * wrong
        self.norm = norm
        left = 0.5 + 0.5 * math.cos(math.pi * self.done)
        warm = min(1.0, (self.steps + 1) / self.warmup)
        rate = self.rate * self.slower * warm * max(self.floor, left)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.found_inf = wrong  # type: ignore[attr-defined]
        self.optimizer.step()
        self.steps += 1
        share = min(self.average, (1 + self.steps) / (10 + self.steps))
        torch._foreach_lerp_(self.mean, [p.detach() for p in self.params], 1 - share)
        if names != self.names_of_parts:
            self.names_of_parts, self.sums, self.count = names, torch.zeros_like(parts), 0
        self.sums += torch.nan_to_num(parts)
        self.count += 1
        if self.steps % 8 == 0:  # stay a few steps ahead of the device, not hundreds
            self._report(rate, float(self.norm))

    def averaged(self) -> State:
        """All weights, trained ones as their average; detached."""
        found = {n: v.detach() for n, v in self.weights.items()}
        return found | dict(zip(self.names, self.mean, strict=True))

    def finish(self, **values: Any) -> State:
        """Save, note, and give the averaged weights."""
        state = self.averaged()
        if self.keep is not None:
            self.keep(state)
        seconds = round(self.before + self.elapsed, 1)
        self.run.note(self.stage, seconds=seconds, curve=self.curve, **values)
        self.run.say(f"{self.stage}: finished, {self.steps} steps, {self.elapsed:.0f} s")
        return {n: v.clone().requires_grad_(False) for n, v in state.items()}

    def _back(self) -> None:
        """To the last good state, and slower."""
        self.run.say(f"{self.stage}: not finite {BAD_STEPS} times; back to the last good state")
        with torch.no_grad():
            torch._foreach_copy_(self.params, self.good)
            torch._foreach_copy_(self.mean, self.good)
        self.optimizer.state.clear()
        self.slower /= 3
        self.bad.zero_()

    def _report(self, rate: float, norm: float) -> None:
        if float(self.bad) >= BAD_STEPS:
            self._back()
        now = time.monotonic()
        if now - self.logged >= LOG_EVERY_S or self.steps == 8:
            sums = (self.sums / self.count).tolist()
            means = dict(zip(self.names_of_parts, sums, strict=True))
            self.curve.append(
                [
                    round(self.before + self.elapsed, 1),
                    self.steps,
                    *(round(v, 5) for v in means.values()),
                ]
            )
            text = " ".join(f"{n} {v:.4f}" for n, v in means.items())
            pace = self.steps / max(1e-6, self.elapsed)
            self.run.say(
                f"{self.stage} {self.elapsed:.0f}/{self.budget_s:.0f} s step {self.steps} "
                f"({pace:.2f}/s) {text} norm {norm:.2f} rate {rate:.1e}"
            )
            self.sums, self.count, self.logged = torch.zeros_like(self.sums), 0, now
        if now - self.saved >= SAVE_EVERY_S:
            self.saved = now
            with torch.no_grad():
                torch._foreach_copy_(self.good, self.mean)
            if self.keep is not None:
                self.keep(self.averaged())
            seconds = round(self.before + self.elapsed, 1)
            self.run.note(self.stage, seconds=seconds, curve=self.curve)


def pick(generator: torch.Generator, weights: Sequence[float]) -> int:
    """An index drawn by weight from a CPU generator."""
    return int(torch.multinomial(torch.tensor(weights), 1, generator=generator))
