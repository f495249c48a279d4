"""`lowpeak models ...`: files found, fetched, verified, converted. Bodies in engine/model_files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .cli_base import Answer, Capability, Folder, Format, Json, QualityName, command

models = typer.Typer(rich_markup_mode=None, no_args_is_help=True)


@command(models, "list")
def models_list(
    folder: Folder = None,
    quality: QualityName = "light",
    capability: Capability = None,
    as_json: Json = False,
) -> Answer:
    """What a request needs, what is here, what is missing; exit 4 when something is."""
    from .engine.model_files import list_files

    return Answer(*list_files(folder, quality=quality, capability=_capability(capability)))


@command(models, "pull")
def models_pull(
    folder: Folder = None,
    only: Annotated[list[str] | None, typer.Option(help="Keys of `models list`.")] = None,
    quality: QualityName = "light",
    capability: Capability = None,
    accept_license: Annotated[
        bool, typer.Option("--accept-license", help="The licences shown were read and accepted.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what it takes.")] = False,
    as_json: Json = False,
) -> Answer:
    """Fetch what is missing, after its licence was shown and accepted."""
    from .engine.console import console_progress, say
    from .engine.model_files import pull_files

    with console_progress("pull", quiet=as_json) as progress:
        answer = pull_files(
            folder,
            only=only or (),
            quality=quality,
            capability=_capability(capability),
            accept_licence=accept_license,
            dry_run=dry_run,
            show_plan=say,
            progress=progress,
        )
    return Answer(*answer)


@command(models, "verify")
def models_verify(
    folder: Folder = None,
    hashes: Annotated[bool, typer.Option("--hashes", help="Whole files too; slow.")] = False,
    as_json: Json = False,
) -> Answer:
    """What is wrong with the files of a folder, and what to do about it; exit 4 for errors."""
    from .engine.console import console_progress
    from .engine.model_files import verify_files

    with console_progress("verify", quiet=as_json) as progress:
        return Answer(*verify_files(folder, hashes=hashes, progress=progress))


@command(models, "convert")
def models_convert(
    source: Annotated[Path, typer.Argument(help="OpenVDN folder or ComfyUI file.")],
    target: Annotated[Path, typer.Argument(help="Folder of the result.")],
    weight_format: Format = "edge-fp8-rowwise",
    quality: Annotated[list[str] | None, typer.Option(help="Levels to prepare; light.")] = None,
    stage: Annotated[Path | None, typer.Option(help="OpenVDN stage beside a base model.")] = None,
    keep_projections: Annotated[
        bool, typer.Option("--keep-projections", help="26 GB; for other schedules.")
    ] = False,
    device: Annotated[str | None, typer.Option(help="Where to quantise, such as cuda.")] = None,
    as_json: Json = False,
) -> Answer:
    """Write a checkpoint in an edge layout, block by block; goes on where it stopped."""
    from .engine.console import console_progress
    from .engine.model_files import convert_files

    with console_progress("convert", quiet=as_json) as progress:
        answer = convert_files(
            source,
            target,
            format=weight_format,
            qualities=quality or ("light",),
            stage=stage,
            projections=keep_projections,
            device=device,
            progress=progress,
        )
    return Answer(*answer)


def _capability(text: str | None) -> tuple[int, int] | None:
    """The card's, from the option or from this machine."""
    from .engine.snapshot import read_snapshot, snapshot_from_options

    if text is None:
        return read_snapshot().capability
    return snapshot_from_options(vram_gib=8, ram_gib=16, capability=text).capability
