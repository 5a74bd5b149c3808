"""Writes a PyTorch memory snapshot of many events, byte for byte as pickle.dump (protocol 4) would, without
having it in memory: make_large_snapshot.py FILE [--events N] [--frames DEPTH] [--check]

Blocks live for about a thousand events each. A free is recorded twice, as PyTorch does it. With --frames
each allocation has a call stack of its own list, which its frees share. --check compares a small one with
what pickle writes.
"""
import argparse
import io
import pickle
import random
import struct

KEYS = ["action", "addr", "size", "stream", "time_us", "compile_context", "user_metadata", "frames"]
START = 1_700_000_000_000_000
BATCH = 1000


def entries(count, depth, seed=1):
    """The events, as (action, address, size, time, frames); frames is None or a tuple of frame numbers."""
    choose = random.Random(seed)
    live, free_addresses, next_address, now, made = [], [], 0x7F0000000000, START, 0
    while made < count:
        now += choose.randrange(20)
        if len(live) < 1000 or choose.random() < 0.25:
            size = choose.randrange(1, 1 << 22)
            if free_addresses:
                address = free_addresses.pop(choose.randrange(len(free_addresses)))
            else:
                address, next_address = next_address, next_address + (1 << 22)
            where = None
            if depth:
                site = choose.randrange(500)
                where = [(site * 7 + level) % (40 + level) + 50 * level for level in range(depth)]
            live.append((address, size, where))
            yield "alloc", address, size, now, where
            made += 1
        else:
            address, size, where = live.pop(choose.randrange(len(live)))
            for action in ("free_requested", "free_completed"):
                if made < count:
                    yield action, address, size, now, where
                    made += 1
            free_addresses.append(address)


def frame(number):
    return {"name": f"function_{number}", "filename": f"/program/module_{number % 50}.py", "line": number}


class Writer:
    """What the C pickler does for protocol 4: frames of 64 KiB, and a number for each remembered object."""

    def __init__(self, out):
        self.out, self.buffer, self.remembered = out, bytearray(), 0
        out.write(b"\x80\x04")

    def op(self, data):
        self.buffer += data
        if len(self.buffer) >= 64 * 1024:
            self.flush()

    def flush(self):
        self.out.write(b"\x95" + struct.pack("<Q", len(self.buffer)) + self.buffer)
        self.buffer = bytearray()

    def remember(self):
        self.op(b"\x94")
        self.remembered += 1
        return self.remembered - 1

    def get(self, slot):
        self.op(b"h" + bytes([slot]) if slot < 256 else b"j" + struct.pack("<I", slot))

    def integer(self, value):
        if 0 <= value < 256:
            self.op(b"K" + bytes([value]))
        elif 0 <= value < 65536:
            self.op(b"M" + struct.pack("<H", value))
        elif -2**31 <= value < 2**31:
            self.op(b"J" + struct.pack("<i", value))
        else:
            data = value.to_bytes((value.bit_length() >> 3) + 1, "little", signed=True)
            self.op(b"\x8a" + bytes([len(data)]) + data)

    def text(self, text):
        data = text.encode()
        self.op(b"\x8c" + bytes([len(data)]) + data)
        return self.remember()

    def finish(self):
        self.op(b".")
        self.flush()


class Snapshot:
    """Writes the snapshot's dict. Texts that are one object in PyTorch are written once."""

    def __init__(self, out):
        self.writer, self.texts, self.frames, self.lists = Writer(out), {}, {}, {}

    def text(self, text):
        if text in self.texts:
            return self.writer.get(self.texts[text])
        self.texts[text] = self.writer.text(text)

    def frame(self, number):
        if number in self.frames:
            return self.writer.get(self.frames[number])
        self.writer.op(b"}")
        self.frames[number] = self.writer.remember()
        self.writer.op(b"(")
        for key, value in frame(number).items():
            self.text(key)
            if isinstance(value, int):
                self.writer.integer(value)
            else:
                self.writer.text(value)
        self.writer.op(b"u")

    def stack(self, where):
        if id(where) in self.lists:
            return self.writer.get(self.lists[id(where)][0])
        self.writer.op(b"]")
        self.lists[id(where)] = (self.writer.remember(), where)
        self.writer.op(b"(" if len(where) > 1 else b"")
        for number in where:
            self.frame(number)
        self.writer.op(b"e" if len(where) > 1 else b"a")

    def entry(self, action, address, size, time, where):
        writer = self.writer
        writer.op(b"}")
        writer.remember()
        writer.op(b"(")
        self.text("action")
        self.text(action)
        for key, value in (("addr", address), ("size", size), ("stream", 0), ("time_us", time)):
            self.text(key)
            writer.integer(value)
        for key, value in (("compile_context", "N/A"), ("user_metadata", "")):
            self.text(key)
            writer.text(value)  # a new object for each entry
        if where is not None:
            self.text("frames")
            self.stack(where)
        writer.op(b"u")
        if where is not None and action == "free_completed":
            self.lists.pop(id(where), None)

    def write(self, events):
        writer = self.writer
        writer.op(b"}")
        writer.remember()
        writer.op(b"(")
        self.text("segments")
        writer.op(b"]")
        writer.remember()
        self.text("device_traces")
        writer.op(b"]")
        writer.remember()
        writer.op(b"]")
        writer.remember()
        count = 0
        for event in events:
            if count % BATCH == 0:
                writer.op(b"e(" if count else b"(")
            self.entry(*event)
            count += 1
        writer.op(b"ea" + b"u")
        writer.finish()


def check():
    for depth in (0, 5):
        written = io.BytesIO()
        Snapshot(written).write(entries(5000, depth))
        loaded = pickle.loads(written.getvalue())
        events = list(entries(5000, depth))
        assert [e["addr"] for e in loaded["device_traces"][0]] == [e[1] for e in events]
        if depth:
            assert loaded["device_traces"][0][0]["frames"][0] == frame(events[0][4][0])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file")
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--frames", type=int, default=0)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    if arguments.check:
        check()
    with open(arguments.file, "wb") as out:
        Snapshot(out).write(entries(arguments.events, arguments.frames))
