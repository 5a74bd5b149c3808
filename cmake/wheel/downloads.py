"""Files that the build of the wheel downloads, kept in ~/.cache/cistern-wheel by their SHA-256."""

import hashlib
import os
import pathlib
import subprocess
import sys
import urllib.request

CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "cistern-wheel"


def pinned(name):
    """The lines of a list beside this file, split at blanks; without comments."""
    text = (pathlib.Path(__file__).parent / name).read_text()
    return [line.split() for line in text.splitlines() if line and not line.startswith("#")]


def fetch(url, digest):
    """The path of the file that `url` names. A file of another digest is an error, and is not kept."""
    path = CACHE / digest / url.rpartition("/")[2]
    if not path.is_file():
        with urllib.request.urlopen(url, timeout=120) as answer:
            content = answer.read()
        came = hashlib.sha256(content).hexdigest()
        if came != digest:
            sys.exit(f"{url}: the SHA-256 is {came}, and must be {digest}")
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.parent / f"{path.name}.{os.getpid()}"
        unfinished.write_bytes(content)
        unfinished.replace(path)
    return path


def fetch_wheel(requirement, digest, folder):
    """Downloads by pip, into `folder`, the wheel `name==version` for this processor. pip checks the digest."""
    listed = folder / "requirement.txt"
    listed.write_text(f"{requirement} --hash=sha256:{digest}\n")
    platforms = [f"--platform=manylinux{each}_{os.uname().machine}" for each in ("_2_28", "_2_17", "2014")]
    subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps",
                    "--no-cache-dir", "--only-binary=:all:", "--python-version=3.11", *platforms, "--require-hashes",
                    f"--dest={folder}", f"--requirement={listed}"], check=True)
    (wheel,) = folder.glob("*.whl")
    return wheel
