"""Adapters against recorded merges of other programs, and online against merged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file

from lowpeak.engine.lora.apply import (
    Difference,
    add_online_,
    merge_into,
    merge_quantised,
    merge_tensors,
    online_delta,
)
from lowpeak.engine.lora.keymap import Key, read_key
from lowpeak.engine.lora.loading import inspect_lora, load_loras
from lowpeak.engine.lora.modules import targets
from lowpeak.engine.lora.shapes import ModelShapes
from lowpeak.engine.request import LoraChoice
from lowpeak.kernels.reference import quantise
from lowpeak.kernels.weights import Weight

QUANTISED = ("fp8-rowwise", "fp8-tensor", "int8-convrot")


def families(golden_dir: Path) -> list[str]:
    with safe_open(golden_dir / "lora_expected.safetensors", "pt") as file:
        return json.loads(file.metadata()["fixture"])["families"]


@pytest.fixture(scope="module")
def base(golden_dir: Path) -> dict[str, torch.Tensor]:
    return load_file(golden_dir / "lora_base.safetensors")


@pytest.fixture(scope="module")
def expected(golden_dir: Path) -> dict[str, torch.Tensor]:
    return load_file(golden_dir / "lora_expected.safetensors")


@pytest.fixture(scope="module")
def shapes(base: dict[str, torch.Tensor]) -> ModelShapes:
    return ModelShapes.from_parameters({name: tuple(t.shape) for name, t in base.items()})


def choice(golden_dir: Path, family: str, strength: float = 1.0) -> LoraChoice:
    return LoraChoice(str(golden_dir / f"lora_{family}.safetensors"), strength)


def error(found: torch.Tensor, wanted: torch.Tensor) -> float:
    return float((found.double() - wanted.double()).abs().max() / wanted.double().abs().max())


def test_golden_merged_weights_parity(golden_dir, base, expected, shapes) -> None:
    for family in families(golden_dir):
        loras = load_loras([choice(golden_dir, family)], shapes)
        # The interleaved file is the stacked one in another row order: one recorded result.
        key = "comfy_stacked/" if family == "diffsynth" else f"{family}/"
        wanted = {n.removeprefix(key): t for n, t in expected.items() if n.startswith(key)}
        assert set(loras.differences) == set(wanted), family
        worst = 0.0
        for name, tensor in wanted.items():
            merged = merge_into(base[name], loras.differences[name])
            assert error(merged, base[name]) > 1e-3, f"{name} did not change"
            worst = max(worst, error(merged, tensor))
        print(f"PARITY | LoRA merged weights, {family} | recorded merge | {worst:.1e}")
        assert worst <= 1e-6, family
        report = loras.reports[0]
        assert report.complete and report.bound_tensors == report.tensors
        assert report.modules == len({n.rpartition(".")[0] for n in wanted})


def test_golden_interleaved_and_stacked_files_give_the_same_weights(
    golden_dir, base, shapes
) -> None:
    one = load_loras([choice(golden_dir, "diffsynth")], shapes)
    two = load_loras([choice(golden_dir, "comfy_stacked")], shapes)
    assert set(one.differences) == set(two.differences)
    for name in one.differences:
        assert torch.equal(
            merge_into(base[name], one.differences[name]),
            merge_into(base[name], two.differences[name]),
        ), name


def test_golden_original_layout_base_is_the_same_model_under_targets(golden_dir, base) -> None:
    """The fused base file, split and swapped by our own rows, is the base file in our names."""
    fused = load_file(golden_dir / "lora_base_comfy_layout.safetensors")
    seen = set()
    for name, tensor in fused.items():
        module, _, part = name.rpartition(".")
        for target in targets(module, interleaved=False):
            pieces = target.rows.slices(tensor.shape[0], 128)
            ours = torch.cat([tensor[start:stop] for start, stop in pieces])
            assert torch.equal(ours, base[f"{target.module}.{part}"]), name
            seen.add(f"{target.module}.{part}")
    assert seen == set(base)


def test_golden_bf16_merges_follow_one_another(golden_dir, base, expected, shapes) -> None:
    key = "bf16_sequential_comfy_then_peft/"
    wanted = {n.removeprefix(key): t for n, t in expected.items() if n.startswith(key)}
    assert wanted
    files = [
        load_loras([choice(golden_dir, f)], shapes) for f in ("comfy_stacked", "peft_mixed_rank")
    ]
    for name, tensor in wanted.items():
        merged = base[name].to(torch.bfloat16)
        for loras in files:
            merged = merge_into(merged, loras.differences[name])
        assert merged.dtype == torch.bfloat16
        step = torch.nextafter(tensor.abs(), torch.full_like(tensor, torch.inf)) - tensor.abs()
        assert bool(((merged.float() - tensor.float()).abs() <= step.float()).all()), name
        assert (merged != tensor).float().mean() < 1e-3, name


@pytest.mark.parametrize("kind", QUANTISED)
def test_golden_online_equals_merged_within_the_quantisation_error(
    golden_dir, base, shapes, kind
) -> None:
    generator = torch.Generator().manual_seed(71)
    for family in families(golden_dir):
        loras = load_loras([choice(golden_dir, family, 0.7)], shapes)
        branches = loras.branches(0, torch.float32)
        for module, branch in branches.items():
            name = f"transformer_blocks.0.{module}.weight"
            quantised = quantise.quantise_weight(base[name], kind)
            exact = quantise.dequantise(quantised)
            codes, scale = merge_quantised(
                quantised.codes, quantised.scale, kind, loras.differences[name]
            )
            assert codes.dtype == quantised.codes.dtype and scale.shape == quantised.scale.shape
            merged = quantise.dequantise(Weight(kind, codes, scale))
            y = torch.randn(33, base[name].shape[1], generator=generator)
            online = y @ exact.T + online_delta(y, branch)
            # What requantising alone does to the sum of both, at these rows:
            total = exact + loras.delta(name)
            lost = merged - total
            assert error(online, y @ total.T) <= 1e-5, (family, module)
            bound = (y.abs() @ lost.abs().T) + 1e-5 * online.abs().max()
            assert bool(((y @ merged.T - online).abs() <= bound).all()), (family, module)
            assert error(merged, total) <= (0.04 if kind.startswith("fp8") else 0.02)
    assert branches or family == "comfy_diff"


@pytest.mark.parametrize("kind", QUANTISED)
def test_golden_every_file_merges_into_every_quantised_base(golden_dir, base, shapes, kind) -> None:
    linears = [n for n, t in base.items() if n.startswith("transformer_blocks.0.") and t.ndim == 2]
    tensors = {
        n.removeprefix("transformer_blocks.0.").removesuffix(".weight"): quantise.quantise_weight(
            base[n], kind
        )
        for n in linears
        if "adaln" not in n
    }
    for family in families(golden_dir):
        loras = load_loras([choice(golden_dir, family)], shapes)
        changed = merge_tensors(tensors, loras.merges(0, online=False))
        for module, weight in tensors.items():
            wanted = loras.delta(f"transformer_blocks.0.{module}.weight")
            if wanted is None:
                assert changed[module] is weight, "an untouched weight was copied"
                continue
            total = quantise.dequantise(weight) + wanted
            assert error(quantise.dequantise(changed[module]), total) <= 0.04
        rest = loras.merges(0, online=True)
        assert not set(rest) & {f"{name}.weight" for name in loras.branches(0)}


def test_golden_several_loras_add_up_and_their_order_is_irrelevant(
    golden_dir, base, shapes
) -> None:
    listed = [
        choice(golden_dir, "peft_mixed_rank", -4.0),
        choice(golden_dir, "kohya", 3.3),
        choice(golden_dir, "diffsynth", 0.25),
        choice(golden_dir, "comfy_diff", 4.0),
        choice(golden_dir, "kohya", -1.1),
    ]
    sets = [load_loras(order, shapes) for order in (listed, listed[::-1], listed[2:] + listed[:2])]
    assert len({item.identity for item in sets}) == 1
    assert [r.strength for r in sets[0].reports] == [c.strength for c in listed]
    single = {c: load_loras([LoraChoice(c.file, 1.0)], shapes) for c in set(listed)}
    for name, differences in sets[0].differences.items():
        merged = [merge_into(base[name], item.differences[name]) for item in sets]
        assert torch.equal(merged[0], merged[1]) and torch.equal(merged[0], merged[2]), name
        codes = [
            merge_quantised(*_rowwise(base[name]), item.differences[name])[0].view(torch.uint8)
            for item in sets
            if base[name].ndim == 2
        ]
        assert all(torch.equal(codes[0], other) for other in codes[1:]), name
        total = base[name].double()
        for item in listed:
            delta = single[item].delta(name)
            if delta is not None:
                total = total + item.strength * delta.double()
        assert error(merged[0], total) <= 1e-5, name
        assert len(differences) >= 1
    y = torch.randn(9, 24, generator=torch.Generator().manual_seed(5)).bfloat16()
    outputs = [online_delta(y, item.branches(0)["attn.to_q"]) for item in sets]
    assert torch.equal(outputs[0], outputs[1]) and torch.equal(outputs[0], outputs[2])


def test_golden_strength_zero_is_no_work_at_all(golden_dir, base, shapes) -> None:
    loras = load_loras([choice(golden_dir, f, 0.0) for f in families(golden_dir)], shapes)
    assert not loras and loras.identity == "" and loras.branches(0) == {}
    assert all(report.complete and report.strength == 0 for report in loras.reports)
    out = torch.randn(3, 256)
    assert add_online_(out, torch.randn(3, 24), loras.branches(0).get("attn.to_q")) is out
    weight = base["transformer_blocks.0.attn.to_q.weight"]
    assert merge_into(weight, loras.differences.get("x", ())) is weight
    codes, scale = quantise.quantise_fp8_rowwise(weight)
    same_codes, same_scale = merge_quantised(codes, scale, "fp8-rowwise", ())
    assert same_codes is codes and same_scale is scale


def test_golden_online_branch_in_bf16_is_near_the_fp32_one(golden_dir, shapes) -> None:
    loras = load_loras(
        [choice(golden_dir, "kohya", 2.0), choice(golden_dir, "diffsynth", -0.5)], shapes
    )
    generator = torch.Generator().manual_seed(3)
    for module, branch in loras.branches(0).items():
        exact = loras.branches(0, torch.float32)[module]
        assert branch.size_bytes == loras.branch_bytes(0) or len(loras.branches(0)) > 1
        y = torch.randn(17, branch.down.shape[1], generator=generator)
        wanted = online_delta(y, exact)
        out = torch.full((17, branch.up.shape[0]), 0.125, dtype=torch.bfloat16)
        add_online_(out, y.bfloat16(), branch)
        assert error(out.float() - 0.125, wanted) < 3e-2, module
    total = sum(branch.size_bytes for branch in loras.branches(0).values())
    assert total == loras.branch_bytes(0)
    root = sum(branch.size_bytes for branch in loras.branches(None).values())
    assert root == loras.branch_bytes(None) > 0


def test_golden_files_are_inspected_without_a_checkpoint(golden_dir) -> None:
    for family in families(golden_dir):
        report = inspect_lora(golden_dir / f"lora_{family}.safetensors")
        assert report.complete and report.bound_tensors == report.tensors > 0
        assert str(golden_dir) not in report.table() + json.dumps(report.as_json())
        assert "no checkpoint" in report.table()


def test_golden_deltas_of_one_family_differ_when_a_mark_is_misread(golden_dir, shapes) -> None:
    """The interleaved file read as stacked is another adapter: the mark matters."""
    loras = load_loras([choice(golden_dir, "diffsynth")], shapes)
    names = load_file(golden_dir / "lora_diffsynth.safetensors")
    assert all(isinstance(read_key(name), Key) for name in names)
    item: Difference = loras.differences["transformer_blocks.0.attn.to_k.weight"][0]
    up = names["blocks.0.attn.qkv_proj.lora_B.default.weight"]
    down = names["blocks.0.attn.qkv_proj.lora_A.default.weight"]
    stacked = up[up.shape[0] // 3 : 2 * up.shape[0] // 3] @ down
    assert error(item.delta(), stacked) > 0.5


def _rowwise(weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, str]:
    if weight.ndim != 2:
        weight = weight.reshape(1, -1)
    return (*quantise.quantise_fp8_rowwise(weight), "fp8-rowwise")
