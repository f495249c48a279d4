"""Frames and sound to files and back: streamed, tagged, atomic, and not lost when it goes wrong."""

from __future__ import annotations

import errno
import json
import subprocess
import sys
import threading
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
import torch
from PIL import Image

from lowpeak.engine import media, media_encode, media_queue
from lowpeak.engine.decoding import decode
from lowpeak.engine.errors import KernelUnavailable, RequestError, SaveFailed
from lowpeak.engine.events import QuietHost
from lowpeak.engine.files import SampledLatents
from lowpeak.engine.media import (
    BackgroundFrames,
    VideoWriter,
    kept_frames,
    probe,
    read_audio,
    read_image,
    read_video,
    repeat_save,
    settings_sha256,
)
from lowpeak.engine.media_read import iterate_frames
from lowpeak.engine.report import RunReport
from lowpeak.engine.session import Session

WIDTH, HEIGHT, RATE = 96, 64, 32_000


def clip(frames: int = 22, seed: int = 0) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """A moving gradient with some noise: no two frames alike."""
    generator = np.random.default_rng(seed)
    y, x, t = np.mgrid[0:HEIGHT, 0:WIDTH, 0:frames]
    planes = [(x * 2 + t * 5) % 256, (y * 3 + t * 3) % 256, (x + y + t * 7) % 256]
    video = np.stack(planes, -1).transpose(2, 0, 1, 3)
    return (video // 2 + generator.integers(0, 16, video.shape)).astype(np.uint8)


def tone(seconds: float = 22 / 24, rate_hz: int = RATE) -> torch.Tensor:
    t = torch.arange(round(seconds * rate_hz)) / rate_hz
    chirp = torch.sin(2 * torch.pi * (200 + 300 * t) * t)
    return torch.stack([0.5 * chirp, 0.25 * chirp])


def write(path: Path, *, sound: bool = True, frames: Any = None, **options: Any) -> Path:
    with VideoWriter(path, WIDTH, HEIGHT, audio_sample_rate_hz=RATE, **options) as writer:
        for part in np.array_split(clip() if frames is None else frames, 3):
            writer.write_frames(part)
        if sound:
            writer.write_audio(tone())
    return path


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


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


def fail_after(monkeypatch: pytest.MonkeyPatch, packets: int, failure: Exception) -> None:
    """From packet number `packets` on, the H.264 stage cannot be written."""
    real, count = media_encode.VideoTrack._mux, [0]

    def mux(track: Any, ready: list[Any]) -> None:
        for packet in ready:
            if track.encoder == "libx264" and count[0] >= packets:
                raise failure
            count[0] += track.encoder == "libx264"
            real(track, [packet])

    monkeypatch.setattr(media_encode.VideoTrack, "_mux", mux)


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


def test_sound_that_is_not_finite_or_too_loud_is_written_clipped(tmp_path: Path) -> None:
    with VideoWriter(tmp_path / "a.mkv", WIDTH, HEIGHT, codec="lossless") as writer:
        writer.write_frames(clip(2))
        writer.write_audio(torch.tensor([[0.5, 3.0, float("nan")], [-9.0, float("inf"), 0.1]]))
    heard = read_audio(tmp_path / "a.mkv")
    wanted = torch.tensor([[0.5, 1.0, 0.0], [-1.0, 1.0, 0.1]])
    assert torch.allclose(heard[:, :3], wanted, atol=1e-6)


def test_videos_are_read_at_24_frames_a_second(tmp_path: Path) -> None:
    for fps, count in ((12, 10), (30, 25), (48, 30)):
        path = tmp_path / f"{fps}.mkv"
        frames = clip(count)
        with VideoWriter(path, WIDTH, HEIGHT, fps, codec="lossless") as writer:
            writer.write_frames(frames)
        got = read_video(path).numpy()
        assert abs(len(got) - count * 24 / fps) <= 1
        for k in range(len(got) - 1):
            distances = [np.abs(got[k].astype(int) - f).max() for f in frames]
            assert min(distances) == 0
            assert abs(distances.index(0) / fps - k / 24) <= 1 / fps
        assert len(read_video(path, limit=7)) == 7


def test_pictures_are_read_turned_and_without_transparency(tmp_path: Path) -> None:
    picture = Image.new("RGBA", (4, 2), (200, 100, 50, 255))
    picture.putpixel((0, 0), (255, 255, 255, 0))
    picture.save(tmp_path / "a.png")
    got = read_image(tmp_path / "a.png")
    assert got.shape == (2, 4, 3) and got.dtype == torch.uint8
    assert got[0, 0].tolist() == [0, 0, 0] and got[1, 3].tolist() == [200, 100, 50]
    exif = Image.Exif()
    exif[0x0112] = 6  # a quarter turn
    Image.new("RGB", (40, 20)).save(tmp_path / "b.jpg", exif=exif)
    assert read_image(tmp_path / "b.jpg").shape == (40, 20, 3)
    Image.new("L", (4, 2), 7).save(tmp_path / "grey.png")
    assert read_image(tmp_path / "grey.png")[0, 0].tolist() == [7, 7, 7]


def test_files_that_are_not_what_they_should_be_are_named(tmp_path: Path) -> None:
    (tmp_path / "noise.mp4").write_bytes(bytes(range(256)) * 40)
    good = write(tmp_path / "good.mp4").read_bytes()
    (tmp_path / "cut.mp4").write_bytes(good[: len(good) // 2])
    Image.new("RGB", (64, 64), (9, 9, 9)).save(tmp_path / "cut.png")
    whole = (tmp_path / "cut.png").read_bytes()
    (tmp_path / "cut.png").write_bytes(whole[: len(whole) // 2])
    one = write(tmp_path / "one.mp4", frames=clip(1), sound=False)
    for read in (read_image, read_video, read_audio, probe):
        for name in ("noise.mp4", "missing.bin"):
            with pytest.raises(RequestError, match=name):
                read(tmp_path / name)
    with pytest.raises(RequestError, match=r"cut\.png"):
        read_image(tmp_path / "cut.png")
    with pytest.raises(RequestError, match="1 frame"):
        read_video(one)
    wav = tmp_path / "sound.wav"
    media_encode.write_wav(wav, tone().numpy(), RATE)
    with pytest.raises(RequestError, match="no video"):
        read_video(wav)
    with pytest.raises(RequestError, match="damaged"):
        read_video(tmp_path / "cut.mp4")


def test_mono_sound_of_another_rate_becomes_stereo_at_32_khz(tmp_path: Path) -> None:
    path = tmp_path / "mono.wav"
    with av.open(str(path), "w", format="wav") as container:
        stream = container.add_stream("pcm_s16le", rate=44_100, layout="mono")
        wave = (tone(1.0, 44_100)[:1] * 32767).short().numpy()
        frame = av.AudioFrame.from_ndarray(wave, format="s16", layout="mono")
        frame.sample_rate = 44_100
        for packet in [*stream.encode(frame), *stream.encode(None)]:
            container.mux(packet)
    got = read_audio(path)
    assert got.shape[0] == 2 and abs(got.shape[1] - RATE) <= 32
    assert torch.equal(got[0], got[1])
    assert got[0].abs().max() == pytest.approx(0.5, rel=0.05)


def test_a_decode_after_a_failed_save_only_saves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The decoder is asked once; the second start makes the file from the kept frames."""
    asked: list[str] = []

    class Models:
        def decode_audio(self, latents: torch.Tensor) -> torch.Tensor:
            return tone()

        def decode_video(self, latents: torch.Tensor, take: Any, *rest: Any) -> None:
            asked.append("video")
            for part in np.array_split(clip(), 2):
                take(torch.from_numpy(part))

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


class FakeGeometry:
    """A frame smaller than a request may be."""

    width_px, height_px, frames, seconds = WIDTH, HEIGHT, 22, 22 / 24
