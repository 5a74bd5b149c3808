"""A folder includes only what stands below it.

    base < layout, device < engine < pools, handles < interop

Layout and device do not know each other, nor do pools and handles; of interop, trace knows only
base, and programs that and trace. Tests and benchmarks may include anything.
"""

import re

import sources

BASE = ["allocator/base"]
DEVICE = BASE + ["allocator/device"]
ENGINE = DEVICE + ["allocator/layout", "allocator/engine"]

# Folder -> what it may include. The longest matching folder counts.
MAY_INCLUDE = {
    "allocator/base": BASE,
    "allocator/layout": BASE + ["allocator/layout"],
    "allocator/device": DEVICE,
    "allocator/engine": ENGINE,
    "pools": ENGINE + ["pools"],
    "handles": ENGINE + ["handles"],
    "interop/trace": BASE + ["interop/trace"],
    "interop/programs": BASE + ["interop/trace", "interop/programs"],
    "interop": ENGINE + ["pools", "handles", "interop"],
}
INCLUDE = re.compile(r'^\s*#\s*include\s+[<"]'
                     r'((?:allocator|pools|handles|interop|bench|tests)/[^>"]+)')


def within(path, folder):
    return path == folder or path.startswith(folder + "/")


def folder_of(path):
    return max((f for f in MAY_INCLUDE if within(path, f)), key=len, default=None)


def findings(top):
    found = []
    for path in sources.files(top, sources.CODE):
        folder = folder_of(str(path))
        if folder is None:
            continue
        allowed = MAY_INCLUDE[folder]
        for number, text in sources.lines(top, path):
            match = INCLUDE.match(text)
            if match and not any(within(match[1], f) for f in allowed):
                found.append(f"{path}:{number}: {folder} may not include {match[1]}; "
                             f"it may include: {', '.join(allowed)}")
    return found


if __name__ == "__main__":
    sources.report(findings(sources.root()))
