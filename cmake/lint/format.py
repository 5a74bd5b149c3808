"""Code is formatted by clang-format 14; other versions lay the same configuration out differently.

With --fix the files are rewritten.
"""

import re
import shutil
import subprocess
import sys

import sources

VERSION = 14


def formatter():
    """A clang-format of the right version, or None."""
    for name in (f"clang-format-{VERSION}", "clang-format"):
        path = shutil.which(name)
        if path:
            said = subprocess.run([path, "--version"], capture_output=True, text=True).stdout
            match = re.search(r"version (\d+)", said)
            if match and int(match[1]) == VERSION:
                return path
    return None


def main():
    top = sources.root()
    program = formatter()
    if program is None:
        print(f"skipped: clang-format {VERSION} is not here")
        sys.exit(1 if "--fix" in sys.argv else 0)
    names = [str(p) for p in sources.files(top, sources.CODE | {".js"})]
    mode = ["-i"] if "--fix" in sys.argv else ["--dry-run", "--Werror"]
    if names:
        sys.exit(subprocess.run([program, *mode, *names], cwd=top).returncode)


if __name__ == "__main__":
    main()
