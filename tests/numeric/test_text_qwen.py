"""Our streamed Qwen3-VL against transformers' at a miniature size, text and pictures."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from text_parts import CONFIG, LAYERS, random_model, settings, write_folder, write_pair
from torch import Tensor

from lowpeak.engine.planner.types import Placement
from lowpeak.engine.text import qwen as module
from lowpeak.engine.text import qwen_language, vision
from lowpeak.engine.text.encoder import Shown, TextEncoder
from lowpeak.engine.text.qwen import QwenTextEncoder, open_qwen_encoder
from lowpeak.engine.text.tokens import PromptTokens
from lowpeak.engine.text.vision import cut_patches, fit_size

TAKEN = LAYERS - 2  # hidden_states[TAKEN]: neither the last layer, nor one that a tap is added to
PROMPT = "a red fox runs; 日本語 🦊"
TOLERANCE = 1e-5


def relative(a: Tensor, b: Tensor) -> float:
    return float((a - b).abs().max() / b.abs().max())


def picture(height_px: int, width_px: int, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, 256, (height_px, width_px, 3), generator=generator, dtype=torch.uint8)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_folder(tmp_path_factory.mktemp("qwen"), random_model())


@pytest.fixture(scope="module")
def oracle() -> torch.nn.Module:
    from transformers.models.qwen3_vl.configuration_qwen3_vl import Qwen3VLConfig
    from transformers.models.qwen3_vl.modeling_qwen3_vl import Qwen3VLModel

    found = settings()
    model = Qwen3VLModel(Qwen3VLConfig(**{k: v for k, v in found.items() if k != "model_type"}))
    tensors = {
        name if name.startswith("visual.") else f"language_model.{name}": value
        for name, value in random_model().items()
    }
    missing = model.load_state_dict(tensors, strict=False)
    assert missing.missing_keys == ["language_model.norm.weight"] and not missing.unexpected_keys
    return model.eval()


@pytest.fixture
def encoder(folder: Path) -> Iterator[QwenTextEncoder]:
    found = open_qwen_encoder(folder, "cpu", layers=TAKEN)
    yield found
    found.close()


def hidden_state(oracle: torch.nn.Module, folder: Path, images: list[Tensor]) -> Tensor:
    assert CONFIG.vision is not None
    cut = [cut_patches(image, CONFIG.vision) for image in images]
    tokens = PromptTokens.open(folder / "tokenizer.json", vocab=CONFIG.text.vocab)
    rows = tokens.rows(PROMPT, [p.rows * p.columns // CONFIG.vision.cell for p in cut])
    ids = torch.tensor([rows.ids])
    seen: dict[str, Tensor] = {}
    if images:
        seen["pixel_values"] = torch.cat([patches.pixels for patches in cut])
        seen["image_grid_thw"] = torch.tensor([[1, p.rows, p.columns] for p in cut])
        seen["mm_token_type_ids"] = (ids == settings()["image_token_id"]).int()
    with torch.no_grad():
        found = oracle(
            input_ids=ids,
            attention_mask=torch.ones_like(ids),
            use_cache=False,
            output_hidden_states=True,
            **seen,
        )
    return found.hidden_states[TAKEN][0]


CASES = {
    "text": [],
    "one picture": [picture(32, 48, 1)],
    "two pictures": [picture(64, 24, 2), picture(80, 48, 3)],
}


@pytest.mark.parametrize("case", CASES)
def test_parity_with_transformers(
    encoder: QwenTextEncoder, oracle: torch.nn.Module, folder: Path, case: str
) -> None:
    found = encoder.encode(PROMPT, images=CASES[case])
    expected = hidden_state(oracle, folder, CASES[case])
    assert found.embeds.shape == expected.shape and found.embeds.dtype == torch.float32
    error = relative(found.embeds, expected)
    print(f"PARITY | text encoder, {case} | transformers hidden_states[L] | {error:.1e}")
    assert error <= TOLERANCE


def test_parity_with_transformers_for_a_video_in_moments(
    encoder: QwenTextEncoder, oracle: torch.nn.Module, folder: Path
) -> None:
    """Labels, a picture, then two moments of three frames; the last frame fills the second."""
    assert CONFIG.vision is not None
    still = picture(32, 48, 1)
    clip = torch.stack([picture(40, 24, seed) for seed in (5, 6, 7)])
    labels = ("<Audio 1>: ", "<Picture 1>: ", "<Video 1>: ", "<0.2 seconds>", "<1.0 seconds>")
    shown = [
        Shown(labels[0]), Shown(labels[1], still[None]), Shown(labels[2]),
        Shown(labels[3], clip[:2], 3), Shown(labels[4], clip[2:], 3),
    ]  # fmt: skip
    found = encoder.encode(PROMPT, shown=shown)

    cut = cut_patches(still, CONFIG.vision)
    moments = [cut_patches(part, CONFIG.vision, of_frames=3) for part in (clip[:2], clip[2:])]
    counts = [0, cut.rows * cut.columns // 4, 0, *(m.rows * m.columns // 4 for m in moments)]
    tokens = PromptTokens.open(folder / "tokenizer.json", vocab=CONFIG.text.vocab)
    rows = tokens.rows(PROMPT, shown=list(zip(labels, counts, strict=True)))
    ids, kinds = list(rows.ids), [0] * len(rows.ids)
    video = settings()["image_token_id"] + 2  # any token that the model's config calls the video's
    for place, (first, count) in enumerate(rows.pictures):
        kinds[first : first + count] = [1 if place == 0 else 2] * count
        if place:
            ids[first : first + count] = [video] * count
    oracle.config.video_token_id = video
    with torch.no_grad():
        expected = oracle(
            input_ids=torch.tensor([ids]),
            attention_mask=torch.ones(1, len(ids), dtype=torch.int64),
            use_cache=False,
            output_hidden_states=True,
            mm_token_type_ids=torch.tensor([kinds]),
            pixel_values=cut.pixels,
            image_grid_thw=torch.tensor([[1, cut.rows, cut.columns]]),
            pixel_values_videos=torch.cat([m.pixels for m in moments]),
            video_grid_thw=torch.tensor([[2, moments[0].rows, moments[0].columns]]),
        ).hidden_states[TAKEN][0]
    error = relative(found.embeds, expected)
    print(f"PARITY | text encoder, picture and video | transformers hidden_states[L] | {error:.1e}")
    assert error <= TOLERANCE
    assert found.tags.eq(0).sum() == sum(counts) + 2 * 3  # each block with its two borders


def test_a_video_shares_one_budget_of_pixels() -> None:
    assert fit_size(768, 1344, 32, of_frames=8) == (768, 1344)
    from transformers.models.qwen3_vl.video_processing_qwen3_vl import smart_resize

    for frames, height, width in ((31, 768, 1344), (3, 768, 1344), (2, 32, 32), (30, 1120, 960)):
        wanted = smart_resize(
            frames, height, width, 2, 32, vision.MIN_VIDEO_PIXELS, vision.MAX_VIDEO_PIXELS
        )
        assert fit_size(height, width, 32, of_frames=frames) == wanted


def test_parity_of_patches_with_transformers_image_processor() -> None:
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

    image = picture(96, 64, 4)
    processor = Qwen2VLImageProcessorPil(
        patch_size=16, image_mean=[0.5] * 3, image_std=[0.5] * 3, do_resize=False
    )
    expected = processor(images=[image.numpy()], return_tensors="pt")
    config = vision.VisionConfig(64, 80, 4, 4, 16, 2, 2, 64, 6, (0, 2))
    found = cut_patches(image, config)
    assert expected["image_grid_thw"].tolist() == [[1, found.rows, found.columns]]
    error = relative(found.pixels, expected["pixel_values"])
    print(f"PARITY | picture patches | transformers image processor | {error:.1e}")
    assert error <= TOLERANCE


def test_parity_of_tokens_from_vocabulary_and_merges(tmp_path: Path) -> None:
    from transformers.models.qwen2.tokenization_qwen2 import Qwen2Tokenizer

    file = write_pair(tmp_path)
    published = Qwen2Tokenizer(vocab=str(file), merges=str(tmp_path / "merges.txt"))
    ours = PromptTokens.open(file, vocab=1000)
    prompt = "a fox's fox  fox\n\n caf\u00e9 cafe\u0301 123 \u65e5\u672c; It'S  "
    expected = published(prompt, add_special_tokens=False)["input_ids"]
    found = ours.rows(prompt).ids
    wrong = sum(a != b for a, b in zip(found, expected, strict=False))
    print(f"PARITY | tokens of vocab.json and merges.txt | transformers Qwen2 | {wrong:.1e}")
    assert found == tuple(expected)
    assert len(expected) < len(prompt.encode()), "no merge was used"


def test_long_prompts_in_chunks_are_the_same_encoding(
    encoder: QwenTextEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = picture(64, 48, 5)
    whole = encoder.encode(PROMPT * 3, images=[image]).embeds
    monkeypatch.setattr(qwen_language, "QUERY_ROWS", 16)
    monkeypatch.setattr(qwen_language, "FFN_ROWS", 7)
    monkeypatch.setattr(vision, "QUERY_ROWS", 5)
    assert relative(encoder.encode(PROMPT * 3, images=[image]).embeds, whole) <= TOLERANCE


def test_a_query_chunk_never_sees_the_whole_square() -> None:
    sizes: list[int] = []

    def spy(q: Tensor, k: Tensor, v: Tensor, *, attn_mask: Tensor) -> Tensor:
        sizes.append(attn_mask.numel())
        return torch.zeros_like(q)

    q, k = torch.zeros(16_384, 8, 2), torch.zeros(16_384, 2, 2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(qwen_language.functional, "scaled_dot_product_attention", spy)
        qwen_language.causal_attention(q, k, k)
    assert max(sizes) <= qwen_language.MASK_ELEMENTS


@pytest.mark.parametrize(
    "placement",
    [
        Placement(disk_blocks=TAKEN, transfer_slots=1),
        Placement(disk_blocks=TAKEN, half_slots=True),
        Placement(resident_blocks=1, pinned_blocks=1, disk_blocks=TAKEN - 2),
        Placement(resident_blocks=TAKEN, transfer_slots=0),
    ],
    ids=["one slot", "halves", "mixed", "resident"],
)
def test_a_placement_changes_no_bit(
    folder: Path, encoder: QwenTextEncoder, placement: Placement
) -> None:
    other = open_qwen_encoder(folder, "cpu", placement, layers=TAKEN)
    image = picture(32, 32, 6)
    first, again = (other.encode(PROMPT, images=[image]).embeds for _ in range(2))
    other.close()
    other.close()
    assert torch.equal(first, encoder.encode(PROMPT, images=[image]).embeds)
    assert torch.equal(first, again)


def test_a_prompt_after_a_failed_one_is_encoded(
    encoder: QwenTextEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = encoder.encode(PROMPT).embeds
    calls: list[int] = []

    def fail(x: Tensor, *_: object) -> Tensor:
        calls.append(1)
        if len(calls) == 2:
            raise RuntimeError("out of memory")
        return x

    with monkeypatch.context() as patch:
        patch.setattr(module, "feed_forward_half", fail)
        with pytest.raises(RuntimeError, match="out of memory"):
            encoder.encode(PROMPT)
    assert torch.equal(encoder.encode(PROMPT).embeds, expected)


def test_pictures_come_first_and_whole_vision_blocks_carry_the_vision_tag(
    encoder: QwenTextEncoder,
) -> None:
    assert isinstance(encoder, TextEncoder)
    label = len("<Picture 1>: ")
    found = encoder.encode("fox", images=[picture(64, 56, 7), picture(48, 80, 8)])
    first, second = 8 * 7, 6 * 10
    assert found.tags.tolist() == (
        [1] * label + [0] * (first + 2) + [1] * label + [0] * (second + 2) + [1] * 3
    )
    assert bool((found.embeds[label + 1 : label + 1 + first].std(0) > 0).all())


def test_an_empty_prompt_is_one_row(encoder: QwenTextEncoder) -> None:
    found = encoder.encode("")
    assert found.embeds.shape == (1, CONFIG.text.hidden) and found.tags.tolist() == [1]
