"""Goes back through a snapshot from its end, as "Allocator State History" of PyTorch's viewer does, which asks nowhere
whether it found what it looks for: view_snapshot.py SNAPSHOT. Ends with 1 at the first event where it would not."""

import pickle
import sys


class View:
    """The segments and blocks of one device after an event."""
    def __init__(self, segments):
        self.segments = sorted([each["address"], each["address"] + each["total_size"], each["stream"]]
                               for each in segments)
        self.blocks = {block["address"]
                       for each in segments for block in each["blocks"]
                       if block["state"] in ("active_allocated", "active_pending_free")}

    def check(self):
        lost = [hex(block) for block in self.blocks
                if not any(begin <= block < end for begin, end, _ in self.segments)]
        assert not lost, f"blocks in no segment: {lost}"

    def undo(self, event):
        action, at = event["action"], event.get("addr")
        if action == "alloc":
            self.blocks.remove(at)
        elif action == "free_completed":
            assert at not in self.blocks, "a block lives there"
            self.blocks.add(at)
        elif action == "free_requested":
            assert at in self.blocks, "no block lives there"
        elif action.startswith("segment_"):
            self.undo_memory(action, [at, at + event["size"], event["stream"]])

    def undo_memory(self, action, piece):
        if action == "segment_alloc":
            self.segments.remove(piece)
        elif action in ("segment_free", "segment_unmap"):
            self.segments.append(piece)
            if action == "segment_unmap":
                self.join()
        else:
            whole = next(each for each in self.segments if each[0] <= piece[0] and piece[1] <= each[1])
            self.segments.remove(whole)
            self.segments += [part for part in ([whole[0], piece[0], whole[2]], [piece[1], whole[1], whole[2]])
                              if part[0] < part[1]]

    def join(self):
        joined = []
        for begin, end, stream in sorted(self.segments):
            if joined and joined[-1][1:] == [begin, stream]:
                joined[-1][1] = end
            else:
                joined.append([begin, end, stream])
        self.segments = joined


def walk(snapshot):
    for device, events in enumerate(snapshot["device_traces"]):
        view = View([each for each in snapshot["segments"] if each["device"] == device])
        view.check()
        for number, event in reversed(list(enumerate(events))):
            try:
                view.undo(event)
                view.check()
            except (AssertionError, KeyError, StopIteration, ValueError) as reason:
                sys.exit(f"device {device}, event {number}, {event['action']}: {reason!r}")


if __name__ == "__main__":
    with open(sys.argv[1], "rb") as file:
        walk(pickle.load(file))
