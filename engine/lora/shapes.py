"""The model as an adapter sees it: parameter names and sizes, from headers or a configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..model.config import ModelConfig
from .modules import BRANCH_TAILS, is_model_name, with_orig

_WEIGHT_SUFFIXES = (".weight_fp8", ".weight_int8")


@dataclass(frozen=True)
class ModelShapes:
    """Parameters `X.weight` and `X.bias` of a transformer, in its own names, with [out, in] sizes.

    adaln_tables: the checkpoint holds AdaLN tables in place of (or beside) the projections.
    names_only: no checkpoint is at hand; names are checked, sizes only against each other.
    """

    parameters: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    head_dim: int = 128
    adaln_tables: bool = False
    names_only: bool = False

    @classmethod
    def unknown(cls) -> ModelShapes:
        """No checkpoint: names are checked against the model's vocabulary."""
        return cls(names_only=True)

    @classmethod
    def from_parameters(
        cls, shapes: Mapping[str, tuple[int, ...]], *, adaln_tables: bool | None = None
    ) -> ModelShapes:
        """From tensor names and shapes of a checkpoint, any of its weight formats.

        Quantised weights (`X.weight_fp8`, `X.weight_int8`) and bare linear names count as
        `X.weight`. adaln_tables: None takes it from whether a block's projection is missing.
        """
        parameters: dict[str, tuple[int, ...]] = {}
        for name, shape in shapes.items():
            for suffix in _WEIGHT_SUFFIXES:
                name = name.removesuffix(suffix) + ".weight" if name.endswith(suffix) else name
            parameters[name.replace(".original.", ".")] = tuple(shape)
        if adaln_tables is None:
            blocks = any(name.startswith("transformer_blocks.") for name in parameters)
            adaln_tables = blocks and not any(
                name.endswith("adaln_proj.linear.weight") for name in parameters
            )
        width = next((s[0] for n, s in parameters.items() if n.endswith(".norm_q.weight")), 128)
        return cls(parameters, width, adaln_tables)

    @classmethod
    def from_config(cls, config: ModelConfig, *, adaln_projections: bool = True) -> ModelShapes:
        """From hyper-parameters. adaln_projections: False for checkpoints with tables only."""
        inner, hidden = config.inner, config.hidden
        attention = {
            "to_q": (inner, hidden), "to_k": (inner, hidden), "to_v": (inner, hidden),
            "to_out.0": (hidden, inner),
            "norm_q": (config.head_dim,), "norm_k": (config.head_dim,),
        }  # fmt: skip
        rest = {
            "ff.net.0.proj": (2 * config.ffn, hidden), "ff.net.2": (hidden, config.ffn),
            "norm1": (hidden,), "norm2": (hidden,),
        }  # fmt: skip
        found: dict[str, tuple[int, ...]] = {}
        for index in range(config.layers):
            block = f"transformer_blocks.{index}."
            for name, shape in attention.items():
                module = f"{block}attn.{name}"
                found[f"{with_orig(module) if config.vdn else module}.weight"] = shape
            found |= {f"{block}{name}.weight": shape for name, shape in rest.items()}
            if config.vdn:
                found |= {block + name: shape for name, shape in _branch(config).items()}
            if adaln_projections:
                found[f"{block}adaln_proj.linear.weight"] = (18 * hidden, config.time_dim)
                found[f"{block}adaln_proj.linear.bias"] = (18 * hidden,)
        for index in range(config.refiner_layers):
            block = f"token_refiner.refiner_blocks.{index}."
            found |= {f"{block}attn.{name}.weight": shape for name, shape in attention.items()}
            found |= {f"{block}{name}.weight": shape for name, shape in rest.items()}
        found |= _root(config)
        return cls(found, config.head_dim, not adaln_projections)

    def find(self, module: str, kind: str) -> str | None:
        """The parameter of a plain diffusers module; kind is 'weight' or 'bias'. None: no such."""
        if self.names_only:
            return f"{module}.{kind}" if is_model_name(module) else None
        for name in (with_orig(module), module):
            if f"{name}.{kind}" in self.parameters:
                return f"{name}.{kind}"
        return None

    def has_module(self, module: str) -> bool:
        """Whether the model has a module of that name, whatever its parameters."""
        return self.find(module, "weight") is not None or self.find(module, "bias") is not None

    @property
    def time_width(self) -> int | None:
        """Input width of the AdaLN projections, also when only tables are here."""
        for name in ("norm_out.linear.weight", "time_embedder.linear_2.weight"):
            shape = self.parameters.get(name)
            if shape is not None:
                return shape[1] if name.startswith("norm_out") else shape[0]
        return None

    @property
    def hidden_width(self) -> int | None:
        """C, from the output norm."""
        shape = self.parameters.get("norm_out.norm.weight")
        return shape[0] if shape else None

    def expected(self, parameter: str) -> tuple[int, ...] | None:
        """The size of a parameter; None when it is not known (names only)."""
        return self.parameters.get(parameter)

    def adaln_by_table(self, module: str) -> tuple[int, ...] | None:
        """[out, in] that an AdaLN projection would have if it were here; None for other modules."""
        if not self.adaln_tables or not module.endswith(".adaln_proj.linear"):
            return None
        hidden, width = self.hidden_width, self.time_width
        return (18 * hidden, width) if hidden and width else (0, 0)


def _branch(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    """Weights that Video DeltaNet adds to a block (facts: model sheet c.1)."""
    inner, hidden, heads = config.inner, config.hidden, config.heads
    sizes: dict[str, tuple[int, ...]] = {
        "attn.to_out_linear": (hidden, inner),
        "attn.softmax_gate.up": (heads, hidden),
        "attn.linear_attention.beta_proj": (heads, hidden),
        "attn.linear_attention.norm": (config.head_dim,),
        "attn.linear_attention.alpha.down": (config.head_dim, hidden),
        "attn.linear_attention.alpha.up": (inner, config.head_dim),
        "attn.linear_attention.output_gate.down": (config.head_dim, hidden),
        "attn.linear_attention.output_gate.up": (inner, config.head_dim),
    }
    for target in "kv":
        sizes[f"attn.linear_attention.short_conv.{target}_sp"] = (inner, 1, 5, 5)
        sizes[f"attn.linear_attention.short_conv.{target}_tm"] = (inner, 1, 5)
    assert set(sizes) == set(BRANCH_TAILS)
    found = {f"{name}.weight": shape for name, shape in sizes.items()}
    found["attn.softmax_gate.up.bias"] = (heads,)
    found["attn.linear_attention.output_gate.up.bias"] = (inner,)
    return found


def _root(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    hidden = config.hidden
    linears = {
        "proj_in": (hidden, config.video_row),
        "audio_proj_in": (hidden, config.audio_channels),
        "context_embedder": (hidden, config.text_dim),
        "time_embedder.linear_1": (config.time_hidden, config.freq_dim),
        "time_embedder.linear_2": (config.time_dim, config.time_hidden),
        "norm_out.linear": (2 * hidden, config.time_dim),
        "proj_out": (config.video_row, hidden),
        "audio_proj_out": (config.audio_channels, hidden),
    }
    found: dict[str, tuple[int, ...]] = {
        "token_refiner.final_norm.weight": (hidden,),
        "norm_out.norm.weight": (hidden,),
    }
    for name, shape in linears.items():
        found[f"{name}.weight"] = shape
        found[f"{name}.bias"] = (shape[0],)
    return found
