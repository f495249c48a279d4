"""The files of one run, all beside the video: V.mp4, V.request.json, V.latents.safetensors, ...

Everything is written under a temporary name and renamed, so a file that exists is whole. What a
later start can go on from is saved before the stage that might fail: the conditioning before
sampling when asked to stop there, first-pass latents before the second pass, sampled latents before
decoding. Names of files travel without their folder, so a run can be moved.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import RequestError, SaveFailed

if TYPE_CHECKING:
    from torch import Tensor

REPORT_TAIL = ".request.json"
TAILS = (
    REPORT_TAIL,
    *(f".{name}.safetensors" for name in ("latents", "first", "unfinished", "conditioning")),
    ".memory.svg",
)


@dataclass(frozen=True)
class SampledLatents:
    """Normalised latents. video: [1, 24, F, H/16, W/16] float32; audio: [1, 32, 2, A] float32."""

    video: Tensor
    audio: Tensor

    @property
    def sha256(self) -> str:
        """SHA-256 over the bytes of video, then audio (little-endian float32, C order)."""
        digest = hashlib.sha256()
        for tensor in (self.video, self.audio):
            digest.update(tensor.detach().cpu().float().contiguous().numpy().tobytes())
        return digest.hexdigest()


@dataclass(frozen=True)
class RunFiles:
    """Where the files of the run that writes `video` are."""

    video: Path

    @classmethod
    def of(cls, named: Path) -> RunFiles:
        """The files of a run named by its video, by its report, or by what it kept."""
        for tail in TAILS:
            if named.name.endswith(tail):
                return cls(named.with_name(f"{named.name.removesuffix(tail)}.mp4"))
        return cls(named)

    def beside(self, tail: str) -> Path:
        """The file of this run that ends in `tail`."""
        return self.video.with_name(self.video.stem + tail)

    @property
    def report(self) -> Path:
        """V.request.json."""
        return self.beside(REPORT_TAIL)

    @property
    def latents(self) -> Path:
        """Sampled latents, ready to decode."""
        return self.beside(".latents.safetensors")

    @property
    def first_pass(self) -> Path:
        """Latents of the first of two passes."""
        return self.beside(".first.safetensors")

    @property
    def unfinished(self) -> Path:
        """Latents after the last whole step of a pass that failed."""
        return self.beside(".unfinished.safetensors")

    @property
    def conditioning(self) -> Path:
        """Encoded prompt and keyframes."""
        return self.beside(".conditioning.safetensors")

    @property
    def picture(self) -> Path:
        """The memory picture."""
        return self.beside(".memory.svg")

    def present(self) -> dict[str, str]:
        """What exists of this run, by what it is; names without their folder."""
        kinds = {
            "video": self.video,
            "latents": self.latents,
            "first_pass": self.first_pass,
            "conditioning": self.conditioning,
        }
        return {kind: file.name for kind, file in kinds.items() if file.exists()}

    def kept(self) -> list[str]:
        """Names of the files that a later start can go on from."""
        return [name for kind, name in self.present().items() if kind != "video"]


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """A temporary name in target's folder; renamed to `target` at the end, removed on any error.

    Raises SaveFailed for a full disk and for whatever else the file system refuses.
    """
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    try:
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            yield partial
            os.replace(partial, target)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as failure:
        raise SaveFailed(target, str(failure), frames=0) from failure


def write_text(target: Path, text: str) -> None:
    """Write UTF-8 text, whole or not at all."""
    with replacing(target) as partial:
        partial.write_text(text, encoding="utf-8")


def write_json(target: Path, value: Mapping[str, Any]) -> None:
    """Write a JSON object, whole or not at all."""
    write_text(target, json.dumps(value, indent=2, ensure_ascii=True) + "\n")


def save_tensors(
    target: Path, tensors: Mapping[str, Tensor], about: Mapping[str, Any] | None = None
) -> None:
    """Write a safetensors file, whole or not at all; `about` goes into its header as JSON."""
    from safetensors.torch import save

    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    with replacing(target) as partial:
        # Bytes first: the library's own file writer leaves files that only their owner may read.
        partial.write_bytes(save(plain, metadata={"lowpeak": json.dumps(about or {})}))


def load_tensors(file: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors and `about` of a file that `save_tensors` wrote. RequestError when it is no such."""
    from safetensors import SafetensorError, safe_open

    if not file.is_file():
        raise RequestError(f"{file} does not exist: nothing to resume from", field="resume")
    try:
        with safe_open(file, framework="pt") as opened:
            about = json.loads((opened.metadata() or {}).get("lowpeak", "{}"))
            return {name: opened.get_tensor(name) for name in opened.keys()}, about  # noqa: SIM118
    except (SafetensorError, ValueError) as damage:
        raise RequestError(f"{file} is damaged: {damage}", field="resume") from damage


def save_latents(target: Path, latents: SampledLatents, about: Mapping[str, Any]) -> None:
    """Keep latents and their SHA-256."""
    tensors = {"video": latents.video, "audio": latents.audio}
    save_tensors(target, tensors, {**about, "sha256": latents.sha256})


def load_latents(file: Path) -> tuple[SampledLatents, dict[str, Any]]:
    """Latents and `about` as `save_latents` kept them. RequestError for damaged ones."""
    tensors, about = load_tensors(file)
    missing = [name for name in ("video", "audio") if name not in tensors]
    if missing:
        raise RequestError(f"{file} holds no {' and no '.join(missing)} latents", field="resume")
    latents = SampledLatents(tensors["video"], tensors["audio"])
    expected = about.get("sha256", latents.sha256)
    if latents.sha256 != expected:
        raise RequestError(
            f"{file} is damaged: its latents hash to {latents.sha256}, {expected} was saved",
            field="resume",
        )
    return latents, about
