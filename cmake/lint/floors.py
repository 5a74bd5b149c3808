"""A folder includes only what stands below it.

    base < hooks, layout, device < engine < history < reports, emptying < allocator's own files
         < pinned, pools, handles < interop

Sleep stands on the engine beside history, and only pools know it. Hooks, layout and device do not know
each other, nor do pinned, pools and handles, which know the engine but nothing of histories and emptying.
Of interop, trace knows only base, recording that and trace, report and programs these and recording,
and sharing what programs include of the engine. Tests and benchmarks may include anything.

The engine has floors of its own: ENGINE_FLOORS names its rooms, the lowest first. A room includes only
rooms of lower floors. Rooms of one floor do not know each other.

What programs include (include/cistern) is on the floors too: each header there is the door of the
folder that keeps its promises, and stands where that does. They include the standard library and each
other, and nothing else; cistern-cccl includes CCCL's headers too.

Nothing includes a source file, tests neither: its functions would be in a program twice.
"""

import re

import sources

def doors(*names):
    return [f"cistern/{name}.hpp" for name in names]


BASE_DOORS = doors("types", "error", "options", "current", "report")
DEVICE_DOORS = BASE_DOORS + doors("status", "device", "device_calls", "sim")
ENGINE_DOORS = DEVICE_DOORS + doors("statistics", "history", "segment_source", "sleep",
                             "allocator")
PINNED_DOORS = ENGINE_DOORS + doors("pinned")
POOLS_DOORS = ENGINE_DOORS + doors("pool", "graph")
BASE = BASE_DOORS + ["allocator/base"]
DEVICE = BASE + DEVICE_DOORS + ["allocator/device"]
ENGINE = DEVICE + ENGINE_DOORS + ["allocator/hooks", "allocator/layout", "allocator/engine"]

ENGINE_ROOM = "allocator/engine/"
ENGINE_FLOORS = [
    ["ground", "statistics", "events"],
    ["heap"],
    ["cache"],
    ["core"],
    ["backing", "pages"],
    ["engine"],
    ["exchange", "errors"],
    ["capture"],
    ["paths"],
]

# Folder -> what it may include. The longest matching folder counts.
MAY_INCLUDE = {
    "allocator/base": BASE,
    "allocator/hooks": BASE + ["allocator/hooks"],
    "allocator/layout": BASE + ["allocator/layout"],
    "allocator/device": DEVICE,
    "allocator/engine": ENGINE,
    "allocator/history": ENGINE + ["allocator/history"],
    "allocator/reports": ENGINE + ["allocator/history", "allocator/reports"],
    "allocator/emptying": ENGINE + ["allocator/emptying"],
    "allocator/sleep": ENGINE + ["allocator/sleep"],
    "allocator": ENGINE + ["allocator/history", "allocator/reports", "allocator/emptying"],
    "allocator/pinned": ENGINE + PINNED_DOORS + ["allocator/pinned"],
    "pools": ENGINE + POOLS_DOORS + ["allocator/reports", "allocator/sleep", "pools"],
    "handles": ENGINE + ["cistern/handles", "handles"],
    "interop/trace": BASE + ["interop/trace"],
    "interop/recording": BASE + ["interop/trace", "interop/recording"],
    "interop/report": BASE + ["interop/trace", "interop/recording", "interop/report"],
    "interop/programs": BASE + ["interop/trace", "interop/recording", "interop/programs"],
    "interop/sharing": ENGINE_DOORS + ["interop/sharing"],
    "interop/python_stacks": doors("history", "python_stacks")
                             + ["allocator/history", "interop/python_stacks"],
    "interop/torch": POOLS_DOORS + doors("pinned", "memory", "python_stacks") + ["interop/sharing", "interop/torch"],
    "interop": ["cistern", "allocator", "pools", "handles", "interop"],
    "include/cistern": ["cistern"],
    "include/cistern-cccl": ["cistern"],
    **{f"include/{door}": BASE_DOORS for door in BASE_DOORS},
    **{f"include/{door}": DEVICE_DOORS for door in DEVICE_DOORS if door not in BASE_DOORS},
    **{f"include/{door}": ENGINE_DOORS for door in ENGINE_DOORS if door not in DEVICE_DOORS},
    "include/cistern/pinned.hpp": PINNED_DOORS,
    "include/cistern/python_stacks.hpp": doors("history", "python_stacks"),
    **{f"include/{door}": POOLS_DOORS for door in POOLS_DOORS if door not in ENGINE_DOORS},
    "include/cistern/handles": ENGINE_DOORS + ["cistern/handles"],
}
INCLUDE = re.compile(r'^\s*#\s*include\s+[<"]'
                     r'((?:allocator|pools|handles|interop|bench|tests|cistern)/[^>"]+)')


def within(path, folder):
    return path == folder or path.startswith(folder + "/")


def folder_of(path):
    return max((f for f in MAY_INCLUDE if within(path, f)), key=len, default=None)


def room_of(path):
    """The engine's room that a file stands in: a folder, or a file beside the folders."""
    if not path.startswith(ENGINE_ROOM):
        return None
    return path[len(ENGINE_ROOM):].split("/")[0].split(".")[0]


def floor_of(room):
    return next((n for n, rooms in enumerate(ENGINE_FLOORS) if room in rooms), None)


def engine_finding(path, included):
    """Why the file may not include the other for the sake of the engine's floors; None if it may."""
    room, other = room_of(path), room_of(included)
    if room is None or other is None or room == other:
        return None
    for name in (room, other):
        if floor_of(name) is None:
            return f"{name} is no room of the engine's: name it in ENGINE_FLOORS of floors.py"
    if floor_of(other) < floor_of(room):
        return None
    below = [name for rooms in ENGINE_FLOORS[:floor_of(room)] for name in rooms]
    return f"{room} may not include {included}; below it stand: {', '.join(below) or 'none'}"


def findings(top):
    found = []
    for path in sources.files(top, sources.CODE):
        folder = folder_of(str(path))
        allowed = MAY_INCLUDE.get(folder)
        for number, text in sources.lines(top, path):
            match = INCLUDE.match(text)
            if match and match[1].endswith(".cpp"):
                found.append(f"{path}:{number}: {match[1]} is a source file: include its header")
            elif match and allowed and not any(within(match[1], f) for f in allowed):
                found.append(f"{path}:{number}: {folder} may not include {match[1]}; "
                             f"it may include: {', '.join(allowed)}")
            elif match and (why := engine_finding(str(path), match[1])):
                found.append(f"{path}:{number}: {why}")
    return found


if __name__ == "__main__":
    sources.report(findings(sources.root()))
