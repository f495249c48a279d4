"""In this process or in workers: how a request of the command line is run.

On a card every stage gets a process of its own, so that its memory comes back whole, its measured
peaks are its own, and an out-of-memory is tried again more lightly. On a CPU one process does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .events import Host
from .forecast import read_facts
from .learning import machine_calibration
from .options import RunOptions
from .planner.least import least_needs
from .planner.types import HardwareSnapshot
from .request import Request
from .snapshot import read_snapshot


def generate(
    request: Request,
    options: RunOptions,
    host: Host,
    notices: tuple[str, ...] = (),
    *,
    workers: bool | None = None,
) -> dict[str, Any]:
    """Run a request; gives its report, JSON-ready. workers: None decides by the device.

    Raises any LowpeakError; WorkerDied (exit code 5) when every retry failed.
    """
    if workers is None:
        workers = options.device != "cpu" and read_snapshot().capability is not None
    if not workers:
        from .run import run_request

        return run_request(request, options, host, notices).as_json()
    from .worker.stages import Launch, run_in_workers

    def least(machine: HardwareSnapshot) -> Mapping[str, Mapping[str, int]]:
        return least_needs(
            request, machine, read_facts(options.checkpoint), machine_calibration(machine)
        )

    return run_in_workers(request, options, Launch(host, notices, least_needs=least))
