"""Units. Bytes are int, seconds float; GiB appears only in text and in option names."""

from __future__ import annotations

KIB = 1 << 10
MIB = 1 << 20
GIB = 1 << 30


def gib_to_bytes(value_gib: float) -> int:
    """Bytes in `value_gib` GiB (2^30), rounded down."""
    return int(value_gib * GIB)


def format_gib(value_bytes: int) -> str:
    """'7.94 GiB'; small amounts as MiB so that they do not read as zero."""
    if abs(value_bytes) < 10 * MIB:
        return f"{value_bytes / MIB:.2f} MiB"
    return f"{value_bytes / GIB:.2f} GiB"


def format_seconds(value_seconds: float) -> str:
    """'0.84 s', '34 s', '12 min 05 s', '1 h 04 min'."""
    if value_seconds < 10:
        return f"{value_seconds:.2f} s"
    if value_seconds < 60:
        return f"{value_seconds:.0f} s"
    minutes, seconds = divmod(round(value_seconds), 60)
    if minutes < 60:
        return f"{minutes} min {seconds:02d} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min"


def round_up(value: int, multiple: int) -> int:
    """The smallest multiple of `multiple` that is not below `value`."""
    return -(-value // multiple) * multiple
