"""A source file and its header share a name, and no other folder has a file of that name.

Tests and benchmarks are left out, as are the headers in include: each is the door of a folder that implements it
under the same name.

The folders cuda and hip beside each other count as one. A build picks one of them, so their files are equal in name.
"""

import sources

FOLDERS = {"allocator", "pools", "handles", "interop"}
VENDORS = {"cuda", "hip"}


def place_of(path):
    """The folder of a file; one name for those of the vendors."""
    return path.parent.with_name("cuda, hip") if path.parent.name in VENDORS else path.parent


def findings(top):
    found = []
    first = {}
    for path in sources.files(top, sources.CODE):
        if path.parts[0] not in FOLDERS:
            continue
        other = first.setdefault(path.stem, path)
        if place_of(other) != place_of(path):
            found.append(f"{path}:1: {other} has this name too: say in the name which idea stands here")
    return found


if __name__ == "__main__":
    sources.report(findings(sources.root()))
