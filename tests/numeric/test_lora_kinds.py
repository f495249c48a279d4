"""Kinds of layers beside two plain factors: LoKr, LoHa, DoRA, middle factors, norms, AdaLN."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from lora_adapters import CONFIG, SHAPES, adapter, one, original, write
from torch import Tensor

from lowpeak.engine.lora.apply import adaln_table_with, merge_into, merge_tensors, online_delta
from lowpeak.engine.lora.errors import LoraBindingError, LoraFileError
from lowpeak.engine.lora.loading import inspect_lora, load_loras
from lowpeak.engine.lora.shapes import ModelShapes
from lowpeak.engine.request import LoraChoice
from lowpeak.kernels.reference import quantise
from lowpeak.kernels.weights import Weight


def test_lokr_layers_are_expanded_by_their_own_formula(tmp_path) -> None:
    draw = torch.Generator().manual_seed(1)

    def r(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=draw)

    m = "lora_unet_blocks_0_mlp_fc2"  # [20, 28]
    a, b, c = r(4, 4), r(5, 3), r(3, 7)
    whole = {f"{m}.lokr_w1": r(5, 7), f"{m}.lokr_w2": r(4, 4), f"{m}.alpha": torch.tensor(77.0)}
    half = {f"{m}.lokr_w1": a, f"{m}.lokr_w2_a": b, f"{m}.lokr_w2_b": c}
    core = r(3, 3)
    tucker = {f"{m}.lokr_w1": a, f"{m}.lokr_w2_a": b.T, f"{m}.lokr_w2_b": c, f"{m}.lokr_t2": core}
    for tensors, wanted in (
        (whole, torch.kron(whole[f"{m}.lokr_w1"], whole[f"{m}.lokr_w2"])),
        (half | {f"{m}.alpha": torch.tensor(1.5)}, torch.kron(a, b @ c) * 0.5),
        (half, torch.kron(a, b @ c)),
        (tucker, torch.kron(a, b @ core @ c)),
    ):
        loras = one(write(tmp_path / "x.safetensors", tensors), -2.0)
        assert loras.reports[0].targets[0].kind == "lokr"
        found = loras.delta("transformer_blocks.0.ff.net.2.weight")
        torch.testing.assert_close(found, -2.0 * wanted)
        assert not loras.branches(0) and loras.merge_only
    # On a fused projection the product is expanded first and its rows are taken after.
    m = "diffusion_model.blocks.1.attn.qkv_proj"  # [144, 20]
    w1, w2 = r(12, 4), r(12, 5)
    loras = one(write(tmp_path / "y.safetensors", {f"{m}.lokr_w1": w1, f"{m}.lokr_w2": w2}))
    for part, letter in enumerate("qkv"):
        found = loras.delta(f"transformer_blocks.1.attn.orig.to_{letter}.weight")
        torch.testing.assert_close(found, torch.kron(w1, w2)[48 * part : 48 * part + 48])


def test_loha_layers_are_expanded_by_their_own_formula(tmp_path) -> None:
    draw = torch.Generator().manual_seed(2)
    a1, a2 = (torch.randn(56, 3, generator=draw) for _ in range(2))
    b1, b2 = (torch.randn(3, 20, generator=draw) for _ in range(2))
    m = "blocks.0.mlp.fc1"
    names = ("hada_w1_a", "hada_w1_b", "hada_w2_a", "hada_w2_b")
    tensors = {f"{m}.{n}": t for n, t in zip(names, (a1, b1, a2, b2), strict=True)}
    wanted = (a1 @ b1) * (a2 @ b2) * (6.0 / 3)
    loras = one(write(tmp_path / "x.safetensors", tensors | {f"{m}.alpha": torch.tensor(6.0)}))
    found = loras.delta("transformer_blocks.0.ff.net.0.proj.weight")
    torch.testing.assert_close(found, torch.cat([wanted[28:], wanted[:28]]))


def test_a_middle_factor_stays_low_rank(tmp_path) -> None:
    m = "lora_unet_blocks_0_attn_out_proj"
    down, mid, up = torch.randn(4, 48, 1, 1), torch.randn(4, 4, 1, 1), torch.randn(20, 4, 1, 1)
    tensors = {f"{m}.lora_down.weight": down, f"{m}.lora_mid.weight": mid,
               f"{m}.lora_up.weight": up}  # fmt: skip
    loras = one(write(tmp_path / "x.safetensors", tensors))
    wanted = up[..., 0, 0] @ mid[..., 0, 0] @ down[..., 0, 0]
    torch.testing.assert_close(
        loras.delta("transformer_blocks.0.attn.orig.to_out.0.weight"), wanted
    )
    branch = loras.branches(0, torch.float32)["attn.orig.to_out.0"]
    y = torch.randn(5, 48)
    torch.testing.assert_close(online_delta(y, branch), y @ wanted.T, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("by_column", [False, True])
def test_dora_layers_keep_the_direction_and_set_the_length(tmp_path, by_column) -> None:
    draw = torch.Generator().manual_seed(3)
    base = torch.randn(20, 28, generator=draw)
    down, up = torch.randn(4, 28, generator=draw), torch.randn(20, 4, generator=draw)
    size = (1, 28) if by_column else (20, 1)
    magnitude = torch.rand(size, generator=draw) + 0.5
    m = "transformer.transformer_blocks.1.ff.net.2"
    tensors = {f"{m}.lora_A.weight": down, f"{m}.lora_B.weight": up}
    named = {f"{m}.dora_scale": magnitude}
    loras = one(write(tmp_path / "x.safetensors", tensors | named))
    item = loras.differences["transformer_blocks.1.ff.net.2.weight"][0]
    merged = merge_into(base, [item])
    axis = 0 if by_column else 1
    torch.testing.assert_close(merged.norm(dim=axis), magnitude.flatten())
    moved = base + up @ down
    torch.testing.assert_close(merged / merged.norm(dim=axis, keepdim=True),
                               moved / moved.norm(dim=axis, keepdim=True))  # fmt: skip
    half = one(tmp_path / "x.safetensors", 0.5).delta("transformer_blocks.1.ff.net.2.weight", base)
    torch.testing.assert_close(half, 0.5 * (merged - base))
    with pytest.raises(ValueError, match="needs the weight"):
        item.delta()
    weight = quantise.quantise_weight(base, "fp8-rowwise")
    out = merge_tensors({"ff.net.2": weight}, loras.merges(1, online=True))["ff.net.2"]
    wanted = quantise.dequantise(weight) + item.delta(quantise.dequantise(weight))
    assert float((quantise.dequantise(out) - wanted).abs().max() / wanted.abs().max()) < 0.04
    # PEFT's own spelling of the same thing.
    if not by_column:
        vector = {f"{m}.lora_magnitude_vector.weight": magnitude.flatten()}
        again = one(write(tmp_path / "y.safetensors", tensors | vector))
        torch.testing.assert_close(
            merge_into(base, again.differences["transformer_blocks.1.ff.net.2.weight"]), merged
        )


def test_dora_on_a_fused_projection_takes_its_rows_or_says_why_not(tmp_path) -> None:
    draw = torch.Generator().manual_seed(4)
    base = torch.randn(144, 20, generator=draw)
    down, up = torch.randn(4, 20, generator=draw), torch.randn(144, 4, generator=draw)
    magnitude = torch.rand(144, 1, generator=draw) + 0.5
    m = "diffusion_model.blocks.0.attn.qkv_proj"
    tensors = {f"{m}.lora_A.weight": down, f"{m}.lora_B.weight": up}
    loras = one(write(tmp_path / "x.safetensors", tensors | {f"{m}.dora_scale": magnitude}))
    for part, letter in enumerate("qkv"):
        name = f"transformer_blocks.0.attn.orig.to_{letter}.weight"
        rows = slice(48 * part, 48 * part + 48)
        merged = merge_into(base[rows], loras.differences[name])
        torch.testing.assert_close(merged.norm(dim=1), magnitude[rows, 0])
    columns = {f"{m}.dora_scale": torch.rand(1, 20) + 0.5}
    with pytest.raises(LoraBindingError, match="input column of a fused"):
        one(write(tmp_path / "y.safetensors", tensors | columns))
    wrong = {f"{m}.dora_scale": torch.rand(7, 1)}
    with pytest.raises(LoraFileError, match="magnitude") as caught:
        one(write(tmp_path / "z.safetensors", tensors | wrong))
    assert caught.value.tensor.endswith("dora_scale")


def test_norms_and_biases_take_plain_differences(tmp_path) -> None:
    tensors = {
        "diffusion_model.blocks.0.norm1.diff": torch.randn(20),
        "diffusion_model.blocks.0.attn.q_norm.diff": torch.randn(16),
        "lora_unet_blocks_1_norm2.w_norm": torch.randn(20),
        "diffusion_model.condition_proj.diff_b": torch.randn(20),
        "diffusion_model.final_layer.video_out.diff_b": torch.randn(96),
    }
    loras = one(write(tmp_path / "x.safetensors", tensors), 2.0)
    wanted = dict(zip(
        ("transformer_blocks.0.norm1.weight", "transformer_blocks.0.attn.orig.norm_q.weight",
         "transformer_blocks.1.norm2.weight", "context_embedder.bias", "proj_out.bias"),
        tensors.values(), strict=True,
    ))  # fmt: skip
    assert set(loras.differences) == set(wanted)
    for name, tensor in wanted.items():
        assert torch.equal(loras.delta(name), 2.0 * tensor)
    root = {"context_embedder": Weight("plain", torch.ones(20, 12), None, torch.ones(20)),
            "proj_out.bias": torch.ones(96)}  # fmt: skip
    changed = merge_tensors(root, loras.merges(None, online=True))
    assert torch.equal(changed["context_embedder"].bias, 1 + loras.delta("context_embedder.bias"))
    assert torch.equal(changed["proj_out.bias"], 1 + loras.delta("proj_out.bias"))
    blocks = merge_tensors({"norm1.weight": torch.ones(20), "attn.orig.norm_q.weight":
                            torch.ones(16)}, loras.merges(0, online=True))  # fmt: skip
    assert not torch.equal(blocks["norm1.weight"], torch.ones(20))
    with pytest.raises(LoraBindingError, match="no bias there"):
        bad = {"diffusion_model.blocks.0.mlp.fc1.diff_b": torch.randn(56),
               "diffusion_model.blocks.0.norm1.diff": torch.randn(20)}  # fmt: skip
        one(write(tmp_path / "y.safetensors", bad))


def test_a_lora_bias_is_scaled_like_its_factors(tmp_path) -> None:
    m = "transformer.context_embedder"
    tensors = {f"{m}.lora_A.weight": torch.randn(4, 12), f"{m}.lora_B.weight": torch.randn(20, 4),
               f"{m}.lora_B.bias": torch.randn(20), f"{m}.alpha": torch.tensor(2.0)}  # fmt: skip
    loras = one(write(tmp_path / "x.safetensors", tensors), 3.0)
    torch.testing.assert_close(
        loras.delta("context_embedder.bias"), 1.5 * tensors[f"{m}.lora_B.bias"]
    )


def test_adaln_layers_change_the_tables_when_projections_are_there(tmp_path) -> None:
    weights = adapter()
    file = write(tmp_path / "x.safetensors", original("diffusion_model.")(weights))
    with_both = replace(SHAPES, adaln_tables=True)
    loras = one(file, 0.5, with_both)
    assert len(loras.reports[0].adaln_modules) == 3  # two projections and the time embedder
    assert set(loras.adaln_parameters) >= {"transformer_blocks.1.adaln_proj.linear.weight"}
    draw = torch.Generator().manual_seed(9)
    weight, bias = torch.randn(360, 11, generator=draw), torch.randn(360, generator=draw)
    temb = torch.randn(2, 11, generator=draw)
    down, up = weights["blocks.1.adaln_proj.linear"]
    found = adaln_table_with(weight, bias, temb, weight_differences=loras.adaln(1)["weight"])
    wanted = torch.nn.functional.silu(temb) @ (weight + 0.5 * up @ down).T + bias
    torch.testing.assert_close(found, wanted.reshape(6, 120), rtol=1e-4, atol=1e-4)
    assert not any("adaln" in name for name in loras.merges(1, online=False))
    assert "time_embedder.linear_1.weight" in loras.merges(None, online=True)


def test_adaln_layers_are_refused_by_count_when_only_tables_are_there(tmp_path) -> None:
    file = write(tmp_path / "x.safetensors", original("diffusion_model.")(adapter()))
    tables = ModelShapes.from_config(CONFIG, adaln_projections=False)
    with pytest.raises(LoraBindingError, match="6 x changes AdaLN") as caught:
        one(file, shapes=tables)
    assert "adaln/NN.safetensors" in caught.value.remedy
    assert len(caught.value.names) == 6 and all("lora_" in n for n in caught.value.names)
    loras = load_loras([LoraChoice(str(file))], tables, allow_partial=True)
    report = loras.reports[0]
    assert not report.complete and report.bound_tensors == report.tensors - 6
    assert "NOT APPLIED: 6 tensors" in report.table()
    assert report.as_json()["complete"] is False
    zeroed = {
        n: torch.zeros_like(t) if "adaln_proj" in n and "blocks" in n and "lora_B" in n else t
        for n, t in original("diffusion_model.")(adapter()).items()
        if "time_embedder" not in n
    }
    assert one(write(tmp_path / "z.safetensors", zeroed), shapes=tables).reports[0].complete


def test_a_pruned_adaln_is_refused_with_its_reason_on_tables_too(tmp_path) -> None:
    tensors = {"blocks.0.adaln_proj.linear.lora_A.weight": torch.randn(4, 8),
               "blocks.0.adaln_proj.linear.lora_B.weight": torch.randn(360, 4),
               "blocks.0.norm1.diff": torch.randn(20)}  # fmt: skip
    file = write(tmp_path / "x.safetensors", tensors)
    for shapes in (SHAPES, ModelShapes.from_config(CONFIG, adaln_projections=False)):
        with pytest.raises(LoraBindingError, match=r"pruned AdaLN \(input 8\)"):
            one(file, shapes=shapes)
    assert "pruned AdaLN" in inspect_lora(file).table()
