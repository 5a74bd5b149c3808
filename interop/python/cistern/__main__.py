"""`python -m cistern info [--json]` says what is installed, and what it finds on this machine.
`python -m cistern COMMAND …` is the program `cistern`, and so is the script of that name."""

from __future__ import annotations

import os
import signal
import sys
from typing import List, NoReturn

from . import _distributions

try:
    _distributions.check()
except ImportError as _not_ours:
    sys.exit(str(_not_ours))

from . import _places  # noqa: E402

_INFO = "info  Say what of the Python package is installed, and where (--json: as JSON)"


def _become_program(arguments: List[str]) -> NoReturn:
    """The exit status, the streams and the signals are the program's."""
    program = _places.command()
    if program is None:
        looked = "".join(f"\n  {place}" for place in _places.command_candidates())
        sys.exit("cistern: this package was built without the command: install CLI11, nlohmann_json and zlib (their "
                 f"headers), and run the command again that built it; looked for:{looked}")
    if arguments in (["help"], ["--help"], ["-h"]):
        print(f"Of the Python package:\n  {_INFO}\n", flush=True)
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and the program would too
        signal.signal(ignored, signal.SIG_DFL)
    try:
        os.execv(program, [str(program), *arguments])
    except OSError as failed:
        sys.exit(f"cistern: {program} cannot be run: {failed.strerror}")


def main() -> None:
    """The script `cistern`."""
    arguments = sys.argv[1:]
    if arguments == ["help", "info"]:  # the program does not know it
        arguments = ["info", "--help"]
    if arguments[:1] == ["info"]:
        from . import _info  # costs more than the other commands should

        sys.exit(_info.main(arguments[1:]))
    else:
        _become_program(arguments)


if __name__ == "__main__":
    if len(sys.argv) == 1:  # somebody who tries whether it is there
        sys.argv.append("info")
    main()
