"""The ten nodes as plain data: ids, inputs, outputs, texts. No ComfyUI, no torch.

`schema.py` turns a table into a V3 schema; the locales, the help pages' tests and the workflow
generator read the same tables. Saved graphs store widget values by position, so a new widget goes
to the end of its node and none is ever moved or renamed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

CATEGORY = "Lowpeak"
MODEL, PLAN, RUN = "LOWPEAK_MODEL", "LOWPEAK_PLAN", "LOWPEAK_RUN"
QUALITIES = ("light", "medium", "high", "max")
PASSES = ("as quality says", "single", "two")
FROM_INPUT, NEWEST = "first_pass input", "newest"
MAX_SEED = 2**53 - 1


@dataclass(frozen=True)
class In:
    """One input. `kind`: int, float, string, bool, combo, many, or the name of a socket type.

    choices: options of a combo, or the name of a list that is made when the schema is asked for.
    many: a growing row of sockets of type `item`, at most `most`, named `{id}.{item_id}{n}`.
    """

    id: str
    kind: str
    tooltip: str
    default: Any = None
    least: float | None = None
    most: float | None = None
    step: float | None = None
    choices: Sequence[str] | str = ()
    optional: bool = False
    advanced: bool = False
    multiline: bool = False
    reroll: bool = False  # the frontend may change it after each run
    item: str = ""
    item_id: str = ""

    @property
    def is_socket(self) -> bool:
        """True for inputs that hold no widget."""
        return self.kind not in ("int", "float", "string", "bool", "combo")


@dataclass(frozen=True)
class Out:
    """One output."""

    id: str
    kind: str
    tooltip: str


@dataclass(frozen=True)
class NodeTable:
    """One node."""

    id: str
    display_name: str
    description: str
    inputs: tuple[In, ...]
    outputs: tuple[Out, ...]
    aliases: tuple[str, ...] = ()
    is_output: bool = False
    hidden: tuple[str, ...] = ("unique_id",)


def _model() -> In:
    return In("model", MODEL, "The model from Lowpeak Load Model, with its LoRAs.")


def _size(tail: str = "") -> tuple[In, ...]:
    return (
        In("width", "int", f"Width in pixels, a multiple of 32.{tail}", 1344, 256, 4096, 32),
        In("height", "int", f"Height in pixels, a multiple of 32.{tail}", 768, 256, 4096, 32),
        In("seconds", "float", "Length of the clip at 24 frames a second, rounded up to the "
           f"model's grid of 17n+5 frames. Trained on 5 to 15 seconds.{tail}", 5.0, 0.9, 60.0, 0.1),
    )  # fmt: skip


def _quality() -> tuple[In, ...]:
    return (
        In("quality", "combo", "light: 8 evaluations at half size and 3 at full size. medium 12, "
           "high 16, max 20 evaluations at full size.", "light", choices=QUALITIES),
        In("passes", "combo", "single: everything at full size. two: a first pass at half size, "
           "then a short second pass.", PASSES[0], choices=PASSES, advanced=True),
    )  # fmt: skip


def _steps() -> tuple[In, ...]:
    return (
        In("base_steps", "int", "Evaluations of the first (or only) pass. 0: as quality says.",
           0, 0, 32, 1, advanced=True),
        In("refine_steps", "int", "Evaluations of the second pass. 0: as quality says.",
           0, 0, 31, 1, advanced=True),
    )  # fmt: skip


def _seed() -> In:
    return In("seed", "int", "The same seed and request give the same latents on this machine, "
              "whatever the memory budget.", 0, 0, MAX_SEED, 1, reroll=True)  # fmt: skip


_CONDITIONING = In("conditioning", "CONDITIONING", "From a Lowpeak encoder, or from core's "
                   "MiniMax H3 nodes.")  # fmt: skip
_PROMPT = In("prompt", "string", "What happens, what is heard. Plain text; an empty prompt works.",
             "", multiline=True)  # fmt: skip
_RUN_OUT = Out("run", RUN, "Handle of this run for Lowpeak Report.")
_BUDGET = "0: what is free when the run starts. Never takes more than this."

LOAD_MODEL = NodeTable(
    "LowpeakLoadModel", "Lowpeak Load Model",
    "Chooses a MiniMax H3 VDN checkpoint and the memory it may use. Reads headers only; no weight "
    "is loaded before a node needs it.",
    (
        In("checkpoint", "combo", "A folder of models/lowpeak. Press R after adding one.",
           choices="checkpoints"),
        In("vram_gib", "float", f"VRAM budget in GiB. {_BUDGET}", 0.0, 0.0, 1024.0, 0.25,
           advanced=True),
        In("ram_gib", "float", f"RAM budget in GiB. {_BUDGET}", 0.0, 0.0, 4096.0, 0.5,
           advanced=True),
        In("keep_warm", "bool", "Keep the blocks in host memory after a run, so that the next one "
           "reads nothing. They leave when ComfyUI wants memory, with its 'free memory' button, "
           "and after 15 minutes.", False, optional=True, advanced=True),
    ),
    (Out("model", MODEL, "Handle of the checkpoint: paths and sizes, no tensors."),),
    ("minimax h3 loader", "vdn loader", "low vram video model"),
)  # fmt: skip

LOAD_LORA = NodeTable(
    "LowpeakLoadLora", "Lowpeak Load LoRA",
    "Adds one LoRA. Chain several; their order does not matter. Says how many tensors bind, and "
    "stops when some do not.",
    (
        _model(),
        In("lora", "combo", "A file of models/loras.", choices="loras"),
        In("strength", "float", "1 as trained, 0 is exactly no LoRA, negative inverts.",
           1.0, -4.0, 4.0, 0.05),
        In("allow_partial", "bool", "Run even if some tensors bind to nothing. The report names "
           "them.", False, advanced=True),
    ),
    (
        Out("model", MODEL, "The model with this LoRA added."),
        Out("report", "STRING", "How many tensors bound, and why others did not."),
    ),
    ("lora stack", "adapter", "h3 lora"),
)  # fmt: skip

ENCODE_PROMPT = NodeTable(
    "LowpeakEncodePrompt", "Lowpeak Encode Prompt",
    "Turns the prompt into conditioning with the streamed Qwen3-VL encoder. It leaves memory "
    "before sampling starts, and repeated prompts come from a cache.",
    (_model(), _PROMPT),
    (Out("conditioning", "CONDITIONING", "In core's form; core's H3 nodes take it too."),),
    ("clip text encode", "prompt", "qwen3-vl"),
)  # fmt: skip

KEYFRAMES = NodeTable(
    "LowpeakKeyframes", "Lowpeak Keyframes",
    "Prompt with a first frame, a last frame, or both. The first is stretched to the canvas, a "
    "last frame beside it is cropped to cover it.",
    (
        _model(), _PROMPT, *_size(" As in Lowpeak Sample."),
        In("first_frame", "IMAGE", "The clip starts here.", optional=True),
        In("last_frame", "IMAGE", "The clip ends here.", optional=True),
    ),
    (Out("conditioning", "CONDITIONING", "Prompt and keyframe latents in core's form."),),
    ("image to video", "first last frame", "i2v", "fl2v"),
)  # fmt: skip

REFERENCES = NodeTable(
    "LowpeakReferences", "Lowpeak References",
    "Prompt with reference pictures, videos and sounds. Name them in the prompt as <Picture 1>, "
    "<Video 1>, <Audio 1>. Needs a checkpoint with the reference transformer.",
    (
        _model(), _PROMPT, *_size(" As in Lowpeak Sample."),
        In("images", "many", "Up to nine reference pictures.", optional=True, most=9,
           item="IMAGE", item_id="image_"),
        In("videos", "many", "Up to three reference videos with their sound.", optional=True,
           most=3, item="VIDEO", item_id="video_"),
        In("sounds", "many", "Up to three reference sounds.", optional=True, most=3,
           item="AUDIO", item_id="sound_"),
    ),
    (Out("conditioning", "CONDITIONING", "Prompt and reference latents in core's form."),),
    ("reference to video", "subject reference", "r2v", "ref2v"),
)  # fmt: skip

PLAN_NODE = NodeTable(
    "LowpeakPlan", "Lowpeak Plan",
    "Says before anything is loaded whether the request fits, how long it takes and what limits "
    "it. Connect it to Lowpeak Sample to run exactly this plan.",
    (_model(), *_size(), *_quality(), *_steps()),
    (
        Out("plan", PLAN, "The request and its plan."),
        Out("report", "STRING", "Peaks and seconds of each phase, with reasons."),
    ),
    ("memory forecast", "vram estimate", "will it fit"),
)  # fmt: skip

SAMPLE = NodeTable(
    "LowpeakSample", "Lowpeak Sample",
    "Samples picture and sound together. Plans first: a request that does not fit is refused "
    "with a size that does, before anything is loaded.",
    (
        _model(), _CONDITIONING, _seed(),
        *_size(" Ignored when plan or size_from is connected."), *_quality(), *_steps(),
        In("save_latents", "bool", "Also write the latents of each pass to output/lowpeak, for a "
           "second pass later.", False, advanced=True),
        In("plan", PLAN, "Takes size, length and quality from here.", optional=True),
        In("size_from", "LATENT", "Takes size and length from this latent, for instance from "
           "core's Empty MiniMax H3 AV Latent.", optional=True),
    ),
    (
        Out("latent", "LATENT", "Picture and sound latents; Lowpeak Decode or core's VAE nodes "
            "decode them."),
        Out("first_pass", "LATENT", "Latents of the first pass; the same as latent when there was "
            "only one."),
        _RUN_OUT,
    ),
    ("ksampler", "text to video", "generate", "minimax h3 sampler"),
)  # fmt: skip

REFINE = NodeTable(
    "LowpeakRefine", "Lowpeak Refine",
    "The second pass alone: lifts first-pass latents to full size and refines them. Try other "
    "settings without repeating the first pass.",
    (
        _model(), _CONDITIONING,
        In("saved", "combo", "Where the first pass comes from: the input below, the newest saved "
           "latents, or a file of output/lowpeak.", FROM_INPUT, choices="saved_latents"),
        _seed(),
        In("width", "int", "Width of the result in pixels, a multiple of 32.", 1344, 256, 4096, 32),
        In("height", "int", "Height of the result in pixels, a multiple of 32.",
           768, 256, 4096, 32),
        In("refine_steps", "int", "Evaluations of the second pass. 0: the usual 3.",
           0, 0, 31, 1, advanced=True),
        In("save_latents", "bool", "Also write the result's latents to output/lowpeak.", False,
           advanced=True),
        In("first_pass", "LATENT", "Latents of a first pass, from Lowpeak Sample.", optional=True),
    ),
    (Out("latent", "LATENT", "Refined picture and sound latents."), _RUN_OUT),
    ("second pass", "latent upscale", "hires fix"),
)  # fmt: skip

DECODE = NodeTable(
    "LowpeakDecode", "Lowpeak Decode",
    "Decodes latents to a video with sound. Frames go to the file clip by clip, so memory does "
    "not grow with the length.",
    (
        _model(),
        In("latent", "LATENT", "From Lowpeak Sample, Lowpeak Refine, or a core sampler on an H3 "
           "latent."),
        In("with_sound", "bool", "Decode the sound and mux it in.", True, advanced=True),
    ),
    (
        Out("video", "VIDEO", "24 frames a second, H.264 with AAC sound; connect Save Video."),
        Out("audio", "AUDIO", "The sound alone, stereo at 32 kHz."),
        _RUN_OUT,
    ),
    ("vae decode", "decode video", "tiled decode"),
)  # fmt: skip

REPORT = NodeTable(
    "LowpeakReport", "Lowpeak Report",
    "Draws the memory picture of a plan or a finished run and gives its report as JSON, without "
    "prompt or paths.",
    (
        In("run", RUN, "A finished run: measured peaks beside the forecast.", optional=True),
        In("plan", PLAN, "A plan: forecast only.", optional=True),
    ),
    (
        Out("image", "IMAGE", "Peaks by phase, forecast and measured."),
        Out("report", "STRING", "The report as JSON."),
    ),
    ("memory report", "vram report", "measured peak"),
    is_output=True,
)  # fmt: skip

ALL = (LOAD_MODEL, LOAD_LORA, ENCODE_PROMPT, KEYFRAMES, REFERENCES, PLAN_NODE, SAMPLE, REFINE,
       DECODE, REPORT)  # fmt: skip


def find(node_id: str) -> NodeTable | None:
    """The table of that id, or None for a node of someone else."""
    return next((table for table in ALL if table.id == node_id), None)
