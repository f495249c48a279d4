"""`lowpeak ...`: thin over engine/. Imports torch only in commands that compute."""

from __future__ import annotations


def main() -> None:
    """Console entry point."""
    raise SystemExit("not built yet")
