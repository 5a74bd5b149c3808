"""Writes the pickles that the tests read. Run it in this folder after changing what they hold.

snapshot.pN.pickle   one small PyTorch memory snapshot in protocol N, in the shape and with the kinds of
                     value that torch.cuda.memory._dump_snapshot writes
plain.pickle         every kind of plain data that protocol 5 knows
"""
import pickle

BASE = 0x7F0000000000
FRAME = {"filename": "/träin.py", "name": "step", "line": 70_000}


def event(action, offset, size, stream, time_us):
    return {"action": action, "addr": BASE + offset, "size": size, "stream": stream,
            "time_us": 1_700_000_000_000_000 + time_us, "frames": [FRAME]}


def block(offset, size, requested, state):
    return {"address": BASE + offset, "size": size, "requested_size": requested, "state": state,
            "frames": [FRAME]}


def segment(device, offset, stream, blocks):
    return {"device": device, "address": BASE + offset, "total_size": 2 << 20, "stream": stream,
            "segment_type": "small", "allocated_size": 1, "active_size": 1, "is_expandable": False,
            "segment_pool_id": (0, 0), "frames": [], "blocks": blocks}


SIDE = 0x55AA00001230
SNAPSHOT = {
    "segments": [
        segment(0, 0, 0, [block(0, 512, 512, "active_allocated")]),
        segment(1, 0, 0, [
            block(0, 1024, 700, "active_allocated"),
            block(1024, 512, 512, "active_allocated"),
            block(1536, 512, 100, "active_allocated"),      # live since before the record
            block(2048, 512, 100, "active_awaiting_free"),  # freed before it
            block(2560, 4096, 0, "inactive"),
        ]),
    ],
    "device_traces": [
        [event("alloc", 0, 512, 0, 5)],
        [
            event("segment_alloc", 0, 2 << 20, 0, 90),
            event("free_requested", 0, 1000, 0, 100),  # allocated before the record
            event("free_completed", 0, 1000, 0, 101),
            event("alloc", 1024, 512, 0, 150),
            event("alloc", 2 << 20, 3_000_000, SIDE, 160),
            event("free_completed", 1 << 20, 64, 0, 170),  # asked for before the record
            event("free_requested", 2 << 20, 3_000_000, SIDE, 200),
            event("free_completed", 2 << 20, 3_000_000, SIDE, 260),
            event("alloc", 0, 700, 0, 300),
            {"action": "oom", "device_free": 1 << 33, "size": 1 << 40, "stream": 0, "frames": []},
            event("snapshot", 0, 0, 0, 400),
        ],
        [],
    ],
    "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": "", "max_split_size": -1, "fraction": 0.5,
                           "garbage": None, "wide": 1 << 70, "expandable_segments": True},
    "external_annotations": [],
}
PLAIN = {
    "ints": [0, 1, -1, 255, 256, 65_535, 65_536, 2**31, -2**31, 2**62, -2**63, 2**63, 2**200],
    "texts": ["", "short", "é" * 300, b"bytes", b"b" * 300, bytearray(b"array")],
    "tuples": [(), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)],
    "sets": [set(), {1, 2}, frozenset({3})],
    "rest": [None, True, False, 1.5],
    "memo": [str(i) for i in range(300)] * 2,
}

for protocol in range(6):
    with open(f"snapshot.p{protocol}.pickle", "wb") as file:
        pickle.dump(SNAPSHOT, file, protocol=protocol)
with open("plain.pickle", "wb") as file:
    pickle.dump(PLAIN, file, protocol=5)
