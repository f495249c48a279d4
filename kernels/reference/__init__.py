"""Every operation of the engine in plain PyTorch: the oracle, and what runs on a CPU."""

from .attention import attention, attention_partial, merge_partial
from .conv import conv_spatial, conv_taps, conv_temporal_features
from .delta import delta_solve, frame_statistics, scan_back, scan_chunks, window_states
from .gates import add_gated, gate_heads, swiglu
from .norm import head_norm_rope, norm_modulate
from .quantise import linear, quantise_activation
from .readout import linear_readout

__all__ = [
    "add_gated",
    "attention",
    "attention_partial",
    "conv_spatial",
    "conv_taps",
    "conv_temporal_features",
    "delta_solve",
    "frame_statistics",
    "gate_heads",
    "head_norm_rope",
    "linear",
    "linear_readout",
    "merge_partial",
    "norm_modulate",
    "quantise_activation",
    "scan_back",
    "scan_chunks",
    "swiglu",
    "window_states",
]
