"""The phases beside the transformer: text encoding, latent upscaling, decoding.

The text encoder and the video decoder are stacks of equal blocks that stream through the device
like the transformer. A prompt passes the encoder once, so the disk decides. The decoder takes a
group of tiles through its blocks together; how many is the plan's to choose. Formulas: model sheet
d.7, e.2, e.4, e.5, f. Each function gives a PhasePlan or the shortages that stand against it.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import Shortage
from ..geometry import Geometry
from .calibration import Calibration
from .cost import FP32, RAM, SECONDS, VRAM, term, total
from .passes import DecodeWork, upscaler_workspace_bytes
from .search import TIE, Budget
from .types import Limit, ModelFacts, PhasePlan, Placement, Term
from .workload import BF16

_FP16 = 2
_VAE_ROOT_BYTES = 30_000_000  # input and output projections, norms


@dataclass(frozen=True)
class Machine:
    """What every phase is priced with."""

    facts: ModelFacts
    calibration: Calibration
    budget: Budget


def _check(phase: str, vram: int, ram: int, budget: Budget) -> list[Shortage]:
    short = []
    if vram > budget.vram_bytes:
        short.append(Shortage("vram", phase, vram, budget.vram_bytes))
    if ram > budget.ram_bytes:
        short.append(Shortage("ram", phase, ram, budget.ram_bytes))
    return short


def _nonzero(terms: list[Term]) -> tuple[Term, ...]:
    return tuple(item for item in terms if item.value)


def _base(calibration: Calibration) -> list[Term]:
    rows = calibration
    return [
        term("context and libraries", rows["memory.context"], VRAM, rows.source("memory.context")),
        term(
            "interpreter and libraries",
            rows["memory.interpreter"],
            RAM,
            rows.source("memory.interpreter"),
        ),
    ]


def plan_encode(machine: Machine, text_rows: int, pictures: int = 0) -> PhasePlan | list[Shortage]:
    """Text encoding: every layer is read once from disk and passes through two slots."""
    facts, rows, budget = machine.facts, machine.calibration, machine.budget
    layer, layers = facts.text_layer_bytes, facts.text_encoder_layers
    staging = int(rows["memory.staging_blocks"]) * layer
    embedded = text_rows * facts.text_dim * BF16
    # The rows of the calibration are those of the published encoder; a smaller one takes its share.
    published = ModelFacts()
    row_share = (8 * facts.text_dim + 3 * facts.text_ffn) / (
        8 * published.text_dim + 3 * published.text_ffn
    )
    matrix_share = facts.text_dim * facts.text_ffn / (published.text_dim * published.text_ffn)
    working = [
        term("encoder rows", text_rows * rows["memory.encoder_row"] * row_share, VRAM),
        term(
            "keyframe encoder",
            rows["memory.keyframe_encoder"] if pictures else 0,
            VRAM,
            rows.source("memory.keyframe_encoder"),
        ),
        term("dequantised matrix", rows["memory.encoder_dequantise"] * matrix_share, VRAM),
        *_base(rows),
        term("staging ring", staging, RAM),
        term("embedded prompt", 4 * embedded, RAM),
        term("encoder's root and tokenizer", rows["memory.encoder_host"] * row_share, RAM),
    ]
    ram = total(working, RAM)
    slots = 2 if total(working, VRAM) + 2 * layer <= budget.vram_bytes else 1
    terms = [*working, term("transfer slots", slots * layer, VRAM)]
    vram = total(terms, VRAM)
    if short := _check("encode", vram, ram, budget):
        return short
    read = layers * layer / (rows["rates.disk"] * rows["rates.encoder"])
    link = layers * layer / rows["rates.link"]
    parameters = 2 * layers * layer  # about half a byte each
    compute = 2 * parameters * text_rows / rows["rates.gemm_bf16"]
    compute += layers * layer * 5 / rows["rates.copy"]  # read fp4, write bf16
    work = max(read, link, compute) if slots == 2 else max(read, link + compute)
    start = rows["rates.worker_start"]
    terms += [
        term("worker start", start, SECONDS, rows.source("rates.worker_start")),
        term("layers", work, SECONDS, rows.source("rates.disk")),
    ]
    limited: Limit = "disk" if work == read else "link" if work == link else "compute"
    placement = Placement(disk_blocks=layers, transfer_slots=slots)
    return PhasePlan("encode", vram, ram, start + work, 1, work, limited, placement, tuple(terms))


def plan_upscale(
    machine: Machine, low: Geometry, lifted: Geometry, kept_ram_bytes: int
) -> PhasePlan | list[Shortage]:
    """Latent upscaling between two passes, in the sampling worker; its blocks leave the device."""
    facts, rows = machine.facts, machine.calibration
    pixels = [g.latent_frames * g.latent_height * g.latent_width for g in (low, lifted)]
    workspace = upscaler_workspace_bytes(lifted, facts.upscaler_channels)
    terms = [
        term("context and libraries", rows["memory.context"], VRAM, rows.source("memory.context")),
        term(
            "upscaler planes, tile and block",
            rows["memory.upscaler_slack"] * workspace,
            VRAM,
            rows.source("memory.upscaler_slack"),
        ),
        term("sampling worker's host memory", kept_ram_bytes, RAM, "first pass"),
    ]
    vram = total(terms, VRAM)
    if short := _check("upscale", vram, kept_ram_bytes, machine.budget):
        return short
    taps = 27 * 2 * facts.upscaler_channels**2 * 2  # two 3x3x3 convolutions a block
    compute = facts.upscaler_layers * taps * sum(pixels) / (0.5 * rows["rates.gemm_bf16"])
    read = facts.upscaler_bytes / rows["rates.disk"]
    terms += [term("convolutions", compute, SECONDS), term("read weights", read, SECONDS)]
    limited: Limit = "disk" if read > compute else "compute"
    seconds = compute + read
    return PhasePlan(
        "upscale", vram, kept_ram_bytes, seconds, 1, seconds, limited, None, tuple(terms)
    )


class DecodeSearch:
    """Prices every grouping and residency of the video decoder."""

    def __init__(self, machine: Machine, geometry: Geometry) -> None:
        self.machine, self.work = machine, DecodeWork(geometry)
        facts, rows = machine.facts, machine.calibration
        hidden, ffn, tokens = facts.vae_hidden, facts.vae_ffn, self.work.tile_tokens
        linear = 2 * tokens * (4 * hidden**2 + 3 * hidden * ffn)
        attention = 4 * tokens**2 * hidden
        moved = tokens * hidden * 24  # fp32 residual twice, norms, q/k/v
        self.tile_seconds = (
            linear / rows["rates.gemm_bf16"]
            + attention / rows["rates.attention"]
            + moved / rows["rates.copy"]
        ) / (rows["rates.sustained"] * rows["rates.decoder"])
        self.tiles, self.clips = self.work.tiles, self.work.clips
        self.block = facts.vae_block_bytes
        self.upload = self.block / rows["rates.link"]
        self.read = self.block / rows["rates.disk"]
        self.staging = int(rows["memory.staging_blocks"]) * self.block

    def whole_clips(self) -> list[int]:
        """Groups of whole clips, in tiles."""
        counts = sorted({1, 2, 3, 4, 6, 8, self.clips})
        return [self.tiles * count for count in counts if count <= self.clips]

    def fixed_terms(self, group: int) -> list[Term]:
        """All but weights, for one group of tiles. Audio is decoded after, and is smaller."""
        facts, rows = self.machine.facts, self.machine.calibration
        video, tokens = self.work.geometry, self.work.tile_tokens
        frame = video.width_px * video.height_px * 3
        batch = min(rows["memory.decoder_batch_tiles"], self.tiles) * tokens
        hidden_share = facts.vae_hidden / ModelFacts().vae_hidden
        shaped = [
            term("decoder root", _VAE_ROOT_BYTES, VRAM),
            term("tile rows", group * tokens * facts.vae_hidden * FP32, VRAM),
            term(
                "tile batch",
                batch * rows["memory.decoder_batch_row"] * hidden_share,
                VRAM,
                rows.source("memory.decoder_batch_row"),
            ),
            term(
                "frames being put together",
                rows["memory.decoder_frames"] * frame * FP32,
                VRAM,
                rows.source("memory.decoder_frames"),
            ),
        ]
        return [
            *_base(rows),
            *shaped,
            term(
                "decoder's allocator slack",
                (rows["memory.decoder_slack"] - 1) * total(shaped, VRAM),
                VRAM,
                rows.source("memory.decoder_slack"),
            ),
            term("frames for the encoder", 2 * 28 * frame, RAM),
        ]

    def seconds(self, group: int, resident: int, disk: int, slots: int) -> tuple[float, Limit]:
        """All groups through all blocks, and what limits it."""
        blocks = self.machine.facts.vae_decoder_blocks
        tiles = self.tiles * self.clips
        groups = -(-tiles // group)
        compute = tiles * blocks * self.tile_seconds
        link = groups * (blocks - resident) * self.upload
        # The first group finds nothing in memory; later ones read only what is not kept.
        read = (blocks + (groups - 1) * disk) * self.read
        busy = compute + link if slots == 1 else max(compute, link)
        limited: Limit = "disk" if read > busy else "compute" if compute >= link else "link"
        return max(busy, read), limited

    def options(self, groups: list[int]) -> list[tuple[float, int, int, Placement, Limit]]:
        """(seconds, device bytes, host bytes, placement, limit) of every fitting choice."""
        blocks, budget = self.machine.facts.vae_decoder_blocks, self.machine.budget
        found = []
        for group in groups:
            fixed = self.fixed_terms(group)
            vram, ram = total(fixed, VRAM), total(fixed, RAM)
            room = min(budget.ram_bytes, ram + budget.pin_bytes) - ram
            for slots in (1, 2, 0):
                for resident in range(blocks) if slots else (blocks,):
                    need = vram + (resident + slots) * self.block
                    if need > budget.vram_bytes:
                        break
                    rest = blocks - resident
                    pinned = min(rest, max(0, room) // self.block)
                    if pinned < rest:
                        pinned = min(rest - 1, (room - self.staging) // self.block)
                        if pinned < 0:
                            continue
                    disk = rest - pinned
                    used = ram + pinned * self.block + (self.staging if disk else 0)
                    if used > budget.ram_bytes:
                        continue
                    seconds, limited = self.seconds(group, resident, disk, slots)
                    placement = Placement(
                        resident_blocks=resident,
                        pinned_blocks=pinned,
                        disk_blocks=disk,
                        transfer_slots=slots,
                        tiles_per_group=group,
                    )
                    found.append((seconds, need, used, placement, limited))
                    if limited == "compute" and slots == 2 and not disk:
                        break  # more resident blocks would be larger and no faster
        return found

    def least(self) -> tuple[int, int]:
        """The smallest device and host needs."""
        fixed = self.fixed_terms(self.tiles)
        return total(fixed, VRAM) + self.block, total(fixed, RAM) + self.staging

    def plan(self) -> PhasePlan | list[Shortage]:
        """The best grouping and residency, or the shortages."""
        rows = self.machine.calibration
        options = self.options(self.whole_clips())
        if not options:
            return _check("decode", *self.least(), self.machine.budget) or [
                Shortage("ram", "decode", self.least()[1], self.machine.budget.ram_bytes)
            ]
        best = min(option[0] for option in options)
        near = [option for option in options if option[0] <= TIE * best]
        stack, vram, ram, placement, limited = min(near, key=lambda o: (o[1], o[0], o[2]))
        video = self.work.geometry
        encode = video.frames * video.width_px * video.height_px / rows["rates.video_encode"]
        audio = rows["rates.audio_decode"] * video.seconds / 10
        start = rows["rates.worker_start"]
        tail = max(0.0, encode - stack)
        terms = [
            *self.fixed_terms(placement.tiles_per_group),
            term("resident blocks", placement.resident_blocks * self.block, VRAM),
            term("transfer slots", placement.transfer_slots * self.block, VRAM),
            term("pinned blocks", placement.pinned_blocks * self.block, RAM),
            term("staging ring", self.staging if placement.disk_blocks else 0, RAM),
            term("worker start", start, SECONDS, rows.source("rates.worker_start")),
            term("tiles", stack, SECONDS),
            term("video encoder's rest", tail, SECONDS, rows.source("rates.video_encode")),
            term("audio", audio, SECONDS, rows.source("rates.audio_decode")),
        ]
        audio_peak = int(rows["memory.context"] + rows["memory.audio_decoder"])
        terms.append(term("audio decoder beyond the video's", max(0, audio_peak - vram), VRAM))
        seconds = start + stack + tail + audio
        return PhasePlan(
            "decode",
            max(vram, audio_peak),
            ram,
            seconds,
            self.clips,
            stack / self.clips,
            limited,
            placement,
            _nonzero(terms),
        )
