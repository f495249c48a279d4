"""Whether attention may quantise its inputs: the user's word, for kernels and forecasts alike."""

from __future__ import annotations

import os

VARIABLE = "LOWPEAK_QUANTISED_ATTENTION"


def quantised_attention_allowed() -> bool:
    """True with LOWPEAK_QUANTISED_ATTENTION=1. It changes the arithmetic, so nothing else does."""
    return os.environ.get(VARIABLE, "") == "1"
