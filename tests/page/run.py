"""Runs the tests of the page by a Python that has pytest, selenium and axe. Exits with 77 where something is missing.

run.py FOLDER      for files"""

import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
CANDIDATES = [str(HERE.parents[1] / "build/venv/bin/python"), sys.executable, "/usr/bin/python3"]
ASK = "import assemble, browser, pytest; print(browser.missing() or assemble.missing())"


def missing(python):
    """What that Python lacks; empty if nothing."""
    try:
        asked = subprocess.run([python, "-B", "-c", ASK], cwd=HERE, capture_output=True, text=True)
    except OSError:
        return python
    return asked.stdout.strip() if asked.returncode == 0 else "pytest"


if __name__ == "__main__":
    lacks = {python: missing(python) for python in CANDIDATES}
    ready = next((python for python, lack in lacks.items() if not lack), None)
    if ready is None:
        print(f"skipped: the tests of the page need {lacks[CANDIDATES[0]]}; ./dev setup installs it on Debian")
        sys.exit(77)
    kept = pathlib.Path(sys.argv[1]) / "files"
    os.execv(ready, [
        ready, "-B", "-m", "pytest", "-q", "-ra", "--tb=short", "-p", "no:cacheprovider", f"--basetemp={kept}",
        str(HERE)
    ])
