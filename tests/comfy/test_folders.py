"""ComfyUI's folders, against a stand-in of folder_paths."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from lowpeak.engine.errors import RequestError
from lowpeak.nodes import folders
from lowpeak.nodes.tables import FROM_INPUT, NEWEST


@pytest.fixture
def comfy_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    paths: Any = ModuleType("folder_paths")
    paths.models_dir = str(tmp_path / "models")
    paths.folder_names_and_paths = {
        "vae": ([str(tmp_path / "models/vae"), "/else/vae"], {".safetensors"}),
        "lowpeak": ([str(tmp_path / "other")], set()),  # from extra_model_paths.yaml
    }

    def add(name: str, path: str) -> None:
        paths.folder_names_and_paths.setdefault(name, ([], set()))[0].append(path)

    paths.add_model_folder_path = add
    paths.get_folder_paths = lambda name: paths.folder_names_and_paths[name][0]
    for kind in ("output", "temp", "user"):
        setattr(paths, f"get_{kind}_directory", lambda kind=kind: str(tmp_path / kind))
    monkeypatch.setitem(sys.modules, "folder_paths", paths)
    return folders.ComfyFolders()


def test_checkpoints_of_extra_folders_count_and_empty_ones_do_not(
    comfy_folders: Any, tmp_path: Path
) -> None:
    assert comfy_folders.checkpoints() == []
    for place in ("models/lowpeak/a/blocks", "other/b", "models/lowpeak/empty"):
        (tmp_path / place).mkdir(parents=True)
    for place in ("models/lowpeak/a/blocks/00.safetensors", "other/b/root.safetensors"):
        (tmp_path / place).touch()
    assert comfy_folders.checkpoints() == ["a", "b"]
    assert comfy_folders.checkpoint("b") == tmp_path / "other/b"
    for bad in ("../a", "empty", "", "a/blocks", str(tmp_path / "other/b")):
        with pytest.raises(RequestError, match=r"there is: a, b"):
            comfy_folders.checkpoint(bad)


def test_the_newest_first_pass_is_found_and_names_do_not_repeat(
    comfy_folders: Any, tmp_path: Path
) -> None:
    assert comfy_folders.saved_choices() == [FROM_INPUT, NEWEST]
    with pytest.raises(RequestError, match="save_latents"):
        comfy_folders.saved(NEWEST)
    made = []
    for stem in ("first", "first", "final"):
        made.append(comfy_folders.new_latents(stem))
        made[-1].touch()
    for age, path in enumerate(made):
        os.utime(path, ns=(age, age))
    assert len(set(made)) == 3
    assert comfy_folders.saved(NEWEST) == made[1], "a finished result is no first pass"
    assert comfy_folders.saved(made[0].name) == made[0]
    with pytest.raises(RequestError):
        comfy_folders.saved("../first_00001.latents.safetensors")


def test_videos_of_a_run_do_not_overwrite_each_other(comfy_folders: Any) -> None:
    one = comfy_folders.new_video("run")
    one.touch()
    assert comfy_folders.new_video("run") != one and one.suffix == ".mp4"


def test_workers_look_for_parts_in_all_of_comfyuis_folders(
    comfy_folders: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, Any] = {}
    monkeypatch.setattr(folders, "Worker", lambda **given: asked.update(given))
    folders.start_worker()
    places = asked["environment"]["LOWPEAK_MODELS"].split(os.pathsep)
    assert places == [str(tmp_path / "other"), str(tmp_path / "models/lowpeak"),
                      str(tmp_path / "models/vae"), "/else/vae"]  # fmt: skip
    assert "LOWPEAK_TOKENIZER" not in asked["environment"], "there is no tokenizer to name"


def test_workers_use_the_tokenizer_that_comfyui_brings(
    comfy_folders: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, Any] = {}
    monkeypatch.setattr(folders, "Worker", lambda **given: asked.update(given))
    monkeypatch.setattr(
        sys.modules["folder_paths"], "__file__", str(tmp_path / "folder_paths.py"), raising=False
    )
    tokenizer = tmp_path / "comfy" / "text_encoders" / "qwen25_tokenizer"
    tokenizer.mkdir(parents=True)
    folders.start_worker()
    assert asked["environment"]["LOWPEAK_TOKENIZER"] == str(tokenizer)
