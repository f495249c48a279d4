"""Every Triton kernel against its plain reference, at small and awkward sizes.

Without a GPU the kernels run in Triton's interpreter. The bound is relative to what plain PyTorch
achieves at the same precision: error against a float64 evaluation at most twice that of the
reference in bfloat16, plus one rounding step.
"""

from __future__ import annotations

import importlib

import pytest
import torch

triton = pytest.importorskip("triton", reason="triton is not installed")

from lowpeak.kernels import reference  # noqa: E402
from lowpeak.kernels import triton as fast  # noqa: E402

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
BF16_STEP = 2.0**-8
# Triton's interpreter has no bfloat16 product and rounds FP8 wrongly at powers of two (126 gives
# 64). There the products run in float16, and codes are stored unrounded; the GPU run has both.
INTERPRETED = DEVICE == "cpu"
PRODUCT = torch.float16 if INTERPRETED else torch.bfloat16
FP8_STEP = 2.0**-9 if INTERPRETED else 2.0**-4
SCAN_STEP = 2e-6 if INTERPRETED else 1e-5  # three products in TF32 for one; one would give 1e-3


@pytest.fixture(autouse=True)
def poisoned_memory(monkeypatch):
    """torch.empty gives NaN, so that an element nobody wrote is seen."""
    plain_empty, plain_like = torch.empty, torch.empty_like

    def poison(tensor):
        if tensor.is_floating_point() and tensor.element_size() > 1:
            tensor.fill_(float("nan"))
        return tensor

    monkeypatch.setattr(torch, "empty", lambda *a, **k: poison(plain_empty(*a, **k)))
    monkeypatch.setattr(torch, "empty_like", lambda *a, **k: poison(plain_like(*a, **k)))


@pytest.fixture(autouse=True)
def codes_the_interpreter_can_round(monkeypatch):
    if INTERPRETED:
        for module in ("norm", "gates", "quantise"):
            monkeypatch.setattr(
                importlib.import_module(f"{fast.__name__}.{module}"), "FP8", torch.float16
            )


def draw(*shape, scale=1.0, dtype=torch.bfloat16, seed=0):
    generator = torch.Generator().manual_seed(seed + sum(shape))
    return (torch.randn(*shape, generator=generator) * scale).to(dtype).to(DEVICE)


def relative(value, truth) -> float:
    value, truth = value.double(), truth.double()
    return float((value - truth).abs().max() / truth.abs().max())


def assert_as_good(name, got, plain, truth, step=BF16_STEP):
    assert torch.isfinite(got.float()).all(), f"{name}: not finite"
    error, allowed = relative(got, truth), 2 * relative(plain, truth) + step
    assert error <= allowed, f"{name}: {error:.2e} against {allowed:.2e}"


def wide(*tensors):
    return [t.double() if t.is_floating_point() else t for t in tensors]


@pytest.mark.parametrize(("rows", "width"), [(1, 64), (7, 96), (33, 200)])
@pytest.mark.parametrize("kind", ["plain", "fp8-rowwise"])
@pytest.mark.parametrize("column", [0, 3])
def test_norm_modulate(rows, width, kind, column):
    x, w, table = draw(rows, width, scale=3), draw(width), draw(6, 6 * width, scale=0.5, seed=5)
    pick = torch.randint(0, 6, (rows,), dtype=torch.int32, device=DEVICE)
    settings = {"eps": 1e-5, "kind": kind}
    y, act = fast.norm_modulate(x, w, table, pick, column, **settings)
    plain, _ = reference.norm_modulate(x, w, table, pick, column, **settings)
    truth, _ = reference.norm_modulate(*wide(x, w, table), pick, column, eps=1e-5, kind="plain")
    assert_as_good("y", y, plain, truth)
    if kind == "fp8-rowwise":
        assert relative(act.codes.double() * act.scale, truth) < FP8_STEP
        _, other = fast.norm_modulate(x, w, table, pick, column, **settings, keep_y=False)
        assert torch.equal(other.codes.float(), act.codes.float())


@pytest.mark.parametrize(("rows", "heads", "width", "half"), [(5, 3, 32, 12), (9, 11, 16, 8)])
def test_head_norm_rope(rows, heads, width, half):
    raw, w = draw(rows, heads * width, scale=2), draw(width)
    angle = torch.rand(rows, half, device=DEVICE) * 6
    tables = (angle.cos(), angle.sin())
    out = torch.empty(rows, heads, width, dtype=torch.bfloat16, device=DEVICE)
    fast.head_norm_rope(raw, w, *tables, eps=1e-5, out=out)
    plain = reference.head_norm_rope(raw, w, *tables, eps=1e-5, out=torch.empty_like(out))
    truth = reference.head_norm_rope(
        *wide(raw, w, *tables), eps=1e-5, out=torch.empty_like(out, dtype=torch.float64)
    )
    assert_as_good("rope", out, plain, truth)


@pytest.mark.parametrize(("frames", "grid", "channels"), [(1, (3, 4), 32), (2, (4, 9), 40)])
@pytest.mark.parametrize("first", [1, 9])
def test_conv_spatial(frames, grid, channels, first):
    tokens = grid[0] * grid[1]
    rows, w = draw(frames * tokens, channels), draw(channels, 1, 5, 5, scale=0.3)
    rings = [torch.zeros(10, tokens, channels, dtype=torch.bfloat16, device=DEVICE) for _ in "ab"]
    truth = torch.zeros(10, tokens, channels, dtype=torch.float64, device=DEVICE)
    fast.conv_spatial(rows, fast.conv_taps(w), rings[0], first=first, grid=grid)
    reference.conv_spatial(rows, w, rings[1], first=first, grid=grid)
    reference.conv_spatial(*wide(rows, w), truth, first=first, grid=grid)
    assert_as_good("spatial", rings[0], rings[1], truth)
    untouched = [s for s in range(10) if s not in {(first + f) % 10 for f in range(frames)}]
    assert not rings[0][untouched].any()


@pytest.mark.parametrize("taps", [True, False])
@pytest.mark.parametrize("normalise", [True, False])
@pytest.mark.parametrize(("first", "count"), [(1, 2), (8, 4), (3, 6)])
def test_conv_temporal_features(taps, normalise, first, count):
    tokens, heads, width, frames = 5, 2, 16, 13
    ring = draw(10, tokens, heads * width)
    weight = draw(heads * width, 1, 5, scale=0.5) if taps else None
    beta = torch.rand(frames * tokens, heads, device=DEVICE).to(torch.bfloat16)
    settings = dict(first=first, count=count, low=1, high=11, heads=heads, normalise=normalise)
    taps = None if weight is None else fast.conv_taps(weight)
    got = fast.conv_temporal_features(ring, taps, beta, **settings)
    plain = reference.conv_temporal_features(ring, weight, beta, **settings)
    truth = reference.conv_temporal_features(
        ring.double(), None if weight is None else weight.double(), beta.double(), **settings
    )
    assert_as_good("features", got, plain, truth)


@pytest.mark.parametrize(("frames", "heads", "tokens", "width"), [(2, 3, 21, 16), (1, 2, 130, 32)])
def test_frame_statistics(frames, heads, tokens, width):
    k, v = (draw(frames, heads, tokens, width, dtype=PRODUCT, seed=s) for s in (1, 2))
    got, truth = fast.frame_statistics(k, v), reference.frame_statistics(k.double(), v.double())
    for name, mine, right in zip("AB", got, truth, strict=True):
        assert relative(mine, right) < 2e-6, name


@pytest.mark.parametrize("rule", ["vdn_solve", "vdn_scaled", "sana_scaled"])
@pytest.mark.parametrize(("frames", "heads", "width"), [(2, 2, 16), (1, 2, 64), (1, 1, 128)])
def test_delta_solve(rule, frames, heads, width):
    tokens = 70 if width < 128 else 1008  # the real size: the largest eigenvalue grows with it
    k = draw(frames, heads, tokens, width, dtype=torch.float32)
    k = k / k.norm(dim=-1, keepdim=True)
    a, b = k.transpose(-1, -2) @ k, draw(frames, heads, width, width, dtype=torch.float32)
    alpha = torch.rand(frames, heads, width, device=DEVICE)
    got = fast.delta_solve(a, b, alpha, rule=rule, tokens=tokens)
    plain = reference.delta_solve(a, b, alpha, rule=rule, tokens=tokens)
    truth = reference.delta_solve(*wide(a, b, alpha), rule=rule, tokens=tokens)
    for name, mine, theirs, right in zip("TJ", got, plain, truth, strict=True):
        assert_as_good(name, mine, theirs, right, step=1e-6)


@pytest.mark.parametrize("width", [16, 64])
@pytest.mark.parametrize(
    ("chunks", "frames"),
    [
        (range(1, 2), range(1, 30)),  # one chunk
        (range(0, 3), range(1, 13)),  # the first frame of all and the last of three are missing
        (range(2, 5), range(1, 20)),  # over the ring's end; nothing is left of the last chunk
        (range(1, 4), range(17, 30)),  # nothing before the second
    ],
)
def test_scan_chunks(chunks, frames, width):
    heads = 2
    t, j = (
        draw(16, heads, width, width, scale=width**-0.5, dtype=torch.float32, seed=s)
        for s in (1, 2)
    )
    state = draw(heads, width, width, dtype=torch.float32)
    results = []
    for ops, kind in ((fast, torch.float32), (reference, torch.float64)):
        s = state.clone().to(kind)
        kept = [torch.full((5, *s.shape), 7.0, dtype=kind, device=DEVICE) for _ in "stj"]
        ops.scan_chunks(s, t.to(kind), j.to(kind), *kept, chunks=chunks, size=5, frames=frames)
        others = [index for index in range(5) if index not in chunks]
        assert all((part[others] == 7).all() for part in kept)
        results.append((s, *kept))
    for mine, right in zip(*results, strict=True):
        assert torch.isfinite(mine).all()
        assert (mine.double() - right).abs().max() <= SCAN_STEP * max(1.0, right.abs().max())


def test_chunks_scanned_together_are_chunks_scanned_one_by_one():
    heads, width = 2, 16
    t, j = (draw(16, heads, width, width, scale=0.3, dtype=torch.float32, seed=s) for s in (1, 2))
    start = draw(heads, width, width, dtype=torch.float32)
    results = []
    for parts in ([range(0, 3)], [range(0, 1), range(1, 2), range(2, 3)]):
        state = start.clone()
        kept = [torch.empty(3, heads, width, width, device=DEVICE) for _ in "stj"]
        for chunks in parts:
            fast.scan_chunks(state, t, j, *kept, chunks=chunks, size=5, frames=range(1, 14))
        results.append((state, *kept))
    assert all(torch.equal(a, b) for a, b in zip(*results, strict=True))
    assert torch.equal(results[0][0], results[0][1][-1])


@pytest.mark.parametrize(("chunks", "width"), [(1, 16), (4, 16), (3, 64)])
def test_scan_back(chunks, width):
    heads = 2
    t, j = (
        draw(chunks, heads, width, width, scale=width**-0.5, dtype=torch.float32, seed=s)
        for s in (1, 2)
    )
    start = draw(heads, width, width, dtype=torch.float32)
    mine, right = j.clone(), j.double()
    fast.scan_back(start, t, mine)
    reference.scan_back(*wide(start, t), right)
    assert (mine.double() - right).abs().max() <= SCAN_STEP * max(1.0, right.abs().max())


@pytest.mark.parametrize(("first", "frames", "chunks"), [(0, 2, 1), (1, 9, 2), (0, 11, 3)])
def test_window_states(first, frames, chunks):
    heads, width = 3, 16
    states = [draw(chunks, heads, width, width, dtype=torch.float32, seed=s) for s in (1, 2)]
    decays = [torch.rand(frames, heads, width, device=DEVICE) for _ in "ab"]
    where = {"first": first, "chunk": 5}
    got = fast.window_states(*states, *decays, torch.bfloat16, **where)
    plain = reference.window_states(*states, *decays, torch.bfloat16, **where)
    truth = reference.window_states(*wide(*states, *decays), torch.float64, **where)
    assert_as_good("states", got, plain, truth)
    parts = (
        s[(first + frames - 1) // 5] * d[-1][:, None] for s, d in zip(states, decays, strict=True)
    )
    alone = sum(parts)
    assert torch.allclose(plain[-1].float(), alone, rtol=0.01, atol=0.01)


@pytest.mark.parametrize(("frames", "tokens", "heads", "width"), [(2, 21, 3, 16), (1, 70, 2, 32)])
def test_linear_readout(frames, tokens, heads, width):
    hidden = draw(frames * tokens, heads + width, dtype=PRODUCT, seed=9)[
        :, heads:
    ]  # a column slice, as in use
    tensors = (
        draw(frames * tokens, heads * width, dtype=PRODUCT),
        draw(frames, heads, width, width, dtype=PRODUCT),
        draw(width),
        hidden,
        draw(heads * width, width, scale=0.2),
        draw(heads * width, seed=4),
    )
    got = fast.linear_readout(*tensors, eps=1e-6)
    plain = reference.linear_readout(*tensors, eps=1e-6)
    assert_as_good("readout", got, plain, reference.linear_readout(*wide(*tensors), eps=1e-6))


@pytest.mark.parametrize("kind", ["plain", "fp8-rowwise"])
@pytest.mark.parametrize("gated", [True, False])
def test_gate_heads(kind, gated):
    rows, heads, width = 9, 3, 16
    x, logits = draw(rows, heads, width), draw(rows, heads + 5)[:, :heads] if gated else None
    got = fast.gate_heads(x, logits, kind=kind)
    truth = reference.gate_heads(
        x.double(), None if logits is None else logits.double(), kind="plain"
    ).codes
    if kind == "plain":
        assert_as_good("gate", got.codes, reference.gate_heads(x, logits, kind=kind).codes, truth)
    else:
        assert relative(got.codes.double() * got.scale, truth) < FP8_STEP


@pytest.mark.parametrize("kind", ["plain", "fp8-rowwise"])
@pytest.mark.parametrize("width", [24, 112])
def test_swiglu(kind, width):
    up = draw(11, 2 * width, scale=2)
    got = fast.swiglu(up, kind=kind)
    truth = reference.swiglu(up.double(), kind="plain").codes
    if kind == "plain":
        assert_as_good("swiglu", got.codes, reference.swiglu(up, kind=kind).codes, truth)
    else:
        assert relative(got.codes.double() * got.scale, truth) < FP8_STEP


@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("column", [2, 5])
def test_add_gated(outputs, column):
    rows, width = 9, 80
    x, table = draw(rows, width), draw(3, 6 * width, seed=3)
    pick = torch.randint(0, 3, (rows,), dtype=torch.int32, device=DEVICE)
    parts = [draw(rows, width, seed=10 + i) for i in range(outputs)]
    mine, plain, truth = x.clone(), x.clone(), x.double()
    fast.add_gated(mine, table, pick, column, *parts)
    reference.add_gated(plain, table, pick, column, *parts)
    reference.add_gated(truth, table.double(), pick, column, *wide(*parts))
    assert_as_good("residual", mine, plain, truth)


def test_merge_partial_equals_one_attention():
    q, k, v = (draw(n, 3, 16, dtype=torch.float32, seed=i) for i, n in enumerate((7, 40, 40)))
    total = torch.zeros(7, 3, 16, device=DEVICE)
    lse = torch.full((7, 3), -torch.inf, device=DEVICE)
    for part in (slice(0, 3), slice(3, 25), slice(25, 40)):
        fast.merge_partial(total, lse, *reference.attention_partial(q, k[part], v[part]))
    truth = reference.attention(q.double(), k.double(), v.double())
    assert relative(total, truth) < 2e-6


@pytest.mark.parametrize("width", [16, 80])
def test_quantise_activation_gives_the_reference_codes(width):
    x = draw(13, width, scale=4)
    x[3] = 0
    mine = fast.quantise_activation(x, "fp8-rowwise")
    right = reference.quantise_activation(x, "fp8-rowwise")
    assert torch.equal(mine.scale, right.scale)
    if INTERPRETED:
        assert relative(mine.codes.float() * mine.scale, x) < FP8_STEP
    else:
        same = mine.codes.view(torch.uint8) == right.codes.view(torch.uint8)
        assert same.float().mean() > 0.999
