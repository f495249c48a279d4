"""Fakes for the contract level: everything about the pack that can be tested without ComfyUI."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from lowpeak.engine.errors import RequestError
from lowpeak.engine.events import QuietHost
from lowpeak.nodes import convert, node_parts
from lowpeak.nodes.pack import Pack
from lowpeak.nodes.runs import RunBook
from lowpeak.nodes.schema import node_class
from lowpeak.nodes.tables import FROM_INPUT, NEWEST

HERE = Path(__file__).parent


def load(name: str) -> ModuleType:
    """A helper module of this folder; the test folders are no packages."""
    known = f"lowpeak_tests_{name}"
    if known not in sys.modules:
        spec = importlib.util.spec_from_file_location(known, HERE / f"{name}.py")
        assert spec and spec.loader
        sys.modules[known] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[known])
    return sys.modules[known]


class FakeHost(QuietHost):
    """Host and context manager, without ComfyUI."""

    def __init__(self, pack: Pack) -> None:
        super().__init__()
        self.run_id = pack.runs.begin("prompt-1")
        self._pack, self.kept = pack, {}

    def __enter__(self) -> FakeHost:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self._pack.runs.end(self.run_id, "done" if error is None else "failed")

    def keep(self, report: Any) -> None:
        self.kept.update(report)

    def describe(self, request: Any, plan: Any) -> None:
        self._pack.runs.describe(self.run_id, request=request, plan=plan)

    def emit(self, event: Any) -> None:
        super().emit(event)
        self._pack.runs.take(self.run_id, event)


class FakeFolders:
    """ComfyUI's folders under a temporary one."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name in ("models/toy", "loras", "output"):
            (root / name).mkdir(parents=True)
        (root / "models/toy/root.safetensors").write_bytes(b"toy")
        (root / "loras/grain.safetensors").write_bytes(b"lora")

    def checkpoints(self) -> list[str]:
        return sorted(path.name for path in (self.root / "models").iterdir())

    def checkpoint(self, name: str) -> Path:
        if name not in self.checkpoints():
            raise RequestError(f"checkpoint {name!r} is not in models/lowpeak", field="checkpoint")
        return self.root / "models" / name

    def loras(self) -> list[str]:
        return sorted(path.name for path in (self.root / "loras").iterdir())

    def lora(self, name: str) -> Path:
        if name not in self.loras():
            raise RequestError(f"LoRA {name!r} is not in models/loras", field="lora")
        return self.root / "loras" / name

    def saved_choices(self) -> list[str]:
        return [FROM_INPUT, NEWEST]

    def saved(self, choice: str) -> Path:
        files = sorted((self.root / "output").glob("*.safetensors"))
        if not files:
            raise RequestError(f"saved latents {choice!r}: none", field="saved")
        return files[-1]

    def new_latents(self, stem: str) -> Path:
        return self.root / "output" / f"{stem}.latents.safetensors"

    def new_video(self, run_id: str) -> Path:
        return self.root / "output" / f"{run_id}.mp4"


class FakeVideo:
    """Stands for ComfyUI's VideoFromFile."""

    def __init__(self, file: str) -> None:
        self.file = Path(file)


class FakeNested:
    """Stands for ComfyUI's NestedTensor."""

    is_nested = True

    def __init__(self, tensors: Any) -> None:
        self.tensors = list(tensors)

    def unbind(self) -> list[Any]:
        return self.tensors


@pytest.fixture(autouse=True)
def _own_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the engine keeps between runs stays out of the user's cache, in workers too."""
    monkeypatch.setenv("LOWPEAK_HOME", str(tmp_path_factory.mktemp("home")))


@pytest.fixture
def fake_engine() -> Any:
    """A fresh engine of right shapes and no model."""
    return load("fake_engine").FakeEngine()


@pytest.fixture
def io() -> Any:
    """A stand-in for comfy_api's io module."""
    return load("fake_io").make_io()


@pytest.fixture
def pack(tmp_path: Path, fake_engine: Any, monkeypatch: pytest.MonkeyPatch) -> Pack:
    """A pack around the fake engine; core's NestedTensor and video class are stood in for."""
    comfy, nested = ModuleType("comfy"), ModuleType("comfy.nested_tensor")
    nested.NestedTensor = FakeNested  # type: ignore[attr-defined]
    api = ModuleType("comfy_api.latest")
    api.InputImpl = SimpleNamespace(VideoFromFile=FakeVideo)  # type: ignore[attr-defined]
    for module in (comfy, nested, ModuleType("comfy_api"), api):
        if module.__name__ not in sys.modules:  # a test may have put fuller stand-ins there
            monkeypatch.setitem(sys.modules, module.__name__, module)
    return Pack(
        engine=fake_engine,
        runs=RunBook(lambda: tmp_path / "runs"),
        folders=FakeFolders(tmp_path / "comfy"),
        host=lambda pack, node_id: FakeHost(pack),
        convert=convert,
    )


@pytest.fixture
def nodes(pack: Pack, io: Any) -> dict[str, Any]:
    """Node classes by id, as ComfyUI would hold them while one runs."""
    found = {}
    for part in node_parts():
        made = node_class(part, io, pack)
        made.hidden = SimpleNamespace(unique_id="7")  # type: ignore[attr-defined]
        found[made.__name__] = made
    return found


@pytest.fixture
def our_nodes(nodes: dict[str, Any]) -> dict[str, Any]:
    """Our part of /object_info, made from the schemas."""
    return {name: node.define_schema().served() for name, node in nodes.items()}
