"""Stands in for NVIDIA's package `iket` where that is not installed; becomes it where it is.

What it has is `iket.cli.main`, so that `python -m iket.cli.main` runs iket's run-iket.
"""

import importlib.util
import os
import sys


def _find_nvidias():
    """The spec of another package `iket` that can be imported; None if there is none."""
    shim = os.path.realpath(os.path.dirname(os.path.dirname(__file__)))
    elsewhere = [entry for entry in sys.path if os.path.realpath(entry or os.curdir) != shim]
    for finder in sys.meta_path:
        find_spec = getattr(finder, "find_spec", None)
        spec = find_spec(__name__, elsewhere) if find_spec else None
        # A folder that happens to have this name has no __init__.py.
        if spec is not None and spec.origin and spec.submodule_search_locations:
            return spec
    return None


_spec = _find_nvidias()
if _spec is not None:
    # The import of this module yields what stands in sys.modules when it ends.
    _module = importlib.util.module_from_spec(_spec)
    sys.modules[__name__] = _module
    _spec.loader.exec_module(_module)
