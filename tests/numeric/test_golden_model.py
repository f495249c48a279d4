"""The plain model against recorded blocks, forwards with their inner values, and sampling loops."""

from __future__ import annotations

import pytest
import torch

from lowpeak.engine.model.config import ModelConfig
from lowpeak.engine.model.layout import build_layout, patchify
from lowpeak.engine.model.modulation import ScheduleCursor, adaln_table, time_embedding
from lowpeak.engine.model.plain import PlainModel, plain_block
from lowpeak.engine.model.rope import rotary_tables
from lowpeak.engine.sampling.schedules import schedule
from lowpeak.engine.sampling.solver import euler

TOLERANCE = 1e-5
LOOP_TOLERANCE = 1e-4


def state_of(tensors):
    return {name[6:]: value for name, value in tensors.items() if name.startswith("state/")}


def layout_of(request):
    return build_layout(
        latent_frames=request["T"],
        latent_height=request["LH"],
        latent_width=request["LW"],
        audio_latents=request["A"],
        text_tags=request["text_tags"],
        keyframes=request["anchors"],
    )


def inputs(tensors):
    return [tensors[f"in/{name}"] for name in ("video_rows", "audio_rows", "text")]


@pytest.mark.golden_files("h3_block_*.safetensors")
def test_golden_parity_of_one_block(golden_path, load_golden, relative_error) -> None:
    tensors, fixture = load_golden(golden_path)
    state, config = state_of(tensors), ModelConfig.from_json(fixture["config"], None)
    name = "transformer_blocks.0.adaln_proj.linear"
    table = adaln_table(state[f"{name}.weight"], state[f"{name}.bias"], tensors["in/temb"])
    rows = 3 * tensors["in/timestep_indices"] + tensors["in/token_tags"]
    cos, sin = rotary_tables(tensors["in/position_ids"], config.rope_freqs, config.rope_theta)
    mid = {"adaln_table": table, "rotary_cos": torch.cat([cos, cos], 1)}
    mid["rotary_sin"] = torch.cat([sin, sin], 1)
    out = plain_block(
        state, "transformer_blocks.0.", tensors["in/hidden_states"], table, rows, None, cos, sin,
        config, mid,
    )  # fmt: skip
    errors = {"out": relative_error(out, tensors["out/hidden_states"])}
    for key in (key for key in tensors if key.startswith("mid/")):
        errors[key] = relative_error(mid[key[4:]], tensors[key])
    assert max(errors.values()) <= TOLERANCE, errors
    print(f"PARITY | dense block | recorded | {max(errors.values()):.1e}")


@pytest.mark.golden_files("h3_model_*.safetensors")
def test_golden_model_inputs_are_rebuilt_from_the_request(golden_path, load_golden) -> None:
    tensors, fixture = load_golden(golden_path)
    layout = layout_of(fixture["request"])
    torch.testing.assert_close(
        layout.position_ids, tensors["in/position_ids"], rtol=1e-12, atol=1e-12
    )
    for name in ("token_tags", "video_indices", "audio_indices", "text_indices"):
        assert torch.equal(getattr(layout, name), tensors[f"in/{name}"]), name
    times = layout.at(fixture["t_video"], fixture["t_audio"])
    assert torch.equal(times.distinct, tensors["in/timestep"])
    assert torch.equal(times.timestep_indices, tensors["in/timestep_indices"])
    rows = patchify(tensors["in/video_latents"])
    assert torch.equal(rows, tensors["in/target_rows"])
    assert torch.equal(tensors["in/video_rows"][layout.condition_video_rows :], rows)


@pytest.mark.parametrize("kind", ["vdn", "dense"])
@pytest.mark.golden_files("h3_model_*.safetensors")
def test_golden_parity_of_the_model(golden_path, kind, load_golden, relative_error) -> None:
    tensors, fixture = load_golden(golden_path)
    config = ModelConfig.from_json(fixture["config"], fixture["transform"])
    config = config if kind == "vdn" else config.dense()
    layout = layout_of(fixture["request"])
    times = layout.at(fixture["t_video"], fixture["t_audio"])
    mid: dict[str, torch.Tensor] = {}
    model = PlainModel(state_of(tensors), config)
    video, audio = model.forward(*inputs(tensors), times, layout, mid)
    errors = {
        "video": relative_error(video, tensors[f"out/{kind}_video"]),
        "audio": relative_error(audio, tensors[f"out/{kind}_audio"]),
    }
    for axis in ("cos", "sin"):
        mid[f"rotary_{axis}"] = torch.cat([mid[f"rotary_{axis}"]] * 2, 1)
    for key in (key for key in tensors if key.startswith(f"mid_{kind}/")):
        errors[key] = relative_error(mid[key.split("/")[1]], tensors[key])
    assert max(errors.values()) <= TOLERANCE, errors
    worst = max(errors, key=errors.get)
    task = golden_path.stem.split("_")[-1]
    what = f"{kind} model {task}, {len(errors)} values"
    print(f"PARITY | {what} | recorded, worst {worst} | {errors[worst]:.1e}")


@pytest.mark.golden_files("h3_model_*.safetensors")
def test_golden_model_in_float64_differs_by_rounding_only(
    golden_path, load_golden, relative_error
) -> None:
    tensors, fixture = load_golden(golden_path)
    state = {name: value.double() for name, value in state_of(tensors).items()}
    config = ModelConfig.from_json(fixture["config"], fixture["transform"])
    layout = layout_of(fixture["request"])
    video, audio = PlainModel(state, config).forward(
        *(value.double() for value in inputs(tensors)),
        layout.at(fixture["t_video"], fixture["t_audio"]),
        layout,
    )
    assert video.dtype == torch.float64
    assert relative_error(video, tensors["out/vdn_video"]) <= TOLERANCE
    assert relative_error(audio, tensors["out/vdn_audio"]) <= TOLERANCE


@pytest.mark.golden_files("h3_model_*.safetensors")
def test_golden_model_runs_from_prepared_tables(golden_path, load_golden) -> None:
    tensors, fixture = load_golden(golden_path)
    state, config = (
        state_of(tensors),
        ModelConfig.from_json(fixture["config"], fixture["transform"]),
    )
    layout = layout_of(fixture["request"])
    times = layout.at(fixture["t_video"], fixture["t_audio"])
    cursor = ScheduleCursor([[0.0], times.distinct.tolist()])

    def tables(block, row_times):
        name = f"transformer_blocks.{block}.adaln_proj.linear"
        stored = {
            f"step_{i}": adaln_table(
                state[f"{name}.weight"],
                state[f"{name}.bias"],
                time_embedding(state, torch.tensor(step), config.freq_dim),
            )
            for i, step in enumerate(cursor.timesteps)
        }
        return cursor.table(stored, row_times.distinct)

    found = PlainModel(state, config, tables).forward(*inputs(tensors), times, layout)
    expected = PlainModel(state, config).forward(*inputs(tensors), times, layout)
    assert torch.equal(found[0], expected[0]) and torch.equal(found[1], expected[1])


@pytest.mark.golden_files("h3_sample_*.safetensors")
def test_golden_parity_of_a_sampling_loop(
    golden_path, golden_file, load_golden, relative_error
) -> None:
    tensors, fixture = load_golden(golden_path)
    weights, other = load_golden(golden_file(fixture["weights_from"]))
    config = ModelConfig.from_json(other["config"], other["transform"])
    model = PlainModel(state_of(weights), config if fixture["vdn"] else config.dense())
    layout = layout_of(fixture["request"])
    conditions = tensors["in/condition_rows"]
    velocities = []

    def velocity(video, audio, times):
        rows = layout.at(times.t_video, times.t_audio)
        out = model.forward(torch.cat([conditions, video]), audio, tensors["in/text"], rows, layout)
        velocities.append((rows.distinct, out[0][len(conditions) :], out[1]))
        return velocities[-1][1:]

    errors = {}

    def compare(result):
        step = result.times.step
        if step not in fixture["keep"]:
            return
        distinct, video_velocity, audio_velocity = velocities[step]
        assert torch.equal(distinct, tensors[f"step{step}/timestep"])
        for name, value in (
            ("video_velocity", video_velocity),
            ("audio_velocity", audio_velocity),
            ("video_rows", result.video),
            ("audio_rows", result.audio),
        ):
            errors[f"step {step} {name}"] = relative_error(value, tensors[f"step{step}/{name}"])

    euler(
        velocity,
        tensors["in/video_noise_rows"],
        tensors["in/audio_noise_rows"],
        schedule(fixture["steps"]),
        compare,
    )
    assert len(velocities) == fixture["steps"]
    assert len(errors) == 4 * len(fixture["keep"])
    assert max(errors.values()) <= LOOP_TOLERANCE, errors
    what = f"sampling loop, {fixture['steps']} steps, {'VDN' if fixture['vdn'] else 'dense'}"
    print(f"PARITY | {what} | recorded | {max(errors.values()):.1e}")
