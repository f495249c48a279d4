"""What must hold for any weights: ridge step, scans, partition, anchors, time reversal.

No recorded numbers here. Everything runs in float64, so a bound of 1e-9 leaves no room for a
mistake; each test names the property of the model sheet (section i) it holds.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from lowpeak.engine.model import delta
from lowpeak.engine.model.config import ModelConfig, VdnConfig
from lowpeak.engine.model.layers import StateLayers
from lowpeak.engine.model.layout import build_layout
from lowpeak.engine.model.plain import (
    linear_readout,
    plain_attention,
    row_mask,
    softmax_attention,
)
from lowpeak.engine.model.rope import rotary_tables
from lowpeak.engine.model.windows import Windows

HEADS, HEAD_DIM, HIDDEN, FREQS = 2, 16, 24, 2
PREFIX = "attn."
RULES = ("vdn_solve", "vdn_scaled", "sana_scaled")


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed + sum(shape))
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def config_of(**switches) -> ModelConfig:
    return ModelConfig(
        heads=HEADS, head_dim=HEAD_DIM, hidden=HIDDEN, rope_freqs=FREQS, vdn=VdnConfig(**switches)
    )


def layout_of(frames: int, *, height: int = 2, width: int = 3, text: int = 4, keyframes=()):
    return build_layout(
        latent_frames=frames,
        latent_height=2 * height,
        latent_width=2 * width,
        audio_latents=2,
        text_tags=[1] * text,
        keyframes=keyframes,
    )


def random_state(seed: int = 1) -> dict[str, torch.Tensor]:
    inner, rank = HEADS * HEAD_DIM, 8
    shapes = {
        "orig.to_q.weight": (inner, HIDDEN),
        "orig.to_k.weight": (inner, HIDDEN),
        "orig.to_v.weight": (inner, HIDDEN),
        "orig.to_out.0.weight": (HIDDEN, inner),
        "orig.norm_q.weight": (HEAD_DIM,),
        "orig.norm_k.weight": (HEAD_DIM,),
        "softmax_gate.up.weight": (HEADS, HIDDEN),
        "softmax_gate.up.bias": (HEADS,),
        "to_out_linear.weight": (HIDDEN, inner),
        "linear_attention.beta_proj.weight": (HEADS, HIDDEN),
        "linear_attention.alpha.A_log": (HEADS,),
        "linear_attention.alpha.down.weight": (rank, HIDDEN),
        "linear_attention.alpha.up.weight": (inner, rank),
        "linear_attention.alpha.dt_bias": (inner,),
        "linear_attention.norm.weight": (HEAD_DIM,),
        "linear_attention.output_gate.down.weight": (rank, HIDDEN),
        "linear_attention.output_gate.up.weight": (inner, rank),
        "linear_attention.output_gate.up.bias": (inner,),
        "linear_attention.short_conv.k_sp.weight": (inner, 1, 5, 5),
        "linear_attention.short_conv.v_sp.weight": (inner, 1, 5, 5),
        "linear_attention.short_conv.k_tm.weight": (inner, 1, 5),
        "linear_attention.short_conv.v_tm.weight": (inner, 1, 5),
    }
    state = {}
    for index, (name, shape) in enumerate(shapes.items()):
        scale = 1.0 if len(shape) == 1 else max(shape[1:]) ** -0.5
        state[PREFIX + name] = scale * random(*shape, seed=1000 * seed + index)
    # A slow decay, so that far frames matter.
    state[PREFIX + "linear_attention.alpha.A_log"] -= 3.0
    return state


def attend(state, y, layout, config, mid=None):
    cos, sin = rotary_tables(layout.position_ids, FREQS, 10_000.0)
    return plain_attention(state, PREFIX, y, layout, cos, sin, config, mid)


def frame_rows(layout, frame: int) -> slice:
    start = layout.video.start + frame * layout.tokens_per_frame
    return slice(start, start + layout.tokens_per_frame)


def test_a_step_solves_its_ridge_problem() -> None:
    """i.1: S_j minimises |S - S' diag(alpha)|^2 + sum beta |S k - v|^2."""
    k, v = random(1, 6, 2, 8), random(1, 6, 2, 8, seed=1)
    beta, alpha = random(1, 6, 2).sigmoid(), random(1, 2, 8).sigmoid()
    k = delta.feature(k, unit=True)
    a, b = delta.statistics(k, v, beta)
    t, j = delta.delta_rule(a, b, alpha, "vdn_solve", 6)
    before = random(2, 8, 8, seed=2)
    state = (before @ t[0] + j[0]).requires_grad_()
    error = torch.einsum("hvk,shk->shv", state, k[0]) - v[0]
    loss = (state - before * alpha[0, :, None, :]).square().sum()
    loss = loss + (beta[0, ..., None] * error.square()).sum()
    (gradient,) = torch.autograd.grad(loss, state)
    assert gradient.abs().max() <= 1e-12 * state.detach().abs().max()


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("bridge", ["alpha", "none"])
@pytest.mark.parametrize(
    "windows", [Windows(17), Windows(14, anchors="none"), Windows(11, chunk=0, radius=3)]
)
def test_states_equal_a_brute_force_over_frames_outside_the_window(rule, bridge, windows) -> None:
    """i.2: each frame scans, from nothing, only what its window does not show it."""
    frames = windows.frames
    first = int(windows.anchors == "both")
    inner = list(range(first, frames - first))
    count, tokens = len(inner), 6
    k = delta.feature(random(count, tokens, 2, 8), unit=True)
    v, beta = random(count, tokens, 2, 8, seed=1), random(count, tokens, 2).sigmoid()
    alpha, start = random(count, 2, 8).sigmoid(), random(2, 8, 8)
    t, j = delta.delta_rule(*delta.statistics(k, v, beta), alpha, rule, tokens)
    states = delta.linear_states(
        delta.scan(t, j, start),
        delta.scan(t, j, start, reverse=True),
        start,
        alpha,
        windows,
        bridge,
        bool(first),
    )
    for index, frame in enumerate(inner):
        low, high = windows.bounds(frame)
        low, high = max(low, inner[0]), min(high, inner[-1])
        expected = torch.zeros_like(start)
        for side, crossed in (
            ([u for u in inner if u < low], range(low, frame + 1)),
            ([u for u in reversed(inner) if u > high], range(frame, high + 1)),
        ):
            state = start  # a side without frames still reads the start state
            for u in side:
                state = state @ t[u - first] + j[u - first]
            for u in crossed if bridge == "alpha" else ():
                state = state * alpha[u - first, :, None, :]
            expected = expected + state
        torch.testing.assert_close(states[index], expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("frames", [2, 7, 10])
def test_short_clips_are_plain_attention_times_the_gate(frames) -> None:
    """i.3: nothing of the linear branch is read where every window covers the clip."""
    layout, config = layout_of(frames, keyframes=("first",)), config_of()
    state, y = random_state(), random(layout.rows, HIDDEN)
    softmax_only = config_of(linear=False, softmax_gate=False)
    mid: dict[str, torch.Tensor] = {}
    attend(state, y, layout, softmax_only, mid)
    gate = F.linear(y, state["attn.softmax_gate.up.weight"], state["attn.softmax_gate.up.bias"])
    gated = (mid["softmax_out"] * gate.sigmoid()[..., None]).flatten(1)
    expected = F.linear(gated, state["attn.orig.to_out.0.weight"])
    for name in list(state):
        if "linear" in name:
            state[name] = torch.full_like(state[name], float("nan"))
    found = attend(state, y, layout, config)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
    dense = softmax_attention(mid["q_rope"], mid["k_rope"], F.linear(
        y, state["attn.orig.to_v.weight"]).unflatten(1, (HEADS, -1)), None)  # fmt: skip
    torch.testing.assert_close(mid["softmax_out"], dense, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("anchors", ["both", "none", "columns", "rows"])
@pytest.mark.parametrize(("chunk", "radius"), [(5, 1), (4, 2), (0, 3)])
def test_windows_are_one_masked_softmax(anchors, chunk, radius) -> None:
    """i.4: the definition as a boolean mask, and each group's gathered keys, give the same."""
    frames, layout = 17, layout_of(17, keyframes=("last",))
    windows = Windows(frames, chunk, radius, anchors)
    q, k, v = (random(layout.rows, HEADS, HEAD_DIM, seed=i) for i in range(3))
    found = softmax_attention(q, k, v, row_mask(windows, layout))
    frame_of = torch.full((layout.rows,), -1)
    frame_of[layout.video] = torch.arange(frames).repeat_interleave(layout.tokens_per_frame)
    mask = torch.ones(layout.rows, layout.rows, dtype=torch.bool)
    ends = (0, frames - 1)
    for a in range(frames):
        for b in range(frames):
            near = abs(a - b) <= radius if not chunk else abs(a // chunk - b // chunk) <= radius
            row = anchors in ("both", "rows") and a in ends
            column = anchors in ("both", "columns") and b in ends
            if not (near or row or column):
                mask[(frame_of == a)[:, None] & (frame_of == b)] = False
    expected = F.scaled_dot_product_attention(
        *(x.transpose(0, 1)[None] for x in (q, k, v)), attn_mask=mask
    )[0].transpose(0, 1)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
    everywhere = torch.arange(layout.global_rows)
    for group in range(windows.groups):
        keys = windows.key_set(group)
        seen = list(range(keys.window[0], keys.window[1] + 1))
        seen += [0] * keys.first_anchor + [frames - 1] * keys.last_anchor
        rows = torch.cat(
            [everywhere, *(torch.arange(layout.rows)[frame_rows(layout, f)] for f in seen)]
        )
        for frame in range(keys.queries[0], keys.queries[1] + 1):
            if frame in windows.dense:
                continue
            at = frame_rows(layout, frame)
            gathered = softmax_attention(q[at], k[rows], v[rows], None)
            torch.testing.assert_close(gathered, expected[at], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("frames", range(1, 40))
def test_windows_cover_the_clip_up_to_ten_frames(frames) -> None:
    assert Windows(frames).full_cover == (frames <= 10)


class Branch:
    """The linear readout of a 22-frame clip as a function of raw q, k, v and y."""

    def __init__(self, frames: int = 22, *, symmetric: bool = False, **switches) -> None:
        self.layout, self.config = layout_of(frames), config_of(**switches)
        self.windows = Windows.of(self.config.vdn, frames)
        self.state = random_state()
        for name in ("k_tm", "v_tm") if symmetric else ():
            taps = self.state[f"attn.linear_attention.short_conv.{name}.weight"]
            taps += taps.flip(-1)
        rows = self.layout.rows
        self.raw = {n: random(rows, HEADS, HEAD_DIM, seed=i) for i, n in enumerate("qkv")}
        self.y = random(rows, HIDDEN, seed=9)

    def readout(self, raw=None, y=None, mid=None) -> torch.Tensor:
        """[F, S, H*D]."""
        found = linear_readout(
            StateLayers(self.state),
            PREFIX,
            self.y if y is None else y,
            raw or self.raw,
            self.layout,
            self.windows,
            self.config.vdn,
            {} if mid is None else mid,
        )
        return found.unflatten(0, (self.layout.frames, -1))

    def changed(self, name: str, rows: slice) -> dict[str, torch.Tensor]:
        """raw with other numbers in some rows of q, k or v."""
        raw = {n: x.clone() for n, x in self.raw.items()}
        raw[name][rows] += random(*raw[name][rows].shape, seed=77)
        return raw

    def moved(self, **change) -> list[bool]:
        """Whether each frame's readout differs from the unchanged one."""
        difference = (self.readout(**change) - self.readout()).flatten(1).abs().amax(1)
        return [bool(d > 1e-9) for d in difference]


def test_a_far_frame_reaches_a_query_through_the_linear_term_only() -> None:
    """i.5, first half: with v of frame 3 changed, frames 10 to 20 still see it linearly."""
    branch = Branch()
    raw = branch.changed("v", frame_rows(branch.layout, 3))
    mask = row_mask(branch.windows, branch.layout)
    q, k = branch.raw["q"], branch.raw["k"]
    before = softmax_attention(q, k, branch.raw["v"], mask)
    after = softmax_attention(q, k, raw["v"], mask)
    far = slice(frame_rows(branch.layout, 10).start, frame_rows(branch.layout, 20).stop)
    assert torch.equal(before[far], after[far])
    assert not torch.equal(
        before[frame_rows(branch.layout, 9)], after[frame_rows(branch.layout, 9)]
    )
    assert all(branch.moved(raw=raw)[10:21])


def test_a_near_frame_stays_out_of_the_linear_term() -> None:
    """i.5, second half: inside the window, unless the temporal taps carry it across the border."""
    branch = Branch()
    inside = branch.moved(raw=branch.changed("v", frame_rows(branch.layout, 8)))
    assert not any(inside[5:10])  # taps reach 6..10, all within 0..14
    across = branch.moved(raw=branch.changed("v", frame_rows(branch.layout, 13)))
    assert all(across[5:10])  # taps reach 15
    without = Branch(short_conv=())
    assert not any(without.moved(raw=without.changed("v", frame_rows(without.layout, 13)))[5:10])


@pytest.mark.parametrize("frames", [15, 20])
def test_reversed_time_gives_reversed_readouts(frames) -> None:
    """i.6: windows mirror when F is a multiple of the chunk; the taps have to be symmetric."""
    branch = Branch(frames, symmetric=True)

    def reverse(rows):
        rows = rows.clone()
        video = rows[branch.layout.video].unflatten(0, (frames, -1))
        rows[branch.layout.video] = video.flip(0).flatten(0, 1)
        return rows

    raw = {name: reverse(rows) for name, rows in branch.raw.items()}
    found = branch.readout(raw=raw, y=reverse(branch.y))
    torch.testing.assert_close(found, branch.readout().flip(0), rtol=1e-9, atol=1e-11)
    askew = Branch(frames)
    raw = {name: reverse(rows) for name, rows in askew.raw.items()}
    assert (askew.readout(raw=raw, y=reverse(askew.y)) - askew.readout().flip(0)).abs().max() > 1e-3


def test_anchors_read_zero_and_leak_nowhere() -> None:
    """i.7: an anchor's q, k, v and y change no readout, and its own is exactly zero."""
    branch = Branch()
    readout = branch.readout()
    assert not readout[[0, -1]].any() and readout[1:-1].abs().amax((1, 2)).min() > 1e-3
    for frame in (0, branch.layout.frames - 1):
        rows = frame_rows(branch.layout, frame)
        for name in "qkv":
            assert not any(branch.moved(raw=branch.changed(name, rows)))
        y = branch.y.clone()
        y[rows] += 1.0
        assert not any(branch.moved(y=y))


def test_without_anchors_the_end_frames_take_part() -> None:
    branch = Branch(anchors="none")
    assert branch.readout()[[0, -1]].abs().amax((1, 2)).min() > 1e-3
    assert all(branch.moved(raw=branch.changed("v", frame_rows(branch.layout, 0)))[10:])


def test_both_scans_start_from_half_the_text_state() -> None:
    """With every inner frame inside every window the state is the text's alone, decayed."""
    branch, mid = Branch(11, bridge="none"), {}
    branch.readout(mid=mid)
    text = branch.layout.text
    k = delta.feature(branch.raw["k"][text], unit=True)
    v = delta.feature(branch.raw["v"][text], unit=False)
    beta = F.linear(branch.y[text], branch.state["attn.linear_attention.beta_proj.weight"])
    beta = beta.sigmoid()
    a = torch.einsum("sh,shk,shl->hkl", beta, k, k)
    b = torch.einsum("sh,shv,shk->hvk", beta, v, k)
    whole = b @ torch.linalg.inv(torch.eye(HEAD_DIM, dtype=torch.float64) + a)
    torch.testing.assert_close(mid["text_state_scaled"], whole / 2, rtol=1e-9, atol=1e-11)
    for state in mid["linear_state"][[4, 5]]:  # frames 5 and 6: both sides empty
        torch.testing.assert_close(state, whole, rtol=1e-9, atol=1e-11)
    # Audio rows and an absent text state: nothing of them reaches the branch.
    long = Branch()
    assert not any(long.moved(raw=long.changed("v", long.layout.audio)))
    assert all(long.moved(raw=long.changed("v", long.layout.text))[1:-1])
    deaf = Branch(text_state=False)
    assert not any(deaf.moved(raw=deaf.changed("v", deaf.layout.text)))


@pytest.mark.parametrize("rule", RULES)
def test_an_empty_prompt_gives_finite_numbers(rule) -> None:
    layout, config = layout_of(12, text=0), config_of(delta_rule=rule)
    out = attend(random_state(), random(layout.rows, HIDDEN), layout, config)
    assert torch.isfinite(out).all()


def test_the_short_convolution_is_a_plain_sum_over_neighbours() -> None:
    frames, height, width, channels = 4, 3, 5, 2
    x = random(frames, height * width, channels)
    spatial, temporal = random(channels, 1, 5, 5), random(channels, 1, 5)
    found = delta.short_conv(x, spatial, temporal, (height, width))
    grid = x.view(frames, height, width, channels)
    middle = torch.zeros_like(grid)
    for f in range(frames):
        for r in range(height):
            for c in range(width):
                for i in range(max(0, r - 2), min(height, r + 3)):
                    for j in range(max(0, c - 2), min(width, c + 3)):
                        middle[f, r, c] += grid[f, i, j] * spatial[:, 0, i - r + 2, j - c + 2]
    expected = torch.zeros_like(grid)
    for f in range(frames):
        for g in range(max(0, f - 2), min(frames, f + 3)):
            expected[f] += middle[g] * temporal[:, 0, g - f + 2]
    torch.testing.assert_close(found, expected.view_as(x), rtol=1e-12, atol=1e-12)


def test_the_parts_of_the_output_add_up() -> None:
    """Without to_out_linear only the softmax branch is left; it reaches video rows only."""
    layout, config, state = layout_of(17), config_of(), random_state()
    y, mid = random(layout.rows, HIDDEN), {}
    out = attend(state, y, layout, config, mid)
    torch.testing.assert_close(
        out[: layout.global_rows], mid["softmax_branch"][: layout.global_rows]
    )
    state[PREFIX + "to_out_linear.weight"].zero_()
    alone = attend(state, y, layout, config)
    torch.testing.assert_close(alone, mid["softmax_branch"], rtol=1e-12, atol=1e-12)
    switched_off = attend(state, y, layout, replace(config, vdn=VdnConfig(linear=False)))
    torch.testing.assert_close(switched_off, alone, rtol=1e-12, atol=1e-12)
    assert (out - alone)[layout.video].abs().max() > 1e-3
