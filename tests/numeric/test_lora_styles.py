"""One random adapter, written in every style, must give the same weights; and the other kinds."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from lowpeak.engine.lora.apply import (
    MERGE_TILE_ROWS,
    Difference,
    adaln_table_with,
    add_online_,
    merge_into,
    merge_quantised,
    merge_tensors,
    online_delta,
)
from lowpeak.engine.lora.errors import LoraBindingError, LoraFileError
from lowpeak.engine.lora.loading import inspect_lora, load_loras
from lowpeak.engine.lora.shapes import ModelShapes
from lowpeak.engine.model.config import ModelConfig
from lowpeak.engine.request import LoraChoice
from lowpeak.kernels.reference import quantise
from lowpeak.kernels.weights import Weight

CONFIG = ModelConfig(
    layers=2, refiner_layers=1, heads=3, head_dim=16, hidden=20, ffn=28, text_dim=12,
    freq_dim=10, time_hidden=14, time_dim=11,
)  # fmt: skip
RANK = 4
SHAPES = ModelShapes.from_config(CONFIG)
Adapter = dict[str, tuple[Tensor, Tensor]]  # original module name -> (down, up), stacked rows


def adapter(seed: int = 11) -> Adapter:
    """Random factors for every linear of the model under its original name."""
    draw = torch.Generator().manual_seed(seed)
    inner, hidden, ffn = CONFIG.inner, CONFIG.hidden, CONFIG.ffn
    sizes = {
        "attn.qkv_proj": (3 * inner, hidden), "attn.out_proj": (hidden, inner),
        "mlp.fc1": (2 * ffn, hidden), "mlp.fc2": (hidden, ffn),
    }  # fmt: skip
    linears = {f"blocks.{i}.{n}": s for i in range(2) for n, s in sizes.items()}
    linears |= {f"token_refiner.blocks.0.{n}": s for n, s in sizes.items()}
    linears |= {f"blocks.{i}.adaln_proj.linear": (18 * hidden, CONFIG.time_dim) for i in range(2)}
    linears |= {
        "final_layer.adaln_proj.linear": (2 * hidden, CONFIG.time_dim),
        "condition_proj": (hidden, CONFIG.text_dim),
        "video_patch_proj": (hidden, 96),
        "time_embedder.proj_in": (14, 10),
        "final_layer.audio_out": (32, hidden),
    }
    return {
        name: (
            torch.randn(RANK, columns, generator=draw),
            torch.randn(rows, RANK, generator=draw),
        )
        for name, (rows, columns) in linears.items()
    }


RENAMED = {
    "attn.out_proj": "attn.to_out.0", "mlp.fc1": "ff.net.0.proj", "mlp.fc2": "ff.net.2",
    "final_layer.adaln_proj.linear": "norm_out.linear", "condition_proj": "context_embedder",
    "video_patch_proj": "proj_in", "time_embedder.proj_in": "time_embedder.linear_1",
    "final_layer.audio_out": "audio_proj_out",
}  # fmt: skip


def split(weights: Adapter) -> Adapter:
    """The same adapter under diffusers names: an independent spelling of the layout rules."""
    found: Adapter = {}
    for name, (down, up) in weights.items():
        new = name.replace("token_refiner.blocks", "token_refiner.refiner_blocks")
        new = "transformer_" + new if new.startswith("blocks.") else new
        if name.endswith("qkv_proj"):
            for letter, rows in zip("qkv", up.chunk(3), strict=True):
                found[new.replace("qkv_proj", f"to_{letter}")] = (down, rows)
            continue
        if name.endswith("fc1"):
            gate, value = up.chunk(2)
            up = torch.cat([value, gate])
        for old, renamed in RENAMED.items():
            new = new.replace(old, renamed)
        found[new] = (down, up)
    return found


def interleave(up: Tensor) -> Tensor:
    """Stacked [q; k; v] rows to per-head [q0 k0 v0 q1 ...]."""
    return torch.cat(
        [part[head * 16 : head * 16 + 16] for head in range(CONFIG.heads) for part in up.chunk(3)]
    )


def pairs(weights: Adapter, down: str, up: str, name: Callable[[str], str] = str) -> dict:
    return {
        f"{name(module)}.{part}": tensor.clone()
        for module, factors in weights.items()
        for part, tensor in zip((down, up), factors, strict=True)
    }


def diffusers(prefix: str, down: str = "lora_A.weight", up: str = "lora_B.weight") -> Callable:
    return lambda a: pairs(split(a), down, up, lambda m: prefix + m)


def original(prefix: str, down: str = "lora_A.weight", up: str = "lora_B.weight") -> Callable:
    return lambda a: pairs(a, down, up, lambda m: prefix + m)


def flat(prefix: str, source: Callable[[Adapter], Adapter] = dict) -> Callable:
    def write(weights: Adapter) -> dict[str, Tensor]:
        named = source(weights)
        found = pairs(
            named, "lora_down.weight", "lora_up.weight", lambda m: prefix + m.replace(".", "_")
        )
        alphas = {f"{prefix}{m.replace('.', '_')}.alpha": torch.tensor(float(RANK)) for m in named}
        return found | alphas

    return write


def interleaved(prefix: str) -> Callable:
    def write(weights: Adapter) -> dict[str, Tensor]:
        raw = {
            name: (down, interleave(up) if name.endswith("qkv_proj") else up)
            for name, (down, up) in weights.items()
        }
        return original(prefix, "lora_A.default.weight", "lora_B.default.weight")(raw)

    return write


def with_orig(prefix: str, adapter_name: str) -> Callable:
    def write(weights: Adapter) -> dict[str, Tensor]:
        names = diffusers(prefix, f"lora_A.{adapter_name}.weight", f"lora_B.{adapter_name}.weight")(
            weights
        )
        return {
            n.replace(".attn.", ".attn.orig.") if "refiner" not in n else n: t
            for n, t in names.items()
        }

    return write


def expanded(prefix: str) -> Callable:
    return lambda a: {f"{prefix}{m}.diff": up @ down for m, (down, up) in a.items()}


STYLES: dict[str, Callable[[Adapter], dict[str, Tensor]]] = {
    "diffusers": diffusers("transformer."),
    "diffusers bare": diffusers(""),
    "diffusers down/up": diffusers("transformer.", "lora.down.weight", "lora.up.weight"),
    "peft default": diffusers("", "lora_A.default.weight", "lora_B.default.weight"),
    "peft named": diffusers("base_model.model.", "lora_A.turbo.weight", "lora_B.turbo.weight"),
    "peft vdn": with_orig("", "turbo"),
    "peft vdn wrapped": with_orig("base_model.model.", "default"),
    "kohya-dotted": diffusers("diffusion_model.", "lora_down.weight", "lora_up.weight"),
    "original": original("diffusion_model."),
    "original bare": original(""),
    "original wrapped": original("model.diffusion_model.", "lora_down.weight", "lora_up.weight"),
    "original peft": original("base_model.model."),
    "original, another adapter name": original("", "lora_A.mine.weight", "lora_B.mine.weight"),
    "musubi": flat("lora_unet_"),
    "musubi, diffusers names": flat("lora_unet_", split),
    "lycoris": flat("lycoris_"),
    "interleaved": interleaved(""),
    "interleaved, prefix": interleaved("diffusion_model."),
    "full differences": expanded("diffusion_model."),
}


def write(path: Path, tensors: dict[str, Tensor], metadata: dict[str, str] | None = None) -> Path:
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, path, metadata)
    return path


def one(path: Path, strength: float = 1.0, shapes: ModelShapes = SHAPES):
    return load_loras([LoraChoice(str(path), strength)], shapes)


@pytest.mark.parametrize("style", STYLES)
def test_every_style_of_one_adapter_gives_the_same_differences(tmp_path, style) -> None:
    weights = adapter()
    loras = one(write(tmp_path / "x.safetensors", STYLES[style](weights)), 0.5)
    wanted = split(weights)
    report = loras.reports[0]
    assert report.complete and report.bound_tensors == report.tensors, report.table()
    assert report.modules == len(wanted) == len(loras.differences)
    for module, (down, up) in wanted.items():
        name = f"{module}.weight"
        if name.startswith("transformer_blocks") and ".attn." in name:
            name = name.replace(".attn.", ".attn.orig.")
        assert name in SHAPES.parameters
        torch.testing.assert_close(loras.delta(name), 0.5 * (up @ down), rtol=1e-5, atol=1e-5)


def test_interleaving_is_read_from_the_names_and_only_from_them(tmp_path) -> None:
    weights = adapter()
    same_numbers = original("", "lora_A.weight", "lora_B.weight")(weights)
    marked = original("", "lora_A.default.weight", "lora_B.default.weight")(weights)
    flat_marked = {
        n.replace(".lora_down.weight", ".lora_down.default.weight"): t
        for n, t in flat("lora_unet_")(weights).items()
    }
    key = "transformer_blocks.1.attn.orig.to_k.weight"
    plain = one(write(tmp_path / "a.safetensors", same_numbers)).delta(key)
    other = one(write(tmp_path / "b.safetensors", marked)).delta(key)
    flatten = one(write(tmp_path / "c.safetensors", flat_marked)).delta(key)
    assert not torch.allclose(plain, other, atol=0.1)
    torch.testing.assert_close(plain, flatten)


def test_a_dense_model_in_published_names_binds_without_the_orig_level(tmp_path) -> None:
    names = {n.replace(".attn.orig.", ".attn."): s for n, s in SHAPES.parameters.items()}
    file = write(tmp_path / "x.safetensors", with_orig("", "t")(adapter()))
    loras = one(file, shapes=ModelShapes.from_parameters(names))
    assert "transformer_blocks.0.attn.to_q.weight" in loras.differences
    # As assembled, the dense model keeps the level; a merge finds either spelling.
    assembled = one(file, shapes=ModelShapes.from_config(CONFIG.dense()))
    assert "transformer_blocks.0.attn.orig.to_q.weight" in assembled.differences
    for key, found in (("attn.orig.to_q", loras), ("attn.to_q", assembled)):
        weights = {key: Weight("plain", torch.zeros(48, 20))}
        merges = {n: d for n, d in found.merges(0, online=False).items() if "to_q" in n}
        assert bool(merge_tensors(weights, merges)[key].codes.any())


def test_a_pruned_checkpoint_takes_pruned_adaln_layers_and_no_others(tmp_path) -> None:
    pruned = ModelShapes.from_config(CONFIG, pruned_width=8)
    tensors = {"blocks.0.adaln_proj.linear.lora_A.weight": torch.randn(4, 8),
               "blocks.0.adaln_proj.linear.lora_B.weight": torch.randn(360, 4)}  # fmt: skip
    assert one(write(tmp_path / "x.safetensors", tensors), shapes=pruned).reports[0].complete
    whole = {n: torch.randn(4, 11) if "lora_A" in n else t for n, t in tensors.items()}
    with pytest.raises(LoraBindingError, match="this checkpoint's is pruned"):
        one(write(tmp_path / "y.safetensors", whole), shapes=pruned)


def test_alpha_comes_from_the_tensor_then_the_metadata_then_the_rank(tmp_path) -> None:
    down, up = torch.randn(RANK, 20), torch.randn(48, RANK)
    tensors = {"transformer_blocks.0.attn.to_q.lora_A.weight": down,
               "transformer_blocks.0.attn.to_q.lora_B.weight": up}  # fmt: skip
    alpha = {"transformer_blocks.0.attn.to_q.alpha": torch.tensor(3.0, dtype=torch.bfloat16)}
    peft = {"transformer.r": RANK, "transformer.lora_alpha": 10}
    cases = {
        "rank": (tensors, None, 1.0),
        "tensor": (tensors | alpha, {"alpha": "9"}, 3 / RANK),
        "metadata": (tensors, {"alpha": "9"}, 9 / RANK),
        "not a number": (tensors, {"alpha": "auto"}, 1.0),
        "not finite": (tensors, {"alpha": "nan"}, 1.0),
        "configuration": (tensors, {"lora_adapter_metadata": json.dumps(peft)}, 10 / RANK),
        "root of rank": (
            tensors,
            {"lora_adapter_metadata": json.dumps(peft | {"transformer.use_rslora": True})},
            10 / RANK**0.5,
        ),
        "own alpha": (
            tensors,
            {"lora_adapter_metadata": json.dumps(
                {"lora_alpha": 10, "alpha_pattern": {"0.attn.to_q": 2}})},
            2 / RANK,
        ),
    }  # fmt: skip
    for case, (content, metadata, scale) in cases.items():
        loras = one(write(tmp_path / "x.safetensors", content, metadata))
        found = loras.delta("transformer_blocks.0.attn.orig.to_q.weight")
        torch.testing.assert_close(found, scale * (up @ down), msg=lambda m, c=case: f"{c}: {m}")
        assert ("not a number" in " ".join(loras.reports[0].notes)) == case.startswith("not")


def test_a_peft_folder_is_read_with_its_configuration(tmp_path) -> None:
    tensors = {"transformer_blocks.0.ff.net.2.lora_A.weight": torch.ones(RANK, 28),
               "transformer_blocks.0.ff.net.2.lora_B.weight": torch.ones(20, RANK)}  # fmt: skip
    file = write(tmp_path / "adapter_model.safetensors", tensors)
    for name in ("adapter_spec.json", "adapter_config.json"):  # the second wins when both exist
        (tmp_path / name).write_text(json.dumps({"lora_alpha": 2 if "config" in name else 8}))
        loras = one(file)
        scale = 2 / RANK if "config" in name else 8 / RANK
        assert name in loras.reports[0].scale_source
        found = loras.delta("transformer_blocks.0.ff.net.2.weight")
        torch.testing.assert_close(found, torch.full((20, 28), scale * RANK))


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


def test_online_branches_join_along_rank_in_one_order(tmp_path) -> None:
    files = [
        write(tmp_path / f"{seed}.safetensors", original("")(adapter(seed))) for seed in (1, 2, 3)
    ]
    choices = [LoraChoice(str(f), s) for f, s in zip(files, (4.0, -4.0, 0.3), strict=True)]
    forward, backward = load_loras(choices, SHAPES), load_loras(choices[::-1], SHAPES)
    assert set(forward.branches(0)) == {
        "attn.orig.to_q", "attn.orig.to_k", "attn.orig.to_v", "attn.orig.to_out.0",
        "ff.net.0.proj", "ff.net.2",
    }  # fmt: skip
    draw = torch.Generator().manual_seed(8)
    for module, branch in forward.branches(0).items():
        other = backward.branches(0)[module]
        assert branch.down.shape[0] == 3 * RANK and branch.down.dtype == torch.bfloat16
        y = torch.randn(6, branch.down.shape[1], generator=draw, dtype=torch.bfloat16)
        one_way = add_online_(torch.ones(6, branch.up.shape[0], dtype=torch.bfloat16), y, branch)
        other_way = add_online_(torch.ones(6, branch.up.shape[0], dtype=torch.bfloat16), y, other)
        assert torch.equal(one_way, other_way)
        exact = y.float() @ forward.delta(f"transformer_blocks.0.{module}.weight").T
        error = (one_way.float() - 1 - exact).abs().max() / exact.abs().max()
        assert error < 2e-2, module
    moved = forward.branches(0)["ff.net.2"].to("cpu")
    assert moved.down.shape == (12, 28)


@pytest.mark.parametrize("kind", ["fp8-rowwise", "fp8-tensor", "int8-convrot"])
def test_a_merge_in_row_tiles_is_the_merge_of_the_whole_weight(tmp_path, kind) -> None:
    draw = torch.Generator().manual_seed(12)
    m = "diffusion_model.blocks.0.mlp.fc1"
    rows = 2 * (MERGE_TILE_ROWS - 100)  # a second tile that is short
    shapes = ModelShapes.from_parameters(
        {"transformer_blocks.0.ff.net.0.proj.weight": (rows, 32)}, adaln_tables=False
    )
    tensors = {f"{m}.lora_A.weight": torch.randn(3, 32, generator=draw),
               f"{m}.lora_B.weight": torch.randn(rows, 3, generator=draw)}  # fmt: skip
    loras = one(write(tmp_path / "x.safetensors", tensors), 0.7, shapes)
    (differences,) = loras.differences.values()
    base = quantise.quantise_weight(torch.randn(rows, 32, generator=draw), kind)
    codes, scale = merge_quantised(base.codes, base.scale, kind, differences)
    total = quantise.dequantise(base) + differences[0].delta()
    whole = quantise.quantise_weight(total, kind)
    assert codes.dtype == base.codes.dtype and scale.shape == base.scale.shape
    torch.testing.assert_close(scale, whole.scale, rtol=1e-6, atol=0)
    # A last bit of the product may round a code the other way, once in thousands.
    differ = codes.view(torch.uint8) != whole.codes.view(torch.uint8)
    assert differ.float().mean() < 1e-3
    again = merge_quantised(base.codes, base.scale, kind, [differences[0].delta()])
    assert torch.equal(again[0].view(torch.uint8), whole.codes.view(torch.uint8))
    assert loras.host_bytes == 4 * 3 * (32 + rows)


@pytest.mark.parametrize("style", ["lokr", "loha", "dora", "dora by column", "diff", "mid"])
def test_every_style_merges_by_rows_without_a_whole_difference(
    tmp_path, style, monkeypatch
) -> None:
    draw = torch.Generator().manual_seed(3)
    m, rows, columns = "diffusion_model.blocks.0.mlp.fc1", 900, 48  # fc1: halves change places

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=draw) * 0.3

    pair = {f"{m}.lora_A.weight": normal(3, columns), f"{m}.lora_B.weight": normal(rows, 3)}
    tensors = {
        "lokr": {f"{m}.lokr_w1": normal(6, 4), f"{m}.lokr_w2_a": normal(150, 5),
                 f"{m}.lokr_w2_b": normal(5, 12)},
        "loha": {f"{m}.hada_w1_a": normal(rows, 3), f"{m}.hada_w1_b": normal(3, columns),
                 f"{m}.hada_w2_a": normal(rows, 3), f"{m}.hada_w2_b": normal(3, columns)},
        "dora": pair | {f"{m}.dora_scale": normal(rows, 1).abs() + 0.5},
        "dora by column": pair | {f"{m}.dora_scale": normal(1, columns).abs() + 0.5},
        "diff": {f"{m}.diff": normal(rows, columns)},
        "mid": {f"{m}.lora_down.weight": normal(3, columns), f"{m}.lora_up.weight": normal(rows, 3),
                f"{m}.lora_mid.weight": normal(3, 3), f"{m}.dora_scale": normal(rows, 1).abs() + 1},
    }[style]  # fmt: skip
    shapes = ModelShapes.from_parameters(
        {"transformer_blocks.0.ff.net.0.proj.weight": (rows, columns)}, adaln_tables=False
    )
    loras = one(write(tmp_path / "x.safetensors", tensors), 0.6, shapes)
    (differences,) = loras.differences.values()
    base = quantise.quantise_weight(normal(rows, columns), "fp8-rowwise")
    plain = quantise.dequantise(base)
    exact = quantise.quantise_weight(plain + differences[0].delta(plain), "fp8-rowwise")
    monkeypatch.setattr(Difference, "delta", lambda *given: pytest.fail("expanded whole"))
    codes, scale = merge_quantised(base.codes, base.scale, "fp8-rowwise", differences)
    torch.testing.assert_close(scale, exact.scale, rtol=1e-5, atol=0)
    differ = codes.view(torch.uint8) != exact.codes.view(torch.uint8)
    assert differ.float().mean() < 2e-3, style
    changed = quantise.dequantise(Weight("fp8-rowwise", codes, scale)) - plain
    assert float(changed.abs().max()) > 0.1


def test_a_branch_adds_in_another_dtype_too() -> None:
    down, up = torch.randn(2, 8), torch.randn(4, 2)
    from lowpeak.engine.lora.apply import Factors, join

    branch = join([Factors(down, up, 0.5)], torch.bfloat16)
    out = torch.zeros(3, 4)
    y = torch.randn(3, 8)
    add_online_(out, y, branch)
    assert float((out - 0.5 * y @ (up @ down).T).abs().max()) < 0.2


def test_the_published_sizes_take_an_adapter_of_the_published_size(tmp_path) -> None:
    shapes = ModelShapes.from_config(ModelConfig(), adaln_projections=False)
    tensors = {
        "diffusion_model.blocks.49.attn.qkv_proj.lora_A.weight": torch.randn(1, 5376),
        "diffusion_model.blocks.49.attn.qkv_proj.lora_B.weight": torch.randn(21504, 1),
        "diffusion_model.blocks.49.mlp.fc1.lora_A.weight": torch.randn(1, 5376),
        "diffusion_model.blocks.49.mlp.fc1.lora_B.weight": torch.randn(28672, 1),
    }
    loras = one(write(tmp_path / "x.safetensors", tensors), shapes=shapes)
    assert loras.branch_bytes(49) == 3 * ((7168 + 5376) * 2 + 4) + (28672 + 5376) * 2 + 4
    assert loras.branch_bytes(48) == 0
    outside = {n.replace("49", "50"): t for n, t in tensors.items()}
    with pytest.raises(LoraBindingError, match="50 blocks only"):
        one(write(tmp_path / "y.safetensors", outside), shapes=shapes)


def test_a_quantised_checkpoint_header_is_the_same_model(tmp_path) -> None:
    names = {}
    for name, shape in SHAPES.parameters.items():
        if "adaln_proj" in name:
            continue
        if name.endswith((".to_q.weight", ".ff.net.2.weight")):
            names[name.replace(".weight", ".weight_fp8")] = shape
            names[name.replace(".weight", ".weight_scale")] = (1, 1)
        elif name == "context_embedder.bias":
            names["context_embedder.original.bias"] = shape
        else:
            names[name] = shape
    edge = ModelShapes.from_parameters(names)
    assert edge.adaln_tables and edge.head_dim == 16
    for name, shape in SHAPES.parameters.items():
        assert edge.expected(name) == shape or "adaln_proj" in name
