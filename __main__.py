"""`python -m lowpeak ...` from custom_nodes: the command line without an install."""

from __future__ import annotations

from .cli import main

main()
