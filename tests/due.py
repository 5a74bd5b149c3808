"""Runs the tests of a build that a change can have broken: due.py BUILD [ARGUMENT of ctest…].

A test is due if something that it depends on is newer than its last pass: its program, a file or a source folder
that its command names, the folder of its script, and the files of its property REQUIRED_FILES. Tests of a GPU are
left out. BUILD/passed.json has the times."""

import json
import pathlib
import subprocess
import sys
import time



def newest(path: pathlib.Path, build: pathlib.Path) -> float:
    """When a file, or the newest file of a folder outside the build, was written. 0: it is neither."""
    if path.is_dir() and build not in [path, *path.parents]:
        return max((file.stat().st_mtime for file in path.rglob("*") if file.is_file()), default=0.0)
    return path.stat().st_mtime if path.is_file() else 0.0


def changed(test: dict, build: pathlib.Path) -> float:
    properties = {entry["name"]: entry["value"] for entry in test.get("properties", [])}
    paths = [pathlib.Path(argument) for argument in test["command"] if argument.startswith("/")]
    paths += [pathlib.Path(file) for file in properties.get("REQUIRED_FILES", [])]
    paths += [path.parent for path in paths if path.suffix == ".py"]
    return max((newest(path, build) for path in paths), default=0.0)


def main() -> int:
    build = pathlib.Path(sys.argv[1]).resolve()
    ctest = ["ctest", "--test-dir", str(build), "-LE", "^gpu$"]
    listed = subprocess.run([*ctest, "--show-only=json-v1"], check=True, capture_output=True, text=True)
    tests = [test for test in json.loads(listed.stdout)["tests"] if "command" in test]
    record = build / "passed.json"
    passed = json.loads(record.read_text()) if record.exists() else {}
    due = [test["name"] for test in tests if changed(test, build) > passed.get(test["name"], 0)]
    print(f"{len(due)} of {len(tests)} tests are due: {' '.join(due)}", flush=True)
    if not due:
        return 0

    began = time.time()
    failed_log = build / "Testing/Temporary/LastTestsFailed.log"
    failed_log.unlink(missing_ok=True)
    pattern = "^(" + "|".join(name.replace(".", r"\.") for name in due) + ")$"
    result = subprocess.run([*ctest, "-R", pattern, "--output-on-failure", *sys.argv[2:]], check=False)
    failed = {line.split(":", 1)[1] for line in failed_log.read_text().split()} if failed_log.exists() else set()
    if result.returncode == 0 or failed:  # else ctest itself was stopped
        passed.update({name: began for name in due if name not in failed})
        record.write_text(json.dumps(passed))
    return result.returncode


if __name__ == "__main__":
    sys.exit(main())
