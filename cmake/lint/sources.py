"""What the checks share: the repository's files, and how a finding is printed."""

import pathlib
import subprocess
import sys

CODE = {".hpp", ".cpp", ".h", ".c", ".cu", ".hip"}


def root():
    return pathlib.Path(__file__).resolve().parents[2]


def files(top, suffixes=None):
    """Paths under `top`, relative to it, of what git tracks or would track."""
    listed = subprocess.run(
        ["git", "-C", str(top), "ls-files", "-co", "--exclude-standard", "-z"],
        check=True, capture_output=True).stdout.decode()
    paths = sorted({pathlib.PurePosixPath(name) for name in listed.split("\0") if name})
    return [p for p in paths
            if (suffixes is None or p.suffix in suffixes) and (top / p).is_file()]


def lines(top, path):
    """(number, text) of each line, from 1."""
    text = (top / path).read_text(encoding="utf-8", errors="replace")
    return enumerate(text.splitlines(), start=1)


def report(findings):
    """Prints each finding; ends the program, with 1 when there is any."""
    for finding in findings:
        print(finding)
    sys.exit(1 if findings else 0)
