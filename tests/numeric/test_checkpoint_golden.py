"""The golden model through every layout."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import torch

from lowpeak.engine.checkpoint.assemble import plain_state
from lowpeak.engine.checkpoint.edge_recipe import EdgeRecipe
from lowpeak.engine.checkpoint.header import write_tensors
from lowpeak.engine.checkpoint.index import open_checkpoint
from lowpeak.engine.checkpoint.names import block_shapes, branch_shapes
from lowpeak.engine.checkpoint.parts import Part
from lowpeak.engine.checkpoint.toy import FORMATS
from lowpeak.engine.checkpoint.writer import write_edge
from lowpeak.engine.model.config import ModelConfig
from lowpeak.engine.model.layout import build_layout
from lowpeak.engine.model.modulation import ScheduleCursor
from lowpeak.engine.model.plain import PlainModel

EDGE = {name: kind for name, kind in FORMATS.items() if kind != "plain"}


@dataclass(frozen=True)
class StateModel:
    """A state dictionary as a model to write."""

    config: ModelConfig
    state: dict[str, torch.Tensor] = field(repr=False)

    def parts(self, block):
        if block is None:
            root = {k: v for k, v in self.state.items() if not k.startswith("transformer_blocks.")}
            yield Part(made=root)
            return
        prefix = f"transformer_blocks.{block}."
        found = {k[len(prefix) :]: v for k, v in self.state.items() if k.startswith(prefix)}
        yield Part(made={name: found[name] for name in block_shapes(self.config, projection=True)})

    def projection_digest(self, block):
        return None


@pytest.mark.golden_files("h3_model_*.safetensors")
def test_golden_model_through_every_layout_parity(
    golden_path, load_golden, relative_error, tmp_path
) -> None:
    """Written, read and run again: exact in the plain layout, near in the quantised ones."""
    tensors, fixture = load_golden(golden_path)
    state = {name[6:]: value for name, value in tensors.items() if name.startswith("state/")}
    config = ModelConfig.from_json(fixture["config"], fixture["transform"])
    request = fixture["request"]
    layout = build_layout(
        latent_frames=request["T"], latent_height=request["LH"], latent_width=request["LW"],
        audio_latents=request["A"], text_tags=request["text_tags"], keyframes=request["anchors"],
    )  # fmt: skip
    times = layout.at(fixture["t_video"], fixture["t_audio"])
    rows = [tensors[f"in/{name}"] for name in ("video_rows", "audio_rows", "text")]
    moments = (tuple(times.distinct.tolist()),)
    write_plain(tmp_path / "openvdn", state, config)
    kinds = {"openvdn": "plain", **EDGE}
    bounds = {"openvdn": 1e-5, "edge-int8": 0.05, "edge-fp8": 0.2, "edge-fp8-rowwise": 0.2}
    for name, kind in kinds.items():
        folder = tmp_path / name
        if kind != "plain":
            write_edge(folder, StateModel(config, state), EdgeRecipe(kind, [moments], "golden"))
        checkpoint = open_checkpoint(folder)
        assert checkpoint.config == config
        tables = checkpoint.tables_for(moments)
        cursor = ScheduleCursor(tables.times)
        read = plain_state(checkpoint, torch.float32)

        def use(i, t, tables=tables, cursor=cursor):
            return cursor.table(tables.load_block(i), t.distinct)

        model = PlainModel(read, config, None if kind == "plain" else use)
        video, audio = model.forward(*rows, times, layout)
        found = max(
            relative_error(video, tensors["out/vdn_video"]),
            relative_error(audio, tensors["out/vdn_audio"]),
        )
        assert found <= bounds[name], name
        print(f"PARITY | {golden_path.stem} through {name} | recorded | {found:.1e}")


def write_plain(folder: Path, state, config: ModelConfig) -> None:
    """The OpenVDN layout without adapters: base names have no `.orig.`, the branch its own file."""
    branch = [f"transformer_blocks.{i}.{name}"
              for i in range(config.layers) for name in branch_shapes(config)]  # fmt: skip
    base = {k.replace(".orig.", "."): v for k, v in state.items() if k not in branch}
    write_tensors(folder / "h3-base/transformer/diffusion_pytorch_model.safetensors", base)
    (folder / "h3-base/transformer/config.json").write_text(json.dumps(config.as_json()))
    stage = folder / "stage-x"
    write_tensors(stage / "linear_branch/model.safetensors", {k: state[k] for k in branch})
    spec = {"hybrid": {"transform": config.vdn.as_json()}}
    (stage / "model_spec.json").write_text(json.dumps(spec))
