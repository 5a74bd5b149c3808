"""A made-up model as large as the page promises to show: 10 million events, windows of 100,000 events around
20,000 living blocks, and a timeline of 2,000 columns."""

import base64
import random

MIB = 1 << 20
EVENTS, WINDOW, LIVING, COLUMNS = 10_000_000, 100_000, 20_000, 2_000
STACKS, LABELS, DEPTH = 3_000, 200, 24


def stacks(chance):
    """Frames and stacks of DEPTH frames that share their outer halves."""
    frames = [[f"function_{i}", f"program/module_{i % 40}.py", i % 900 + 1] for i in range(STACKS)]
    nodes, leaves = [[0, 0]], []
    trunks = []
    for _ in range(60):
        parent = 0
        for _ in range(DEPTH // 2):
            nodes.append([parent, chance.randrange(STACKS)])
            parent = len(nodes) - 1
        trunks.append(parent)
    for _ in range(STACKS // 10):
        parent = chance.choice(trunks)
        for _ in range(DEPTH // 2):
            nodes.append([parent, chance.randrange(STACKS)])
            parent = len(nodes) - 1
        leaves.append(parent)
    return frames, nodes, leaves


def window(chance, first, leaves):
    """Slots of 1 MiB: each holds a block or nothing, and each event fills or empties one."""
    slots = LIVING * 5 // 4
    owner, birth = [-1] * slots, list(range(slots))
    chance.shuffle(birth)
    blocks = {
        name: []
        for name in ("address", "bytes", "stack", "label", "pool", "stream", "since_us", "pending")
    }
    facts = []

    def fact(slot):
        stack = chance.choice(leaves)
        facts.append((slot, chance.randrange(512, MIB), stack, (stack + chance.randrange(3)) % LABELS))
        return facts[-1]

    for number, slot in enumerate(birth[:LIVING]):
        owner[slot] = number
        _, size, stack, label = fact(slot)
        for name, value in zip(blocks, (0x7F0000000000 + slot * MIB, size, stack, label, 0, 0, first, 0)):
            blocks[name].append(value)
    events = {
        name: []
        for name in ("kind", "dt_us", "address", "bytes", "stack", "label", "pool", "stream", "block")
    }
    last = 0
    for _ in range(WINDOW):
        slot = chance.randrange(slots)
        address = 0x7F0000000000 + slot * MIB
        kind, number = (1, owner[slot]) if owner[slot] >= 0 else (0, len(facts))
        owner[slot] = -1 if kind == 1 else number
        _, size, stack, label = facts[number] if kind == 1 else fact(slot)
        for name, value in zip(
                events, (kind, chance.randrange(1, 20), address - last, size, stack, label, 0, 0, number)):
            events[name].append(value)
        last = address
    return {
        "first": first, "count": WINDOW, "start_us": first * 10,
        "ranges": [[0x7F0000000000, slots * MIB, 0, 0, 0]], "blocks": blocks, "events": events
    }


def timeline(chance, leaves):
    shares = {
        name: [[key, [chance.randrange(MIB, 512 * MIB) for _ in range(COLUMNS)]] for key in keys]
        for name, keys in
        {"pool": [0, 1], "stream": [0, 1, 2], "label": [*range(1, 15), -1], "site": [*leaves[:14], -1]}.items()
    }
    asked = [sum(values[i] for _, values in shares["label"]) for i in range(COLUMNS)]
    return {
        "edges": [i * EVENTS * 10 / COLUMNS for i in range(COLUMNS + 1)], "asked": asked, "allocated": asked,
        "reserved": [int(1.1 * value) for value in asked], "limit": 16 << 30, "stacked": shares,
        "policies": [{"name": name, "reserved": asked, "failed_at": None, "peak": max(asked)}
                     for name in ("torch", "torch-expandable")]
    }


def model(windows=5):
    chance = random.Random(7)
    frames, nodes, leaves = stacks(chance)
    spans = [window(chance, EVENTS // windows * i, leaves) for i in range(windows)]
    holders = [[stack, chance.randrange(1, LABELS), 0, 0, 10, (200 - i) * MIB, MIB]
               for i, stack in enumerate(leaves[:200])]
    moments = [{
        "kind": "peak" if i == 1 else "mark", "title": f"moment {i}",
        "at_us": (EVENTS // windows * i + WINDOW // 2) * 10, "event": EVENTS // windows * i + WINDOW // 2,
        "asked": 9 << 30, "allocated": 9 << 30, "reserved": 10 << 30, "limit": 16 << 30, "request": None,
        "holders": holders, "unused": [], "advice": [], "device_error": "", "window": i, "at": WINDOW // 2
    } for i in range(windows)]
    rows, columns = 256, 512
    heat = {
        "rows": rows, "columns": columns, "edges": [i * EVENTS * 10 / columns for i in range(columns + 1)],
        "row_bytes": 64 * MIB, "segments": [[0x7F0000000000, rows * 64 * MIB, 0, rows]], "mapped": None,
        "used": base64.b64encode(chance.randbytes(rows * columns)).decode()
    }
    labels = [["", 0], *([f"layer {i}", 0 if i < 20 else chance.randrange(1, 20)] for i in range(1, LABELS))]
    recording = {
        "name": "large", "file": "large.trace", "source": "trace", "device": "cuda:0", "placed_by": None,
        "events": EVENTS, "allocations": EVENTS // 2, "failed": 0, "duration_us": EVENTS * 10,
        "has_times": True, "notes": [], "streams": ["0", "1", "2"], "pools": ["default", "private"],
        "labels": labels, "frames": frames, "stacks": nodes, "timeline": timeline(chance, leaves),
        "moments": moments, "windows": spans, "heat": heat, "flame": {
            "peak": [[stack, chance.randrange(MIB, 64 * MIB), 5] for stack in leaves], "end": [], "longest": []
        }, "sizes": [[9 + i, 1000 * i, 1 << (20 + i)] for i in range(12)], "lifetimes": [[i, 1000, MIB]
                                                                                         for i in range(20)],
        "size_life": [[9 + i, j, i * j + 1] for i in range(12)
                      for j in range(20)], "leaks": [], "labels_peak": [], "calls": []
    }
    return {
        "format": 1, "made_by": "Cistern, made up", "command": "cistern report large.trace",
        "recordings": [recording], "comparison": None
    }
