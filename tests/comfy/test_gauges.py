"""Ours, other programs' and evictable memory, apart."""

from __future__ import annotations

from typing import Any

import pytest

from lowpeak.engine.events import Event
from lowpeak.nodes import gauges
from lowpeak.nodes.gauges import Gauges, Memory
from lowpeak.nodes.runs import OTHERS, RunBook

PROGRESS = Event("progress", "decode", vram_bytes=30, ram_bytes=200)


def test_what_is_neither_free_nor_ours_nor_evictable_belongs_to_others() -> None:
    reader = Gauges(lambda: Memory(100, 20, 40), lambda: Memory(1000, 300, 100))
    assert reader.others(PROGRESS) == {
        "vram_other_bytes": 10, "vram_evictable_bytes": 40,
        "ram_other_bytes": 400, "ram_evictable_bytes": 100,
    }  # fmt: skip


@pytest.mark.parametrize("device", [None, Memory(100, 20, None)])
def test_unknown_is_left_out_and_never_zero(device: Memory | None) -> None:
    reader = Gauges(lambda: device, lambda: Memory(1000, 300, 100))
    assert set(reader.others(PROGRESS)) == {"ram_other_bytes", "ram_evictable_bytes"}
    assert "ram_other_bytes" not in reader.others(Event("progress", "decode"))


def test_memory_is_read_at_most_once_an_interval() -> None:
    now, reads = [0.0], []

    def device() -> Memory:
        reads.append(now[0])
        return Memory(100, 20, 40)

    reader = Gauges(device, lambda: None, clock=lambda: now[0])
    for moment in (0.0, 0.1, 0.39, 0.4, 0.5):
        now[0] = moment
        assert reader.others(PROGRESS)["vram_other_bytes"] == 10
    assert reads == [0.0, 0.4]


def test_this_machines_ram_is_whole_or_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    from lowpeak.engine.hostmemory import HostMemory

    seen = gauges.read_memory("linux")
    monkeypatch.setattr(gauges, "read_memory", lambda system: HostMemory(1 << 60, 1, None))
    memory: Any = gauges.read_host()
    assert 0 < memory.free_bytes + memory.evictable_bytes <= memory.total_bytes
    limited = HostMemory(seen.total_bytes // 2, 1, None)
    monkeypatch.setattr(gauges, "read_memory", lambda system: limited)
    assert gauges.read_host() is None, "a container's share says nothing about other programs"


def test_the_run_book_keeps_them_beside_ours() -> None:
    book = RunBook()
    name = book.begin("abc")
    book.take(name, PROGRESS, dict(zip(OTHERS, (1, 2, 3, 4), strict=True)))
    book.take(name, PROGRESS)
    run = book.get(name)
    assert run and [point[1:] for point in run["curve"]] == [
        ["decode", 30, 200, 1, 2, 3, 4],
        ["decode", 30, 200, None, None, None, None],
    ]
