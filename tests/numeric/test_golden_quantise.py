"""Quantisers against the golden codes and against comfy-kitchen's eager backend."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file

from lowpeak.kernels.reference import quantise as q
from lowpeak.kernels.weights import Activation, Weight

INPUTS = ("bf16", "f32")


def error(a: torch.Tensor, b: torch.Tensor) -> float:
    return ((a.double() - b.double()).abs().max() / b.double().abs().max()).item()


def same_bytes(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and bool((bytes_of(a) == bytes_of(b)).all())


def bytes_of(x: torch.Tensor) -> torch.Tensor:
    return x.contiguous().view(torch.uint8)


@pytest.fixture(scope="module")
def convrot(golden_dir: Path) -> dict[str, torch.Tensor]:
    return load_file(golden_dir / "convrot_int8.safetensors")


@pytest.fixture(scope="module")
def convrot_group(golden_dir: Path) -> int:
    with safe_open(golden_dir / "convrot_int8.safetensors", "pt") as file:
        return int(json.loads(file.metadata()["fixture"])["group"])


@pytest.fixture(scope="module")
def fp8(golden_dir: Path) -> dict[str, torch.Tensor]:
    return load_file(golden_dir / "fp8_rowwise.safetensors")


def test_golden_rotation_is_the_signed_hadamard(convrot, convrot_group) -> None:
    signs = convrot["mid/hadamard_signs_int8"].float()
    assert torch.equal(q.hadamard(convrot_group) * convrot_group**0.5, signs)


@pytest.mark.parametrize("name", INPUTS)
def test_golden_convrot_codes_are_exact(convrot, convrot_group, name) -> None:
    codes, scale = q.quantise_int8_convrot(convrot[f"in/weight_{name}"], convrot_group)
    assert same_bytes(codes, convrot[f"out/{name}/weight_int8"])
    assert same_bytes(scale, convrot[f"out/{name}/weight_scale"])
    act = q.quantise_activation(convrot[f"in/activation_{name}"], "int8-convrot", convrot_group)
    assert same_bytes(act.codes, convrot[f"out/{name}/activation_int8"])
    assert same_bytes(act.scale, convrot[f"out/{name}/activation_scale"])
    back = q.dequantise_int8_convrot(codes, scale, convrot_group)
    assert error(back, convrot[f"out/{name}/weight_dequant_original_basis"]) <= 1e-6


def test_golden_convrot_in_fp32_is_exact(convrot, convrot_group) -> None:
    """The rule that keeps everything in fp32 gives the other recorded set of codes."""
    for name in INPUTS:
        x = convrot[f"in/activation_{name}"].float()
        act = q.quantise_activation(x, "int8-convrot", convrot_group)
        assert same_bytes(act.codes, convrot[f"out/{name}/activation_int8_fp32scale"])


@pytest.mark.parametrize("name", INPUTS)
def test_golden_convrot_linear_parity(convrot, name) -> None:
    act = Activation(
        "int8-convrot",
        convrot[f"out/{name}/activation_int8"],
        convrot[f"out/{name}/activation_scale"],
    )
    weight = Weight(
        "int8-convrot", convrot[f"out/{name}/weight_int8"], convrot[f"out/{name}/weight_scale"]
    )
    biased = Weight(weight.kind, weight.codes, weight.scale, convrot["in/bias"])
    exact = error(q.linear(act, weight, torch.float32), convrot[f"out/{name}/dequant_product_f64"])
    assert exact <= 1e-6
    kitchen = error(q.linear(act, weight, torch.float32), convrot[f"out/{name}/int8_linear_f32"])
    assert kitchen <= 1e-6
    assert (
        error(q.linear(act, biased, torch.float32), convrot[f"out/{name}/int8_linear_f32_bias"])
        <= 1e-6
    )
    low = q.linear(act, weight, torch.bfloat16)
    assert error(low, convrot[f"out/{name}/int8_linear_bf16"]) <= 2**-8
    print(f"PARITY | int8 ConvRot linear, {name} input | comfy-kitchen eager | {kitchen:.1e}")


def test_golden_rowwise_int8_without_rotation(convrot) -> None:
    matches = []
    for name in INPUTS:
        codes, scale = q.quantise_int8_convrot(convrot[f"in/weight_{name}"], 1)
        matches.append(
            same_bytes(codes, convrot["out/rowwise_noconvrot/weight_int8"])
            and same_bytes(scale, convrot["out/rowwise_noconvrot/weight_scale"])
        )
    assert any(matches)


@pytest.mark.parametrize("name", INPUTS)
@pytest.mark.parametrize("granularity", ["rowwise", "tensor"])
def test_golden_fp8_codes_are_exact(fp8, name, granularity) -> None:
    prefix, kind = f"out/{name}/{granularity}", f"fp8-{granularity}"
    weight = q.quantise_weight(fp8[f"in/weight_{name}"], kind)
    assert same_bytes(weight.codes, fp8[f"{prefix}/weight_fp8"])
    assert same_bytes(weight.scale, fp8[f"{prefix}/weight_scale"])
    assert error(q.dequantise(weight), fp8[f"{prefix}/weight_dequant"]) <= 1e-7
    act = q.quantise_activation(fp8[f"in/activation_{name}"], kind)
    assert same_bytes(act.codes, fp8[f"{prefix}/activation_fp8"])
    assert same_bytes(act.scale, fp8[f"{prefix}/activation_scale"])


@pytest.mark.parametrize("name", INPUTS)
@pytest.mark.parametrize("granularity", ["rowwise", "tensor"])
def test_golden_fp8_linear_parity(fp8, name, granularity) -> None:
    prefix, kind = f"out/{name}/{granularity}", f"fp8-{granularity}"
    act = q.quantise_activation(fp8[f"in/activation_{name}"], kind)
    weight = q.quantise_weight(fp8[f"in/weight_{name}"], kind)
    found = error(q.linear(act, weight, torch.float32), fp8[f"{prefix}/product_f64"])
    assert found <= 1e-6
    print(f"PARITY | FP8 linear {granularity}, {name} input | float64 product | {found:.1e}")


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float16])
@pytest.mark.parametrize("width", [256, 1024, 5376])
def test_int8_equals_comfy_kitchen_parity(dtype, width) -> None:
    kitchen = pytest.importorskip("comfy_kitchen.backends.eager.quantization")
    generator = torch.Generator().manual_seed(width)
    w = (torch.randn(24, width, generator=generator) * 0.02).to(dtype)
    x = torch.randn(7, width, generator=generator)
    x[:, ::97] *= 30
    x[3] = 0
    x = x.to(dtype)
    theirs, their_scale = kitchen.quantize_int8_convrot_weight(w, 256)
    codes, scale = q.quantise_int8_convrot(w)
    assert same_bytes(codes, theirs)
    assert same_bytes(scale, their_scale.reshape(scale.shape))
    bias = torch.randn(24, generator=generator)
    expected = kitchen.int8_linear(x, codes, scale, bias, torch.float32, convrot=True)
    act = q.quantise_activation(x, "int8-convrot")
    got = q.linear(act, Weight("int8-convrot", codes, scale, bias), torch.float32)
    found = error(got, expected)
    assert found <= 1e-6
    print(f"PARITY | int8 ConvRot linear, {dtype}, K={width} | comfy-kitchen | {found:.1e}")


def test_small_widths_take_the_largest_group_that_divides_them() -> None:
    expected = {5376: 256, 7168: 256, 14336: 256, 5120: 256, 96: 16, 64: 64, 80: 16, 128: 64, 6: 1}
    assert {width: q.convrot_group(width) for width in expected} == expected


@pytest.mark.parametrize("kind", ["fp8-rowwise", "fp8-tensor", "int8-convrot"])
@pytest.mark.parametrize("width", [96, 64, 512])
def test_quantised_linear_stays_near_the_float_product(kind, width) -> None:
    generator = torch.Generator().manual_seed(width)
    w = torch.randn(40, width, generator=generator) / width**0.5
    x = torch.randn(11, width, generator=generator)
    bias = torch.randn(40, generator=generator)
    exact = x.double() @ w.double().T + bias.double()
    act = q.quantise_activation(x, kind)
    got = q.linear(act, q.quantise_weight(w, kind, bias=bias), torch.float32)
    assert error(got, exact) <= (0.04 if kind.startswith("fp8") else 0.02)
    assert error(q.dequantise(q.quantise_weight(w, kind)), w) <= 0.04


@pytest.mark.parametrize("kind", ["fp8-rowwise", "fp8-tensor", "int8-convrot"])
def test_zero_rows_give_zeros_not_nan(kind) -> None:
    w = torch.zeros(4, 64, dtype=torch.bfloat16)
    act = q.quantise_activation(torch.zeros(3, 64, dtype=torch.bfloat16), kind)
    out = q.linear(act, q.quantise_weight(w, kind), torch.float32)
    assert torch.equal(out, torch.zeros(3, 4))


def test_kinds_do_not_mix() -> None:
    act = q.quantise_activation(torch.ones(1, 64), "fp8-tensor")
    with pytest.raises(ValueError, match="fp8-tensor"):
        q.linear(act, q.quantise_weight(torch.ones(2, 64), "int8-convrot"), torch.float32)


def test_largest_fp8_value_never_becomes_nan() -> None:
    generator = torch.Generator().manual_seed(5)
    w = torch.randn(512, 64, generator=generator).to(torch.bfloat16)
    codes, scale = q.quantise_fp8_rowwise(w)
    assert torch.isfinite(q.dequantise_fp8(codes, scale)).all()
