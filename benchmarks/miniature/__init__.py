"""Trains the miniature that `make demo` draws with: its data, its models, its checks."""
