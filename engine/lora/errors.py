"""The errors of adapter files, under CheckpointError so that every caller already knows them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import CheckpointError

NAMES_SHOWN = 8


def printable(text: str) -> str:
    """Names come from files: control and non-ASCII characters are escaped before they are shown."""
    return text.encode("unicode_escape").decode("ascii")


class LoraFileError(CheckpointError):
    """An adapter file that is damaged or contradicts itself. `names` are the tensors concerned."""

    def __init__(
        self, message: str, *, names: Sequence[str] = (), tensor: str = "", **fields: Any
    ) -> None:
        super().__init__(_with_names(message, names), tensor=printable(tensor), **fields)
        self.names = tuple(names)


class LoraBindingError(CheckpointError):
    """An adapter that does not fit the model. `names` are the targets or tensors left over.

    `looks_like` names the model family that the file seems made for, when it is another one.
    """

    def __init__(
        self, message: str, *, names: Sequence[str] = (), looks_like: str = "", **fields: Any
    ) -> None:
        super().__init__(_with_names(message, names), **fields)
        self.names, self.looks_like = tuple(names), looks_like


def _with_names(message: str, names: Sequence[str]) -> str:
    if not names:
        return message
    shown = [printable(name) for name in names[:NAMES_SHOWN]]
    more = len(names) - NAMES_SHOWN
    return f"{message}: {', '.join(shown)}" + (f" and {more} more" if more > 0 else "")
