"""Runs iket's `run-iket` from Python: python -m iketrace.run_iket ARGUMENTS."""

import os
import signal
import subprocess
import sys
from pathlib import Path

PROGRAM = "run-iket"
VARIABLE = "IKETRACE_RUN_IKET"


class NotFoundError(RuntimeError):
    """iket's run-iket is not there; the message says where it was looked for."""


def _is_ours(program):
    """NVIDIA's script has the same name. Ours has the collector beside it, in ../lib."""
    if not (program.is_file() and os.access(str(program), os.X_OK)):
        return False
    return (program.resolve().parent.parent / "lib" / "libiket_inject.so").exists()


def find():
    """The path of the program: what IKETRACE_RUN_IKET says, of our installation, or of PATH.

    Raises NotFoundError.
    """
    said = os.environ.get(VARIABLE)
    if said:
        if _is_ours(Path(said)):
            return said
        raise NotFoundError(
            f"{VARIABLE} is {said!r}, which is no {PROGRAM} of iket: a program with "
            "../lib/libiket_inject.so beside it"
        )
    folders = [folder / "bin" for folder in Path(__file__).resolve().parents]
    folders += [Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep) if folder]
    for folder in folders:
        if _is_ours(folder / PROGRAM):
            return str(folder / PROGRAM)
    raise NotFoundError(
        f"iket's {PROGRAM} is neither in an installation around {Path(__file__).resolve().parent} "
        f"nor on PATH; {VARIABLE} may name it"
    )


def run(arguments):
    """Runs it with these arguments to its end; a subprocess.CompletedProcess.

    Raises NotFoundError.
    """
    return subprocess.run([find(), *arguments], check=False)


def main():
    """Becomes it, with the arguments of this process: its signals and exit code are the process's."""
    try:
        program = find()
    except NotFoundError as error:
        sys.exit(f"iketrace: {error}")
    sys.stdout.flush()
    sys.stderr.flush()
    # Python ignores these, and a program would inherit that.
    for name in ("SIGPIPE", "SIGXFSZ"):
        signal.signal(getattr(signal, name), signal.SIG_DFL)
    os.execv(program, [program, *sys.argv[1:]])


if __name__ == "__main__":
    main()
