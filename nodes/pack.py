"""The pack's one long-lived object: engine, run book, lists for combos. Hung on our node classes.

ComfyUI loads the pack once a process; this object lives as long. It holds no tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .engine_seam import Engine
from .runs import RunBook


@dataclass
class Pack:
    """engine: what runs requests; runs: the run book; lists: options of combos, read when asked.

    host: makes the Host of one node's execution from (pack, node id); folders: finds files among
    ComfyUI's folders; memory: stands for the engine's memory in ComfyUI's memory manager.
    """

    engine: Engine
    runs: RunBook
    folders: Any
    host: Callable[[Pack, str], Any]
    convert: Any
    memory: Any = None
    notices: list[str] = field(default_factory=list)

    @property
    def lists(self) -> Mapping[str, Callable[[], Sequence[str]]]:
        """Options of the combos whose choices are files."""
        return {
            "checkpoints": self.folders.checkpoints,
            "loras": self.folders.loras,
            "saved_latents": self.folders.saved_choices,
        }
