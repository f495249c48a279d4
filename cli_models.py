"""`lowpeak models ...`: files found, fetched, verified, converted. Bodies in engine/checkpoint."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from .cli_base import (
    Answer,
    Capability,
    Folder,
    Format,
    Json,
    QualityName,
    command,
    find_checkpoint,
)

models = typer.Typer(rich_markup_mode=None, no_args_is_help=True)
DEFAULT_FOLDER = Path("models") / "lowpeak"


@command(models, "list")
def models_list(
    folder: Folder = None,
    quality: QualityName = "light",
    capability: Capability = None,
    as_json: Json = False,
) -> Answer:
    """What a request needs, what is here, what is missing."""
    from .engine.checkpoint.inventory import model_folders, take_inventory

    found = take_inventory(
        model_folders(_models_folder(folder)),
        quality=quality,
        capability=_capability(capability),
    )
    return Answer(found.as_json(), found.text())


@command(models, "pull")
def models_pull(
    folder: Folder = None,
    quality: QualityName = "light",
    capability: Capability = None,
    accept_license: Annotated[
        bool, typer.Option("--accept-license", help="The licences shown were read and accepted.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what it would take.")
    ] = False,
    as_json: Json = False,
) -> Answer:
    """Fetch what is missing, after its licence was shown and accepted."""
    from .engine.checkpoint.hub import plan_pull, pull
    from .engine.checkpoint.inventory import model_folders, take_inventory
    from .engine.console import console_progress, say

    target = _models_folder(folder)
    found = take_inventory(
        model_folders(target), quality=quality, capability=_capability(capability)
    )
    plan = plan_pull(found.missing, target)
    if dry_run or not plan.files:
        return Answer({**plan.as_json(), "pulled": False}, plan.text())
    say(plan.text())
    with console_progress("pull", quiet=as_json) as progress:
        done = pull(plan, accept_licence=accept_license, progress=progress)
    return Answer({**done, "pulled": True}, f"{target}: {len(plan.files)} files fetched")


@command(models, "verify")
def models_verify(
    folder: Folder = None,
    hashes: Annotated[bool, typer.Option("--hashes", help="Whole files too; slow.")] = False,
    as_json: Json = False,
) -> Answer:
    """What is wrong with the files of a folder, and what to do about it."""
    from .engine.checkpoint.verify import verify
    from .engine.console import console_progress
    from .engine.errors import CheckpointError

    target = find_checkpoint(folder)
    with console_progress("verify", quiet=as_json) as progress:
        found = verify(target, hashes=hashes, progress=progress)
    return Answer(found.as_json(), found.text(), 0 if found.sound else CheckpointError.exit_code)


@command(models, "convert")
def models_convert(
    source: Annotated[Path, typer.Argument(help="OpenVDN folder or ComfyUI file.")],
    target: Annotated[Path, typer.Argument(help="Folder of the result.")],
    weight_format: Format = "edge-fp8-rowwise",
    quality: Annotated[list[str] | None, typer.Option(help="Schedules to prepare.")] = None,
    stage: Annotated[Path | None, typer.Option(help="OpenVDN stage beside a base model.")] = None,
    keep_projections: Annotated[
        bool, typer.Option("--keep-projections", help="26 GB; for other schedules.")
    ] = False,
    device: Annotated[str | None, typer.Option(help="Where to quantise, such as cuda.")] = None,
    as_json: Json = False,
) -> Answer:
    """Write a checkpoint in an edge layout, block by block; goes on where it stopped."""
    from .engine.checkpoint.convert import convert, describe, schedules_for
    from .engine.console import console_progress

    with console_progress("convert", quiet=as_json) as progress:
        done = convert(
            source,
            target,
            format=weight_format,
            tables=schedules_for(quality) if quality else None,
            stage=stage,
            projections=keep_projections,
            device=device,
            progress=progress,
        )
    return Answer(done, describe(done))


def _models_folder(given: Path | None) -> Path:
    """The folder of the argument, of LOWPEAK_MODELS, or models/lowpeak here."""
    return given or Path(os.environ.get("LOWPEAK_MODELS", DEFAULT_FOLDER))


def _capability(text: str | None) -> tuple[int, int] | None:
    """The card's, from the option or from this machine."""
    from .engine.snapshot import read_snapshot, snapshot_from_options

    if text is None:
        return read_snapshot().capability
    return snapshot_from_options(vram_gib=8, ram_gib=16, capability=text).capability
