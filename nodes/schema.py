"""The one adapter from plain tables to ComfyUI's V3 nodes.

A node file holds a plain class (table, execute, perhaps validate_inputs and fingerprint_inputs)
that knows no ComfyUI. `node_class` puts ComfyUI's base class under it. `comfy_api` is imported
when the extension is built, never at the top of a module.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .tables import CATEGORY, In, NodeTable, Out

SOCKETS = {"IMAGE": "Image", "LATENT": "Latent", "CONDITIONING": "Conditioning", "VIDEO": "Video",
           "AUDIO": "Audio", "STRING": "String"}  # fmt: skip
Lists = Mapping[str, Callable[[], Sequence[str]]]


def node_class(plain: type, io: Any, pack: Any) -> type:
    """The V3 node of a plain node class. `io` is comfy_api's io module, `pack` our process object.

    `pack` becomes a class attribute: ComfyUI calls nodes on a locked clone of the class, which can
    be read but not written.
    """
    table: NodeTable = plain.table  # type: ignore[attr-defined]

    def define_schema(cls: type) -> Any:
        return build_schema(table, io, pack.lists)

    body = {"define_schema": classmethod(define_schema), "pack": pack, "__doc__": plain.__doc__}
    return type(table.id, (plain, io.ComfyNode), body)


def build_schema(table: NodeTable, io: Any, lists: Lists) -> Any:
    """A fresh io.Schema of the table; combos are listed anew each time it is asked for."""
    return io.Schema(
        node_id=table.id,
        display_name=table.display_name,
        category=CATEGORY,
        description=table.description,
        inputs=[_input(item, io, lists) for item in table.inputs],
        outputs=[_output(item, io) for item in table.outputs],
        hidden=[getattr(io.Hidden, name) for name in table.hidden],
        search_aliases=list(table.aliases),
        is_output_node=table.is_output,
    )


def _type(kind: str, io: Any) -> Any:
    return getattr(io, SOCKETS[kind]) if kind in SOCKETS else io.Custom(kind)


def _output(item: Out, io: Any) -> Any:
    return _type(item.kind, io).Output(item.id, display_name=item.id, tooltip=item.tooltip)


def _input(item: In, io: Any, lists: Lists) -> Any:
    common = {"tooltip": item.tooltip, "optional": item.optional}
    if item.advanced:
        common["advanced"] = True
    if item.kind == "many":
        one = _type(item.item, io).Input(item.item_id.rstrip("_"), tooltip=item.tooltip)
        row = io.Autogrow.TemplatePrefix(input=one, prefix=item.item_id, min=0, max=int(item.most))
        return io.Autogrow.Input(item.id, template=row, **common)
    if item.kind == "combo":
        named = isinstance(item.choices, str)
        options = list(lists[item.choices]() if named else item.choices)
        default = item.default if item.default in options else None
        return io.Combo.Input(item.id, options=options, default=default, **common)
    if item.kind == "bool":
        return io.Boolean.Input(item.id, default=item.default, **common)
    if item.kind == "string":
        return io.String.Input(
            item.id, default=item.default, multiline=item.multiline,
            dynamic_prompts=item.multiline, **common,
        )  # fmt: skip
    if item.kind in ("int", "float"):
        number = io.Int if item.kind == "int" else io.Float
        if item.reroll:
            common["control_after_generate"] = True
        return number.Input(
            item.id, default=item.default, min=item.least, max=item.most, step=item.step, **common
        )
    return _type(item.kind, io).Input(item.id, **common)
