"""Candidates that misbehave, for the probe's tests. Run in the probe's own process."""

from __future__ import annotations

import os
import signal
import time

import torch

from lowpeak.kernels import reference as plain
from lowpeak.kernels.reference import quantise


def honest(q, k, v):
    """The right answer."""
    return plain.attention(q, k, v)


def honest_partial(q, k, v):
    """The right answer with its log-sum-exp."""
    return plain.attention_partial(q, k, v)


def crash(q, k, v):
    """Ends the process as a bad pointer would."""
    os.kill(os.getpid(), signal.SIGKILL)


def leave(q, k, v):
    """Ends the process with words and a code."""
    print("out of luck")
    os._exit(7)


def hang(q, k, v):
    """Never comes back."""
    time.sleep(3600)


def lie(q, k, v):
    """Right in size and finite, wrong in value: every head gets its neighbour's answer."""
    return plain.attention(q, k, v).roll(1, dims=1)


def forget(q, k, v):
    """Leaves the last row as it came from the allocator."""
    out = torch.empty(q.shape, dtype=q.dtype)
    out[:-1] = plain.attention(q, k, v)[:-1]
    return out


def smooth_in_place(q, k, v):
    """The right answer, but the caller's keys are changed, as a released library does."""
    k -= k.mean(0, keepdim=True)
    return plain.attention(q, k, v)


def raises(q, k, v):
    """Says that it cannot."""
    raise RuntimeError("no kernel image is available")


def wrong_lse(q, k, v):
    """The log-sum-exp in base two."""
    out, lse = plain.attention_partial(q, k, v)
    return out, lse * 1.4427


def own_output(act, weight, out_dtype, *, out=None):
    """Ignores the output that it was given."""
    return quantise.linear(act, weight, out_dtype)


def coarse(act, weight, out_dtype, *, out=None):
    """Loses half of the codes' bits."""
    from dataclasses import replace

    codes = (act.codes.float() / 8).round() * 8
    return quantise.linear(
        replace(act, codes=codes.to(act.codes.dtype)), weight, out_dtype, out=out
    )
