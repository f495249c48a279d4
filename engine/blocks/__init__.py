"""A stack of equal blocks that passes through a device: where each waits, and how it gets there.

Nothing here knows which model it carries: transformer, text encoder and VAE decoder use it alike.
"""

from .layout import PartLayout, plan_parts
from .sources import BlockSource, FileSource, TensorSource
from .store import BlockStore
from .stream import BlockStream, Traffic

__all__ = [
    "BlockSource",
    "BlockStore",
    "BlockStream",
    "FileSource",
    "PartLayout",
    "TensorSource",
    "Traffic",
    "plan_parts",
]
