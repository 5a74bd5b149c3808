"""python -m cistern.torch [--compare] [--report PAGE] [--trace FILE] script.py args…
python -m cistern.torch [--compare] [--report PAGE] [--trace FILE] -m module args…

Runs a script, or a module, unchanged on Cistern, as `enable()` does. At its end three lines say what was used. Only
the options record the script, because a record makes allocations slower. --compare says what PyTorch's own allocator
would have reserved in its two modes. --report draws a page: who held the memory, and why a request did not fit.

`_script.py` runs the script, `_recording.py` records it, `_report.py` says the figures, and
`_children.py` puts the processes that the script spawns on Cistern too.
"""

from __future__ import annotations

import sys

# Python's -m puts the current folder first. A gzip.py or a torch/ there is not the one that is
# meant. The script's own folder takes its place; a module's is the current one again (_script.py).
if __name__ == "__main__" and not getattr(sys.flags, "safe_path", sys.flags.isolated):
    del sys.path[0]

import argparse
import atexit
import os
from pathlib import Path
from typing import List, Tuple

from . import _plugin, _recording, _report, _script, enable

_PROGRAM = "python -m cistern.torch"
_COMPARE = """record the script, which takes some time of each allocation, and say what PyTorch's own allocator would
have reserved in its two modes, by models of them"""
_TRACE = """record the script as well, and keep what was recorded, to be replayed by `cistern replay` (FILE.gz is compressed). If the
script used several GPUs, FILE is the first one's, and the others' are beside it: t.trace.gz,
t.cuda1.trace.gz"""
_REPORT = """draw what the script did with memory to a page, also if it has run out of memory. The recording has
the script's lines, which takes some time of each allocation"""
_WITH_VALUE = ("--trace", "--report")


def _split(arguments: List[str]) -> Tuple[List[str], List[str], List[str]]:
    """Our own options; then the words that name the script or the module, and its arguments, which are passed on
    unchanged."""
    at = 0
    while at < len(arguments) and arguments[at].startswith("-") and arguments[at] != "-":
        if arguments[at] == "--":
            return arguments[:at], arguments[at : at + 2], arguments[at + 2 :]
        if arguments[at].startswith("-m"):
            end = at + 2 if arguments[at] == "-m" else at + 1
            return arguments[:at], arguments[at:end], arguments[end:]
        at += 2 if arguments[at] in _WITH_VALUE else 1
    return arguments[:at], ["--", *arguments[at : at + 1]], arguments[at + 1 :]


def _parse(arguments: List[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog=_PROGRAM,
        usage=f"{_PROGRAM} [-h] [--compare] [--report PAGE.html] [--trace FILE] (script | -m module) [arguments ...]",
        description="Runs a PyTorch script on Cistern.",
        allow_abbrev=False,
    )
    parser.add_argument("--compare", action="store_true", help=_COMPARE)
    parser.add_argument("--report", metavar="PAGE.html", help=_REPORT)
    parser.add_argument("--trace", metavar="FILE", help=_TRACE)
    either = parser.add_mutually_exclusive_group(required=True)
    either.add_argument("-m", metavar="module", dest="module", help="a module, run as `python -m` does; its arguments "
                        "follow")
    either.add_argument("script", nargs="?", help="the script, run as __main__; its arguments follow")
    own, program, rest = _split(arguments)
    parsed = parser.parse_args([*own, *program])
    parsed.arguments = rest
    return parsed


def _enable(records: bool) -> None:
    """Only the native mode can record a script. Without that the plug-in does, and a line says so."""
    try:
        try:
            enable("native")
        except RuntimeError as reason:
            if records:
                raise
            enable("plugin")
            first = str(reason).partition("\n")[0].rstrip(":,")
            _report.say(f"{first}; PyTorch's plug-in interface is used instead, {_plugin.MISSING}")
    except ModuleNotFoundError as missing:
        if missing.name != "torch":
            raise
        sys.exit(f"{_PROGRAM}: PyTorch is not installed for this Python")
    except RuntimeError as reason:
        sys.exit(str(reason))


def _begin(recording: _recording.Recording, name: str) -> None:
    try:
        recording.begin(name)
    except (OSError, RuntimeError) as reason:
        sys.exit(f"{_PROGRAM}: the script cannot be recorded: {reason}")


def _follow_children() -> None:
    from . import _children  # and multiprocessing: its exit handler waits for them, and comes first

    _children.follow()


def main(arguments: List[str]) -> None:
    wanted = _parse(arguments)
    if wanted.module is None and not os.path.exists(wanted.script):
        sys.exit(f"{_PROGRAM}: there is no script {wanted.script}")
    try:
        recording = _recording.Recording(wanted.trace, wanted.report, wanted.compare)
    except OSError as reason:
        sys.exit(f"{_PROGRAM}: {reason}")
    atexit.register(recording.finish)  # exit handlers run in reverse: this one last
    _enable(records=wanted.compare or wanted.trace is not None or wanted.report is not None)
    _begin(recording, Path(wanted.script).stem if wanted.module is None else wanted.module)
    _follow_children()
    try:
        if wanted.module is not None:
            _script.run_module(wanted.module, wanted.arguments)
        else:
            _script.run(wanted.script, wanted.arguments)
    except BaseException as end:
        recording.script_failed = not isinstance(end, SystemExit) or end.code not in (None, 0)
        raise


if __name__ == "__main__":
    main(sys.argv[1:])
