"""First file of a worker process, started by path in a fresh interpreter.

A host such as ComfyUI imports the pack under a name of its own, and its main module must not run
again in a child; so nothing is pickled by name and nothing is forked. This file loads the package
from its folder under one fixed name and hands over. Standard output belongs to the protocol: it is
kept aside before anything can print, and prints go to standard error.
"""

import importlib
import importlib.util
import os
import sys
from pathlib import Path

PACKAGE = "lowpeak"


def load_package(root: Path) -> None:
    """Make the package at `root` importable under its fixed name, wherever its folder lies."""
    spec = importlib.util.spec_from_file_location(
        PACKAGE, root / "__init__.py", submodule_search_locations=[str(root)]
    )
    if spec is None or spec.loader is None:
        raise SystemExit(f"no package at {root}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[PACKAGE] = module
    spec.loader.exec_module(module)


def main() -> None:
    """Keep the protocol's channel, load the package, serve until told to stop."""
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8", newline="\n")
    os.dup2(2, 1)
    load_package(Path(__file__).resolve().parents[2])
    child = importlib.import_module(f"{PACKAGE}.engine.worker.child")
    sys.exit(child.serve(sys.stdin, channel))


if __name__ == "__main__":
    main()
