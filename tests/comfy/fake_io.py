"""As much of comfy_api's io module as a schema needs, so that schemas are tested without ComfyUI.

Keyword names are those of ComfyUI 0.33.0; an unknown one is a TypeError here as it is there. The
real-server tests hold this fake to the real thing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

COMMON = {"display_name", "optional", "tooltip", "lazy", "extra_dict", "raw_link", "advanced"}
WIDGET = COMMON | {"default", "socketless", "force_input"}
ALLOWED = {
    "INT": WIDGET | {"min", "max", "step", "control_after_generate", "display_mode"},
    "FLOAT": WIDGET | {"min", "max", "step", "round", "display_mode", "gradient_stops"},
    "STRING": WIDGET | {"multiline", "placeholder", "dynamic_prompts"},
    "BOOLEAN": WIDGET | {"label_on", "label_off"},
    "COMBO": (WIDGET - {"force_input"})
    | {"options", "control_after_generate", "upload", "image_folder", "remote"},
    "COMFY_AUTOGROW_V3": (COMMON - {"raw_link", "advanced"}) | {"template"},
}
SERVED = {"dynamic_prompts": "dynamicPrompts", "display_mode": "display"}


class Put:
    """An input or an output."""

    def __init__(self, io_type: str, allowed: set[str], id: str, **options: Any) -> None:
        unknown = set(options) - allowed
        if unknown:
            raise TypeError(f"{io_type}: unexpected {sorted(unknown)}")
        self.io_type, self.id, self.options = io_type, id, options
        self.optional = options.pop("optional", False)

    def served(self) -> list[Any]:
        """As /object_info serves it."""
        options = {SERVED.get(k, k): v for k, v in self.options.items() if v is not None}
        if "template" in options:
            template = dict(options["template"])
            inner = template.pop("input")
            options["template"] = {"input": {"required": {inner.id: inner.served()}}, **template}
        return [self.io_type, options]


def kind(io_type: str) -> SimpleNamespace:
    allowed = ALLOWED.get(io_type, COMMON)

    def make_input(id: str, **options: Any) -> Put:
        return Put(io_type, allowed, id, **options)

    def make_output(id: str | None = None, **options: Any) -> Put:
        return Put(io_type, {"display_name", "tooltip", "is_output_list"}, id or "", **options)

    return SimpleNamespace(Input=make_input, Output=make_output, io_type=io_type)


@dataclass
class Schema:
    """The fields a V3 schema takes."""

    node_id: str
    display_name: str = ""
    category: str = "sd"
    inputs: list[Put] = field(default_factory=list)
    outputs: list[Put] = field(default_factory=list)
    hidden: list[str] = field(default_factory=list)
    description: str = ""
    search_aliases: list[str] = field(default_factory=list)
    is_output_node: bool = False

    def served(self) -> dict[str, Any]:
        """As /object_info serves it, as far as contracts need."""
        served: dict[str, Any] = {"required": {}, "optional": {}}
        for item in self.inputs:
            served["optional" if item.optional else "required"][item.id] = item.served()
        return {
            "name": self.node_id,
            "input": {k: v for k, v in served.items() if v},
            "input_order": {k: list(v) for k, v in served.items() if v},
            "output": [item.io_type for item in self.outputs],
            "output_name": [item.options["display_name"] for item in self.outputs],
            "output_node": self.is_output_node,
        }


class ComfyNode:
    """Base of V3 nodes."""


def template_prefix(*, input: Put, prefix: str, min: int, max: int) -> dict[str, Any]:
    return {"input": input, "prefix": prefix, "min": min, "max": max}


def make_io() -> SimpleNamespace:
    """A module-like object with what schema.py uses."""
    names = {"Int": "INT", "Float": "FLOAT", "String": "STRING", "Boolean": "BOOLEAN",
             "Combo": "COMBO", "Image": "IMAGE", "Latent": "LATENT", "Video": "VIDEO",
             "Conditioning": "CONDITIONING", "Audio": "AUDIO"}  # fmt: skip
    io = SimpleNamespace(**{name: kind(io_type) for name, io_type in names.items()})
    io.Autogrow = kind("COMFY_AUTOGROW_V3")
    io.Autogrow.TemplatePrefix = template_prefix
    io.Custom, io.Schema, io.ComfyNode = kind, Schema, ComfyNode
    io.Hidden = SimpleNamespace(unique_id="UNIQUE_ID", prompt="PROMPT", extra_pnginfo="PNG")
    return io
