"""iket's run-iket under the name of NVIDIA's module: python -m iket.cli.main ARGUMENTS."""

import sys
from pathlib import Path

try:
    import iketrace.run_iket as _run_iket
except ImportError:
    # The shim alone is on the path: the package lies beside it.
    sys.path.append(str(Path(__file__).resolve().parents[3]))
    import iketrace.run_iket as _run_iket


def main():
    """Runs it to its end; what it returns has `returncode`."""
    return _run_iket.run(sys.argv[1:])


def entrypoint():
    """Becomes it."""
    _run_iket.main()


if __name__ == "__main__":
    entrypoint()
