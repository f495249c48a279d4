"""Where each tensor of a model lies, and the check that all of them are there.

A source is (file, name in that file). A block's tensors may be spread over several files, and the
names on disk may differ from the names used here. Nothing is read before everything was checked.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import CheckpointError
from .header import TensorFile, TensorSpan

if TYPE_CHECKING:
    from torch import Tensor

Expected = Mapping[str, tuple[tuple[str, ...], tuple[int, ...]]]


class Source(NamedTuple):
    """One tensor on disk."""

    file: TensorFile
    name: str

    @property
    def span(self) -> TensorSpan:
        """Dtype, shape and place."""
        return self.file.tensors[self.name]


Sources = dict[str, Source]


def sources_of(files: Iterable[TensorFile]) -> Sources:
    """All tensors of several files by their name; a name in two files is a CheckpointError."""
    found: Sources = {}
    for file in files:
        for name in file.tensors:
            if name in found:
                raise CheckpointError(
                    "two files hold the same tensor",
                    file=file.path,
                    tensor=name,
                    expected=f"only in {found[name].file.path}",
                    found="in both",
                )
            found[name] = Source(file, name)
    return found


def read_sources(sources: Mapping[str, Source]) -> dict[str, Tensor]:
    """Tensors on the CPU under their local names, each file opened once."""
    by_file: dict[Path, list[str]] = {}
    for local, source in sources.items():
        by_file.setdefault(source.file.path, []).append(local)
    found: dict[str, Tensor] = {}
    for locals_ in by_file.values():
        file = sources[locals_[0]].file
        read = file.read_many(sources[local].name for local in locals_)
        found |= {local: read[sources[local].name] for local in locals_}
    return {local: found[local] for local in sources}


def check_sources(
    sources: Mapping[str, Source], expected: Expected, *, where: str | Path, prefix: str = ""
) -> None:
    """Compare with what must be there. Raises CheckpointError for the first difference.

    where: the file, or the part of the model, to name when a tensor is missing.
    prefix: what the file puts before the local names.
    expected: {name: (dtype names, shape)}; a `weight_scale` may carry axes of 1.
    """
    missing = [name for name in expected if name not in sources]
    if missing:
        scales = [name for name in missing if name.endswith("_scale")]
        name = (scales or missing)[0]
        more = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
        dtypes, shape = expected[name]
        raise CheckpointError(
            ("missing scale" if scales else "missing tensor") + more,
            file=where,
            tensor=prefix + name,
            expected=f"{' | '.join(dtypes)} {list(shape)}",
            found="nothing",
        )
    for name, (dtypes, shape) in expected.items():
        span = sources[name].span
        axes = span.shape
        if name.endswith("weight_scale"):
            axes = tuple(size for size in axes if size != 1) or (1,)
            shape = tuple(size for size in shape if size != 1) or (1,)
        if axes != shape:
            raise CheckpointError(
                "wrong shape",
                file=sources[name].file.path,
                tensor=sources[name].name,
                expected=list(expected[name][1]),
                found=list(span.shape),
            )
        if span.dtype not in dtypes:
            raise CheckpointError(
                "wrong dtype",
                file=sources[name].file.path,
                tensor=sources[name].name,
                expected=" | ".join(dtypes),
                found=span.dtype,
            )


def read_json(path: Path) -> Any:
    """A JSON file; damage is a CheckpointError."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CheckpointError("file is missing", file=path) from None
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as broken:
        raise CheckpointError(
            f"file is no JSON ({broken})", file=path, remedy="Fetch this file again."
        ) from None


def find_objects(value: Any, keys: set[str]) -> Iterator[dict[str, Any]]:
    """Every JSON object inside `value` that has all `keys`, outermost first."""
    if isinstance(value, dict):
        if keys <= value.keys():
            yield value
        for item in value.values():
            yield from find_objects(item, keys)
    elif isinstance(value, list):
        for item in value:
            yield from find_objects(item, keys)


def list_missing(what: str, folder: Path, missing: list[str]) -> CheckpointError:
    """The error that lists every file that a folder lacks."""
    return CheckpointError(
        f"{what} is incomplete, missing files: {len(missing)}",
        file=folder,
        expected=", ".join(missing),
        found="not there",
        remedy="`lowpeak models verify` says what to fetch.",
    )
