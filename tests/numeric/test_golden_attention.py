"""The plain attention against every recorded intermediate value, and every variant."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from lowpeak.engine.model.config import ModelConfig, VdnConfig
from lowpeak.engine.model.layout import build_layout
from lowpeak.engine.model.plain import plain_attention
from lowpeak.engine.model.windows import Windows

TOLERANCE = 1e-5
BF16_TOLERANCE = 3e-2
PREFIX = "transformer_blocks.0.attn."


def config_of(config, **overrides) -> ModelConfig:
    """Model sizes and switches from a fixture's `config` and a variant's overrides."""
    config = {**config, **overrides}
    vdn = VdnConfig(
        chunk=config["chunk"],
        radius=config["radius"],
        anchors=config["anchor_frames"],
        delta_rule=config["delta_rule"],
        bridge=config["bridge"],
        text_state=config["text_state"],
        short_conv=tuple(config["short_conv"]),
        softmax_gate=config["softmax_gate"],
        linear=not config.get("linear_off", False),
    )
    return ModelConfig(
        layers=1,
        heads=config["heads"],
        head_dim=config["head_dim"],
        hidden=config["hidden"],
        rope_freqs=config["rope_freq_dim"],
        vdn=vdn,
    )


def layout_of(tensors, config):
    height, width = config["grid"]
    layout = build_layout(
        latent_frames=config["frames"],
        latent_height=2 * height,
        latent_width=2 * width,
        audio_latents=config["audio_rows"] // 2,
        text_tags=[1] * config["text"],
        keyframes=config.get("anchors", ()),
    )
    recorded = [
        layout.rows, layout.video.start, layout.frames, layout.tokens_per_frame,
        layout.grid_height, layout.grid_width, layout.text.start, layout.text_rows,
    ]  # fmt: skip
    assert tensors["in/layout"].tolist() == recorded
    return layout


def run(tensors, fixture, dtype=None, **overrides):
    """Attention output and intermediates of a fixture, computed in `dtype` or as stored."""
    state = {k[6:]: v.to(dtype or v.dtype) for k, v in tensors.items() if k.startswith("state/")}
    cos, sin = tensors["in/rotary_cos"], tensors["in/rotary_sin"]
    half = cos.shape[1] // 2
    y = tensors["in/hidden_states"]
    mid: dict[str, torch.Tensor] = {}
    out = plain_attention(
        state,
        PREFIX,
        y.to(dtype or y.dtype),
        layout_of(tensors, fixture["config"]),
        cos[:, :half],
        sin[:, :half],
        config_of(fixture["config"], **overrides),
        mid,
    )
    return out, mid


@pytest.mark.golden_files("vdn_attention_f*.safetensors")
def test_golden_parity_of_attention_and_every_intermediate(
    golden_path, load_golden, relative_error
) -> None:
    tensors, fixture = load_golden(golden_path)
    out, mid = run(tensors, fixture)
    half = fixture["dtype"] == "torch.bfloat16"
    bound = BF16_TOLERANCE if half else TOLERANCE
    errors = {"out/attn": relative_error(out, tensors["out/attn"])}
    for name, expected in tensors.items():
        if name.startswith("mid/"):
            errors[name] = relative_error(mid[name[4:]], expected)
    worst = max(errors, key=errors.get)
    what = f"VDN attention {golden_path.stem[14:]}, {len(errors)} values"
    print(f"PARITY | {what} | recorded, worst {worst} | {errors[worst]:.1e}")
    assert errors[worst] <= bound, {k: f"{v:.1e}" for k, v in errors.items() if v > bound}


@pytest.mark.golden_files("vdn_attention_f*.safetensors")
def test_golden_attention_in_float64_differs_by_rounding_only(
    golden_path, load_golden, relative_error
) -> None:
    tensors, fixture = load_golden(golden_path)
    if fixture["dtype"] != "torch.float32":
        return
    out, _ = run(tensors, fixture, dtype=torch.float64)
    assert out.dtype == torch.float64
    assert relative_error(out, tensors["out/attn"]) <= TOLERANCE


@pytest.mark.golden_files("vdn_attention_f*.safetensors")
def test_golden_window_bounds(golden_path, load_golden) -> None:
    tensors, fixture = load_golden(golden_path)
    frames = fixture["config"]["frames"]
    windows = Windows.of(config_of(fixture["config"]).vdn, frames)
    bounds = [list(windows.raw_bounds(frame)) for frame in range(frames)]
    assert bounds == tensors["in/window_bounds"].tolist()
    assert windows.full_cover == fixture["full_cover"]


@pytest.mark.golden_files("vdn_attention_variants*.safetensors")
def test_golden_parity_of_attention_variants(golden_path, load_golden, relative_error) -> None:
    tensors, fixture = load_golden(golden_path)
    worst = ("", 0.0)
    for variant, overrides in fixture["variants"].items():
        out, mid = run(tensors, fixture, **overrides)
        mid["out_attn"] = out
        recorded = [name for name in tensors if name.startswith(f"variant/{variant}/")]
        assert recorded, variant
        for name in recorded:
            error = relative_error(mid[name.split("/")[2]], tensors[name])
            worst = max(worst, (name, error), key=lambda item: item[1])
            assert error <= TOLERANCE, (name, error)
    what = f"VDN attention, {len(fixture['variants'])} variants"
    print(f"PARITY | {what} | recorded, worst {worst[0]} | {worst[1]:.1e}")


def test_an_unknown_rule_is_refused() -> None:
    from lowpeak.engine.errors import CheckpointError

    with pytest.raises(CheckpointError, match="delta_rule"):
        replace(VdnConfig(), delta_rule="vdn_guess")
