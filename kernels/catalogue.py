"""Everything that can run an operation, in the order of preference until a probe has measured.

Needs are facts of the libraries: what their documentation or their own checks ask for. Forms that
quantise keys or queries on their own are not exact and never become the default unasked.
"""

from __future__ import annotations

from .machine import TRITON_MIN_VERSION
from .registry import Implementation, Needs

HALF = ("bfloat16", "float16")
FP8 = ("fp8-rowwise", "fp8-tensor")
INT8 = ("int8-convrot",)
SCALED_MM = {"torch": "2.5"}
TRITON = {"triton": TRITON_MIN_VERSION}
EVERYWHERE = Needs(devices=())
CARD = ("cuda", "hip")

BRANCH = (
    Implementation(
        "triton",
        "branch",
        "triton:",
        Needs(
            min_capability=(8, 0),
            dtypes=HALF,
            head_power_of_two=True,
            packages=TRITON,
        ),
    ),
    Implementation("reference", "branch", "reference:", EVERYWHERE),
)

LINEAR = (
    Implementation(
        "plain", "linear", "reference.quantise:linear", Needs(devices=(), kinds=("plain",))
    ),
    Implementation(
        "reference",
        "linear",
        "reference.quantise:linear",
        Needs(devices=("cpu", "mps"), kinds=FP8 + INT8),  # int8 goes through float64
    ),
    Implementation(
        "scaled-rowwise",
        "linear",
        "linears:scaled_product",
        # Windows builds of PyTorch lack the row-scaled kernel.
        Needs(
            systems=("linux",),
            kinds=("fp8-rowwise",),
            min_capability=(8, 9),
            dtypes=("bfloat16",),
            packages=SCALED_MM,
        ),
    ),
    Implementation(
        "scaled-tensor",
        "linear",
        "linears:scaled_product",
        Needs(kinds=("fp8-tensor",), min_capability=(8, 9), dtypes=HALF, packages=SCALED_MM),
    ),
    Implementation(
        "scaled-tiled",
        "linear",
        "linears:scaled_product_tiled",
        Needs(kinds=FP8, min_capability=(8, 9), packages=SCALED_MM),
    ),
    Implementation(
        "int8-triton",
        "linear",
        "linears:int8_triton",
        Needs(kinds=INT8, min_capability=(8, 0), packages=TRITON),
    ),
    Implementation(
        "int8-kitchen",
        "linear",
        "linears:int8_kitchen",
        Needs(kinds=INT8, min_capability=(7, 5), dtypes=HALF, packages={"comfy_kitchen": "0.2.20"}),
        activation="plain",
    ),
    Implementation(
        "int8-library",
        "linear",
        "linears:int8_library",
        Needs(
            devices=("cuda", "cpu"), kinds=INT8, min_capability=(7, 5), packages={"torch": "2.2"}
        ),
    ),
    Implementation(
        "storage",
        "linear",
        "linears:storage",
        Needs(devices=(), kinds=FP8 + INT8),
        activation="plain",
    ),
)

_CUDNN = Needs(min_capability=(8, 0), dtypes=HALF, max_head_width=128, packages={"torch": "2.5"})
_FLASH = Needs(
    devices=CARD, min_capability=(8, 0), dtypes=HALF, max_head_width=256, packages={"torch": "2.5"}
)
_EFFICIENT = Needs(devices=CARD, min_capability=(5, 0), packages={"torch": "2.5"})
_FLASH2 = Needs(
    min_capability=(8, 0), dtypes=HALF, max_head_width=256, packages={"flash_attn": "2.5"}
)
_FLASH4 = Needs(
    systems=("linux",),
    min_capability=(9, 0),
    below_capability=(12, 0),
    dtypes=HALF,
    max_head_width=128,
    packages={"flash_attn.cute": "4.0.0"},
)
_SAGE1 = Needs(
    min_capability=(8, 0),
    dtypes=HALF,
    head_widths=(64, 128),
    packages={"triton": "3.0", "sageattention": "1.0"},
    below={"sageattention": "2"},
)
_SAGE2 = Needs(
    min_capability=(8, 0),
    dtypes=HALF,
    max_head_width=128,
    packages={"triton": "3.0", "sageattention": "2.0"},
)
_SAGE3 = Needs(
    min_capability=(10, 0), dtypes=HALF, head_widths=(64, 128), packages={"sageattn3": ""}
)
_KITCHEN = Needs(
    min_capability=(7, 5),
    dtypes=HALF,
    max_head_width=256,
    packages={"comfy_kitchen": "0.2.30"},
)

WINDOW = (
    Implementation("cudnn", "window attention", "vendor:cudnn_attention", _CUDNN),
    Implementation("torch-flash", "window attention", "vendor:flash_attention", _FLASH),
    Implementation("flash-attn-4", "window attention", "vendor:flash4_attention", _FLASH4),
    Implementation("flash-attn-2", "window attention", "vendor:flash2_attention", _FLASH2),
    Implementation("efficient", "window attention", "vendor:efficient_attention", _EFFICIENT),
    Implementation("plain", "window attention", "reference.attention:attention", EVERYWHERE),
    Implementation("sage-3", "window attention", "vendor:sage3_attention", _SAGE3, exact=False),
    Implementation("sage-2", "window attention", "vendor:sage2_attention", _SAGE2, exact=False),
    Implementation("sage-1", "window attention", "vendor:sage1_attention", _SAGE1, exact=False),
    Implementation(
        "kitchen-int8", "window attention", "vendor:kitchen_attention", _KITCHEN, exact=False
    ),
)

GLOBAL = (  # partial results: the log-sum-exp comes with the output
    Implementation("cudnn", "global attention", "vendor:cudnn_attention_partial", _CUDNN),
    Implementation("torch-flash", "global attention", "vendor:flash_attention_partial", _FLASH),
    Implementation("flash-attn-4", "global attention", "vendor:flash4_attention_partial", _FLASH4),
    Implementation("flash-attn-2", "global attention", "vendor:flash2_attention_partial", _FLASH2),
    Implementation(
        "efficient", "global attention", "vendor:efficient_attention_partial", _EFFICIENT
    ),
    Implementation("plain", "global attention", "vendor:tiled_attention_partial", EVERYWHERE),
    Implementation(
        "sage-2", "global attention", "vendor:sage2_attention_partial", _SAGE2, exact=False
    ),
)

CATALOGUE = BRANCH + LINEAR + WINDOW + GLOBAL
