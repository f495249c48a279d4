"""What one run holds open: device, host, plan, report, and resources closed in reverse order.

A phase is entered by name. Its forecast is announced when it begins and its measurement when it
ends, and both go side by side into the report. An out-of-memory inside a phase becomes
MeasuredOverrun with that phase's forecast; nothing is retried here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from .errors import Cancelled, MeasuredOverrun, RequestError
from .events import Event, Host
from .files import SampledLatents
from .forecast import outside_bytes
from .meter import Meter, resident_bytes
from .planner.types import Placement
from .report import PhaseMeasurement, RunReport
from .units import gib_to_bytes


class Session:
    """Use as a context manager. `forecasts` maps a phase to its object in `plan --json`."""

    def __init__(
        self,
        device: torch.device,
        host: Host,
        report: RunReport,
        forecasts: Mapping[str, Mapping[str, Any]],
    ) -> None:
        self.device, self.host, self.report = device, host, report
        self.resources = ExitStack()
        self._forecasts = forecasts
        self._meter = Meter(device)
        self._phase = ""
        self.previewer: Callable[[str, Callable[[], Tensor]], None] | None = None
        self.keep_step: Callable[[int, SampledLatents], None] | None = None

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *failure: object) -> None:
        self.resources.close()

    @contextmanager
    def phase(self, name: str) -> Iterator[PhaseMeasurement]:
        """Run the body as phase `name`: announce, measure, report. Raises MeasuredOverrun."""
        forecast = self._forecasts.get(name)
        self._announce("forecast", name, forecast or {})
        self._phase = name
        self.release_device_cache()  # what an earlier phase freed is not this one's peak
        measured: PhaseMeasurement | None = None
        try:
            with self._meter.phase(name) as measured:
                yield measured
        except torch.OutOfMemoryError as short:
            raise self._overrun("vram", forecast, measured) from short
        except MemoryError as short:
            raise self._overrun("ram", forecast, measured) from short
        finally:
            self._phase = ""
            if measured is not None:
                self.report.add_phase(measured, dict(forecast) if forecast else None)
                self._announce("measured", name, measured.as_json())

    @contextmanager
    def span(self, name: str) -> Iterator[None]:
        """Give the body a name in the timeline. It measures the host's time, not the device's."""
        started_unix, began = time.time(), time.perf_counter()
        try:
            yield
        finally:
            self.report.add_span(name, self._phase, started_unix, time.perf_counter() - began)

    def placement(self, phase: str) -> Placement | None:
        """Where the plan puts the bytes of `phase`; None without a plan for it."""
        found = (self._forecasts.get(phase) or {}).get("placement")
        return Placement(**found) if found else None

    def progress(self, step: int, steps: int, seconds: float | None = None) -> None:
        """Tell the host how far the current phase is."""
        self.host.emit(
            Event(
                "progress",
                self._phase,
                step=step,
                steps=steps,
                seconds=seconds,
                vram_bytes=self._meter.device_bytes(),
                ram_bytes=resident_bytes(),
            )
        )

    def notice(self, message: str) -> None:
        """Tell the user once, now and in the report."""
        if message not in self.report.notices:
            self.report.notices.append(message)
            self.host.emit(Event("notice", self._phase, message))

    def limit_device(self, vram_gib: float | None) -> None:
        """Cap the allocator so that context and allocations stay within `vram_gib` GiB.

        The plan's figure for the context counts where it is larger: graphs are captured later.

        Lifted when the session closes. Raises RequestError when the context alone takes more.
        """
        if vram_gib is None or self.device.type != "cuda":
            return
        total = torch.cuda.mem_get_info(self.device)[1]
        outside = max(self._meter.context_bytes, self._planned_context_bytes())
        allowed = gib_to_bytes(vram_gib) - outside
        if allowed <= 0:
            raise RequestError(
                f"{vram_gib:g} GiB is less than the CUDA context takes", field="vram_gib"
            )
        torch.cuda.set_per_process_memory_fraction(min(1.0, allowed / total), self.device)
        self.resources.callback(torch.cuda.set_per_process_memory_fraction, 1.0, self.device)

    def _planned_context_bytes(self) -> int:
        """The largest that any phase's forecast holds beside the allocator."""
        return max(map(outside_bytes, self._forecasts.values()), default=0)

    def preview(self, make_latents: Callable[[], Tensor]) -> None:
        """Offer a picture of latents [24, F, h, w] to whoever wants one: the run's own previewer,
        or a host that makes its pictures itself."""
        if self.previewer is not None:
            self.previewer(self._phase, make_latents)
            return
        show = getattr(self.host, "preview", None)
        if show is not None:
            show(make_latents)

    def check_cancelled(self, where: str) -> None:
        """Raise Cancelled when the host asked to stop."""
        if self.host.is_cancelled():
            raise Cancelled(where)

    def release_device_cache(self) -> None:
        """Give freed device memory back, so that the next phase starts from its own peak."""
        if self.device.type == "cuda":
            torch.cuda.empty_cache()

    def _announce(self, kind: Any, phase: str, figures: Mapping[str, Any]) -> None:
        self.host.emit(
            replace(
                Event(kind, phase),
                seconds=figures.get("seconds"),
                vram_peak_bytes=figures.get("vram_peak_bytes"),
                ram_peak_bytes=figures.get("ram_peak_bytes"),
                steps=figures.get("steps") or None,
                terms=tuple(figures.get("terms", ())),
            )
        )

    def _overrun(
        self, axis: str, forecast: Mapping[str, Any] | None, measured: PhaseMeasurement | None
    ) -> MeasuredOverrun:
        key = f"{axis}_peak_bytes"
        planned = int((forecast or {}).get(key) or 0)
        used = int(getattr(measured, key, None) or 0)
        return MeasuredOverrun(measured.phase if measured else "", axis, planned, used)
