"""Names of adapter tensors, without a file."""

from __future__ import annotations

import pytest

from lowpeak.engine.lora.keymap import Key, Payload, interleaved_by_marks, read_key
from lowpeak.engine.lora.marks import looks_like
from lowpeak.engine.lora.modules import (
    DIFFUSERS_TAILS,
    Rows,
    block_index,
    is_model_name,
    targets,
    touches_adaln,
    with_orig,
)


@pytest.mark.parametrize(
    ("name", "module", "role", "adapter"),
    [
        ("transformer.transformer_blocks.3.attn.to_q.lora_A.weight",
         "transformer_blocks.3.attn.to_q", "down", ""),
        ("transformer_blocks.3.attn.to_out.0.lora_B.turbo.weight",
         "transformer_blocks.3.attn.to_out.0", "up", "turbo"),
        ("base_model.model.model.diffusion_model.blocks.7.mlp.fc1.lora_down.x.weight",
         "blocks.7.mlp.fc1", "down", "x"),
        ("lora_unet_token_refiner_blocks_1_attn_qkv_proj.lora_up.weight",
         "token_refiner.blocks.1.attn.qkv_proj", "up", ""),
        ("lora_unet_transformer_blocks_12_attn_orig_to_out_0.alpha",
         "transformer_blocks.12.attn.orig.to_out.0", "alpha", ""),
        ("lora_transformer_blocks_1_mlp_fc2.alpha", "blocks.1.mlp.fc2", "alpha", ""),
        ("lycoris_final_layer_adaln_proj_linear.hada_w2_b",
         "final_layer.adaln_proj.linear", "hada_w2_b", ""),
        ("blocks.0.attn.out_proj.lokr_w2_a.default", "blocks.0.attn.out_proj", "lokr_w2_a",
         "default"),
        ("blocks.0.attn.out_proj.lora_magnitude_vector.default.weight",
         "blocks.0.attn.out_proj", "magnitude", "default"),
        ("blocks.0.attn.out_proj.dora_scale", "blocks.0.attn.out_proj", "magnitude", ""),
        ("diffusion_model.condition_proj.diff_b", "condition_proj", "diff_b", ""),
        ("transformer_blocks.0.attn.to_q.lora.down.weight",
         "transformer_blocks.0.attn.to_q", "down", ""),
        ("transformer_blocks.0.attn.linear_attention.alpha.down.lora_A.weight",
         "transformer_blocks.0.attn.linear_attention.alpha.down", "down", ""),
    ],
)  # fmt: skip
def test_a_key_is_a_module_a_role_and_an_adapter(name, module, role, adapter) -> None:
    key = read_key(name)
    assert isinstance(key, Key), key
    assert (key.module, key.role, key.adapter, key.name) == (module, role, adapter, name)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("diffusion_model.blocks.0.attn.to_gate_compress.weight", "vsa-gate"),
        ("blocks.0.attn.to_gate_compress.lora_A.weight", "vsa-gate"),
        ("lora_unet_blocks_0_attn_to_gate_compress.lora_down.weight", "vsa-gate"),
        ("final_layer.pdd_heads.3.weight", "interval-heads"),
        ("final_layer.video_out.interval_head.2.weight", "interval-heads"),
        ("adaln_t_table", "pruned-adaln-table"),
        ("lora_te1_text_model_encoder_layers_0_mlp_fc1.lora_down.weight", "text-encoder"),
        ("text_encoder.layers.0.lora_A.weight", "text-encoder"),
        ("transformer_ref.transformer_blocks.0.attn.to_q.lora_A.weight", "reference-transformer"),
        ("blocks.0.attn.qkv_proj.weight", "full-weight"),
        ("blocks.0.attn.qkv_proj.weight_scale", "quantised-weight"),
        ("blocks.0.mlp.fc1.set_weight", "replacement"),
        ("blocks.0.mlp.fc1.oft_blocks", "oft"),
        ("blocks.0.mlp.fc1.b1.weight", "glora"),
        ("transformer_blocks.0.attn.linear_attention.alpha.dt_bias", "unknown"),
        ("emb_params", "textual-inversion"),
        ("", "unknown"),
        ("lora_A.weight", "full-weight"),
        (".lora_A.weight", "full-weight"),
    ],
)
def test_what_is_not_a_lora_is_named(name, kind) -> None:
    item = read_key(name)
    assert isinstance(item, Payload) and item.kind == kind and item.reason, item


def test_fused_rows_split_into_three_targets() -> None:
    stacked = targets("blocks.4.attn.qkv_proj", interleaved=False)
    assert [t.module for t in stacked] == [f"transformer_blocks.4.attn.to_{x}" for x in "qkv"]
    assert [t.rows.slices(24, 4) for t in stacked] == [((0, 8),), ((8, 16),), ((16, 24),)]
    mixed = targets("token_refiner.blocks.1.attn.qkv_proj", interleaved=True)
    assert mixed[1].module == "token_refiner.refiner_blocks.1.attn.to_k"
    assert mixed[1].rows.slices(24, 4) == ((4, 8), (16, 20))
    assert mixed[2].rows.count(24) == 8


def test_feed_forward_halves_change_places_in_original_names_only() -> None:
    (old,) = targets("blocks.0.mlp.fc1", interleaved=False)
    assert old.module == "transformer_blocks.0.ff.net.0.proj"
    assert old.rows.slices(6, 128) == ((3, 6), (0, 3))
    (new,) = targets("transformer_blocks.0.ff.net.0.proj", interleaved=True)
    assert new.rows == Rows() and new.rows.slices(6, 128) == ((0, 6),)


@pytest.mark.parametrize(
    ("kind", "rows", "head_dim"),
    [("swap_halves", 7, 1), ("third", 8, 1), ("interleaved_third", 12, 3),
     ("interleaved_third", 12, 0)],
)  # fmt: skip
def test_rows_that_do_not_divide_are_refused(kind, rows, head_dim) -> None:
    with pytest.raises(ValueError, match="do not divide"):
        Rows(kind).slices(rows, head_dim)


def test_every_slice_layout_is_a_permutation_over_its_parts() -> None:
    for kind in ("third", "interleaved_third"):
        taken = [
            row
            for part in range(3)
            for start, stop in Rows(kind, part).slices(96, 8)
            for row in range(start, stop)
        ]
        assert sorted(taken) == list(range(96)), kind


@pytest.mark.parametrize(
    ("names", "interleaved"),
    [
        (["blocks.0.attn.qkv_proj.lora_A.default.weight"], True),
        (["diffusion_model.blocks.0.mlp.fc2.lora_B.default.weight"], True),
        (["blocks.0.attn.qkv_proj.lora_A.weight"], False),
        (["blocks.0.attn.qkv_proj.lora_A.turbo.weight"], False),
        (["transformer_blocks.0.attn.to_q.lora_A.default.weight"], False),
        (["lora_unet_blocks_0_attn_qkv_proj.lora_down.default.weight"], False),
        ([], False),
    ],
)
def test_interleaving_is_decided_by_the_producers_mark(names, interleaved) -> None:
    keys = [key for key in map(read_key, names) if isinstance(key, Key)]
    assert len(keys) == len(names)
    assert interleaved_by_marks(keys) is interleaved


def test_model_names_know_the_orig_level_and_the_old_branch_names() -> None:
    for name in ("to_q", "to_k", "to_v", "to_out.0", "norm_q", "norm_k"):
        plain = f"transformer_blocks.9.attn.{name}"
        orig = f"transformer_blocks.9.attn.orig.{name}"
        assert with_orig(plain) == orig and with_orig(orig) == orig
        assert targets(orig, interleaved=False)[0].module == plain
    assert with_orig("transformer_blocks.9.attn.to_out_linear").count("orig") == 0
    refiner = "token_refiner.refiner_blocks.0.attn.to_q"
    assert with_orig(refiner) == refiner
    for old, new in (
        ("far.gate.up", "linear_attention.output_gate.up"),
        ("far.alpha.down", "linear_attention.alpha.down"),
        ("local_gate.up", "softmax_gate.up"),
        ("w_o_far", "to_out_linear"),
    ):
        (target,) = targets(f"transformer_blocks.2.attn.{old}", interleaved=False)
        assert target.module == f"transformer_blocks.2.attn.{new}"
        assert is_model_name(target.module)
    assert all(is_model_name(f"transformer_blocks.0.{tail}") for tail in DIFFUSERS_TAILS)
    assert not is_model_name("token_refiner.refiner_blocks.0.adaln_proj.linear")
    assert not is_model_name("transformer_blocks.0.attn.add_q_proj")
    assert block_index("transformer_blocks.31.norm1") == 31
    assert block_index("token_refiner.refiner_blocks.1.norm1") is None
    assert touches_adaln("transformer_blocks.0.adaln_proj.linear")
    assert touches_adaln("time_embedder.linear_2") and not touches_adaln("norm_out.linear")


@pytest.mark.parametrize(
    ("family", "names"),
    [
        ("Stable Diffusion XL",
         {"lora_unet_down_blocks_1_attentions_0_transformer_blocks_0_attn2_to_k.lora_down.weight":
          (8, 2048)}),
        ("Stable Diffusion 1",
         {"lora_unet_down_blocks_1_attentions_0_transformer_blocks_0_attn2_to_k.lora_down.weight":
          (8, 768)}),
        ("Stable Diffusion 3", {"diffusion_model.joint_blocks.0.x_block.attn.qkv.lora_A.weight":
                                (4, 1536)}),
        ("Flux", {"transformer.single_transformer_blocks.3.attn.to_q.lora_A.weight": (16, 3072)}),
        ("Flux", {"lora_unet_double_blocks_0_img_attn_qkv.lora_down.weight": (16, 3072)}),
        ("HunyuanVideo", {"diffusion_model.double_blocks.2.img_attn_qkv.lora_A.weight": (8, 3072)}),
        ("HunyuanVideo", {"lora_unet_double_blocks_19_img_attn_qkv.lora_down.weight": (8, 3072)}),
        ("Wan", {"diffusion_model.blocks.0.self_attn.q.lora_A.weight": (16, 5120)}),
        ("Wan", {"lora_unet_blocks_0_cross_attn_k.lora_down.weight": (16, 5120)}),
        ("LTX-Video", {"transformer.transformer_blocks.0.attn1.to_q.lora_A.weight": (8, 2048)}),
        ("LTX-2 (audio and video)",
         {"diffusion_model.transformer_blocks.0.audio_attn1.to_q.lora_A.weight": (8, 2048)}),
        ("CogVideoX", {"transformer.transformer_blocks.0.attn1.to_q.lora_A.weight": (8, 3072)}),
        ("Qwen-Image", {"transformer_blocks.0.img_mlp.net.2.lora_A.weight": (16, 12288)}),
        ("Qwen-Image", {"transformer_blocks.59.attn.add_q_proj.lora_A.weight": (16, 3072)}),
        ("Z-Image or Lumina", {"diffusion_model.layers.0.attention.qkv.lora_A.weight": (8, 3840)}),
        ("a text encoder", {"model.layers.0.self_attn.q_proj.lora_A.weight": (8, 5120)}),
        ("MiniMax H3", {"diffusion_model.blocks.0.attn.qkv_proj.lora_A.weight": (8, 5376)}),
        ("MiniMax H3", {"transformer_blocks.0.attn.to_q.lora_A.weight": (8, 5376)}),
        ("", {"something.else": (3,)}),
    ],
)  # fmt: skip
def test_other_model_families_are_recognised(family, names) -> None:
    assert looks_like(names) == family
