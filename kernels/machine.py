"""What a kernel may need to know about a machine, as data: recorded once, tested without a card.

Nothing is imported to read a Machine. A package that is present but breaks at import is found when
it is first loaded, or by the probe, and becomes a reason like any other.
"""

from __future__ import annotations

import importlib
import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.machinery import PathFinder
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

Capability = tuple[int, int]
Version = tuple[int, ...]
TRITON_MIN_CAPABILITY = (8, 0)
TRITON_MIN_VERSION = "3.2"

# import name -> distributions that bring it
DISTRIBUTIONS = {
    "torch": ("torch",),
    "triton": ("triton", "triton-windows", "pytorch-triton"),
    "comfy_kitchen": ("comfy-kitchen",),
    "sageattention": ("sageattention",),
    "sageattn3": ("sageattn3",),
    "flash_attn": ("flash-attn", "flash_attn"),
    "flash_attn.cute": ("flash-attn-4",),
}


@dataclass(frozen=True)
class Machine:
    """system: linux, windows or darwin. device: cuda, hip or cpu. packages: import name ->
    version; broken: import name -> why it cannot be imported."""

    system: str
    device: str
    name: str = ""
    capability: Capability | None = None
    driver: str = ""
    packages: Mapping[str, str] = field(default_factory=dict)
    broken: Mapping[str, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """For reports and recordings."""
        return {
            "system": self.system,
            "device": self.device,
            "name": self.name,
            "capability": None if self.capability is None else list(self.capability),
            "driver": self.driver,
            "packages": dict(self.packages),
            "broken": dict(self.broken),
        }


def machine_from_json(data: Mapping[str, Any]) -> Machine:
    """A recorded machine."""
    capability = data.get("capability")
    return Machine(
        data["system"],
        data["device"],
        data.get("name", ""),
        None if capability is None else (int(capability[0]), int(capability[1])),
        data.get("driver", ""),
        dict(data.get("packages", {})),
        dict(data.get("broken", {})),
    )


def read_machine(device: torch.device) -> Machine:
    """The machine of a device, without a CUDA context for a CPU device."""
    import torch

    cuda = device.type == "cuda"
    kind = device.type
    if cuda and torch.version.hip:
        kind = "hip"
    return Machine(
        platform.system().lower(),
        kind,
        torch.cuda.get_device_name(device) if cuda else "",
        torch.cuda.get_device_capability(device) if cuda else None,
        driver_version() if cuda else "",
        installed_packages(),
    )


@cache
def installed_packages() -> dict[str, str]:
    """Import name -> version of what is installed; "0" where no distribution says."""
    return {name: package_version(name) for name in DISTRIBUTIONS if is_present(name)}


def package_version(name: str) -> str:
    """The version of an import name's distribution; "0" where none says."""
    known = map(_version, DISTRIBUTIONS.get(name, (name,)))
    return next((text for text in known if text), "0")


@cache
def driver_version() -> str:
    """The NVIDIA driver's version, "" where it cannot be asked."""
    try:
        import pynvml

        pynvml.nvmlInit()
        try:
            return str(pynvml.nvmlSystemGetDriverVersion())
        finally:
            pynvml.nvmlShutdown()
    except Exception:  # whatever a driver library raises: the version is a label, not a need
        return ""


@cache
def triton_runs(device: torch.device) -> bool:
    """Triton kernels can be launched on this device: the card, Triton's version and its import.

    Paths that end in a small kernel of ours ask here, because Triton is not among their needs.
    """
    import torch

    if device.type != "cuda" or torch.version.hip:
        return False
    if torch.cuda.get_device_capability(device) < TRITON_MIN_CAPABILITY:
        return False
    found = installed_packages().get("triton")
    if found is None or parse_version(found) < parse_version(TRITON_MIN_VERSION):
        return False
    try:
        importlib.import_module("triton")
    except Exception:  # a broken package may raise anything; the refusal of our kernels says what
        return False
    return True


def parse_version(text: str) -> Version:
    """The leading numbers of a version: "2.11.0+cu130" is (2, 11, 0)."""
    match = re.match(r"\d+(\.\d+)*", text)
    return tuple(int(part) for part in match[0].split(".")) if match else (0,)


def is_present(name: str) -> bool:
    """Whether a package, or a package within a package ("a.b"), is there. Nothing of it runs."""
    parent, _, child = name.partition(".")
    try:
        spec = find_spec(parent)
    except (ImportError, ValueError, AttributeError):
        return False  # a stub in sys.modules
    if spec is None or not child:
        return spec is not None
    # find_spec("a.b") would import a, which may raise anything.
    return PathFinder.find_spec(name, spec.submodule_search_locations or []) is not None


def _version(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None
