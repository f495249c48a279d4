"""What is left when a video cannot be written, and what is said then."""

from __future__ import annotations

import errno
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
import torch
from media_parts import HEIGHT, WIDTH, FakeGeometry, clip, fail_after, names, tone, write

from lowpeak.engine import media
from lowpeak.engine.blocks import Traffic
from lowpeak.engine.decoding import decode
from lowpeak.engine.errors import RequestError, SaveFailed
from lowpeak.engine.events import QuietHost
from lowpeak.engine.files import SampledLatents
from lowpeak.engine.media import (
    BackgroundFrames,
    VideoWriter,
    kept_frames,
    probe,
    read_video,
    repeat_save,
)
from lowpeak.engine.media_read import iterate_frames
from lowpeak.engine.report import RunReport
from lowpeak.engine.session import Session


@pytest.mark.parametrize("error", [RuntimeError("x"), KeyboardInterrupt()])
@pytest.mark.parametrize("codec", ["h264", "png"])
def test_an_exception_leaves_nothing_and_the_old_file_alone(
    tmp_path: Path, error: BaseException, codec: str
) -> None:
    target = tmp_path / "clip [1] *.mp4"
    target.write_bytes(b"old")
    with (
        pytest.raises(type(error)),
        VideoWriter(target, WIDTH, HEIGHT, codec=codec) as writer,
    ):
        writer.write_frames(clip())
        assert len(names(tmp_path)) == 2
        raise error
    assert names(tmp_path) == [target.name] and target.read_bytes() == b"old"


@pytest.mark.parametrize("packets", [0, 3])
def test_a_failing_encoder_keeps_every_frame_and_saving_can_be_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packets: int
) -> None:
    target = tmp_path / "clip.mp4"
    frames = clip(60)
    with monkeypatch.context() as patch:
        fail_after(patch, packets, av.error.ExternalError(1, "encoder lost its mind"))
        with pytest.raises(SaveFailed, match="lost its mind") as caught:
            write(target, frames=frames, metadata={"prompt": {"1": 2}})
    error = caught.value
    assert error.can_repeat and error.frames == 60
    assert sorted(Path(item).name for item in error.saved) == names(tmp_path)
    assert names(tmp_path) == ["clip.frames.json", "clip.frames.mkv", "clip.frames.wav"]
    kept = read_video(tmp_path / "clip.frames.mkv").numpy()
    assert len(kept) == 60
    encoded = packets  # those before are as the encoder left them, all others without loss
    assert np.array_equal(kept[encoded:], frames[encoded:])
    for before, now in zip(frames[:encoded], kept[:encoded], strict=True):
        assert np.abs(now.astype(float) - before).mean() < 16

    assert kept_frames(target, "") is None, "frames of nobody knows what are used on demand alone"
    assert repeat_save(tmp_path / "clip.frames.mkv") == target
    found = probe(target)
    assert [s["codec"] for s in found["streams"]] == ["h264", "aac"]
    assert found["streams"][0]["packets"] == 60
    assert json.loads(found["metadata"]["prompt"]) == {"1": 2}
    assert names(tmp_path) == ["clip.mp4"]


def test_a_failing_muxer_keeps_the_encoded_frames(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "my.frames.mp4"
    with monkeypatch.context() as patch:

        def refuse(*_: Any) -> None:  # fmt: skip
            raise av.error.InvalidDataError(1, "no muxing today")

        patch.setattr(media, "finish_file", refuse)
        with pytest.raises(SaveFailed, match="no muxing today") as caught:
            write(target)
    assert caught.value.can_repeat
    assert names(tmp_path) == [f"my.frames.frames.{kind}" for kind in ("json", "mp4", "wav")]
    repeat_save(tmp_path / "my.frames.frames.json", tmp_path / "again.mp4")
    assert names(tmp_path) == ["again.mp4"]
    assert probe(tmp_path / "again.mp4")["streams"][0]["packets"] == 22


def test_a_full_disk_keeps_what_is_there_and_says_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_after(monkeypatch, 30, OSError(errno.ENOSPC, "No space left on device"))
    with pytest.raises(SaveFailed, match="disk is full") as caught:
        write(tmp_path / "clip.mp4", frames=clip(120))
    error = caught.value
    assert not error.can_repeat
    assert error.saved == (str(tmp_path / "clip.frames.mp4"),) and str(tmp_path) in str(error)
    assert names(tmp_path) == ["clip.frames.mp4"]
    assert 0 < error.frames <= 30
    assert sum(1 for _ in iterate_frames(tmp_path / "clip.frames.mp4")) == error.frames


def test_a_file_system_that_really_refuses_is_reported(tmp_path: Path) -> None:
    script = f"""
import resource, signal
import numpy as np
from lowpeak.engine.errors import SaveFailed
from lowpeak.engine.media import VideoWriter
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
noise = np.random.default_rng(0).integers(0, 255, (40, 256, 256, 3), dtype=np.uint8)
try:
    with VideoWriter({str(tmp_path / "clip.mp4")!r}, 256, 256) as writer:
        for _ in range(10):
            writer.write_frames(noise)
except SaveFailed as failure:
    print(failure.frames, *failure.saved)
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    count, *saved = run.stdout.split()
    assert saved == [str(tmp_path / "clip.frames.mp4")] and int(count) >= 0
    assert names(tmp_path) == ["clip.frames.mp4"]


def test_a_failure_in_the_background_reaches_the_caller(tmp_path: Path) -> None:
    wrong = torch.zeros(1, 8, 8, 3, dtype=torch.uint8)
    with (
        pytest.raises(RequestError, match="need uint8"),
        VideoWriter(tmp_path / "clip.mp4", WIDTH, HEIGHT) as writer,
        BackgroundFrames(writer) as sink,
    ):
        for _ in range(10):
            sink(wrong)
    assert names(tmp_path) == []


def test_bad_calls_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="even"):
        VideoWriter(tmp_path / "a.mp4", 95, 64)
    with pytest.raises(RequestError, match="codec"):
        VideoWriter(tmp_path / "a.mp4", 96, 64, codec="mpeg1")
    with pytest.raises(RequestError, match="folder"):
        VideoWriter(tmp_path / "no" / "a.mp4", 96, 64)
    with pytest.raises(RequestError, match="no frame"), VideoWriter(tmp_path / "a.mp4", 96, 64):
        pass
    with (
        pytest.raises(RequestError, match="sound has shape"),
        VideoWriter(tmp_path / "a.mp4", 96, 64) as writer,
    ):
        writer.write_audio(torch.zeros(1, 10))
    assert names(tmp_path) == []


def test_a_decode_after_a_failed_save_only_saves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The decoder is asked once; the second start makes the file from the kept frames."""
    asked: list[str] = []

    class Models:
        def decode_audio(self, latents: torch.Tensor) -> torch.Tensor:
            return tone()

        def decode_video(self, latents: torch.Tensor, take: Any, *rest: Any) -> Traffic:
            asked.append("video")
            for part in np.array_split(clip(), 2):
                take(torch.from_numpy(part))
            return Traffic()

    def start(out: Path, seed: int = 0) -> None:
        generator = torch.Generator().manual_seed(seed)
        latents = SampledLatents(
            torch.randn(1, 24, 7, 4, 6, generator=generator),
            torch.randn(1, 32, 2, 37, generator=generator),
        )
        report = RunReport({}, {})
        with Session(torch.device("cpu"), QuietHost(), report, {}) as session:
            decode(session, FakeGeometry(), latents, Models(), out)  # type: ignore[arg-type]

    out = tmp_path / "clip.mp4"
    with monkeypatch.context() as patch:
        fail_after(patch, 2, av.error.ExternalError(1, "encoder lost its mind"))
        with pytest.raises(SaveFailed):
            start(out)
    assert asked == ["video"] and "clip.frames.json" in names(tmp_path)
    assert kept_frames(out, "of other latents") is None
    start(tmp_path / "clip.mp4")
    assert asked == ["video"] and names(tmp_path) == ["clip.mp4"]
    assert [s["codec"] for s in probe(out)["streams"]] == ["h264", "aac"]
    start(out, seed=1)
    assert asked == ["video", "video"]


@pytest.mark.parametrize(
    ("codec", "name", "limit_bytes", "kept"),
    [("h264", "clip.mp4", 0, []), ("png", "clip", 5000, ["clip.frames"]), ("png", "clip", 0, [])],
)
def test_a_disk_that_is_full_from_the_start_or_within_a_picture_is_reported(
    tmp_path: Path, codec: str, name: str, limit_bytes: int, kept: list[str]
) -> None:
    """libav crashed over a packet after a refused header; half a PNG could not be read back."""
    script = f"""
import resource, signal
import numpy as np
from lowpeak.engine.errors import SaveFailed
from lowpeak.engine.media import VideoWriter
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, ({limit_bytes}, {limit_bytes}))
noise = np.random.default_rng(0).integers(0, 255, (60, 256, 256, 3), dtype=np.uint8)
noise[:4] = 0
try:
    with VideoWriter({str(tmp_path / name)!r}, 256, 256, codec={codec!r}) as writer:
        writer.write_frames(noise)
except SaveFailed as failure:
    print(failure.frames, *failure.saved)
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stdout.split() == ["4" if kept else "0", *(str(tmp_path / item) for item in kept)]
    assert names(tmp_path) == kept
