"""ComfyUI as the engine's host: interrupts, progress, events, memory, folders.

With convert.py, schema.py, memory.py and routes.py the only place that knows ComfyUI. Its modules
are imported inside functions: importing `comfy.model_management` looks for a GPU.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..engine.errors import Cancelled, LowpeakError, RequestError
from ..engine.events import Event
from .pack import Pack
from .progress import BAR_STEPS, ProgressScale, Throttle
from .saving import FIRST_PASS
from .tables import FROM_INPUT, NEWEST

FOLDER = "lowpeak"
LATENTS_SUFFIX = ".latents.safetensors"
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
            runs.end(self.run_id, "failed", report=self._report, error=_without_paths(detail))
        if self._pack.memory is not None:
            self._pack.memory.track()
        if isinstance(error, Cancelled):
            model_management.throw_exception_if_processing_interrupted()
            raise model_management.InterruptProcessingException from error

    def keep(self, report: Mapping[str, Any]) -> None:
        """Add the engine's report to the run."""
        self._report.update(_without_paths(dict(report)))

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
        sequence = self._pack.runs.take(self.run_id, event)
        position = self._scale.take(event)
        # The bar raises ComfyUI's interrupt; the engine must stop by its own rule, so not then.
        if position is not None and self._bar is not None and not self.is_cancelled():
            self._bar.update_absolute(position, BAR_STEPS)
        message = {
            **event.as_json(),
            "run_id": self.run_id,
            "node_id": self._node_id,
            "sequence": sequence,
        }
        self._throttle.put((event.kind, event.phase), message)


def comfy_host(pack: Pack, node_id: str) -> ComfyHost:
    """The Host of one node's execution."""
    return ComfyHost(pack, node_id)


def comfy_device() -> str:
    """The kind of device that ComfyUI chose: "cuda" or "cpu"."""
    from comfy import model_management

    return "cuda" if model_management.get_torch_device().type == "cuda" else "cpu"


class ComfyFolders:
    """Files among ComfyUI's folders. Names are looked up in listings, never joined to a path."""

    def __init__(self) -> None:
        import folder_paths

        own = Path(folder_paths.models_dir) / FOLDER
        folder_paths.add_model_folder_path(FOLDER, str(own))
        paths, extensions = folder_paths.folder_names_and_paths[FOLDER]
        # A new name accepts every file; the missing-model dialog should list weights only.
        extensions = set(extensions) | {".safetensors", ".json"}
        folder_paths.folder_names_and_paths[FOLDER] = (paths, extensions)

    def checkpoints(self) -> list[str]:
        """Names of the folders under models/lowpeak that hold weights."""
        return sorted(self._checkpoints())

    def checkpoint(self, name: str) -> Path:
        """The folder of that name. RequestError names what there is."""
        found = self._checkpoints()
        if name not in found:
            there = ", ".join(sorted(found)) or "nothing"
            raise RequestError(
                f"checkpoint {name!r} is not in models/{FOLDER} (there is: {there}). "
                "Put its folder there, or run `lowpeak models pull`",
                field="checkpoint",
            )
        return found[name]

    def loras(self) -> list[str]:
        """Names of the files in models/loras."""
        import folder_paths

        return list(folder_paths.get_filename_list("loras"))

    def lora(self, name: str) -> Path:
        """The LoRA file of that name."""
        import folder_paths

        found = folder_paths.get_full_path("loras", name) if name in self.loras() else None
        if found is None:
            raise RequestError(f"LoRA {name!r} is not in models/loras", field="lora")
        return Path(found)

    def saved_choices(self) -> list[str]:
        """Options of Lowpeak Refine's `saved`."""
        return [FROM_INPUT, NEWEST, *sorted(path.name for path in self._saved())]

    def saved(self, choice: str) -> Path:
        """The saved latents a choice names."""
        files = self._saved()
        first = [path for path in files if path.name.startswith(FIRST_PASS)]
        if choice == NEWEST and first:
            return max(first, key=lambda path: path.stat().st_mtime_ns)
        for path in files:
            if path.name == choice:
                return path
        raise RequestError(
            f"saved latents {choice!r}: output/{FOLDER} holds "
            f"{', '.join(sorted(path.name for path in files)) or 'none'}. Run Lowpeak Sample with "
            "save_latents on first",
            field="saved",
        )

    def new_latents(self, stem: str) -> Path:
        """A free name under output/lowpeak."""
        import folder_paths

        folder = Path(folder_paths.get_output_directory()) / FOLDER
        folder.mkdir(parents=True, exist_ok=True)
        taken = {path.name for path in folder.iterdir()}
        number = 1
        while f"{stem}_{number:05}{LATENTS_SUFFIX}" in taken:
            number += 1
        return folder / f"{stem}_{number:05}{LATENTS_SUFFIX}"

    def new_video(self, run_id: str) -> Path:
        """A free name for a video in ComfyUI's temporary folder, which it empties itself."""
        import folder_paths

        folder = Path(folder_paths.get_temp_directory()) / FOLDER
        folder.mkdir(parents=True, exist_ok=True)
        number = 1
        while (folder / f"{run_id}_{number:03}.mp4").exists():
            number += 1
        return folder / f"{run_id}_{number:03}.mp4"

    def runs_folder(self) -> Path:
        """Where the run book keeps its files."""
        import folder_paths

        return Path(folder_paths.get_user_directory()) / FOLDER / "runs"

    def _checkpoints(self) -> dict[str, Path]:
        import folder_paths

        found: dict[str, Path] = {}
        for base in map(Path, folder_paths.get_folder_paths(FOLDER)):
            if base.is_dir():
                for item in sorted(base.iterdir()):
                    if item.is_dir() and next(item.rglob("*.safetensors"), None) is not None:
                        found.setdefault(item.name, item)
        return found

    def _saved(self) -> list[Path]:
        import folder_paths

        folder = Path(folder_paths.get_output_directory()) / FOLDER
        return list(folder.glob(f"*{LATENTS_SUFFIX}")) if folder.is_dir() else []


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


def _without_paths(value: Any) -> Any:
    """The value with every absolute path cut to its last part; reports are for sharing."""
    if isinstance(value, Mapping):
        return {str(key): _without_paths(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_paths(item) for item in value]
    if isinstance(value, Path) or (isinstance(value, str) and Path(value).is_absolute()):
        return Path(value).name
    return value
