"""First file of a probing process, started by path: loads the package wherever its folder lies.

Standard output belongs to the answers: it is kept aside before anything can print.
"""

import importlib
import importlib.util
import os
import sys
from pathlib import Path

PACKAGE = "lowpeak"


def main() -> None:
    """Load the package under its fixed name and serve until the input ends."""
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8", newline="\n")
    os.dup2(2, 1)
    root = Path(__file__).resolve().parents[2]
    sys.path[:] = [p for p in sys.path if Path(p or ".").resolve() != Path(__file__).parent]
    spec = importlib.util.spec_from_file_location(
        PACKAGE, root / "__init__.py", submodule_search_locations=[str(root)]
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[PACKAGE] = module
    spec.loader.exec_module(module)
    child = importlib.import_module(f"{PACKAGE}.kernels.probe.child")
    sys.exit(child.serve(sys.stdin, channel))


if __name__ == "__main__":
    main()
