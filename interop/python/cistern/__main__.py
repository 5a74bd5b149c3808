"""`python -m cistern` says which Cistern this is, and which devices it sees."""

import argparse
import os
import signal
from typing import Sequence

from . import Allocator, CisternError, InvalidArgumentError, __version__, _places


def _devices(backend: str) -> None:
    ordinal = 0
    while True:
        try:
            with Allocator(backend, ordinal) as allocator:
                free, total = allocator.memory_info()
            print(f"{backend} device {ordinal}: {total / 2**30:.1f} GiB, {free / 2**30:.1f} GiB free")
        except CisternError as error:
            if ordinal == 0:
                print(f"{backend}: {error}")
            return
        ordinal += 1


def _backends() -> Sequence[str]:
    """What $CISTERN_BACKEND names, else each vendor's. InvalidArgumentError if it names none."""
    named = os.environ.get("CISTERN_BACKEND") or "auto"
    if named == "auto":
        return ("cuda", "hip")
    try:
        Allocator("auto").destroy()
    except InvalidArgumentError:
        raise
    except CisternError:
        pass  # there is no such device here, which is said of it below
    return (named,)


def _say(backends: Sequence[str]) -> None:
    print(f"Cistern {__version__}")
    print(f"library: {_places.library()}")
    print(f"command: {_places.command() or 'none'}")
    for name in backends:
        _devices(name)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m cistern", description=__doc__)
    parser.parse_args()
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # who reads may stop
    try:
        _say(_backends())
    except InvalidArgumentError as wrong:
        parser.exit(2, f"cistern: {wrong}\n")
