"""No program or library that was built needs a vendor's driver or runtime to start: CUDA's runtime is
in it, the drivers and HIP's runtime are looked for when it runs.

needed_test.py READELF LIST [--allow libcudart]    LIST names the files, one a line

Libraries such as cuBLAS and rocBLAS are their users' choice, and may be needed."""

import argparse
import pathlib
import re
import subprocess
import sys

VENDORS = re.compile(r"^(libcuda|libcudart|libamdhip64|libhsa-runtime64)(?=\.so)")
NEEDED = re.compile(r"\(NEEDED\).*\[(.+)\]")


def needed(readelf, path):
    said = subprocess.run([readelf, "-dW", path], check=True, capture_output=True, text=True).stdout
    return NEEDED.findall(said)


def findings(readelf, paths, allowed):
    for path in paths:
        for library in needed(readelf, path):
            match = VENDORS.match(library)
            if match and match[1] not in allowed:
                yield f"{path} needs {library} to start"


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("readelf")
    parser.add_argument("list", type=pathlib.Path)
    parser.add_argument("--allow", action="append", default=[])
    arguments = parser.parse_args()
    # A build of one target alone has not made the others.
    built = [path for path in arguments.list.read_text().split("\n") if pathlib.Path(path).is_file()]
    if not any(needed(arguments.readelf, path) for path in built):
        sys.exit(f"{arguments.readelf} finds nothing that {len(built)} files need")
    found = list(findings(arguments.readelf, built, arguments.allow))
    print("\n".join(found) or f"{len(built)} programs and libraries: none needs a vendor's runtime")
    sys.exit(bool(found))
