"""Videos, pictures and sound that a request brings."""

from __future__ import annotations

from pathlib import Path

import av
import numpy as np
import pytest
import torch
from media_parts import HEIGHT, RATE, WIDTH, clip, tone, write
from PIL import Image

from lowpeak.engine import media_encode
from lowpeak.engine.errors import RequestError
from lowpeak.engine.media import VideoWriter, probe, read_audio, read_image, read_video


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
