"""ModelFacts from headers: the bytes that a slot will hold, whatever the layout."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lowpeak.engine.checkpoint.index import open_checkpoint
from lowpeak.engine.checkpoint.toy import FORMATS, write_toy_checkpoint
from lowpeak.engine.facts import facts_of


@pytest.fixture(scope="module")
def toys(tmp_path_factory):
    top = tmp_path_factory.mktemp("toys")
    return {name: write_toy_checkpoint(top / name, format=name, blocks=2) for name in FORMATS}


@pytest.mark.parametrize("name", FORMATS)
def test_facts_count_the_bytes_of_a_block(toys, name) -> None:
    checkpoint = open_checkpoint(toys[name])
    facts = facts_of(checkpoint)
    tensors = {
        key: value
        for key, value in checkpoint.block_tensors(1).items()
        if not key.startswith("adaln_proj")
    }
    sizes = {key: value.numel() * value.element_size() for key, value in tensors.items()}
    assert facts.block_bytes == sum(sizes.values())
    half = sum(size for key, size in sizes.items() if key.startswith(("attn.", "norm1.")))
    assert facts.attention_half_bytes == half
    assert (facts.blocks, facts.weight_format) == (2, checkpoint.weight_format)
    config = checkpoint.config
    assert facts.adaln_row_bytes == 18 * config.hidden * 2
    for field in ("hidden", "heads", "head_dim", "ffn", "text_dim"):
        assert getattr(facts, field) == getattr(config, field)


def test_facts_read_no_tensor(toys, monkeypatch) -> None:
    from lowpeak.engine.checkpoint import header

    def no_reading(*_args: object) -> None:
        raise AssertionError("a tensor was read for the facts")

    monkeypatch.setattr(header, "_read_span", no_reading)
    for path in toys.values():
        checkpoint = open_checkpoint(path)
        facts = facts_of(replace(checkpoint), {"text_encoder_bytes": 7})
        assert facts.root_bytes > 0 and facts.text_encoder_bytes == 7
