"""The model as an adapter sees it: parameter names and sizes, from headers or a configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..checkpoint.names import block_shapes, projection_shapes, root_shapes
from ..model.config import ModelConfig
from .modules import is_model_name, with_orig

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
    def from_config(
        cls,
        config: ModelConfig,
        *,
        adaln_projections: bool = True,
        pruned_width: int | None = None,
    ) -> ModelShapes:
        """From hyper-parameters, in the names a checkpoint is assembled under.

        Those keep `.orig.` in the dense model too. adaln_projections: False for checkpoints that
        hold tables only. pruned_width: input of a pruned AdaLN, which has no time embedder.
        """
        block = block_shapes(config)
        if adaln_projections:
            block |= projection_shapes(config, pruned_width)
        found = {
            f"transformer_blocks.{index}.{name}": shape
            for index in range(config.layers)
            for name, shape in block.items()
        }
        rows = None if pruned_width is None else (1, pruned_width)
        found |= root_shapes(config, pruned_rows=rows)
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
