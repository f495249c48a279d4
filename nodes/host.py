"""ComfyUI as the engine's host: interrupts, progress, previews, events, memory.

With folders.py, convert.py, schema.py, memory.py and routes.py the only place that knows ComfyUI.
Its modules are imported inside functions: importing `comfy.model_management` looks for a GPU.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

from ..engine.errors import Cancelled, LowpeakError
from ..engine.events import Event
from ..engine.sampling.preview import PreviewFactors, PreviewPace, preview_rgb
from .gauges import Gauges, read_device
from .pack import Pack
from .privacy import without_paths
from .progress import BAR_STEPS, ProgressScale, Throttle

EVENT_NAME = "lowpeak.run"
log = logging.getLogger(__name__)


class ComfyHost:
    """The Host of one node's execution; use it as a context manager.

    On leaving: the run book gets the outcome, a Cancelled becomes ComfyUI's own interrupt, and
    every other error passes on unchanged.
    """

    def __init__(self, pack: Pack, node_id: str) -> None:
        self._pack, self._node_id = pack, str(node_id or "")
        self.run_id = pack.runs.begin(_prompt_id())
        self._scale = ProgressScale()
        self._bar = _progress_bar(self._node_id)
        self._throttle = Throttle(_send)
        self._pace = PreviewPace(time.monotonic)
        self._gauges = Gauges(lambda: read_device(getattr(pack.memory, "patcher", None)))
        self._position = 0
        self._report: dict[str, Any] = {}

    def __enter__(self) -> ComfyHost:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: Any) -> None:
        from comfy import model_management

        runs = self._pack.runs
        if error is None:
            runs.end(self.run_id, "done", report=self._report)
        elif isinstance(error, (Cancelled, model_management.InterruptProcessingException)):
            runs.end(self.run_id, "cancelled", report=self._report)
        else:
            known = isinstance(error, LowpeakError)
            detail = error.as_json() if known else {"error": type(error).__name__}
            runs.end(self.run_id, "failed", report=self._report, error=without_paths(detail))
        if self._pack.memory is not None:
            self._pack.memory.track()
        if isinstance(error, Cancelled):
            model_management.throw_exception_if_processing_interrupted()
            raise model_management.InterruptProcessingException from error

    def keep(self, report: Mapping[str, Any]) -> None:
        """Add the engine's report to the run."""
        self._report.update(without_paths(dict(report)))

    def describe(self, request: Mapping[str, Any], plan: Mapping[str, Any]) -> None:
        """Name the request and its plan in the run book."""
        self._pack.runs.describe(self.run_id, request=dict(request), plan=dict(plan))

    def is_cancelled(self) -> bool:
        """True once the user pressed stop. Looks only; leaving the node clears the flag."""
        from comfy import model_management

        return bool(model_management.processing_interrupted())

    def release_memory(self, need_bytes: int) -> None:
        """Ask ComfyUI's other models to leave the device until `need_bytes` are free."""
        from comfy import model_management as manager

        memory = self._pack.memory
        ours = [m for m in manager.current_loaded_models if memory and m.model is memory.patcher]
        manager.free_memory(need_bytes, manager.get_torch_device(), keep_loaded=ours)
        manager.soft_empty_cache()

    def emit(self, event: Event) -> None:
        """Move the bar, write the run book, tell the panel."""
        others = self._gauges.others(event) if event.kind == "progress" else {}
        sequence = self._pack.runs.take(self.run_id, event, others)
        position = self._scale.take(event)
        if position is not None:
            self._move_bar(position, None)
        message = {
            **event.as_json(),
            **others,
            "run_id": self.run_id,
            "node_id": self._node_id,
            "sequence": sequence,
        }
        self._throttle.put((event.kind, event.phase), message)

    def wants_previews(self) -> bool:
        """Whether somebody looks at previews."""
        return previews_wanted()

    def preview(self, make_latents: Callable[[], Any]) -> None:
        """Show the middle of a clip on the node, at most twice a second, if previews are on.

        make_latents: gives normalised latents [24, F, h, w] on any device.
        """
        if self.wants_previews() and self._pace.is_due():
            self._move_bar(self._position, preview_image(make_latents()))

    def _move_bar(self, position: int, picture: Any) -> None:
        self._position = position
        # The bar raises ComfyUI's interrupt; the engine must stop by its own rule, so not then.
        if self._bar is not None and not self.is_cancelled():
            self._bar.update_absolute(position, BAR_STEPS, picture)


def comfy_host(pack: Pack, node_id: str) -> ComfyHost:
    """The Host of one node's execution."""
    return ComfyHost(pack, node_id)


def previews_wanted() -> bool:
    """Whether the user asked for previews, in the settings or on the command line."""
    from comfy.cli_args import args

    method = getattr(args, "preview_method", None)
    return str(getattr(method, "value", method) or "none") != "none"


def preview_image(latents: Any) -> tuple[str, Any, int] | None:
    """ComfyUI's form of a preview picture, by core's own colour factors for these latents.

    latents: [24, F, h, w]. None when this ComfyUI has no factors: a run goes on without previews.
    """
    import torch
    from comfy import latent_formats
    from comfy.cli_args import args
    from PIL import Image

    form = getattr(latent_formats, "MiniMaxH3Video", None)
    weights = getattr(form, "latent_rgb_factors", None)
    if weights is None:
        return None
    offset = getattr(form, "latent_rgb_factors_bias", None) or (0.0, 0.0, 0.0)
    # Core's factors give -1..1; ours 0..1.
    factors = PreviewFactors(torch.tensor(weights) / 2, torch.tensor(offset) / 2 + 0.5)
    middle = latents.shape[1] // 2
    pixels = preview_rgb(latents[None, :, middle : middle + 1], factors)[0].cpu().numpy()
    return "JPEG", Image.fromarray(pixels), int(getattr(args, "preview_size", 512))


def spare_gpu_notice(gpus: int) -> str | None:
    """A sentence when there is more than one GPU: only ComfyUI's is used."""
    if gpus < 2:
        return None
    return f"{gpus} GPUs are here; Lowpeak uses the one that ComfyUI chose, the others stay idle."


def comfy_device() -> str:
    """The kind of device that ComfyUI chose: "cuda" or "cpu"."""
    from comfy import model_management

    return "cuda" if model_management.get_torch_device().type == "cuda" else "cpu"


def _prompt_id() -> str | None:
    from comfy_execution.utils import get_executing_context

    context = get_executing_context()
    return None if context is None else context.prompt_id


def _progress_bar(node_id: str) -> Any:
    from comfy.utils import ProgressBar

    return ProgressBar(BAR_STEPS, node_id=node_id or None)


def _send(message: dict[str, Any]) -> None:
    from server import PromptServer

    server = getattr(PromptServer, "instance", None)
    if server is not None:
        server.send_sync(EVENT_NAME, message)
