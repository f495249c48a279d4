"""Writes the example graphs: workflows/*.json for the canvas, workflows/api/*.json for POST
/prompt, and a small drawn thumbnail beside each. One description a graph, so the forms agree.

    .venv/bin/python workflows/make.py

Sockets and widgets come from our tables and from a recorded excerpt of core's nodes.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lowpeak.nodes import tables

HERE = Path(__file__).resolve().parent
CORE = json.loads((HERE.parent / "tests/data/core_nodes.json").read_text())["nodes"]
SPACE = uuid.UUID("7f0c1a52-6f0e-4b1c-9a55-6f1d3b0a9c11")  # graph ids follow from their names
WIDGET_TYPES = ("INT", "FLOAT", "STRING", "BOOLEAN", "COMBO", "COMFY_DYNAMICCOMBO_V3")

CHECKPOINT = "vdn-minimax-h3-edge"
EDGE = "https://huggingface.co/OpenVDN/vdn-minimax-h3-edge/resolve/main"
COMFY = "https://huggingface.co/Comfy-Org/MiniMax-H3/resolve/main"
TEXT_ENCODER = "qwen3vl_32b_minimax_h3_nvfp4_awq.safetensors"
VIDEO_VAE, AUDIO_VAE = (
    "minimax_h3_video_vae_fp16.safetensors",
    "minimax_h3_audio_vae_fp32.safetensors",
)
VAES = [(VIDEO_VAE, f"{COMFY}/vae/{VIDEO_VAE}", "vae"),
        (AUDIO_VAE, f"{COMFY}/vae/{AUDIO_VAE}", "vae")]  # fmt: skip
ENCODER = (TEXT_ENCODER, f"{COMFY}/text_encoders/{TEXT_ENCODER}", "text_encoders")
ROOT = f"{CHECKPOINT}/rowwise/cache/root.safetensors"
MODELS = {
    "LowpeakLoadModel": [
        (ROOT, f"{EDGE}/rowwise/cache/root.safetensors", "lowpeak"),
        ENCODER,
        *VAES,
    ],
    "CLIPLoader": [ENCODER],
    "VAELoader": VAES,
}
FILES_NOTE = f"""## Where files go

    lowpeak models pull ComfyUI/models

fetches what is missing after showing the licence; `lowpeak models verify` says what is damaged.
Press R in ComfyUI afterwards. By hand:

- transformer (a folder): `models/lowpeak/{CHECKPOINT}/`
- text encoder: `models/text_encoders/`
- video and audio VAE: `models/vae/`
- latent upscaler (light only): `models/latent_upscale_models/`
- LoRAs: `models/loras/`

A file counts by what is in it, not by its name. The last four may also lie in the checkpoint's own
folder, and folders of `extra_model_paths.yaml` count too.

The weights are under the MiniMax H3 Community License; read it before you use them.
"""


@dataclass
class Node:
    """One node of a graph. `given` maps input names to values or to (node, output) links."""

    number: int
    kind: str
    given: dict[str, Any]
    column: int
    row: int
    title: str = ""

    def out(self, name: str) -> tuple[Node, int]:
        """The output of that name, to give to another node."""
        return self, [item[0] for item in outputs(self.kind)].index(name)


@dataclass
class Graph:
    """One example. `note` says what it shows."""

    name: str
    title: str
    note: str
    nodes: list[Node] = field(default_factory=list)

    def add(self, kind: str, column: int, row: int = 0, title: str = "", **given: Any) -> Node:
        """Put a node on the canvas; columns and rows are places on a grid."""
        node = Node(len(self.nodes) + 1, kind, given, column, row, title)
        unknown = set(given) - {name.replace(".", "__") for name, *_ in inputs(kind, given)}
        assert not unknown, f"{self.name}: {kind} has no {unknown}"
        self.nodes.append(node)
        return node

    def api(self) -> dict[str, Any]:
        """The API form: every widget's value, every link."""
        made = {}
        for node in self.nodes:
            values = {}
            for name, type_, default, is_widget, _ in inputs(node.kind, node.given):
                value = node.given.get(name.replace(".", "__"), default)
                if isinstance(value, tuple):
                    values[name] = [str(value[0].number), value[1]]
                elif is_widget:
                    assert value is not None, f"{node.kind}.{name} ({type_}) needs a value"
                    values[name] = value
            title = {"title": node.title or display_name(node.kind)}
            made[str(node.number)] = {"class_type": node.kind, "inputs": values, "_meta": title}
        return made

    def ui(self) -> dict[str, Any]:
        """The canvas form, schema version 0.4."""
        links: list[list[Any]] = []
        drawn = [self._drawn(node, links) for node in self.nodes]
        for link in links:
            drawn[link[1] - 1]["outputs"][link[2]]["links"].append(link[0])
        notes = [("Note", self.note), ("Files", FILES_NOTE)]
        for place, (title, text) in enumerate(notes):
            drawn.append(
                {"id": len(drawn) + 1, "type": "MarkdownNote", "pos": [-420, 40 + 330 * place],
                 "size": [380, 300], "flags": {}, "order": len(drawn), "mode": 0, "inputs": [],
                 "outputs": [], "title": title, "properties": {}, "widgets_values": [text]}
            )  # fmt: skip
        return {
            "id": str(uuid.uuid5(SPACE, self.name)), "revision": 0, "last_node_id": len(drawn),
            "last_link_id": len(links), "nodes": drawn, "links": links, "groups": [],
            "config": {}, "extra": {"ds": {"scale": 0.8, "offset": [480, 60]}}, "version": 0.4,
        }  # fmt: skip

    def _drawn(self, node: Node, links: list[list[Any]]) -> dict[str, Any]:
        sockets: list[dict[str, Any]] = []
        widgets: list[Any] = []
        for name, type_, default, is_widget, extras in inputs(node.kind, node.given):
            value = node.given.get(name.replace(".", "__"), default)
            socket: dict[str, Any] = {"name": name, "type": type_, "link": None}
            if is_widget:
                socket["widget"] = {"name": name}
                widgets += [None if isinstance(value, tuple) else value, *extras]
            if isinstance(value, tuple):
                source, slot = value
                socket["link"] = len(links) + 1
                links.append([len(links) + 1, source.number, slot, node.number, 0, type_])
            sockets.append(socket)
        # Sockets that carry only a widget come after the real ones, as the frontend writes them.
        sockets.sort(key=lambda socket: "widget" in socket)
        for place, socket in enumerate(sockets):
            if socket["link"] is not None:
                links[socket["link"] - 1][4] = place
        properties: dict[str, Any] = {"Node name for S&R": node.kind}
        if node.kind in MODELS:
            properties["models"] = [
                {"name": name, "url": url, "directory": directory}
                for name, url, directory in MODELS[node.kind]
                if node.kind != "VAELoader" or name == node.given["vae_name"]
            ]
        height = 60 + 24 * max(len(sockets) - len(widgets), len(outputs(node.kind)))
        height += 26 * len(widgets) + (90 if "prompt" in node.given else 0)
        return {
            "id": node.number, "type": node.kind,
            "pos": [40 + 400 * node.column, 40 + 380 * node.row], "size": [340, height],
            "flags": {}, "order": node.number - 1, "mode": 0, "inputs": sockets,
            "outputs": [{"name": name, "type": type_, "links": []}
                        for name, type_ in outputs(node.kind)],
            "properties": properties, "widgets_values": widgets,
            **({"title": node.title} if node.title else {}),
        }  # fmt: skip


def inputs(kind: str, given: dict[str, Any]) -> list[tuple[str, str, Any, bool, list[Any]]]:
    """(name, type, default, is a widget, further widget values) of a node's inputs, in order."""
    table = tables.find(kind)
    if table is not None:
        return [row for item in table.inputs for row in _ours(item, given)]
    found = []
    for part in ("required", "optional"):
        for name in CORE[kind]["input_order"].get(part, ()):
            type_, options = (*CORE[kind]["input"][part][name], {})[:2]
            choices = type_ if isinstance(type_, list) else options.get("options", ())
            type_ = "COMBO" if isinstance(type_, list) else type_
            first = choices[0] if choices else None
            first = first["key"] if isinstance(first, dict) else first
            default = options.get("default", first)
            extras = ["fixed"] if options.get("control_after_generate") else []
            extras += ["image"] if options.get("image_upload") else []
            found.append((name, type_, default, type_ in WIDGET_TYPES, extras))
    return found


def _ours(item: tables.In, given: dict[str, Any]) -> list[tuple[str, str, Any, bool, list[Any]]]:
    if item.kind == "many":
        used = sum(name.startswith(f"{item.id}__") for name in given)
        count = min(used + 1, int(item.most or 0))  # one free socket is always shown
        names = [f"{item.id}.{item.item_id}{number}" for number in range(count)]
        return [(name, item.item, None, False, []) for name in names]
    if item.is_socket:
        return [(item.id, item.kind, None, False, [])]
    type_ = {"bool": "BOOLEAN"}.get(item.kind, item.kind.upper())
    default = CHECKPOINT if item.choices == "checkpoints" else item.default
    return [(item.id, type_, default, True, ["fixed"] if item.reroll else [])]


def outputs(kind: str) -> list[tuple[str, str]]:
    """(name, type) of a node's outputs."""
    table = tables.find(kind)
    if table is not None:
        return [(item.id, item.kind) for item in table.outputs]
    return list(zip(CORE[kind]["output_name"], CORE[kind]["output"], strict=True))


def display_name(kind: str) -> str:
    """What a node is called on the canvas."""
    table = tables.find(kind)
    return table.display_name if table is not None else CORE[kind]["display_name"]


PROMPT = (
    "A red fox trots through fresh snow at the edge of a birch forest, early morning light, breath "
    "in the cold air. Sound: paws in snow, a distant crow, light wind."
)


def finish(graph: Graph, model: Node, latent: Any, column: int) -> Node:
    """Our decoder and core's Save Video."""
    decode = graph.add("LowpeakDecode", column, model=model.out("model"), latent=latent)
    graph.add("SaveVideo", column + 1, video=decode.out("video"), filename_prefix="video/lowpeak")
    return decode


def text_to_video(name: str, title: str, note: str, **settings: Any) -> Graph:
    """Prompt to video in five nodes."""
    graph = Graph(name, title, note)
    model = graph.add("LowpeakLoadModel", 0)
    prompt = graph.add("LowpeakEncodePrompt", 0, 1, model=model.out("model"), prompt=PROMPT)
    sample = graph.add("LowpeakSample", 1, model=model.out("model"),
                       conditioning=prompt.out("conditioning"), **settings)  # fmt: skip
    finish(graph, model, sample.out("latent"), 2)
    return graph


def first_last_frame() -> Graph:
    """Two pictures and a prompt."""
    graph = Graph("first_and_last_frame", "First and last frame",
                  "The clip starts on the first picture and ends on the last. Either may stay "
                  "unplugged. Use the same size and length in Keyframes and Sample; the first "
                  "picture is stretched to the canvas, the last cropped to cover it.")  # fmt: skip
    size = {"width": 960, "height": 544, "seconds": 5.0}
    model = graph.add("LowpeakLoadModel", 0)
    first = graph.add("LoadImage", 0, 1, "First frame", image="example.png")
    last = graph.add("LoadImage", 0, 2, "Last frame", image="example.png")
    keys = graph.add("LowpeakKeyframes", 1, model=model.out("model"), prompt=PROMPT, **size,
                     first_frame=first.out("IMAGE"), last_frame=last.out("IMAGE"))  # fmt: skip
    sample = graph.add("LowpeakSample", 2, model=model.out("model"),
                       conditioning=keys.out("conditioning"), **size)  # fmt: skip
    finish(graph, model, sample.out("latent"), 3)
    return graph


def lora_stack() -> Graph:
    """Two LoRAs, one of them weak."""
    graph = Graph("lora_stack", "LoRA stack",
                  "Two LoRAs on one model. Their order does not matter. Each reports how many of "
                  "its tensors bind; one that binds only in part stops with the names unless "
                  "`allow_partial` is on. Strength 0 is exactly no LoRA.")  # fmt: skip
    model = graph.add("LowpeakLoadModel", 0)
    one = graph.add("LowpeakLoadLora", 1, model=model.out("model"), lora="style.safetensors")
    two = graph.add("LowpeakLoadLora", 1, 1, model=one.out("model"), lora="motion.safetensors",
                    strength=0.6)  # fmt: skip
    graph.add("PreviewAny", 2, 2, "Binding report", source=two.out("report"))
    prompt = graph.add("LowpeakEncodePrompt", 0, 1, model=two.out("model"), prompt=PROMPT)
    sample = graph.add("LowpeakSample", 2, model=two.out("model"),
                       conditioning=prompt.out("conditioning"),
                       width=960, height=544)  # fmt: skip
    finish(graph, two, sample.out("latent"), 3)
    return graph


def second_pass() -> Graph:
    """Refine from a file."""
    graph = Graph("second_pass_from_saved", "Second pass from saved latents",
                  "Run another graph once with `save_latents` on in Lowpeak Sample. This one takes "
                  "the newest first pass from `output/lowpeak` and does the second pass alone, so "
                  "other steps or another seed cost only that. Width and height are those of the "
                  "result.")  # fmt: skip
    model = graph.add("LowpeakLoadModel", 0)
    prompt = graph.add("LowpeakEncodePrompt", 0, 1, model=model.out("model"), prompt=PROMPT)
    refine = graph.add("LowpeakRefine", 1, model=model.out("model"),
                       conditioning=prompt.out("conditioning"), saved=tables.NEWEST)  # fmt: skip
    finish(graph, model, refine.out("latent"), 2)
    return graph


def small_card() -> Graph:
    """Plan, sample, report within 4 GiB."""
    graph = Graph("card_4_gib", "4 GiB card",
                  "`vram_gib` on Load Model is a limit for everything that follows. Lowpeak Plan "
                  "says before anything is loaded what each phase will take and why; Sample runs "
                  "exactly that plan, and Report draws what was measured beside it.")  # fmt: skip
    model = graph.add("LowpeakLoadModel", 0, vram_gib=4.0)
    prompt = graph.add("LowpeakEncodePrompt", 0, 1, model=model.out("model"), prompt=PROMPT)
    plan = graph.add("LowpeakPlan", 1, model=model.out("model"), width=960, height=544)
    graph.add("PreviewAny", 1, 2, "Forecast", source=plan.out("report"))
    sample = graph.add("LowpeakSample", 2, model=model.out("model"), width=960, height=544,
                       conditioning=prompt.out("conditioning"), plan=plan.out("plan"))  # fmt: skip
    decode = finish(graph, model, sample.out("latent"), 3)
    report = graph.add("LowpeakReport", 4, 1, run=decode.out("run"), plan=plan.out("plan"))
    graph.add("PreviewImage", 5, 1, "Memory picture", images=report.out("image"))
    return graph


def core_interop() -> Graph:
    """Core's encoder before our sampler, core's decoders after it."""
    graph = Graph("core_encoder_and_decoder", "With core's encoder and decoder",
                  "Core's MiniMax H3 nodes make the conditioning and the empty latent, Lowpeak "
                  "samples, core's VAE nodes decode. Any of the three can be swapped for ours. "
                  "The files of CLIPLoader and VAELoader go to `models/text_encoders` and "
                  "`models/vae`.")  # fmt: skip
    clip = graph.add("CLIPLoader", 0, clip_name=TEXT_ENCODER, type="minimax")
    video_vae = graph.add("VAELoader", 0, 1, "Video VAE", vae_name=VIDEO_VAE)
    audio_vae = graph.add("VAELoader", 0, 2, "Audio VAE", vae_name=AUDIO_VAE)
    encode = graph.add("MiniMaxH3ImageToVideo", 1, clip=clip.out("CLIP"), vae=video_vae.out("VAE"),
                       prompt=PROMPT, width=960, height=544, length=124)  # fmt: skip
    model = graph.add("LowpeakLoadModel", 1, 1)
    sample = graph.add("LowpeakSample", 2, model=model.out("model"),
                       conditioning=encode.out("positive"),
                       size_from=encode.out("LATENT"))  # fmt: skip
    frames = graph.add("VAEDecode", 3, samples=sample.out("latent"), vae=video_vae.out("VAE"))
    sound = graph.add("VAEDecodeAudio", 3, 1, samples=sample.out("latent"),
                      vae=audio_vae.out("VAE"))  # fmt: skip
    video = graph.add("CreateVideo", 4, images=frames.out("IMAGE"), audio=sound.out("AUDIO"),
                      fps=24.0)  # fmt: skip
    graph.add("SaveVideo", 5, video=video.out("VIDEO"), filename_prefix="video/lowpeak")
    return graph


def references() -> Graph:
    """A picture and a sound to follow."""
    graph = Graph("references", "References",
                  "Reference pictures, videos and sounds, named in the prompt as <Picture 1>, "
                  "<Video 1>, <Audio 1>. Needs a checkpoint that holds the reference transformer; "
                  "without it the encoder refuses by name.")  # fmt: skip
    model = graph.add("LowpeakLoadModel", 0)
    picture = graph.add("LoadImage", 0, 1, "Picture 1", image="example.png")
    encode = graph.add("LowpeakReferences", 1, model=model.out("model"), width=960, height=544,
                       prompt="<Picture 1> turns to the camera and smiles, soft window light.",
                       images__image_0=picture.out("IMAGE"))  # fmt: skip
    sample = graph.add("LowpeakSample", 2, model=model.out("model"), width=960, height=544,
                       conditioning=encode.out("conditioning"))  # fmt: skip
    finish(graph, model, sample.out("latent"), 3)
    return graph


def all_graphs() -> list[Graph]:
    """Every example."""
    return [
        text_to_video("text_to_video_light", "Text to video, light",
                      "The quickest way: 8 evaluations at half size, a latent upscale, 3 at full "
                      "size. Write the prompt, press Run. The Lowpeak tab in the sidebar shows "
                      "what it will take before it starts."),
        text_to_video("text_to_video_max", "Text to video, best quality",
                      "20 evaluations at full size and nothing scaled. About four times the "
                      "work of light.", quality="max"),
        first_last_frame(), lora_stack(), second_pass(), small_card(), core_interop(),
        references(),
    ]  # fmt: skip


def thumbnail(graph: Graph, path: Path) -> None:
    """A drawing of the graph itself: its nodes as boxes, its links as curves, its title."""
    from PIL import Image, ImageDraw, ImageFont

    size, nodes = (480, 270), graph.nodes
    picture = Image.new("RGB", size, (27, 28, 32))
    pen = ImageDraw.Draw(picture)
    columns = 1 + max(node.column for node in nodes)
    rows = 1 + max(node.row for node in nodes)
    wide, high = (size[0] - 40) / columns, (size[1] - 90) / rows
    boxes = {
        node.number: (20 + node.column * wide + 5, 65 + node.row * high + 5,
                      20 + (node.column + 1) * wide - 11, 65 + (node.row + 1) * high - 9)
        for node in nodes
    }  # fmt: skip
    for node in nodes:
        for value in node.given.values():
            if isinstance(value, tuple):
                left, right = boxes[value[0].number], boxes[node.number]
                start, end = (
                    (left[2], (left[1] + left[3]) / 2),
                    (right[0], (right[1] + right[3]) / 2),
                )
                pen.line((start, ((start[0] + end[0]) / 2, start[1]),
                          ((start[0] + end[0]) / 2, end[1]), end), (90, 93, 104), 2)  # fmt: skip
    for node in nodes:
        ours = tables.find(node.kind) is not None
        pen.rounded_rectangle(boxes[node.number], 5, (35, 36, 41),
                              (122, 162, 247) if ours else (110, 113, 124), 2)  # fmt: skip
        left, top, right, bottom = boxes[node.number]
        words = display_name(node.kind).removeprefix("Lowpeak ").split()
        lines = _filled(words, max(1, int((right - left - 8) / 5.5)))
        pen.multiline_text(((left + right) / 2, (top + bottom) / 2), "\n".join(lines),
                           (200, 202, 208), ImageFont.load_default(10), "mm", 2,
                           "center")  # fmt: skip
    pen.text((20, 20), graph.title, (231, 232, 234), ImageFont.load_default(22))
    picture.save(path, quality=82, optimize=True)


def _filled(words: list[str], most: int) -> list[str]:
    """Words in lines of at most `most` letters, as far as words allow."""
    lines = [words[0]]
    for word in words[1:]:
        if len(lines[-1]) + 1 + len(word) <= most:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def main() -> None:
    """Write every file."""
    (HERE / "api").mkdir(exist_ok=True)
    for graph in all_graphs():
        for folder, document in ((HERE, graph.ui()), (HERE / "api", graph.api())):
            text = json.dumps(document, indent=1, ensure_ascii=True)
            (folder / f"{graph.name}.json").write_text(text + "\n", encoding="utf-8")
        thumbnail(graph, HERE / f"{graph.name}.jpg")


if __name__ == "__main__":
    main()
