"""Schedules against the golden numbers and against diffusers' scheduler."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest

from lowpeak.engine.errors import RequestError
from lowpeak.engine.sampling.schedules import (
    COMMUNITY_SIGMAS,
    NO_CONDITIONS,
    TASK_CONDITIONS,
    ConditionTimes,
    Schedule,
    community_schedule,
    refine_schedule,
    schedule,
    table_directory,
    tail_schedule,
)


def golden(folder: Path, name: str) -> dict:
    return json.loads((folder / name).read_text())


def named_schedule(name: str) -> Schedule:
    """A schedule by the name that the golden files give it."""
    if name.startswith("tail_"):
        _, steps, _, of = name.split("_")
        return tail_schedule(int(steps), int(of))
    return community_schedule(name.replace("community_", "community-sigma"))


def test_golden_grids_are_exact(golden_dir: Path) -> None:
    worst = 0.0
    for count, want in golden(golden_dir, "schedule.json")["schedules"].items():
        found = schedule(int(count))
        for key in ("raw", "video_sigmas", "audio_sigmas"):
            assert list(getattr(found, key)) == want[key], (count, key)
            worst = max(worst, *np.abs(np.subtract(getattr(found, key), want[key])))
        assert list(found.video_times) == want["video_timesteps"]
        assert list(found.audio_times) == want["audio_timesteps"]
    print(f"PARITY | sampling grids and shifts | golden schedule.json | {worst:.1e}")


def test_golden_table_times_rows_and_directory_are_exact(golden_dir: Path) -> None:
    for count, want in golden(golden_dir, "schedule.json")["schedules"].items():
        for task, rows in want["table_rows"].items():
            conditions, found = TASK_CONDITIONS[task], schedule(int(count))
            times = found.table_times(conditions)
            assert [list(step) for step in times] == rows["timesteps"], (count, task)
            assert found.table_rows(conditions) == rows["total_rows"]
            assert table_directory(times, "0" * 64) == rows["directory_for_zero_weights_hash"]


def test_golden_refine_schedules_are_exact(golden_dir: Path) -> None:
    for name, want in golden(golden_dir, "schedule.json")["refine"].items():
        found = named_schedule(name)
        assert list(found.video_sigmas) == want["video_sigmas"], name
        assert list(found.audio_sigmas) == want["audio_sigmas"], name
        for task, times in want.get("table_rows", {}).items():
            assert [list(step) for step in found.table_times(TASK_CONDITIONS[task])] == times


def test_golden_two_pass_rows_are_exact(golden_dir: Path) -> None:
    for name, want in golden(golden_dir, "two_pass.json")["refine_rows"].items():
        found = named_schedule(name)
        for key in ("raw", "video_sigmas", "audio_sigmas"):
            assert list(getattr(found, key)) == want[key], (name, key)
        assert list(found.video_times) == want["video_timesteps"]
        assert list(found.audio_times) == want["audio_timesteps"]
        assert [list(t) for t in found.table_times()] == want["distinct_times_t2va"]
        keyframes = found.table_times(ConditionTimes(visual=True))
        assert [list(t) for t in keyframes] == want["distinct_times_keyframes"]


@pytest.mark.parametrize("evaluations", [1, 2, 3, 5, 8, 12, 16, 20, 31, 32, 50])
@pytest.mark.parametrize("shift", [12.0, 3.0])
def test_grids_are_parity_with_diffusers(evaluations: int, shift: float) -> None:
    diffusers = pytest.importorskip("diffusers")
    reference = diffusers.MiniMaxH3Scheduler(shift=shift)
    reference.set_timesteps(evaluations + 1)
    found = schedule(evaluations)
    sigmas = found.video_sigmas if shift == 12.0 else found.audio_sigmas
    # torch.linspace rounds by the processor's vector width; the golden values pin the exact form.
    assert np.abs(np.subtract(sigmas, reference.sigmas.tolist())).max() <= 2e-7


def test_n_means_n_evaluations_and_every_grid_falls_to_exactly_zero() -> None:
    for count in range(1, 65):
        found = schedule(count)
        assert found.evaluations == count == len(found.steps())
        for sigmas in (found.raw, found.video_sigmas, found.audio_sigmas):
            assert sigmas[0] == 1.0 and sigmas[-1] == 0.0
            assert all(a > b for a, b in itertools.pairwise(sigmas))


def test_step_times_point_into_their_sorted_distinct_values() -> None:
    for conditions in TASK_CONDITIONS.values():
        for step, times in enumerate(schedule(20).steps(conditions)):
            assert times.step == step and times.steps == 20
            assert list(times.distinct) == sorted(set(times.distinct))
            assert times.distinct[times.video_index] == times.t_video
            assert times.distinct[times.audio_index] == times.t_audio
            if conditions.visual:
                assert times.distinct[times.condition_index] == times.t_condition
            if conditions.reference_audio:
                assert times.distinct[times.reference_audio_index] == times.t_reference_audio == 1.0


def test_a_pass_without_condition_rows_has_no_condition_index() -> None:
    times = schedule(4).steps(NO_CONDITIONS)[0]
    with pytest.raises(LookupError, match="visual condition"):
        _ = times.condition_index
    with pytest.raises(LookupError, match="reference audio"):
        _ = times.reference_audio_index


def test_a_condition_never_lags_behind_the_video() -> None:
    late = Schedule("late", (0.0001, 0.0), (np.float32(0.0005).item(), 0.0), (0.5, 0.0))
    (times,) = late.steps(ConditionTimes(visual=True))
    assert times.t_condition == times.t_video > 0.999
    assert len(times.distinct) == 2


def test_refine_rules() -> None:
    assert refine_schedule(3, 2).name == "community-sigma3-v1"
    assert refine_schedule(2, 8) == tail_schedule(2, 8)
    assert refine_schedule(5, 2, "community-sigma5").evaluations == 5
    for steps, base in ((8, 8), (9, 8), (0, 8)):
        with pytest.raises(RequestError, match="refine steps"):
            refine_schedule(steps, base)
    with pytest.raises(RequestError, match="none of"):
        refine_schedule(3, 8, "sigma-of-nobody")
    with pytest.raises(RequestError, match="has 4 steps"):
        refine_schedule(3, 8, "community-sigma4")
    with pytest.raises(RequestError, match="at least 1"):
        schedule(0)
    assert set(COMMUNITY_SIGMAS) == {
        "community-sigma3-v1",
        "community-sigma4",
        "community-sigma5",
    }


def test_the_directory_depends_on_every_part_of_the_identity() -> None:
    times = schedule(8).table_times()
    names = {
        table_directory(times, "0" * 64),
        table_directory(times, "1" * 64),
        table_directory(times, "0" * 64, channels=64),
        table_directory(schedule(12).table_times(), "0" * 64),
    }
    assert len(names) == 4
    nudged = [list(step) for step in times]
    nudged[3][0] = float(np.nextafter(np.float32(nudged[3][0]), np.float32(1)))
    assert table_directory(nudged, "0" * 64) not in names
