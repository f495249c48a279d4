"""Tensors of a file, grouped into layers: one adapter of one kind on one module path. Pure.

A layer knows its full size [out, in] and rank from header shapes alone; pairs that do not belong
together are refused here, before any tensor is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from .errors import LoraFileError
from .header import FLOATING, Header, TensorEntry
from .keymap import Key, Payload, interleaved_by_marks, read_key
from .modules import Target, targets

Kind = Literal["lora", "loha", "lokr", "diff", "bias"]
_PLAIN_ROLES = {"alpha", "magnitude"}


@dataclass(frozen=True)
class Layer:
    """One change of one parameter path. `tensors` maps a role to the name of a file tensor.

    `shape` is that of the whole difference, as the file's own module has it.
    """

    module: str
    targets: tuple[Target, ...]
    kind: Kind
    tensors: Mapping[str, str]
    shape: tuple[int, ...]
    rank: int = 0
    by_column: bool = False  # the DoRA magnitude is one number an input column, not an output row

    @property
    def names(self) -> tuple[str, ...]:
        """The file tensors of this layer."""
        return tuple(self.tensors.values())


@dataclass(frozen=True)
class Contents:
    """Everything an adapter file holds."""

    layers: tuple[Layer, ...]
    payloads: tuple[Payload, ...]
    orphans: tuple[Key, ...]  # scalars of modules that have no factors here
    naming: str
    interleaved: bool
    has_alpha_tensors: bool


def read_contents(header: Header) -> Contents:
    """Group the tensors of a checked header.

    Raises LoraFileError for duplicates after normalisation, halves of pairs, ranks that differ, and
    factors that are not floating-point numbers.
    """
    read = [read_key(name) for name in header.tensors]
    keys = [item for item in read if isinstance(item, Key)]
    payloads = tuple(item for item in read if isinstance(item, Payload))
    interleaved = interleaved_by_marks(keys)
    groups: dict[tuple[Target, ...], dict[str, Key]] = {}
    for key in keys:
        _require_floating(header, key)
        group = groups.setdefault(targets(key.module, interleaved=interleaved), {})
        if key.role in group:
            raise LoraFileError(
                "two tensors of the file are the same part of the same module",
                file=header.file,
                names=sorted((group[key.role].name, key.name)),
            )
        group[key.role] = key
    layers: list[Layer] = []
    orphans: list[Key] = []
    for where, group in groups.items():
        found = _layers_of(header, where, group)
        layers += found
        if not found:
            orphans += group.values()
    _refuse_collisions(header, layers)
    return Contents(
        tuple(layers),
        payloads,
        tuple(orphans),
        _naming(keys, interleaved),
        interleaved,
        any(key.role == "alpha" for key in keys),
    )


def _naming(keys: Sequence[Key], interleaved: bool) -> str:
    if not keys:
        return "none"
    original = sum(key.naming == "original" for key in keys)
    flat = any(key.flat for key in keys)
    text = "original names" if original * 2 > len(keys) else "diffusers names"
    if flat:
        text += ", flattened"
    if interleaved:
        text += ", q/k/v rows interleaved per head (adapter name `default` over original names)"
    elif original:
        text += ", q/k/v rows stacked"
    return text


def _layers_of(header: Header, where: tuple[Target, ...], group: Mapping[str, Key]) -> list[Layer]:
    """The layers of one module path: at most one of each kind."""
    module = next(iter(group.values())).module
    shared = {role: group[role].name for role in _PLAIN_ROLES if role in group}
    found: list[Layer] = []

    def add(kind: Kind, roles: Sequence[str], shape: tuple[int, ...], rank: int = 0) -> None:
        """A layer of these roles; factors share the module's alpha and magnitude."""
        tensors = {role: group[role].name for role in roles if role in group}
        by_column = False
        if kind in ("lora", "loha", "lokr"):
            tensors |= shared
            by_column = "magnitude" in group and _by_column(header, names["magnitude"], shape)
        found.append(Layer(module, where, kind, tensors, shape, rank, by_column))

    shapes = {role: _matrix(header.tensors[key.name]) for role, key in group.items()}
    names = {role: key.name for role, key in group.items()}
    if {"down", "up", "mid"} & set(group):
        add("lora", ("down", "up", "mid"), *_low_rank(header, module, shapes, names))
    if any(role.startswith("hada_") for role in group):
        roles = ("hada_w1_a", "hada_w1_b", "hada_w2_a", "hada_w2_b", "hada_t1", "hada_t2")
        add("loha", roles, *_hadamard(header, module, shapes, names))
    if any(role.startswith("lokr_") for role in group):
        roles = tuple(role for role in group if role.startswith("lokr_"))
        add("lokr", roles, *_kronecker(header, module, shapes, names))
    if "diff" in group:
        add("diff", ("diff",), header.tensors[names["diff"]].shape)
    if "diff_b" in group:
        add("bias", ("diff_b",), header.tensors[names["diff_b"]].shape)
    if "up_bias" in group:
        roles = tuple(role for role in ("up_bias", "alpha") if role in group)
        tensors = {role: names[role] for role in roles}
        rank = shapes["down"][0] if shapes.get("down") else 0
        shape = header.tensors[names["up_bias"]].shape
        found.append(Layer(module, where, "bias", tensors, shape, rank))
    if "down_bias" in group:
        raise LoraFileError(
            "a bias on the first factor is not known to any trainer of this model",
            file=header.file,
            tensor=names["down_bias"],
        )
    return found


def _by_column(header: Header, name: str, shape: tuple[int, ...]) -> bool:
    """Whether a DoRA magnitude is per input column; refuses one that fits neither axis."""
    size = header.tensors[name].shape
    if size in ((shape[0],), (shape[0], 1)):
        return False
    if size == (1, shape[1]):
        return True
    raise LoraFileError(
        "a DoRA magnitude has another size than its factors", file=header.file, tensor=name,
        expected=f"[{shape[0]}], [{shape[0]}, 1] or [1, {shape[1]}]", found=list(size),
    )  # fmt: skip


def _matrix(entry: TensorEntry) -> tuple[int, ...]:
    """Shape of a factor; the trailing ones of a 1x1 convolution are dropped."""
    shape = entry.shape
    while len(shape) > 2 and shape[-1] == 1:
        shape = shape[:-1]
    return shape


def _pair(
    header: Header,
    module: str,
    shapes: Mapping[str, tuple[int, ...]],
    names: Mapping[str, str],
    left: str,
    right: str,
) -> tuple[int, int, int]:
    """(rows, columns, rank) of the product left @ right; both must be there and agree."""
    for role, other in ((left, right), (right, left)):
        if role not in shapes:
            raise LoraFileError(
                f"half of a pair is missing: {module} has no {role}",
                file=header.file,
                tensor=names.get(other, ""),
            )
        if len(shapes[role]) != 2 or 0 in shapes[role]:
            raise LoraFileError(
                "a factor is not a matrix", file=header.file, tensor=names[role],
                expected="two sizes above zero", found=list(shapes[role]),
            )  # fmt: skip
    if shapes[left][1] != shapes[right][0]:
        raise LoraFileError(
            f"the ranks of a pair differ on {module}", file=header.file, tensor=names[left],
            expected=f"rank {shapes[right][0]} of {names[right]}",
            found=f"rank {shapes[left][1]} in {list(shapes[left])}",
        )  # fmt: skip
    return shapes[left][0], shapes[right][1], shapes[left][1]


def _low_rank(
    header: Header, module: str, shapes: Mapping[str, tuple[int, ...]], names: Mapping[str, str]
) -> tuple[tuple[int, ...], int]:
    if "mid" in shapes:
        _pair(header, module, shapes, names, "up", "mid")
        _, columns, rank = _pair(header, module, shapes, names, "mid", "down")
        return (shapes["up"][0], columns), rank
    rows, columns, rank = _pair(header, module, shapes, names, "up", "down")
    return (rows, columns), rank


def _hadamard(
    header: Header, module: str, shapes: Mapping[str, tuple[int, ...]], names: Mapping[str, str]
) -> tuple[tuple[int, ...], int]:
    sizes = []
    for part in "12":
        a, b, t = f"hada_w{part}_a", f"hada_w{part}_b", f"hada_t{part}"
        if t in shapes:  # the core stands between: w_a is [rank, out] then
            sized = _turned(shapes, a)
            _pair(header, module, sized, names, a, t)
            _, columns, rank = _pair(header, module, sized, names, t, b)
            sizes.append((sized[a][0], columns, rank))
        else:
            sizes.append(_pair(header, module, shapes, names, a, b))
    if sizes[0][:2] != sizes[1][:2]:
        raise LoraFileError(
            f"the two products on {module} have different sizes", file=header.file,
            tensor=names["hada_w2_a"], expected=list(sizes[0][:2]), found=list(sizes[1][:2]),
        )  # fmt: skip
    return sizes[0][:2], sizes[0][2]


def _turned(shapes: Mapping[str, tuple[int, ...]], role: str) -> dict[str, tuple[int, ...]]:
    """The shapes with that of `role` transposed, where it is there at all."""
    return {name: shape[::-1] if name == role else shape for name, shape in shapes.items()}


def _kronecker(
    header: Header, module: str, shapes: Mapping[str, tuple[int, ...]], names: Mapping[str, str]
) -> tuple[tuple[int, ...], int]:
    sizes: list[tuple[int, int]] = []
    ranks: list[int] = []
    for part in "12":
        whole, a, b, t = (f"lokr_{x}" for x in (f"w{part}", f"w{part}_a", f"w{part}_b", f"t{part}"))
        if whole in shapes:
            if len(shapes[whole]) != 2 or 0 in shapes[whole]:
                raise LoraFileError(
                    "a factor is not a matrix", file=header.file, tensor=names[whole],
                    expected="two sizes above zero", found=list(shapes[whole]),
                )  # fmt: skip
            sizes.append((shapes[whole][0], shapes[whole][1]))
        elif t in shapes:
            sized = _turned(shapes, a)
            _pair(header, module, sized, names, a, t)
            _, columns, rank = _pair(header, module, sized, names, t, b)
            sizes.append((sized[a][0], columns))
            ranks.append(rank)
        else:
            rows, columns, rank = _pair(header, module, shapes, names, a, b)
            sizes.append((rows, columns))
            ranks.append(rank)
    (rows1, columns1), (rows2, columns2) = sizes
    # A product of two whole matrices has no rank, and its scale is 1 whatever alpha says.
    return (rows1 * rows2, columns1 * columns2), ranks[-1] if ranks else 0


def _require_floating(header: Header, key: Key) -> None:
    entry = header.tensors[key.name]
    if key.role == "alpha":
        if len(entry.shape) > 1 or (entry.shape and entry.shape[0] != 1):
            raise LoraFileError(
                "alpha is not one number", file=header.file, tensor=key.name,
                expected="[] or [1]", found=list(entry.shape),
            )  # fmt: skip
        return
    if entry.dtype not in FLOATING:
        raise LoraFileError(
            "a factor is not made of floating-point numbers", file=header.file, tensor=key.name,
            expected=", ".join(sorted(FLOATING)), found=entry.dtype,
        )  # fmt: skip


def _refuse_collisions(header: Header, layers: Sequence[Layer]) -> None:
    """A fused and a separate adapter, or two spellings, must not reach the same parameter twice."""
    seen: dict[tuple[str, str], Layer] = {}
    for layer in layers:
        # A plain difference may stand beside a low-rank one; two low-rank ones may not.
        kind = "low rank" if layer.kind in ("lora", "loha", "lokr") else layer.kind
        for target in layer.targets:
            other = seen.setdefault((target.module, kind), layer)
            if other is not layer and not _bias_pair(other, layer):
                raise LoraFileError(
                    f"two adapters of the file reach {target.module}",
                    file=header.file,
                    names=sorted((*other.names, *layer.names)),
                )


def _bias_pair(one: Layer, two: Layer) -> bool:
    return one.module == two.module and one.kind == two.kind == "bias"
