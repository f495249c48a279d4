"""Files among ComfyUI's folders: checkpoints, LoRAs, saved latents, videos, the run book.

Names that come from a graph are looked up in listings and never joined to a path.
"""

from __future__ import annotations

import os
from pathlib import Path

from ..engine.errors import RequestError
from ..engine.model_files import FOLDERS_VARIABLE
from ..engine.worker.supervisor import Patience, Worker
from .saving import FIRST_PASS
from .tables import FROM_INPUT, NEWEST

FOLDER = "lowpeak"
PART_FOLDERS = (FOLDER, "text_encoders", "vae", "latent_upscale_models")
LATENTS_SUFFIX = ".latents.safetensors"
STOP_SECONDS = 0.4  # a stage stops at the next block; one that does not is ended


def scratch_folder() -> Path:
    """ComfyUI's temporary folder, for what nodes and workers hand to each other."""
    import folder_paths

    folder = Path(folder_paths.get_temp_directory()) / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def part_folders() -> list[Path]:
    """Where ComfyUI keeps what a checkpoint folder may lack: encoders, autoencoders, upscalers."""
    import folder_paths

    known = folder_paths.folder_names_and_paths
    return [Path(path) for name in PART_FOLDERS if name in known for path in known[name][0]]


def start_worker() -> Worker:
    """A worker process that looks for parts in ComfyUI's folders, and uses its tokenizer."""
    from ..engine.text.qwen_tokenizer import VARIABLE

    found = {FOLDERS_VARIABLE: os.pathsep.join(map(str, part_folders()))}
    tokenizer = tokenizer_folder()
    if tokenizer is not None:
        found[VARIABLE] = str(tokenizer)
    return Worker(environment=found, patience=Patience(cancel=STOP_SECONDS, sees_end=False))


def tokenizer_folder() -> Path | None:
    """ComfyUI's own copy of the text encoder's tokenizer; its encoder files come without one."""
    import folder_paths

    source = getattr(folder_paths, "__file__", None)
    if source is None:
        return None
    folder = Path(source).parent / "comfy" / "text_encoders" / "qwen25_tokenizer"
    return folder if folder.is_dir() else None


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
        folder = scratch_folder()
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
