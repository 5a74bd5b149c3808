"""python -m cistern.torch [--trace FILE] script.py args…

Runs a script unchanged on Cistern, and says at its end what it asked for, what was reserved, and what
PyTorch's own allocator would have reserved in its two modes (the program's allocations, recorded while
it ran and replayed by `cistern replay` under models of them).
"""

from __future__ import annotations

import argparse
import atexit
import gzip
import os
import runpy
import shutil
import sys
import tempfile
from pathlib import Path
from typing import List, Optional, Tuple

from .. import CisternError, replay
from . import _native, enable

_PEERS = (("PyTorch", "torch-rules"), ("PyTorch, expandable segments", "torch-expandable"))


def _parse(arguments: List[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m cistern.torch", description="Runs a PyTorch script on Cistern."
    )
    parser.add_argument(
        "--trace", metavar="FILE", help="keep what was recorded (FILE.gz is compressed)"
    )
    parser.add_argument("script", help="the script, run as __main__")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="its arguments")
    return parser.parse_args(arguments)


def _keep(recorded: Path, wanted: str) -> None:
    opened = gzip.open(wanted, "wb") if wanted.endswith(".gz") else open(wanted, "wb")
    with opened as out, recorded.open("rb") as text:
        shutil.copyfileobj(text, out)


def _gib(size: int) -> str:
    return f"{size / 2**30:10.3f} GiB"


def _rows(recorded: Path) -> List[Tuple[str, str]]:
    import torch

    if not torch.cuda.is_initialized():
        return [("nothing", "the script has not used CUDA")]
    devices = [torch.cuda.memory_stats(i) for i in range(torch.cuda.device_count())]
    total = {
        what: sum(stats.get(f"{what}_bytes.all.peak", 0) for stats in devices)
        for what in ("requested", "reserved")
    }
    rows = [("asked for", _gib(total["requested"])), ("reserved", _gib(total["reserved"]))]
    for name, policy in _PEERS:
        try:
            played = replay(recorded, policy, gpu_lag_us=10_000)
            rows.append((name, _gib(played.peak_reserved_bytes) + " (modelled)"))
        except CisternError as reason:
            rows.append((name, str(reason).splitlines()[0]))
    return rows


def _finish(recorded: Path, wanted: Optional[str]) -> None:
    failed = _native.trace_end()
    sys.stdout.flush()
    if failed is not None:
        print(f"cistern.torch: the trace is not whole: {failed}", file=sys.stderr)
    print("cistern.torch: at the peak", file=sys.stderr)
    for name, text in _rows(recorded):
        print(f"  {name:30} {text}", file=sys.stderr)
    if wanted is not None:
        try:
            _keep(recorded, wanted)
        except OSError as reason:
            print(f"cistern.torch: --trace: {reason}", file=sys.stderr)
    shutil.rmtree(recorded.parent, ignore_errors=True)


def main(arguments: List[str]) -> None:
    wanted = _parse(arguments)
    if not Path(wanted.script).is_file():
        sys.exit(f"python -m cistern.torch: there is no script {wanted.script}")
    try:
        enable("native")
    except ModuleNotFoundError as missing:
        if missing.name != "torch":
            raise
        sys.exit("python -m cistern.torch: PyTorch is not installed for this Python")
    recorded = Path(tempfile.mkdtemp(prefix="cistern-")) / "program.trace"
    _native.trace_begin(recorded, Path(wanted.script).stem)
    atexit.register(_finish, recorded, wanted.trace)
    sys.argv = [wanted.script, *wanted.arguments]
    sys.path[0] = os.path.dirname(os.path.abspath(wanted.script))
    runpy.run_path(wanted.script, run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
