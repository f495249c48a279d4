"""What a machine's card is, and what options say of one that is not here."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lowpeak.engine.errors import RequestError
from lowpeak.engine.gpu import Gpu, parse_gpu
from lowpeak.engine.gpu_child import NO_DEVICE, cuda_uuids
from lowpeak.engine.hostmemory import HostMemory, read_windows_memory
from lowpeak.engine.planner.types import HardwareSnapshot
from lowpeak.engine.snapshot import cap_snapshot, read_snapshot, snapshot_from_options
from lowpeak.engine.units import GIB
from lowpeak.engine.wddm import WddmBudget, parse_wddm


def windows_snapshot(wddm: WddmBudget | str) -> HardwareSnapshot:
    counters = {
        "physical_total": 16 * GIB, "physical_available": 12 * GIB, "commit_limit": 30 * GIB,
        "commit_available": 20 * GIB,
    }  # fmt: skip
    return read_snapshot(
        gpu=lambda index: parse_gpu(answer()),
        memory=lambda system: read_windows_memory(lambda: counters),
        wddm=lambda: wddm,
        system="windows",
    )


def test_display_budgets_bound_what_is_free_and_what_may_be_pinned() -> None:
    found = windows_snapshot(WddmBudget(6 * GIB, 5 * GIB))
    assert (found.vram_free_bytes, found.pin_limit_bytes) == (6 * GIB, 5 * GIB)
    assert (found.wddm_local_bytes, found.commit_available_bytes) == (6 * GIB, 20 * GIB)
    assert any("lets one process use 6.00 GiB" in note for note in found.notes)
    roomy = windows_snapshot(WddmBudget(20 * GIB, 20 * GIB))
    assert (roomy.vram_free_bytes, roomy.pin_limit_bytes) == (7 * GIB, 8 * GIB)
    assert not any("lets one process" in note for note in roomy.notes)
    unknown = windows_snapshot("no display budgets: no DXGI factory")
    assert unknown.vram_free_bytes == 7 * GIB and "no display budgets" in " ".join(unknown.notes)


@pytest.mark.parametrize(
    ("output", "found"),
    [
        (
            '{"adapters": [{"vendor": 32902, "local": {"budget": 9, "used": 0}}, '
            '{"vendor": 4318, "local": {"budget": 100, "used": 30}, "nonlocal": null}]}',
            WddmBudget(70, None),
        ),
        ('{"adapters": []}', "no NVIDIA adapter"),
        ('{"error": "OSError: x"}', "OSError: x"),
        ("Traceback", "not told"),
    ],
)
def test_what_the_budget_child_prints_is_read(output: str, found: WddmBudget | str) -> None:
    read = parse_wddm(output)
    assert found in read if isinstance(found, str) else read == found  # type: ignore[operator]


def answer(**changes: Any) -> str:
    card = {
        "name": "NVIDIA GeForce RTX 4060",
        "uuid": "GPU-0",
        "capability": [8, 9],
        "total": 8 * GIB,
        "free": 7 * GIB,
        "processes": 0,
        "temperature": 50,
        "throttle": 0,
    }
    return json.dumps({"driver": "580.1", "cards": [card | changes]})


def test_the_gpu_answer_is_read() -> None:
    gpu = parse_gpu(answer())
    assert isinstance(gpu, Gpu)
    assert (gpu.name, gpu.capability, gpu.free_bytes) == (
        "NVIDIA GeForce RTX 4060",
        (8, 9),
        7 * GIB,
    )
    assert not gpu.thermal


@pytest.mark.parametrize(
    ("output", "word"),
    [
        ("", "no JSON"),
        ('{"error": "NVMLError: not found"}', "no NVIDIA GPU"),
        ('{"driver": "1", "cards": []}', "0 found"),
    ],
)
def test_no_gpu_is_a_reason_not_a_crash(output: str, word: str) -> None:
    assert word in str(parse_gpu(output))
    snapshot = read_snapshot(
        gpu=lambda index: parse_gpu(output, index),
        memory=lambda system: HostMemory(GIB, GIB),
        system="linux",
    )
    assert snapshot.vram_total_bytes == 0 and word in " ".join(snapshot.notes)


def test_a_busy_hot_second_card_is_noted() -> None:
    data = json.loads(answer(processes=2, throttle=0x40))
    data["cards"] *= 2
    snapshot = read_snapshot(
        gpu=lambda index: parse_gpu(json.dumps(data), index),
        memory=lambda system: HostMemory(GIB, GIB),
        system="linux",
        device_index=1,
    )
    notes = " ".join(snapshot.notes)
    assert "2 other process" in notes and "hot" in notes and "2 GPUs" in notes


def two_cards(cuda: Any) -> str:
    """A slow card first on the bus, a fast one second."""
    data = json.loads(answer(uuid="GPU-slow", name="RTX 3060"))
    data["cards"].append(data["cards"][0] | {"uuid": "GPU-fast", "name": "RTX 5090"})
    return json.dumps(data | {"cuda": cuda})


@pytest.mark.parametrize(
    ("cuda", "index", "name"),
    [
        (["GPU-fast", "GPU-slow"], 0, "RTX 5090"),  # CUDA's own order: fastest first
        (["GPU-fast", "GPU-slow"], 1, "RTX 3060"),
        (["GPU-slow"], 0, "RTX 3060"),  # masked
        (None, 1, "RTX 5090"),  # no driver library to ask
        (3, 0, "RTX 3060"),  # CUDA could not start: NVML's order is what is left
    ],
)
def test_the_card_is_the_one_that_cuda_uses(cuda: Any, index: int, name: str) -> None:
    found = parse_gpu(two_cards(cuda), index)
    assert isinstance(found, Gpu) and found.name == name and found.cards == 2


@pytest.mark.parametrize(
    ("cuda", "index", "word"),
    [
        (NO_DEVICE, 0, "CUDA_VISIBLE_DEVICES is ''"),
        ([], 0, "CUDA shows no GPU"),
        (["GPU-fast"], 1, "CUDA shows 1 of 2"),
        (["GPU-other"], 0, "(GPU-other) is none of the 2 that NVML lists"),
    ],
)
def test_a_card_that_cuda_does_not_show_is_not_planned_for(
    cuda: Any, index: int, word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert word in str(parse_gpu(two_cards(cuda), index))


def test_one_card_is_the_card_whatever_its_name() -> None:
    """A virtual card may be called otherwise by CUDA."""
    data = json.loads(answer()) | {"cuda": ["GPU-other"]}
    found = parse_gpu(json.dumps(data))
    assert isinstance(found, Gpu) and found.name == "NVIDIA GeForce RTX 4060"


class Driver:
    """CUDA's driver library with two cards. wrong: the call that gives an error."""

    def __init__(self, wrong: str = "") -> None:
        self.wrong = wrong

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any) -> int:
            if name == self.wrong:
                return NO_DEVICE
            out = getattr(arguments[0], "_obj", None)
            if name == "cuDeviceGetCount":
                out.value = 2
            if name == "cuDeviceGet":
                out.value = 7 + arguments[1]
            if name == "cuDeviceGetUuid":
                out[:] = bytes([arguments[1].value] * 16)
            return 0

        return call


def test_identities_are_asked_in_cudas_order() -> None:
    seven, eight = "07070707-0707-0707-0707-070707070707", "08080808-0808-0808-0808-080808080808"
    assert cuda_uuids(Driver()) == [f"GPU-{seven}", f"GPU-{eight}"]
    for name in ("cuInit", "cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetUuid"):
        assert cuda_uuids(Driver(name)) == NO_DEVICE


def test_reading_this_machine_works_and_makes_no_cuda_context() -> None:
    snapshot = read_snapshot()
    assert snapshot.ram_total_bytes >= snapshot.ram_available_bytes > 0


def nowhere() -> HardwareSnapshot:
    raise AssertionError("this machine was asked although the options say everything")


def test_options_describe_a_machine_without_asking_this_one() -> None:
    snapshot = snapshot_from_options(8, 16, link_gbps=12, disk_gbps=2.5, here=nowhere)
    assert (snapshot.vram_free_bytes, snapshot.ram_available_bytes) == (8 * GIB, 16 * GIB)
    assert (snapshot.link_bytes_per_second, snapshot.disk_bytes_per_second) == (12e9, 2.5e9)


def test_a_card_brings_its_memory_and_capability() -> None:
    snapshot = snapshot_from_options(ram_gib=32, card="RTX 4060 Laptop GPU", here=nowhere)
    assert snapshot.card == "rtx-4060-laptop"
    assert (snapshot.vram_total_bytes, snapshot.capability) == (8 * GIB, (8, 9))
    assert snapshot_from_options(12, 32, card="h200", here=nowhere).card == "h200"


@pytest.mark.parametrize("name", ["h200", "NVIDIA H200"])
def test_a_measured_card_brings_them_too(name: str) -> None:
    """It has a calibration file of its own, and needs no GPU here either."""
    snapshot = snapshot_from_options(ram_gib=64, card=name, here=nowhere)
    assert (snapshot.card, snapshot.capability) == ("h200", (9, 0))
    assert snapshot.vram_free_bytes == pytest.approx(140.4 * GIB, rel=1e-6)


def test_open_options_are_filled_from_this_machine() -> None:
    here = HardwareSnapshot("linux", "Card", (8, 9), 8 * GIB, 7 * GIB, 32 * GIB, 20 * GIB)
    less_ram = snapshot_from_options(ram_gib=16, here=lambda: here)
    assert (less_ram.vram_free_bytes, less_ram.ram_available_bytes) == (7 * GIB, 16 * GIB)
    assert less_ram.device_name == "Card"
    other = snapshot_from_options(vram_gib=12, here=lambda: here)
    assert (other.vram_free_bytes, other.device_name, other.capability) == (12 * GIB, "", None)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"vram_gib": 0}, "vram_gib"),
        ({"vram_gib": -4}, "vram_gib"),
        ({"vram_gib": float("nan")}, "vram_gib"),
        ({"vram_gib": 99_999}, "vram_gib"),
        ({"vram_gib": 0.001}, "vram_gib"),
        ({"ram_gib": 0}, "ram_gib"),
        ({"ram_gib": float("inf")}, "ram_gib"),
        ({"system": "beos"}, "system"),
        ({"capability": "eight"}, "capability"),
        ({"capability": "7.5"}, "capability"),
        ({"capability": "99.0"}, "capability"),
        ({"link_gbps": 0}, "link_gbps"),
        ({"disk_gbps": -1}, "disk_gbps"),
        ({"disk_gbps": 1e9}, "disk_gbps"),
        ({"card": "voodoo"}, "card"),
        ({"card": "rtx-4060", "vram_gib": 24}, "vram_gib"),
        ({"card": "rtx-4060", "capability": "8.6"}, "capability"),
        ({"card": "h200", "vram_gib": 192}, "vram_gib"),
    ],
)
def test_impossible_options_are_request_errors(options: dict[str, Any], field: str) -> None:
    with pytest.raises(RequestError) as caught:
        snapshot_from_options(**{"vram_gib": 8, "ram_gib": 16, **options}, here=nowhere)
    assert caught.value.field == field


def test_a_capacity_outside_its_range_is_told_the_range() -> None:
    with pytest.raises(RequestError, match=r"vram_gib 0 is outside 0\.25\.\.1024 GiB"):
        snapshot_from_options(0, 16, here=nowhere)


def test_caps_only_ever_take_away() -> None:
    here = HardwareSnapshot("linux", "Card", (8, 9), 8 * GIB, 7 * GIB, 32 * GIB, 20 * GIB)
    capped = cap_snapshot(here, vram_gib=4, ram_gib=64)
    assert (capped.vram_total_bytes, capped.vram_free_bytes) == (4 * GIB, 4 * GIB)
    assert capped.ram_available_bytes == 20 * GIB
    with pytest.raises(RequestError):
        cap_snapshot(here, vram_gib=0)
