"""`python -m cistern`, the script `cistern` and `python -m cistern.torch`, where the library cannot be
loaded: a message in place of a traceback. `info` says what can be said without the library. The package's
__init__.py comes before any program of it, so it calls this.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import List, Optional


def end_program(why: ImportError) -> None:
    """Ends the process with status 1 if it runs a program of the package. Else returns."""
    program = _program()
    if program is None:
        return
    arguments = sys.argv[1:]
    if program == "cistern" and (arguments[:1] == ["info"] or not arguments):
        from . import _info

        sys.exit(_info.main(arguments[1:], problem=str(why)))
    sys.exit(str(why))


def _program() -> Optional[str]:
    """"cistern", "cistern.torch", or None for another program."""
    argv = getattr(sys, "argv", [""])
    if argv[:1] == ["-m"]:  # as long as the module is looked for
        name = _command_line()[-len(argv)].rpartition("-m")[2]  # -mNAME is one word
        return name if name in ("cistern", "cistern.torch") else None
    return "cistern" if _is_script(argv[0]) else None


def _command_line() -> List[str]:
    line = Path("/proc/self/cmdline").read_bytes().split(b"\0")[:-1]
    return [word.decode(errors="replace") for word in line]


def _is_script(path: str) -> bool:
    """Whether it is what pip has made of the entry point in pyproject.toml."""
    if Path(path).name != "cistern":
        return False
    try:
        with open(path, "rb") as script:
            return b"from cistern.__main__ import main" in script.read(1000)
    except OSError:
        return False
