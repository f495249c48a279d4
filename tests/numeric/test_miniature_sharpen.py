"""Going on with the miniature on a CPU: late times, a short warm-up, the mean of several runs."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from lowpeak.benchmarks.miniature import linear, loop, pool, sharpen, train_dit
from lowpeak.benchmarks.miniature.models import audio_state, model_state

CPU = torch.device("cpu")


def test_most_times_are_those_of_late_steps() -> None:
    generator = torch.Generator().manual_seed(1)
    raw = sharpen.draw_late(4000, generator, refine=False, late=True)
    held = sharpen.late_times()
    assert float(train_dit.bend(held, 12.0).max()) < sharpen.LATE_SIGMA
    assert len(held) > 20 and float(raw.min()) > 0 and float(raw.max()) <= 1
    late = torch.isin(raw, held).float().mean()
    assert 0.75 <= float(late) < 0.95  # the rest as in training, some of it late too
    assert float((train_dit.bend(raw, 12.0) > 0.97).float().mean()) > 0.05


def test_a_short_warm_up_reaches_its_rate(tmp_path: Path) -> None:
    rates = []
    for warmup in (2, 100):
        run = loop.Run(tmp_path / str(warmup), CPU)
        trainer = loop.Trainer(run, "t", {"w": torch.ones(2, 2)}, 600.0, rate=1e-2, warmup=warmup)
        for _ in range(2):
            trainer.step({"l": trainer.weights["w"].square().sum()})
        rates.append(trainer.optimizer.param_groups[0]["lr"])
    assert rates[0] == pytest.approx(1e-2, rel=1e-3)
    assert rates[1] == pytest.approx(2e-4, rel=1e-3)


def test_runs_of_two_seeds_are_averaged(tmp_path: Path) -> None:
    for name, value in (("a", 1.0), ("b", 3.0)):
        loop.Run(tmp_path / name, CPU).save("model", {"w": torch.full((2, 2), value)})
    out = loop.Run(tmp_path / "out", CPU)
    sharpen.average([tmp_path / "a", tmp_path / "b"], out)
    found = out.load("model", "")
    assert found is not None and torch.equal(found["w"], torch.full((2, 2), 2.0))
    with pytest.raises(FileNotFoundError, match="nowhere"):
        sharpen.average([tmp_path / "a", tmp_path / "nowhere"], out)


def test_a_rehearsal_moves_the_transformer_and_makes_an_adapter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "PLACES", 2)
    monkeypatch.setattr(sharpen, "POOL_S", 0.1)
    run = loop.Run(tmp_path, CPU, scale=8)
    video = linear.video_start(clips=16) | {
        "latents_mean": torch.zeros(24), "latents_std": torch.ones(24)
    }  # fmt: skip
    audio = audio_state(1) | {"latents_mean": torch.zeros(32), "latents_std": torch.ones(32)}
    start = model_state(0)
    made = sharpen.sharpen(run, 4.0, video, audio, {k: v.clone() for k, v in start.items()})
    name = "transformer_blocks.0.ff.net.2.weight"
    assert not torch.equal(made[name], start[name]) and bool(torch.isfinite(made[name]).all())
    kept = run.load("model", "")
    assert kept is not None and kept.keys() == start.keys()
    adapter = sharpen.adapt(run, "outline", 4.0, video, audio, made)
    assert all(".ff." in name for name in adapter)
    assert any(bool(v.any()) for n, v in adapter.items() if n.endswith("lora_B.weight"))
    assert run.load("extras", "outline.") is not None
