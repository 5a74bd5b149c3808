"""Walks the snapshot that write_pickle_test.cpp writes, as PyTorch's viewer does. It fails at what is amiss."""
import pickle
import pickletools
import sys

# What the viewer's own reader knows.
KNOWN = {"PROTO", "EMPTY_DICT", "EMPTY_LIST", "MARK", "SETITEMS", "APPENDS", "MEMOIZE", "BINGET", "LONG_BINGET",
         "BININT", "BININT1", "BININT2", "LONG1", "SHORT_BINUNICODE", "BINUNICODE", "TUPLE2", "NEWTRUE", "NEWFALSE",
         "STOP"}

with open(sys.argv[1], "rb") as file:
    content = file.read()
assert {opcode.name for opcode, _, _ in pickletools.genops(content)} <= KNOWN
snapshot = pickle.loads(content)

assert [len(trace) for trace in snapshot["device_traces"]] == [1, 8]
events = snapshot["device_traces"][1]
assert [event["action"] for event in events] == [
    "segment_alloc", "alloc", "segment_map", "alloc", "free_requested", "alloc", "free_completed", "oom"]
assert events[1]["frames"] == [{"name": 'inner "quoted"', "filename": "a.py", "line": 7},
                               {"name": "outer", "filename": "", "line": 0}]
assert events[1]["user_metadata"] == "forward / layer 0"
assert events[-1]["action"] == "oom" and events[-1]["device_free"] == 12 and "addr" not in events[-1]

held = {}
for event in events:
    if event["action"] == "alloc":
        held[event["addr"]] = event["size"]
    elif event["action"] == "free_completed":
        del held[event["addr"]]
blocks = {}
for segment in snapshot["segments"]:
    address = segment["address"]
    for block in segment["blocks"]:
        assert block["address"] == address
        address += block["size"]
        if segment["device"] == 1 and block["state"] == "active_allocated":
            blocks[block["address"]] = block["requested_size"]
    assert address == segment["address"] + segment["total_size"]
assert blocks == held
assert {segment["segment_pool_id"] for segment in snapshot["segments"]} == {(0, 0), (0, 7)}
assert [mark["name"] for mark in snapshot["external_annotations"]] == ["step 1"]
