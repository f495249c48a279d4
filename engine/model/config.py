"""Hyper-parameters of VDN-H3 as frozen values, read from a checkpoint and never assumed.

Axis alphabet of the whole package: N packed rows, F latent frames, S tokens per frame, H heads,
D head width, C model width. A chunk is `chunk` latent frames.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..errors import CheckpointError

DELTA_RULES = ("vdn_solve", "vdn_scaled", "sana_scaled")
ANCHORS = ("both", "none", "columns", "rows")
BRIDGES = ("alpha", "none")


@dataclass(frozen=True)
class VdnConfig:
    """The hybrid attention's switches (facts: model sheet b.1). Defaults are the release."""

    chunk: int = 5  # 0: frame mode, |ta - tb| <= radius
    radius: int = 1
    anchors: str = "both"
    delta_rule: str = "vdn_solve"
    bridge: str = "alpha"
    text_state: bool = True
    short_conv: tuple[str, ...] = ("k", "v")
    softmax_gate: bool = True
    linear: bool = True

    def __post_init__(self) -> None:
        for name, value, known in (
            ("delta_rule", self.delta_rule, DELTA_RULES),
            ("anchor_frames", self.anchors, ANCHORS),
            ("bridge", self.bridge, BRIDGES),
        ):
            if value not in known:
                raise CheckpointError(
                    f"unknown {name} in the transform config",
                    expected=" | ".join(known),
                    found=repr(value),
                    remedy="This checkpoint needs a newer Lowpeak.",
                )
        if not set(self.short_conv) <= {"q", "k", "v"}:
            raise CheckpointError(
                "unknown short_conv targets", expected="of q, k, v", found=self.short_conv
            )

    @property
    def skip_ends(self) -> bool:
        """The linear branch leaves out first and last frame when both are anchors."""
        return self.anchors == "both"

    @classmethod
    def from_json(cls, spec: Mapping[str, Any]) -> VdnConfig:
        """From the `transform` object of model_spec.json.

        Raises CheckpointError for unknown rules and for missing parts.
        """
        softmax = spec.get("softmax_attention", {})
        linear = spec.get("linear_attention")
        short_conv = (linear or {}).get("short_conv") or {}
        return cls(
            chunk=int(softmax.get("chunk", 5)),
            radius=int(softmax.get("radius", 1)),
            anchors=str(spec.get("anchor_frames") or "none"),
            delta_rule=str((linear or {}).get("delta_rule", "vdn_solve")),
            bridge=str((linear or {}).get("bridge") or "none"),
            text_state=bool((linear or {}).get("enable_text_state", True)),
            short_conv=tuple(short_conv.get("targets", ())),
            softmax_gate=bool(spec.get("enable_softmax_gate", True)),
            linear=linear is not None,
        )

    def as_json(self) -> dict[str, Any]:
        """The `transform` object that `from_json` reads."""
        linear = {
            "a_fp32": True,
            "bridge": self.bridge,
            "delta_rule": self.delta_rule,
            "enable_text_state": self.text_state,
            "linear_head_dim": None,
            "short_conv": {"targets": list(self.short_conv)} if self.short_conv else None,
        }
        return {
            "anchor_frames": self.anchors,
            "enable_softmax_gate": self.softmax_gate,
            "linear_attention": linear if self.linear else None,
            "softmax_attention": {"chunk": self.chunk, "radius": self.radius},
        }


@dataclass(frozen=True)
class ModelConfig:
    """Sizes of one transformer. `vdn` of None is the dense base model."""

    layers: int = 50
    refiner_layers: int = 2
    heads: int = 56
    head_dim: int = 128
    hidden: int = 5376
    ffn: int = 14336
    in_channels: int = 24
    audio_channels: int = 32
    patch: tuple[int, int, int] = (1, 2, 2)
    text_dim: int = 5120
    freq_dim: int = 256
    time_hidden: int = 5376
    time_dim: int = 2688
    rope_freqs: int = 16
    rope_theta: float = 10_000.0
    eps: float = 1e-5
    vdn: VdnConfig | None = VdnConfig()

    @property
    def inner(self) -> int:
        """H * D, the width of q, k and v."""
        return self.heads * self.head_dim

    @property
    def rotary_dim(self) -> int:
        """Head channels that rotate: three axes, two halves."""
        return 6 * self.rope_freqs

    @property
    def video_row(self) -> int:
        """Width of a packed video row before proj_in."""
        return self.in_channels * self.patch[0] * self.patch[1] * self.patch[2]

    @classmethod
    def from_json(
        cls, config: Mapping[str, Any], transform: Mapping[str, Any] | None
    ) -> ModelConfig:
        """From a diffusers transformer config and, for VDN, a transform object."""
        names = {
            "layers": "num_layers",
            "refiner_layers": "num_refiner_layers",
            "heads": "num_attention_heads",
            "head_dim": "attention_head_dim",
            "hidden": "hidden_size",
            "ffn": "ffn_dim",
            "in_channels": "in_channels",
            "audio_channels": "audio_in_channels",
            "text_dim": "text_dim",
            "freq_dim": "freq_dim",
            "time_hidden": "time_embed_hidden_dim",
            "time_dim": "time_embed_dim",
            "rope_freqs": "rope_freq_dim",
        }
        values: dict[str, Any] = {k: int(config[v]) for k, v in names.items() if v in config}
        if "patch_size" in config:
            values["patch"] = tuple(int(item) for item in config["patch_size"])
        if "rope_theta" in config:
            values["rope_theta"] = float(config["rope_theta"])
        vdn = None if transform is None else VdnConfig.from_json(transform)
        return cls(**values, vdn=vdn)

    def as_json(self) -> dict[str, Any]:
        """The diffusers transformer config that `from_json` reads."""
        return {
            "num_layers": self.layers,
            "num_refiner_layers": self.refiner_layers,
            "num_attention_heads": self.heads,
            "attention_head_dim": self.head_dim,
            "hidden_size": self.hidden,
            "ffn_dim": self.ffn,
            "in_channels": self.in_channels,
            "audio_in_channels": self.audio_channels,
            "patch_size": list(self.patch),
            "text_dim": self.text_dim,
            "freq_dim": self.freq_dim,
            "time_embed_hidden_dim": self.time_hidden,
            "time_embed_dim": self.time_dim,
            "rope_freq_dim": self.rope_freqs,
            "rope_theta": self.rope_theta,
        }

    def dense(self) -> ModelConfig:
        """The same sizes without VDN."""
        return replace(self, vdn=None)
