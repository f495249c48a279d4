"""ComfyUI's face of Lowpeak: ten nodes, four read-only routes, one event.

`extension` builds everything when ComfyUI asks for it. Importing this package runs nothing.
"""

from __future__ import annotations

import logging
from typing import Any

log = logging.getLogger(__name__)


def node_parts() -> list[type]:
    """The plain node classes, in menu order. They know no ComfyUI."""
    from . import (
        decode,
        encode_prompt,
        keyframes,
        load_lora,
        load_model,
        plan,
        references,
        refine,
        report,
        sample,
    )

    return [
        load_model.LoadModel, load_lora.LoadLora, encode_prompt.EncodePrompt, keyframes.Keyframes,
        references.References, plan.Plan, sample.Sample, refine.Refine, decode.Decode,
        report.Report,
    ]  # fmt: skip


def make_pack(engine: Any) -> Any:
    """The pack's process object around an engine, inside ComfyUI."""
    from . import convert
    from .folders import ComfyFolders
    from .host import comfy_host
    from .memory import EngineMemory
    from .pack import Pack
    from .runs import RunBook

    folders = ComfyFolders()
    return Pack(
        engine=engine,
        runs=RunBook(folders.runs_folder),
        folders=folders,
        host=comfy_host,
        convert=convert,
        memory=EngineMemory(engine),
    )


def extension(engine: Any = None) -> Any:
    """The V3 extension. `engine` replaces the real one in tests."""
    from comfy_api.latest import ComfyExtension, io

    from .schema import node_class

    if engine is None:
        from .folders import scratch_folder, start_worker
        from .host import comfy_device
        from .worker_engine import WorkerEngine

        engine = WorkerEngine(comfy_device, start=start_worker, scratch=scratch_folder)
    pack = make_pack(engine)

    class LowpeakExtension(ComfyExtension):
        """What ComfyUI asks once, at start."""

        async def on_load(self) -> None:
            """Add the routes and say who can reach them."""
            _serve(pack)

        async def get_node_list(self) -> list[type]:
            """The ten nodes."""
            return [node_class(part, io, pack) for part in node_parts()]

    return LowpeakExtension()


def _serve(pack: Any) -> None:
    import torch
    from comfy.cli_args import args
    from server import PromptServer

    from .host import spare_gpu_notice
    from .routes import add_routes, listen_notice

    server = getattr(PromptServer, "instance", None)
    if server is None:  # imported outside the server, as test runners do
        return
    add_routes(server.routes, pack)
    listens = listen_notice(str(getattr(args, "listen", "") or ""))
    for notice in (listens, spare_gpu_notice(torch.cuda.device_count())):
        if notice is not None:
            pack.notices.append(notice)
            log.warning("Lowpeak: %s", notice)
