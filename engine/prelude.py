"""What the passes of a request share before their first block: AdaLN tables of all steps, input and
output layers, refined text. Two passes have two placements, and would read all of it twice."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from ..kernels.compose import Choice
from ..kernels.weights import Weight
from .checkpoint.assemble import assemble_root
from .checkpoint.index import Checkpoint
from .checkpoint.schedule_tables import find_tables
from .model.adaln import StepTables
from .model.root import is_text_only, is_time_only, output_tables, refined_text, root_on


class Prelude:
    """tables: of all steps, in host memory; head: input and output layers, and outputs: their
    tables, both on the device and small. None of it depends on a placement."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        times: tuple[tuple[float, ...], ...],
        device: torch.device,
        choice: Choice,
        dtype: torch.dtype,
    ) -> None:
        """See StreamedDenoiser. Raises CheckpointError."""
        tables = find_tables(checkpoint, times)
        self._checkpoint, self._device, self._choice, self._dtype = (
            checkpoint, device, choice, dtype,
        )  # fmt: skip
        config = checkpoint.config
        self.tables = StepTables(tables, config.layers, pin=device.type == "cuda")
        self._text: tuple[Tensor, Tensor] | None = None
        try:
            root = load_part(checkpoint, lambda name: not is_text_only(name))
            stored = self.tables.cursor.timesteps
            self.outputs = output_tables(root, stored, config, choice, device, dtype)
            self.head = root_on({k: v for k, v in root.items() if not is_time_only(k)}, device)
        except BaseException:  # nobody has this to close it, and the tables are page-locked
            self.close()
            raise

    def refined(self, text: Tensor) -> Tensor:
        """Refined rows of `text`, on the device; the last ones are kept, the refiner is not."""
        if self._text is None or not torch.equal(self._text[0], text):
            root = load_part(self._checkpoint, is_text_only)
            found = refined_text(
                root, text, self._checkpoint.config, self._choice, self._device, self._dtype
            )
            self._text = text.clone(), found.cpu()
            return found
        return self._text[1].to(self._device)

    def close(self) -> None:
        """Give back memory. Safe to call twice."""
        self.tables.close()
        self._text = None


def load_part(checkpoint: Checkpoint, wanted: Callable[[str], bool]) -> dict[str, Weight | Tensor]:
    """The root's weights of `wanted` names on the CPU; the others are not read where one file
    holds them as they are: the refiner alone is 0.8 GB, the rest an eighth of it."""
    file = checkpoint.root_file
    if file is None:
        root = checkpoint.load_root()
    else:
        names = [name for name in file.tensors if wanted(name)]
        raw = file.read_many(names)
        raw |= {
            name: torch.empty(span.shape, dtype=span.torch_dtype, device="meta")
            for name, span in file.tensors.items()
            if name not in raw
        }
        root = assemble_root(raw, checkpoint.weight_format, checkpoint.config)
    return {name: value for name, value in root.items() if wanted(name)}
