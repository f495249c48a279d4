"""The kernels of this machine: chosen by need and by what the probe measured, named for users."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

import torch

from ..kernels.compose import Choice, Unusable, choose_ops, compute_dtype
from ..kernels.machine import read_machine
from ..kernels.verdicts import VerdictCache
from .errors import KernelUnavailable
from .learning import home

CACHE_NAME = "kernels.json"
ALLOW_VARIABLE = "LOWPEAK_QUANTISED_ATTENTION"


@dataclass(frozen=True)
class KernelOptions:
    """What a user may decide. force: op -> implementation name. allow_quantised: attention may
    quantise its inputs where that is more than 10 % faster than every exact form."""

    force: Mapping[str, str] = field(default_factory=dict)
    allow_quantised: bool = False


def kernel_options() -> KernelOptions:
    """The options of this process: quantised attention only with LOWPEAK_QUANTISED_ATTENTION=1."""
    return KernelOptions(allow_quantised=os.environ.get(ALLOW_VARIABLE, "") == "1")


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
