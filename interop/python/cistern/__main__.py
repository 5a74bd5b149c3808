"""`python -m cistern` says which Cistern this is, and which devices it sees."""

import argparse
import signal

from . import Allocator, CisternError, __version__, _places


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


def _say() -> None:
    print(f"Cistern {__version__}")
    print(f"library: {_places.library()}")
    print(f"command: {_places.command() or 'none'}")
    for name in ("cuda", "hip"):
        _devices(name)


if __name__ == "__main__":
    argparse.ArgumentParser(prog="python -m cistern", description=__doc__).parse_args()
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # who reads may stop
    _say()
