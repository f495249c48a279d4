"""The engine's operations as Triton kernels: same names and signatures as kernels.reference.

Attention and the big products are libraries'; everything between them is here.
"""

from ..vendor import cudnn_attention as attention
from ..vendor import cudnn_attention_partial as attention_partial
from .conv import conv_spatial, conv_taps, conv_temporal_features
from .delta import delta_solve, frame_statistics, scan_back, scan_chunks, window_states
from .gates import add_gated
from .int8_rows import gate_heads, norm_modulate, swiglu
from .linear import linear
from .merge import merge_partial
from .norm import head_norm_rope
from .quantise import quantise_activation
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
