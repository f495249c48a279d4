"""The engine's memory as ComfyUI's memory manager sees it.

ComfyUI frees memory by unloading the model patchers it knows. Ours stands for what the engine
keeps between runs (a warm worker's blocks), so 'free memory', another model that needs room, and
out-of-memory handling release it like any other model. It holds no weight itself.
"""

from __future__ import annotations

from typing import Any

from .engine_seam import Engine


class EngineMemory:
    """Owner of our patcher. The manager keeps patchers weakly; this keeps ours alive."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.patcher: Any = None

    def track(self) -> None:
        """Register with the manager while the engine keeps memory. Called after each node."""
        if not any(self._engine.held_bytes()):
            return
        from comfy import model_management

        if self.patcher is None:
            self.patcher = make_patcher(self._engine)
        if all(m.model is not self.patcher for m in model_management.current_loaded_models):
            model_management.load_models_gpu([self.patcher])


def make_patcher(engine: Engine) -> Any:
    """A ModelPatcher whose sizes are the engine's and whose unloading is `engine.release`."""
    import torch
    from comfy import model_management
    from comfy.model_patcher import ModelPatcher

    class LowpeakEngine(torch.nn.Module):
        """Holder that gives the patcher a name in ComfyUI's log."""

        device = model_management.get_torch_device()

    class EnginePatcher(ModelPatcher):
        """All or nothing: a worker's memory comes back whole."""

        def is_dynamic(self) -> bool:
            return False

        def model_size(self) -> int:
            return max(1, *engine.held_bytes())

        def loaded_size(self) -> int:
            return engine.held_bytes()[0]

        def current_loaded_device(self) -> Any:
            return self.load_device

        def partially_load(self, *args: Any, **kwargs: Any) -> int:
            return 0

        def partially_unload(self, *args: Any, **kwargs: Any) -> int:
            return engine.release()

        def patch_model(self, *args: Any, **kwargs: Any) -> Any:
            return self.model

        def unpatch_model(self, *args: Any, **kwargs: Any) -> None:
            return None

        def detach(self, unpatch_all: bool = True) -> Any:
            if unpatch_all:
                engine.release()
            return self.model

    return EnginePatcher(
        LowpeakEngine(), model_management.get_torch_device(), torch.device("cpu"), size=1
    )
