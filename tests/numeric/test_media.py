"""Frames and sound to files and back: streamed, tagged, atomic, and not lost when it goes wrong."""

from __future__ import annotations

import json
import os
import threading
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
import torch
from media_parts import HEIGHT, RATE, WIDTH, clip, names, tone, write
from PIL import Image

from lowpeak.engine import media_encode, media_queue
from lowpeak.engine.errors import KernelUnavailable, RequestError
from lowpeak.engine.media import (
    BackgroundFrames,
    VideoWriter,
    probe,
    read_audio,
    read_image,
    read_video,
    settings_sha256,
)


def test_an_mp4_has_the_promised_streams_tags_and_order(tmp_path: Path) -> None:
    found = probe(write(tmp_path / "clip.mp4"))
    video, sound = found["streams"]
    assert (video["codec"], video["pixel_format"]) == ("h264", "yuv420p")
    assert (video["width"], video["height"], video["packets"]) == (WIDTH, HEIGHT, 22)
    assert video["frames_per_second"] == 24
    assert video["start_seconds"] == 0 and video["seconds"] == pytest.approx(22 / 24, abs=1e-3)
    tags = ("color_space", "color_primaries", "color_transfer", "color_range")
    assert [video[tag] for tag in tags] == [1, 1, 1, 1]
    assert (sound["codec"], sound["sample_rate_hz"], sound["channels"]) == ("aac", RATE, 2)
    assert sound["seconds"] == pytest.approx(22 / 24, abs=0.04)
    assert found["index_in_front"] is True
    assert names(tmp_path) == ["clip.mp4"]


def test_every_frame_is_on_its_own_time(tmp_path: Path) -> None:
    with av.open(str(write(tmp_path / "clip.mp4"))) as container:
        times = [frame.pts * frame.time_base for frame in container.decode(video=0)]
    assert times == [Fraction(k, 24) for k in range(22)]


def test_colours_go_through_the_matrix_the_tags_name(tmp_path: Path) -> None:
    red = np.zeros((5, HEIGHT, WIDTH, 3), np.uint8)
    red[..., 0] = 255
    path = write(tmp_path / "red.mp4", frames=red, sound=False)
    with av.open(str(path)) as container:
        luma = next(container.decode(video=0)).to_ndarray()[:HEIGHT]
    assert abs(float(luma.mean()) - (16 + 219 * 0.2126)) < 2  # BT.601 would give 81
    assert np.abs(read_video(path).numpy().astype(int) - red).max() <= 3


def test_pictures_and_sound_survive_and_stay_together(tmp_path: Path) -> None:
    path = write(tmp_path / "clip.mp4")
    got = read_video(path).numpy().astype(float)
    assert got.shape == (22, HEIGHT, WIDTH, 3)
    original = clip().astype(float)
    right = np.abs(got - original).mean((1, 2, 3))
    assert right.max() < 16
    assert right.max() < np.abs(got[1:] - original[:-1]).mean((1, 2, 3)).min(), "frames are shifted"
    heard, wanted = read_audio(path), tone()
    same = heard[:, : wanted.shape[1]]
    assert (same - wanted).abs().mean() < 0.02
    late = (heard[:, 8 : wanted.shape[1]] - wanted[:, :-8]).abs().mean()
    assert (same - wanted).abs().mean() < 0.3 * late, "sound is shifted"
    assert same[0].std() / same[1].std() == pytest.approx(2, rel=0.02)


def test_graph_and_hash_are_in_the_file(tmp_path: Path) -> None:
    workflow, prompt = {"nodes": [{"id": 1}], "name": "späte Übung"}, {"3": {"class_type": "X"}}
    for name, codec in (("clip.mp4", "h264"), ("clip.webm", "webm")):
        path = write(
            tmp_path / name, codec=codec, metadata={"workflow": workflow, "prompt": prompt}
        )
        found = {key.lower(): value for key, value in probe(path)["metadata"].items()}
        assert json.loads(found["workflow"]) == workflow
        assert json.loads(found["prompt"]) == prompt
        text = {"workflow": json.dumps(workflow), "prompt": json.dumps(prompt)}
        assert found["lowpeak_settings_sha256"] == settings_sha256(text)
    assert settings_sha256({"a": 1, "b": 2}) == settings_sha256({"b": 2, "a": 1})
    assert settings_sha256({"a": 1}) != settings_sha256({"a": 2})


def test_no_sound_is_fine(tmp_path: Path) -> None:
    path = write(tmp_path / "quiet.mp4", sound=False)
    assert [stream["kind"] for stream in probe(path)["streams"]] == ["video"]
    with pytest.raises(RequestError, match="has no sound"):
        read_audio(path)


@pytest.mark.skipif(not hasattr(os, "sched_getscheduler"), reason="no scheduling policies here")
def test_an_encoder_leaves_no_real_time_threads(tmp_path: Path) -> None:
    """As root, SVT-AV1 would make the whole process a real-time one."""

    def policies() -> set[int]:
        return {os.sched_getscheduler(int(name)) for name in os.listdir("/proc/self/task")}

    before, seen = policies(), []
    with VideoWriter(tmp_path / "clip.webm", WIDTH, HEIGHT, codec="webm") as writer:
        for _ in range(2):
            writer.write_frames(np.zeros((5, HEIGHT, WIDTH, 3), np.uint8))
            seen.append(policies())
    assert [*seen, policies()] == [before] * 3


def test_webm_and_pictures_are_options(tmp_path: Path) -> None:
    video, sound = probe(write(tmp_path / "clip.webm", codec="webm"))["streams"]
    assert video["codec"] in ("av1", "vp9") and video["packets"] == 22
    assert sound["codec"] == "opus"
    write(tmp_path / "folder", codec="png", metadata={"workflow": {"a": 1}})
    assert names(tmp_path / "folder")[:2] == ["000001.png", "000002.png"]
    assert names(tmp_path / "folder")[21:] == ["000022.png", "sound.wav"]
    assert np.array_equal(read_image(tmp_path / "folder" / "000022.png").numpy(), clip()[21])
    assert Image.open(tmp_path / "folder" / "000001.png").text["workflow"] == '{"a": 1}'
    assert torch.allclose(read_audio(tmp_path / "folder" / "sound.wav"), tone(), atol=1e-6)
    write(tmp_path / "folder", codec="png", frames=clip(4), sound=False)
    assert len(names(tmp_path / "folder")) == 4, "the old folder is replaced as a whole"
    assert names(tmp_path) == ["clip.webm", "folder"]


def test_a_missing_av1_encoder_falls_back_to_vp9(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    form = media_encode.FORMATS["webm"]
    monkeypatch.setitem(
        media_encode.FORMATS,
        "webm",
        media_encode.Format(
            "webm", ".webm", "webm", ("libnothing", "libvpx-vp9"), "libopus", 48000
        ),
    )
    monkeypatch.setitem(media_encode._OPTIONS, "libnothing", {})
    assert form.encoders == ("libsvtav1", "libvpx-vp9")
    video = probe(write(tmp_path / "clip.webm", codec="webm", sound=False))["streams"][0]
    assert video["codec"] == "vp9"
    monkeypatch.setitem(media_encode.FORMATS, "webm", replace(form, encoders=("libnothing",)))
    with pytest.raises(KernelUnavailable, match="libnothing"):
        VideoWriter(tmp_path / "other.webm", WIDTH, HEIGHT, codec="webm")


def test_the_cards_encoder_is_used_only_where_it_works(tmp_path: Path) -> None:
    try:
        with VideoWriter(tmp_path / "a.mp4", 256, 256, codec="h264_nvenc") as writer:
            writer.write_frames(np.zeros((3, 256, 256, 3), np.uint8))
    except KernelUnavailable as refused:
        assert list(refused.reasons) == ["h264_nvenc"] and refused.reasons["h264_nvenc"]
        assert names(tmp_path) == []
    else:
        assert probe(tmp_path / "a.mp4")["streams"][0]["codec"] == "h264"


def test_frames_can_be_encoded_in_the_background(tmp_path: Path) -> None:
    threads = set()
    with VideoWriter(tmp_path / "clip.mp4", WIDTH, HEIGHT) as writer:
        real = writer.write_frames
        writer.write_frames = lambda f: (threads.add(threading.get_ident()), real(f))  # type: ignore[method-assign]
        with BackgroundFrames(writer) as sink:
            for part in np.array_split(clip(), 4):
                sink(torch.from_numpy(part))
    assert threads and threading.get_ident() not in threads
    assert np.array_equal(
        read_video(tmp_path / "clip.mp4").numpy(),
        read_video(write(tmp_path / "same.mp4", sound=False)).numpy(),
    )


class Slow:
    """A sink that keeps copies and counts how many pieces wait."""

    def __init__(self) -> None:
        self.kept: list[np.ndarray] = []
        self.go = threading.Event()

    def write_frames(self, frames: torch.Tensor) -> None:
        self.go.wait(10)
        self.kept.append(frames.numpy().copy())


def test_frames_travel_in_pieces_through_a_bounded_ring(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each buffer is filled again only when the encoder is done with it, and none is added."""
    monkeypatch.setattr(media_queue, "PIECE_BYTES", 2 * WIDTH * HEIGHT * 3)
    monkeypatch.setattr(media_queue, "BUFFERS", 3)
    wanted = np.random.default_rng(3).integers(0, 256, (34, HEIGHT, WIDTH, 3), np.uint8)
    sink = Slow()
    with BackgroundFrames(sink, copies=True) as give:
        threading.Timer(0.2, sink.go.set).start()
        for clip_frames in (wanted[:17].copy(), wanted[17:].copy()):
            frames = torch.from_numpy(clip_frames)
            give(frames)
            frames.zero_()  # the decoder's memory is used again
        buffers = list(give._buffers)
        assert len(buffers) == 3
        assert {b.tensor.numel() for b in buffers} == {2 * WIDTH * HEIGHT * 3}
    assert np.array_equal(np.concatenate(sink.kept), wanted)
    assert max(len(piece) for piece in sink.kept) == 2


def test_sound_that_is_not_finite_or_too_loud_is_written_clipped(tmp_path: Path) -> None:
    with VideoWriter(tmp_path / "a.mkv", WIDTH, HEIGHT, codec="lossless") as writer:
        writer.write_frames(clip(2))
        writer.write_audio(torch.tensor([[0.5, 3.0, float("nan")], [-9.0, float("inf"), 0.1]]))
    heard = read_audio(tmp_path / "a.mkv")
    wanted = torch.tensor([[0.5, 1.0, 0.0], [-1.0, 1.0, 0.1]])
    assert torch.allclose(heard[:, :3], wanted, atol=1e-6)
