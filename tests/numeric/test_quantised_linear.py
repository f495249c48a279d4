"""Every way to run a quantised linear against the plain rule, with poisoned outputs.

The Triton kernels run in Triton's interpreter without a card. It truncates bfloat16 instead of
rounding it, so there codes are compared bit for bit in float16 and float32.
"""

from __future__ import annotations

import pytest
import torch

pytest.importorskip("triton", reason="triton is not installed")

from lowpeak.kernels import linears, machine, tuning
from lowpeak.kernels import triton as ops
from lowpeak.kernels.reference import quantise as plain
from lowpeak.kernels.triton import gemm
from lowpeak.kernels.triton import quantise as fast
from lowpeak.kernels.weights import Activation, Weight

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
CARD = DEVICE == "cuda"
DTYPES = [torch.float16, torch.float32, *([torch.bfloat16] if CARD else [])]
SMALL = {"BLOCK_M": 32, "BLOCK_N": 32, "BLOCK_K": 32}


def draw(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator).to(dtype).to(DEVICE)


def outliers(rows: int, width: int, dtype: torch.dtype) -> torch.Tensor:
    """Rows from tiny to large, one zero row, one channel far above the others."""
    x = draw(rows, width) * torch.logspace(-3, 2, rows, device=DEVICE)[:, None]
    x[:, 3] *= 40
    x[rows // 2] = 0
    return x.to(dtype)


def rule(x: torch.Tensor, kind: str) -> Activation:
    """The plain codes, made on a CPU: a card divides by a constant through its reciprocal."""
    act = plain.quantise_activation(x.cpu(), kind)
    return Activation(kind, act.codes.to(DEVICE), act.scale.to(DEVICE))


def poisoned(rows: int, columns: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """A column slice of a wider buffer, so that row strides are seen."""
    return torch.full((rows, columns + 3), float("nan"), dtype=dtype, device=DEVICE)[:, :columns]


def relative(got: torch.Tensor, right: torch.Tensor) -> float:
    assert torch.isfinite(got).all(), "an element was left unwritten"
    return float((got.double() - right.double()).abs().max() / right.double().abs().max())


@pytest.fixture(params=["plain", "triton"])
def helpers(request, monkeypatch):
    """The small kernels around a library's product: plain PyTorch, or ours."""
    monkeypatch.setattr(machine, "triton_runs", lambda device: request.param == "triton")
    return request.param


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("width", [256, 768, 320, 48, 28])  # groups of 256, 256, 64, 16, 4
def test_int8_codes_are_the_plain_codes_bit_for_bit(dtype, width):
    x = outliers(9, width, dtype)
    got, right = fast.quantise_activation(x, "int8-convrot"), rule(x, "int8-convrot")
    if dtype == torch.float32:  # sums in another order: the last bit of a scale may differ
        assert relative(got.scale, right.scale) < 1e-6
        assert (got.codes.int() - right.codes.int()).abs().max() <= 1
    else:
        assert torch.equal(got.scale, right.scale)
        assert torch.equal(got.codes, right.codes)


@pytest.mark.skipif(
    not CARD, reason="bfloat16 is truncated by the interpreter: needs a CUDA device"
)
def test_int8_codes_reach_minus_128():
    """The rounded divisor may be smaller than the scale; comfy-kitchen's rule keeps the -128."""
    x = torch.zeros(500, 64, dtype=torch.bfloat16, device=DEVICE)
    x[:, 0] = -torch.linspace(1, 2, 500, device=DEVICE)
    got = fast.quantise_activation(x, "int8-convrot", 1).codes
    right = plain.quantise_activation(x.cpu(), "int8-convrot", 1).codes
    assert torch.equal(got.cpu(), right) and -128 in right


@pytest.mark.parametrize("dtype", [torch.float16, *([torch.bfloat16] if CARD else [])], ids=str)
@pytest.mark.parametrize("heads", [4, 3])  # groups of 64 and 16
def test_rows_that_end_in_int8_codes_equal_their_two_steps(dtype, heads):
    """Norm, gates and SwiGLU: the rows in the given dtype, then the codes of those rows."""
    rows, width = 7, heads * 16
    x = outliers(rows, width, dtype).clamp(-60, 60)
    table = (draw(4, 6 * width, seed=6) * 0.3).to(dtype)
    weight, pick = draw(width, seed=2).to(dtype), torch.arange(rows, device=DEVICE).int() % 4
    logits = draw(rows, heads + 3, seed=3).to(dtype)[:, :heads]
    attention = x.view(rows, heads, 16)
    for calls in (
        lambda kind: ops.norm_modulate(x, weight, table, pick, 3, eps=1e-5, kind=kind)[1],
        lambda kind: ops.gate_heads(attention, logits, kind=kind),
        lambda kind: ops.gate_heads(attention, None, kind=kind),
        lambda kind: ops.swiglu(torch.cat([x, x.flip(0)], 1), kind=kind),
    ):
        got, row = calls("int8-convrot"), calls("plain").codes
        right = rule(row, "int8-convrot")
        assert torch.equal(got.scale, right.scale) and torch.equal(got.codes, right.codes)
    settings = {"eps": 1e-5, "kind": "int8-convrot"}
    y, act = ops.norm_modulate(x, weight, table, pick, 3, **settings)
    assert torch.equal(y, ops.norm_modulate(x, weight, table, pick, 3, eps=1e-5, kind="plain")[0])
    _, other = ops.norm_modulate(x, weight, table, pick, 3, **settings, keep_y=False)
    assert torch.equal(other.codes, act.codes)


def test_a_group_that_does_not_divide_the_width_is_refused():
    with pytest.raises(ValueError, match="width 100 cannot rotate in groups of 256"):
        fast.quantise_activation(draw(2, 100), "int8-convrot", 256)


@pytest.mark.skipif(not CARD, reason="the interpreter rounds FP8 wrongly: needs a CUDA device")
@pytest.mark.parametrize("width", [96, 5376])
def test_fp8_tensor_codes_are_the_plain_codes(width):
    x = outliers(33, width, torch.bfloat16)
    got, right = fast.quantise_activation(x, "fp8-tensor"), rule(x, "fp8-tensor")
    assert torch.equal(got.scale, right.scale)
    assert (got.codes.float() == right.codes.float()).float().mean() > 0.999


def test_fp8_tensor_takes_one_scale_over_all_rows(monkeypatch):
    if not CARD:
        monkeypatch.setattr(fast, "FP8", torch.float16)
    x = outliers(7, 96, torch.float32)
    got, right = fast.quantise_activation(x, "fp8-tensor"), rule(x, "fp8-tensor")
    assert torch.equal(got.scale, right.scale) and got.scale.shape == (1, 1)
    assert relative(got.codes.float() * got.scale, x) < 2.0**-4


@pytest.mark.parametrize(("rows", "width", "columns"), [(33, 96, 40), (64, 64, 96), (5, 44, 17)])
@pytest.mark.parametrize("biased", [True, False])
def test_int8_gemm_equals_exact_integer_sums(rows, width, columns, biased):
    act, weight = int8_pair(rows, width, columns, biased)
    out = poisoned(rows, columns)
    gemm.int8_gemm(act.codes, act.scale, weight.codes, weight.scale, out, weight.bias, **SMALL)
    assert relative(out, plain.linear(act, weight, torch.float32)) < 2e-7


@pytest.mark.parametrize("path", [linears.int8_library, linears.int8_triton])
@pytest.mark.parametrize("rows", [3, 50])
def test_int8_paths_equal_the_plain_form(path, rows, helpers):
    act, weight = int8_pair(rows, 64, 48, True)
    right = plain.linear(act, weight, torch.float32)
    assert relative(path(act, weight, torch.float32), right) < 2e-7
    out = poisoned(rows, 48)
    assert path(act, weight, torch.float32, out=out) is out
    assert relative(out, right) < 2e-7


@pytest.mark.parametrize("kind", ["fp8-rowwise", "fp8-tensor", "int8-convrot"])
@pytest.mark.parametrize("tile", [1, 64 * 4 * 7, linears.TILE_BYTES])
def test_storage_is_a_plain_product_with_the_decoded_weight(kind, tile, helpers, monkeypatch):
    monkeypatch.setattr(linears, "TILE_BYTES", tile)
    weight = plain.quantise_weight(draw(48, 64), kind, bias=draw(48, seed=4))
    x = draw(21, 64, seed=5)
    right = plain.linear(
        Activation("plain", x),
        Weight("plain", plain.dequantise(weight), None, weight.bias),
        x.dtype,
    )
    assert relative(linears.storage(Activation("plain", x), weight, x.dtype), right) < 2e-6
    out = poisoned(21, 48)
    linears.storage(Activation("plain", x), weight, x.dtype, out=out)
    assert relative(out, right) < 2e-6


def test_every_finite_fp8_code_is_decoded_exactly():
    codes = torch.arange(256, dtype=torch.uint8, device=DEVICE).reshape(4, 64)
    codes = codes.view(torch.float8_e4m3fn)
    scale = torch.tensor([1.0, 2.0, 3.0, 0.37], device=DEVICE)
    finite = ~codes.float().isnan()
    for dtype in DTYPES:
        out = gemm.decode_tile(codes, scale, torch.empty(4, 64, dtype=dtype, device=DEVICE))
        right = (codes.float() * scale[:, None]).to(dtype)
        assert torch.equal(out[finite], right[finite])


def test_no_tile_is_larger_than_32_mib():
    for width in (5376, 7168, 14336):  # decoded tiles of `storage` begin at multiples of 128
        step = linears.decoded_columns(width, 2)
        assert step * width * 2 <= 32 << 20 and step % 128 == 0
    for rows, columns in ((2560, 28672), (5040, 7168), (1310, 5376), (3, 28672), (600_000, 7168)):
        parts = linears.tiles(rows, columns, 4)
        area = {(r.stop - r.start) * (c.stop - c.start) for r, c in parts}
        assert max(area) * 4 <= 32 << 20
        assert sum((r.stop - r.start) * (c.stop - c.start) for r, c in parts) == rows * columns
        assert all(c.start % 16 == 0 for _, c in parts)


def test_row_scales_after_unit_scale_products(monkeypatch, helpers):
    """The path of builds without the rowwise kernel, with a stand-in for the library's product."""
    monkeypatch.setattr(torch, "_scaled_mm", scaled_product_on_a_cpu)
    monkeypatch.setattr(linears, "TILE_BYTES", 16 * 32 * 4)
    weight = plain.quantise_weight(draw(96, 64), "fp8-rowwise", bias=draw(96, seed=4))
    act = plain.quantise_activation(outliers(40, 64, torch.float32), "fp8-rowwise")
    out = poisoned(40, 96)
    linears.scaled_product_tiled(act, weight, torch.float32, out=out)
    assert relative(out, plain.linear(act, weight, torch.float32)) < 1e-6


def scaled_product_on_a_cpu(a, b, *, scale_a, scale_b, out_dtype, use_fast_accum):
    assert scale_a.numel() == scale_b.numel() == 1 and out_dtype == torch.float32
    return a.float() @ b.float() * (scale_a * scale_b)


def int8_pair(rows, width, columns, biased):
    generator = torch.Generator().manual_seed(7)

    def codes(*shape):
        return torch.randint(-128, 128, shape, generator=generator, dtype=torch.int8).to(DEVICE)

    act = Activation("int8-convrot", codes(rows, width), draw(rows, 1).abs())
    bias = draw(columns, seed=2) if biased else None
    return act, Weight("int8-convrot", codes(columns, width), draw(columns, 1).abs(), bias)


def test_launch_parameters_come_from_the_nearest_measured_capability():
    rows = [
        {"op": "a", "capability": "any", "values": {"num_warps": 1}},
        {"op": "a", "capability": "8.9", "values": {"num_warps": 2}},
        {"op": "a", "capability": "10.0", "values": {"num_warps": 3}},
        {"op": "b", "capability": "9.0", "values": {"num_warps": 4}},
    ]
    for capability, warps in (
        (None, 1), ((8, 0), 1), ((8, 9), 2), ((9, 0), 2), ((10, 0), 3), ((12, 0), 3),
    ):  # fmt: skip
        assert tuning.pick(rows, "a", capability) == {"num_warps": warps}
    with pytest.raises(KeyError, match="no row for 'b' at"):
        tuning.pick(rows, "b", (8, 0))
    with pytest.raises(KeyError, match="no row for 'c'"):
        tuning.pick(rows, "c", None)


def test_every_row_of_the_tuning_file_says_where_it_comes_from():
    for row in tuning.read_rows():
        assert row["status"] in ("assumed", "measured"), row
        if row["status"] == "measured":
            assert {"device", "software", "command", "date"} <= set(row), row
        tuning.pick(tuning.read_rows(), row["op"], (12, 0))


def test_the_best_launch_parameters_are_written_as_a_row(monkeypatch):
    """Timing with a clock that favours 16 warps; one candidate cannot be launched."""
    import tomllib

    from lowpeak.kernels.probe import tune

    def launch(values):
        if values["num_warps"] == 32:
            raise RuntimeError("out of resource: threads")
        return abs(values["num_warps"] - 16) + 1.0

    monkeypatch.setattr(tune, "_runner", lambda op, device: launch)
    monkeypatch.setattr(tune.judge, "measure", lambda run, device, limit_s: (run(), 0.0, 1))
    found = tune.tune("int8_rows", torch.device("cpu"))
    assert found["best"]["values"] == {"num_warps": 16}
    assert next(e for e in found["tried"] if "failed" in e)["values"] == {"num_warps": 32}
    row = tomllib.loads(tune.toml_row(found, torch.device("cpu"), "bench"))["row"][0]
    assert row["values"] == {"num_warps": 16} and row["status"] == "measured" and row["date"]
