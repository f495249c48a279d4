"""One random adapter, written in every style, must give the same weights; and the other kinds."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
import torch
from lora_adapters import (
    CONFIG,
    RANK,
    SHAPES,
    Adapter,
    adapter,
    diffusers,
    expanded,
    flat,
    interleaved,
    one,
    original,
    split,
    with_orig,
    write,
)
from torch import Tensor

from lowpeak.engine.lora.apply import (
    MERGE_TILE_ROWS,
    Difference,
    add_online_,
    merge_quantised,
    merge_tensors,
)
from lowpeak.engine.lora.errors import LoraBindingError
from lowpeak.engine.lora.loading import load_loras
from lowpeak.engine.lora.shapes import ModelShapes
from lowpeak.engine.model.config import ModelConfig
from lowpeak.engine.request import LoraChoice
from lowpeak.kernels.reference import quantise
from lowpeak.kernels.weights import Weight

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
