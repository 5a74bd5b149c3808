"""Runs these tests for releases of PyTorch, one after the other, and prints a table.

run.py ROOT [--all | RELEASE | PYTHON]...

ROOT is a checkout that has build/release. A release (2.11.0) is installed from PyPI, with all that it needs (5 GB),
into the user's cache, and removed afterwards; KEEP_TORCH=1 keeps it for the next time. PYTHON is the path of an
interpreter that has PyTorch and pytest. Without either, $TORCH_PYTHON names one; if it does not, 77 says that
nothing was tested."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

HERE = Path(__file__).resolve().parent
SOURCES = HERE.parents[1]
BUILT = SOURCES / "build/torch-test"
#: The last of each minor release that interop/torch is written for.
RELEASES = ["2.9.1", "2.10.0", "2.11.0", "2.12.1", "2.13.0", "2.14.1", "2.15.0"]
COLUMNS = ["release", "CUDA", "compiled", "loaded", "verbs", "passed", "skipped", "failed"]
SKIPPED = 77  # to ctest


def cache():
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cistern-torch-test"


def install(release):
    """The interpreter of the release's environment, and whether it was made now."""
    folder = cache() / release
    python = folder / "bin/python"
    if (folder / "whole").exists():
        return python, False
    print(f"installing PyTorch {release} into {folder}", flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    subprocess.run([python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-cache-dir",
                    f"torch=={release}", "numpy", "pytest"], check=True)
    (folder / "whole").touch()
    return python, True


def environment(root, folder):
    """CUDA's headers must be those that come with PyTorch, so $CUDA_HOME names no others."""
    ours = {"CISTERN_ROOT": str(root), "PYTHONPATH": str(SOURCES / "interop/python"), "CISTERN_BACKEND": "sim",
            "CISTERN_CACHE": str(folder / "cache"), "TORCH_TEST_FOLDER": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    foreign = ("CUDA_HOME", "CISTERN_CONF", "CXX", "PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")
    return {**{name: value for name, value in os.environ.items() if name not in foreign}, **ours}


def counted(results):
    """The numbers of tests that passed, were skipped, and failed."""
    suite = ElementTree.parse(results).getroot().find("testsuite")
    total, skipped = int(suite.get("tests")), int(suite.get("skipped"))
    failed = int(suite.get("failures")) + int(suite.get("errors"))
    return total - skipped - failed, skipped, failed


def check(python, root, folder):
    """The row of the table. The last column is 0 where all is well."""
    row = dict.fromkeys(COLUMNS, "-")
    ours = environment(root, folder)
    if subprocess.run([python, HERE / "prepare.py", folder], env=ours, check=False).returncode != 0:
        return {**row, "release": str(python), "compiled": "no", "failed": 1}
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    print("".join(f"{line}\n" for line in report["warnings"]), end="")
    row.update(release=report["release"], CUDA=report["cuda"], compiled=f"{len(report['warnings'])} warnings")
    results = folder / "results.xml"
    ours["CXX"] = str(folder / "compiler.sh")  # so that enable() finds what prepare.py has compiled
    subprocess.run([python, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--basetemp={folder / 'files'}",
                    f"--junitxml={results}", HERE], env=ours, check=False)
    if not results.exists() or not (folder / "verbs.txt").exists():
        return {**row, "loaded": "no", "failed": 1}
    verbs = (folder / "verbs.txt").read_text(encoding="utf-8").splitlines()
    row["verbs"] = f"{len(verbs) // 2 - sum('NOT REACHED' in line for line in verbs)} of {len(verbs) // 2}"
    passed, skipped, failed = counted(results)
    return {**row, "loaded": "yes", "passed": passed, "skipped": skipped, "failed": failed}


def check_release(name, root, folder):
    if "/" in name:
        return check(name, root, folder)
    python, made = install(name)
    try:
        return check(python, root, folder)
    finally:
        if made and not os.environ.get("KEEP_TORCH"):
            shutil.rmtree(python.parents[1])


def print_table(rows):
    cells = [COLUMNS, *([str(row[column]) for column in COLUMNS] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells)]
    for line in cells:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip())


def main(root, names):
    if "--all" in names:
        names = RELEASES
    names = names or [name for name in [os.environ.get("TORCH_PYTHON")] if name]
    if not names:
        print("skipped: no PyTorch is named (TORCH_PYTHON, or ./dev torch-test)")
        return SKIPPED
    unknown = [name for name in names if "/" not in name and name not in RELEASES]
    if unknown:
        print(f"{unknown[0]!r} is neither a Python's path nor one of {', '.join(RELEASES)}", file=sys.stderr)
        return 2
    rows = []
    for name in names:
        folder = BUILT / name.strip("./").replace("/", "-")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        rows.append(check_release(name, root, folder))
    print_table(rows)
    print(f"{BUILT}/*/verbs.txt says which test reached which verb")
    return 1 if any(row["failed"] for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve(), sys.argv[2:]))
