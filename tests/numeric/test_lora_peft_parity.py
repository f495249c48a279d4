"""LoKr, LoHa, DoRA and plain LoRA against PEFT's own layers, from the state it saves."""

from __future__ import annotations

import pytest
import torch
from safetensors.torch import save_file

from lowpeak.engine.lora.apply import merge_into
from lowpeak.engine.lora.loading import load_loras
from lowpeak.engine.lora.shapes import ModelShapes
from lowpeak.engine.request import LoraChoice

peft = pytest.importorskip("peft", reason="peft is missing (extra `dev`)")


def block() -> torch.nn.Module:
    """The linears of one tiny block under diffusers names."""
    root = torch.nn.Module()
    blocks = torch.nn.ModuleList([torch.nn.Module()])
    attn, ff = torch.nn.Module(), torch.nn.Module()
    attn.to_q = torch.nn.Linear(20, 48, bias=False)
    attn.to_out = torch.nn.ModuleList([torch.nn.Linear(48, 20, bias=False)])
    proj = torch.nn.Module()
    proj.proj = torch.nn.Linear(20, 56, bias=False)
    ff.net = torch.nn.ModuleList([proj, torch.nn.Identity(), torch.nn.Linear(28, 20, bias=False)])
    blocks[0].attn, blocks[0].ff = attn, ff
    root.transformer_blocks = blocks
    return root


TARGETS = ["to_q", "to_out.0", "proj", "net.2"]
CONFIGS = {
    "lora": lambda: peft.LoraConfig(r=4, lora_alpha=6, target_modules=TARGETS),
    "rslora": lambda: peft.LoraConfig(r=4, lora_alpha=6, use_rslora=True, target_modules=TARGETS),
    "dora": lambda: peft.LoraConfig(r=4, lora_alpha=6, use_dora=True, target_modules=TARGETS),
    "lokr": lambda: peft.LoKrConfig(r=2, alpha=7, decompose_factor=4, target_modules=TARGETS),
    "lokr, both decomposed": lambda: peft.LoKrConfig(
        r=2, alpha=7, decompose_both=True, decompose_factor=4, target_modules=TARGETS
    ),
    "lokr, whole matrices": lambda: peft.LoKrConfig(
        r=64, alpha=7, decompose_factor=4, target_modules=TARGETS
    ),
    "loha": lambda: peft.LoHaConfig(r=3, alpha=5, target_modules=TARGETS),
}


@pytest.mark.parametrize("kind", CONFIGS)
def test_peft_layers_merge_to_the_same_weights_parity(tmp_path, kind) -> None:
    torch.manual_seed(23)
    model = block()
    base = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    wrapped = peft.get_peft_model(model, CONFIGS[kind]())
    with torch.no_grad():  # adapters start as zero; every parameter must matter
        for name, parameter in wrapped.named_parameters():
            if parameter.requires_grad:
                value = torch.randn(parameter.shape)
                parameter.copy_(value.abs() + 0.5 if "magnitude" in name else value)
    wrapped.save_pretrained(tmp_path)
    state = peft.get_peft_model_state_dict(wrapped)
    shapes = ModelShapes.from_parameters({n: tuple(t.shape) for n, t in base.items()})
    beside = load_loras([LoraChoice(str(tmp_path / "adapter_model.safetensors"))], shapes)
    merged = wrapped.merge_and_unload().state_dict()
    worst = 0.0
    for name, tensor in base.items():
        ours = merge_into(tensor, beside.differences[name])
        assert float((merged[name] - tensor).abs().max()) > 0.1
        worst = max(worst, float((ours - merged[name]).abs().max() / merged[name].abs().max()))
    print(f"PARITY | {kind} layers merged | peft {peft.__version__} | {worst:.1e}")
    assert worst <= 1e-6
    assert beside.reports[0].complete and beside.reports[0].bound_tensors == len(state)
    # Away from its configuration the scale is 1 and the report says so.
    alone = tmp_path / "alone.safetensors"
    save_file({n: t.contiguous() for n, t in state.items()}, alone)
    report = load_loras([LoraChoice(str(alone))], shapes).reports[0]
    assert report.scale_source == "alpha equals rank"
