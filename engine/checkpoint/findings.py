"""What `models verify` answers with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import CheckpointError


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong ("error") or odd ("note"), and what to do."""

    severity: str
    message: str
    file: str
    tensor: str = ""
    expected: str = ""
    found: str = ""
    remedy: str = ""

    def as_json(self) -> dict[str, str]:
        """The finding, JSON-ready."""
        return dict(vars(self))

    def __str__(self) -> str:
        parts = [f"{self.severity}: {self.message}", self.file]
        if self.tensor:
            parts.append(self.tensor)
        if self.expected or self.found:
            parts.append(f"expected {self.expected}, found {self.found}")
        return "; ".join(parts) + (f". {self.remedy}" if self.remedy else "")


@dataclass(frozen=True)
class Verification:
    """The answer of `models verify`."""

    folder: Path
    files: int
    findings: tuple[Finding, ...]
    kinds: tuple[tuple[str, int], ...] = ()  # what the readable files are, by their headers

    @property
    def sound(self) -> bool:
        """No errors; notes are allowed."""
        return not any(item.severity == "error" for item in self.findings)

    def as_json(self) -> dict[str, Any]:
        """The document of `models verify --json`."""
        return {
            "folder": str(self.folder),
            "files": self.files,
            "sound": self.sound,
            "kinds": dict(self.kinds),
            "findings": [item.as_json() for item in self.findings],
        }

    def text(self) -> str:
        """The same in words."""
        lines = [str(item) for item in self.findings]
        verdict = "sound" if self.sound else "not usable as it is"
        what = ", ".join(f"{count} {kind.replace('_', ' ')}" for kind, count in self.kinds)
        among = f" ({what})" if what else ""
        return "\n".join([*lines, f"{self.files} weight files in {self.folder}{among}: {verdict}."])


def from_error(damage: CheckpointError, fallback: Path) -> Finding:
    """An error as a finding; fallback: the file where it names none."""
    message = str(damage).split(";")[0]
    remedy = damage.remedy or "Delete this file; `lowpeak models pull` then fetches it alone."
    return Finding(
        "error",
        message,
        damage.file or str(fallback),
        damage.tensor,
        "" if damage.expected is None else str(damage.expected),
        "" if damage.found is None else str(damage.found),
        remedy,
    )
