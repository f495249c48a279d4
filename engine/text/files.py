"""The files of a Qwen3-VL encoder: found, recognised and checked by their headers.

Accepted: a transformers or diffusers folder (shards, config.json) and ComfyUI's single file, alone
or in a folder. What each weight is stored as comes from the dtypes and the notes beside it, never
from a file's name. Names are normalised to `embed_tokens`, `layers.N...` and `visual...`. Every
shape is compared before any tensor is read; the embedding table is never read whole.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ...kernels.weights import CONVROT_GROUP
from ..checkpoint.header import FLOAT_NAMES, read_header
from ..checkpoint.sources import Source, Sources, check_sources, read_json, read_sources, sources_of
from ..errors import CheckpointError
from .qwen_config import LAYERS_USED, MODEL_TYPES, QwenConfig, read_sizes
from .qwen_shapes import linear_shapes, vector_shapes
from .qwen_weights import BLOCK, Form, weight_rows

CONFIG_FILE = "config.json"
INDEX_FILE = "model.safetensors.index.json"
PREFIXES = (
    ("model.language_model.", ""),
    ("language_model.model.", ""),
    ("language_model.", ""),
    ("model.visual.", "visual."),
    ("visual.", "visual."),
    ("model.", ""),
)
KINDS = {"F8_E4M3": "fp8", "I8": "int8", "U8": "nvfp4"}


@dataclass(frozen=True)
class QwenFile:
    """An encoder on disk; nothing is kept in memory.

    sources: by normalised name. forms: how each linear's weight, and the embedding, are stored.
    identity: changes when any header, size or modification time does.
    """

    path: Path
    config: QwenConfig
    sources: Sources
    forms: Mapping[str, Form]
    identity: str

    def names(self, prefix: str) -> list[str]:
        """Tensors a computation needs behind `prefix`, without it."""
        found = (name[len(prefix) :] for name in self.sources if name.startswith(prefix))
        return [name for name in found if not name.endswith(("comfy_quant", "input_scale"))]

    def layer_spans(self, index: int) -> dict[str, Source]:
        """Where the tensors of decoder layer `index` lie, by their names within the layer."""
        prefix = f"layers.{index}."
        return {name: self.sources[prefix + name] for name in self.names(prefix)}

    def read(self, prefix: str, names: Sequence[str] | None = None) -> dict[str, Tensor]:
        """Tensors behind `prefix` on the CPU as stored, by their names within it."""
        chosen = self.names(prefix) if names is None else names
        return read_sources({name: self.sources[prefix + name] for name in chosen})

    def embed(self, ids: Sequence[int]) -> Tensor:
        """Rows of the embedding table, fp32 [len(ids), C]; only these rows are read."""
        form, distinct = self.forms["embed_tokens"], sorted(set(ids))
        rows = self._rows("embed_tokens.weight", distinct)
        tensors = {"weight": rows}
        if "embed_tokens.weight_scale" in self.sources:
            scale = self.read("embed_tokens.", ["weight_scale"])["weight_scale"].reshape(-1)
            tensors["weight_scale"] = scale if scale.numel() == 1 else scale[distinct]
        table = weight_rows(form, tensors, 0, len(distinct))
        place = {row: index for index, row in enumerate(distinct)}
        return table[[place[row] for row in ids]]

    def _rows(self, name: str, rows: Sequence[int]) -> Tensor:
        source = self.sources[name]
        span, width = source.span, source.span.nbytes // source.span.shape[0]
        source.file.check_identity()
        buffer = bytearray(len(rows) * width)
        with open(source.file.path, "rb", buffering=0) as file:
            for index, row in enumerate(rows):
                file.seek(span.start_byte + row * width)
                got = file.readinto(memoryview(buffer)[index * width : (index + 1) * width])
                if got != width:
                    raise CheckpointError(
                        "short read", file=source.file.path, tensor=name, expected=width, found=got
                    )
        flat = torch.frombuffer(buffer, dtype=torch.uint8)
        return flat.view(span.torch_dtype).view(len(rows), -1)


def normal_name(name: str) -> str:
    """A stored name without what its writer put before it."""
    for prefix, instead in PREFIXES:
        if name.startswith(prefix):
            return instead + name[len(prefix) :]
    return name


def is_qwen_config(config: Mapping[str, Any]) -> bool:
    """True for the config.json of a Qwen3-VL model."""
    return config.get("model_type") in MODEL_TYPES


def open_qwen_file(path: str | Path, *, layers: int = LAYERS_USED) -> QwenFile:
    """Open and check. layers: decoder layers to run. Raises CheckpointError; reads headers alone
    (and the few bytes of notes beside quantised weights)."""
    path = Path(path)
    files = [read_header(file) for file in _list_files(path)]
    settings = path / CONFIG_FILE if path.is_dir() else path.with_name(CONFIG_FILE)
    config_json = dict(read_json(settings)) if settings.is_file() else {}
    if not is_qwen_config(config_json):
        config_json = {}
    stored = sources_of(files)
    sources: Sources = {}
    for name, source in stored.items():
        sources.setdefault(normal_name(name), source)
    forms = {
        name.removesuffix(".weight"): _form(sources, name.removesuffix(".weight"))
        for name, source in sources.items()
        if name.endswith(".weight") and len(source.span.shape) == 2
    }
    shapes = {name: source.span.shape for name, source in sources.items()}
    shapes |= {f"{name}.weight": (form.rows, form.columns) for name, form in forms.items()}
    try:
        config = read_sizes(shapes, config_json, layers=layers)
    except CheckpointError as unknown:
        raise _named(unknown, path) from None
    _check(sources, forms, config, path)
    used = {name: source for name, source in sources.items() if _is_used(name, config)}
    identity = hashlib.sha256()
    for file in sorted(files, key=lambda item: item.path.name):
        note = (file.header_sha256, file.identity.size_bytes, file.identity.mtime_ns)
        identity.update(repr(note).encode())
    identity.update(repr(config).encode())
    return QwenFile(path, config, used, forms, identity.hexdigest())


def _list_files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    index = path / INDEX_FILE
    if index.is_file():
        names = sorted(set(read_json(index).get("weight_map", {}).values()))
        return [path / Path(name).name for name in names]
    files = sorted(path.glob("*.safetensors"))
    if not files:
        raise CheckpointError(
            "no model file",
            file=path,
            expected="*.safetensors",
            found="an empty folder" if path.is_dir() else "nothing",
        )
    return files


def _is_used(name: str, config: QwenConfig) -> bool:
    if name.startswith("layers."):
        return int(name.split(".")[1]) < config.text.layers
    return name.startswith(("embed_tokens.", "visual."))


def _form(sources: Sources, name: str) -> Form:
    """How the weight of layer `name` is stored."""
    span = sources[f"{name}.weight"].span
    rows, columns = span.shape
    kind = KINDS.get(span.dtype, "float")
    if kind == "float":
        return Form(kind, rows, columns)
    note = _note(sources, name)
    if kind == "nvfp4":
        found = note.get("format", "nvfp4")
        if found != "nvfp4" or columns * 2 % BLOCK:
            raise _unknown(sources, name, "nvfp4", found)
        return Form(kind, rows, columns * 2)
    if kind == "fp8":
        return Form(kind, rows, columns)
    if note.get("format") != "int8_tensorwise":
        raise _unknown(sources, name, "int8_tensorwise", note.get("format"))
    inner = note.get("params")
    note = {**inner, **note} if isinstance(inner, dict) else note
    group = note.get("convrot_groupsize", CONVROT_GROUP) if note.get("convrot") else 1
    power_of_four = isinstance(group, int) and group > 0 and 4**8 % group == 0
    if not power_of_four or group.bit_length() % 2 == 0 or columns % group:
        raise _unknown(sources, name, f"a group that divides {columns}, a power of four", group)
    return Form(kind, rows, columns, group)


def _note(sources: Sources, name: str) -> dict[str, Any]:
    """The JSON that ComfyUI's files put beside a quantised weight."""
    source = sources.get(f"{name}.comfy_quant")
    if source is None:
        if sources[f"{name}.weight"].span.dtype == "I8":
            raise _unknown(sources, name, "a comfy_quant note", "nothing")
        return {}
    text = bytes(source.file.read(source.name).to(torch.uint8).tolist())
    try:
        found = json.loads(text)
    except (UnicodeDecodeError, json.JSONDecodeError):
        raise _unknown(sources, name, "a JSON note", text[:80]) from None
    return found if isinstance(found, dict) else {}


def _unknown(sources: Sources, name: str, expected: object, found: object) -> CheckpointError:
    weight = sources[f"{name}.weight"]
    return CheckpointError(
        "unknown quantisation",
        file=weight.file.path,
        tensor=weight.name,
        expected=expected,
        found=found,
        remedy="This file needs a newer Lowpeak.",
    )


def _check(sources: Sources, forms: Mapping[str, Form], config: QwenConfig, path: Path) -> None:
    """Every tensor that will be read: there, of the right shape and of a readable dtype."""
    linears = linear_shapes(config)
    expected: dict[str, tuple[tuple[str, ...], tuple[int, ...]]]
    expected = {name: (FLOAT_NAMES, shape) for name, shape in vector_shapes(config).items()}
    for name, (rows, columns) in linears.items():
        form = forms.get(name, Form("float", rows, columns))
        fitting = Form(form.kind, rows, columns, form.group)
        expected |= {f"{name}.{end}": entry for end, entry in fitting.expected().items()}
        single = sources.get(f"{name}.weight_scale_2")
        if single is not None and single.span.shape == (1,):
            expected[f"{name}.weight_scale_2"] = (("F32",), (1,))
        if f"{name}.pre_quant_scale" in sources:
            expected[f"{name}.pre_quant_scale"] = (FLOAT_NAMES, (columns,))
    check_sources(sources, expected, where=path)
    if forms["embed_tokens"].kind == "nvfp4":
        raise _unknown(sources, "embed_tokens", "float, fp8 or int8 rows", "nvfp4")
    for name in linears:
        if forms[name].kind in ("fp8", "int8"):
            _check_scale(sources, name, forms[name])


def _check_scale(sources: Sources, name: str, form: Form) -> None:
    """The scale of fp8 and int8: one value, or one a row; fp8 can do without."""
    scale = sources.get(f"{name}.weight_scale")
    if scale is None and form.kind == "fp8":
        return
    good = scale is not None and scale.span.dtype in FLOAT_NAMES
    if scale is None or not good or math.prod(scale.span.shape) not in (1, form.rows):
        weight = sources[f"{name}.weight"]
        raise CheckpointError(
            "missing scale" if scale is None else "wrong scale",
            file=weight.file.path,
            tensor=f"{weight.name}_scale",
            expected=f"1 or {form.rows} float values",
            found="nothing" if scale is None else str(scale.span),
        )


def _named(error: CheckpointError, path: Path) -> CheckpointError:
    return CheckpointError(
        str(error).split(";")[0],
        file=path,
        tensor=error.tensor,
        expected=error.expected,
        found=error.found,
        remedy=error.remedy,
    )
