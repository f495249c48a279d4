"""The kernels of this machine: chosen by need and by what the probe measured, named for users."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import torch

from ..kernels.catalogue import CATALOGUE
from ..kernels.compose import Choice, Unusable, choose_ops, compute_dtype
from ..kernels.machine import read_machine
from ..kernels.verdicts import VerdictCache
from ..kernels.weights import KINDS
from .errors import KernelUnavailable, RequestError, WorkerDied
from .learning import home
from .options import check_attention_name
from .quantised import quantised_attention_allowed

CACHE_NAME = "kernels.json"


@dataclass(frozen=True)
class KernelOptions:
    """What a user may decide. force: op -> implementation name. allow_quantised: attention may
    quantise its inputs where that is more than 10 % faster than every exact form."""

    force: Mapping[str, str] = field(default_factory=dict)
    allow_quantised: bool = False


def kernel_options() -> KernelOptions:
    """The options of this process: quantised attention only with LOWPEAK_QUANTISED_ATTENTION=1."""
    return KernelOptions(allow_quantised=quantised_attention_allowed())


def verdict_cache() -> VerdictCache:
    """Where this user's verdicts are kept."""
    return VerdictCache(home() / CACHE_NAME)


def choose_kernels(
    device: torch.device,
    *,
    head_dim: int,
    kind: str,
    dtype: torch.dtype | None = None,
    options: KernelOptions | None = None,
) -> Choice:
    """The operations for a checkpoint on a device. Raises KernelUnavailable with every reason.

    options: None takes those of the process.
    """
    options = options or kernel_options()
    machine = read_machine(device)
    verdicts = verdict_cache().read(machine) if device.type == "cuda" else {}
    try:
        return choose_ops(
            device,
            head_dim=head_dim,
            kind=kind,
            dtype=dtype,
            machine=machine,
            verdicts=verdicts,
            force=options.force,
            allow_quantised=options.allow_quantised,
        )
    except Unusable as none:
        raise KernelUnavailable(none.op, none.reasons) from none


def default_dtype(device: torch.device) -> torch.dtype:
    """What the engine computes in on a device."""
    return compute_dtype(read_machine(device))


def name_changes(plan: Mapping[str, Any], kernels: Mapping[str, Any]) -> dict[str, Any]:
    """A plan's document that says whether a chosen kernel changes the arithmetic, and which.

    kernels: ModelSet.kernels(). A plan that counted 8-bit attention is set right where none runs.
    """
    reasons = []
    for part, found in kernels.items():
        for op in found.get("changes_arithmetic", ()):
            name, because = found["chosen"][op], found["because"][op]
            reasons.append(
                f"{part}: {op} runs through {name}, which quantises its inputs: {because}"
            )
    if not reasons and not plan.get("changes_arithmetic"):
        return dict(plan)
    changes = bool(reasons)
    if not changes:
        reasons.append("no kernel here quantises attention, which the plan counted: exact ones run")
    return {
        **plan,
        "reasons": [*plan.get("reasons", ()), *reasons],
        "changes_arithmetic": changes,
    }


def linear_options(gemm: str, weight_format: str) -> KernelOptions:
    """Options that force a path of the linears. gemm: a weight format, for its usual path, or a
    path's name. Raises RequestError when it cannot be for this format."""
    if gemm == weight_format:
        return kernel_options()
    if gemm in KINDS:
        raise RequestError(
            f"the checkpoint holds {weight_format} weights, not {gemm}; "
            f"lowpeak toy-checkpoint makes one of each format",
            field="gemm",
        )
    names = [
        item.name
        for item in CATALOGUE
        if item.op == "linear" and (not item.needs.kinds or weight_format in item.needs.kinds)
    ]
    if gemm not in names:
        raise RequestError(
            f"no path {gemm!r} for {weight_format} weights: {', '.join(names)}", field="gemm"
        )
    return KernelOptions({"linear": gemm}, kernel_options().allow_quantised)


def attention_options(name: str | None) -> KernelOptions | None:
    """Options that force one attention in windows, and for the rows that attend to everything where
    it has that form. None gives None. Raises RequestError for a name that is in no table."""
    if name is None:
        return None
    check_attention_name(name)
    ops = ("window attention", "global attention")
    force = {item.op: name for item in CATALOGUE if item.op in ops and item.name == name}
    return KernelOptions(force, kernel_options().allow_quantised)


def probe_kernels(
    device: torch.device,
    *,
    progress: Callable[[str], None] = lambda line: None,
    kinds: tuple[str, ...] = KINDS[1:],  # the plain product is the library's own
) -> dict[str, Any]:
    """Judge and time every candidate on this card, keep each verdict at once, give the document.

    Raises WorkerDied when the probing process cannot be started.
    """
    from ..kernels.probe.parent import ProbeFailed
    from ..kernels.probe.table import probe, verdict_of

    machine = read_machine(device)
    cache = verdict_cache()
    when = {"time": datetime.now(UTC).isoformat(timespec="seconds")}

    def keep(task: Mapping[str, Any], result: Mapping[str, Any]) -> None:
        cache.write(machine, {task["key"]: {task["name"]: verdict_of(result)}}, when)

    try:
        return probe(machine, device, kinds=kinds, progress=progress, keep=keep)
    except ProbeFailed as failed:
        raise WorkerDied("kernel probe", str(failed)) from failed


def tune_kernels(
    ops: tuple[str, ...], progress: Callable[[str], None]
) -> tuple[list[dict[str, Any]], str]:
    """Time launch parameters on this card: what was tried, and the best as rows of tuning.toml.

    ops: () for all. Raises RequestError without a card or for an op that has no candidates.
    """
    from ..kernels.machine import triton_runs
    from ..kernels.probe.tune import OPS, toml_row, tune

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    unknown = set(ops) - set(OPS)
    if unknown:
        raise RequestError(f"no candidates for {', '.join(sorted(unknown))}", field="op")
    if not triton_runs(device):
        raise RequestError("launch parameters are measured on a card with Triton", field="device")
    found = [tune(op, device, progress=progress) for op in ops or OPS]
    rows = [toml_row(item, device, "lowpeak bench kernels") for item in found]
    return found, "\n\n".join(row for row in rows if row)
