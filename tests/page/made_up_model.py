"""The model of a report, as docs of the page have it, from the events of a made-up program."""

import collections
import math

from made_up_program import ALLOCATE, FAILED, FREE, MAP, MARK, RELEASE, RESERVE, UNMAP, USES_END

FIELDS = ("kind", "us", "address", "bytes", "stack", "label", "pool", "stream", "block")


class State:
    """What lives after some events."""
    def __init__(self):
        self.live, self.pending, self.ranges, self.asleep = {}, {}, {}, {}
        self.asked = 0

    def apply(self, event):
        kind, _, address, size, *_, block = event
        if kind == ALLOCATE:
            self.live[block] = event
            self.asked += size
        elif kind == FREE:
            self.pending[block] = self.live.pop(block)
            self.asked -= size
        elif kind == USES_END:
            self.pending.pop(block)
        elif kind in (RESERVE, MAP):
            self.ranges[address] = event
            self.move(self.asleep, self.live, address, size)
        elif kind in (RELEASE, UNMAP):
            del self.ranges[address]
            self.move(self.live, self.asleep, address, size)

    def move(self, of, to, address, size):
        """The blocks in a range fall asleep, or wake."""
        for block in [block for block, event in of.items() if address <= event[2] < address + size]:
            to[block] = of.pop(block)
            self.asked += to[block][3] if to is self.live else -to[block][3]

    def reserved(self):
        return sum(event[3] for event in self.ranges.values())

    def holders(self):
        groups = collections.defaultdict(lambda: [0, 0, 0])
        for event in self.live.values():
            group = groups[(event[4], event[5], event[6], event[7])]
            group[0] += 1
            group[1] += event[3]
            group[2] = max(group[2], event[3])
        return sorted(([*key, *group] for key, group in groups.items()), key=lambda row: -row[5])


def states(program, *numbers):
    """The state after each of these numbers of events, in order."""
    state, found = State(), {}
    waits = {event[8] for event in program.events if event[0] == USES_END}
    if 0 in numbers:
        found[0] = State()
    for i, event in enumerate(program.events, start=1):
        state.apply(event)
        if event[0] == FREE and event[8] not in waits:
            state.pending.pop(event[8])
        if i in numbers:
            copied = State()
            copied.live, copied.pending, copied.ranges = dict(state.live), dict(state.pending), dict(
                state.ranges)
            copied.asked, copied.asleep = state.asked, dict(state.asleep)
            found[i] = copied
    return found


def timeline(program, columns):
    """Columns of equal time; each has its most, and who held it then."""
    end = program.events[-1][1]
    edges = [end * i / columns for i in range(columns + 1)]
    state, next_event = State(), 0
    asked, reserved, keyed = [], [], {name: [] for name in ("pool", "stream", "label", "site")}
    place = {"site": 4, "label": 5, "pool": 6, "stream": 7}
    waits = {event[8] for event in program.events if event[0] == USES_END}
    for column in range(columns):
        top = (state.asked, dict(state.live))
        most_reserved = state.reserved()
        while next_event < len(program.events) and program.events[next_event][1] <= edges[column + 1]:
            event = program.events[next_event]
            state.apply(event)
            if event[0] == FREE and event[8] not in waits:
                state.pending.pop(event[8])
            if state.asked >= top[0]:
                top = (state.asked, dict(state.live))
            most_reserved = max(most_reserved, state.reserved())
            next_event += 1
        asked.append(top[0])
        reserved.append(most_reserved)
        for name, index in place.items():
            sums = collections.Counter()
            for event in top[1].values():
                sums[event[index]] += event[3]
            keyed[name].append(sums)
    return {
        "edges": edges, "asked": asked, "allocated": None, "reserved": reserved, "limit": program.limit,
        "stacked": {name: stacked(sums)
                    for name, sums in keyed.items()}, "policies": []
    }


def stacked(sums):
    """The 14 largest keys by peak, then the others as -1."""
    peaks = collections.Counter()
    for column in sums:
        for key, value in column.items():
            peaks[key] = max(peaks[key], value)
    largest = [key for key, _ in peaks.most_common(14)]
    rows = [[key, [column.get(key, 0) for column in sums]] for key in largest]
    if len(peaks) > len(largest):
        rows.append([-1, [sum(v for k, v in column.items() if k not in largest) for column in sums]])
    return rows


def window(program, first, last):
    """The events from `first` up to `last`, and what lived before them."""
    start = states(program, first)[first]
    events = program.events[first:last]
    old = [*start.live.values(), *start.asleep.values(), *start.pending.values()]
    numbers = {event[8]: i for i, event in enumerate(old)}
    rows, address, time = {name: [] for name in ("kind", "dt_us", "address", *FIELDS[3:])}, 0, None
    time = program.events[first - 1][1] if first > 0 else 0
    for event in events:
        kind, us, at, size, stack, label, pool, stream, block = event
        if kind == ALLOCATE:
            numbers[block] = len(numbers)
        number = numbers[block] if kind in (ALLOCATE, FREE, USES_END) else 0
        for name, value in zip(rows, (kind, us - time, at - address, size, stack, label, pool, stream, number)):
            rows[name].append(value)
        time, address = us, at
    names = {"address": 2, "bytes": 3, "stack": 4, "label": 5, "pool": 6, "stream": 7, "since_us": 1}
    blocks = {name: [event[index] for event in old] for name, index in names.items()}
    blocks["pending"] = [0] * (len(start.live) + len(start.asleep)) + [1] * len(start.pending)
    sleeps, asleep = [], set()
    for number, state in states(program, *range(first, last + 1)).items():
        sleeps += [[numbers[block], number - first, int(block in state.asleep)]
                   for block in asleep.symmetric_difference(state.asleep)]
        asleep = set(state.asleep)
    ended = {event[8] for event in events if event[0] == USES_END}
    later = {event[8] for event in program.events[last:] if event[0] == USES_END}
    freed = [event[8] for event in events if event[0] == FREE]
    waiting = [numbers[block] for block in freed if block in later - ended]
    return {
        "first": first, "count": len(events), "waiting": waiting, "sleeps": sleeps,
        "start_us": program.events[first - 1][1] if first > 0 else 0, "blocks": blocks, "events": rows,
        "ranges": [[event[2], event[3], event[6], event[7], 0 if event[0] == RESERVE else 1]
                   for event in start.ranges.values()]
    }


def moment(program, state, number, kind, title, windows):
    """After `number` events; a failure is the event before."""
    found = next((i for i, w in enumerate(windows) if w["first"] <= number <= w["first"] + w["count"]), None)
    request = None
    if kind == "failure":
        _, _, _, size, stack, label, pool, stream, _ = program.events[number - 1]
        request = {"bytes": size, "stream": stream, "pool": pool, "label": label, "stack": stack}
    return {
        "kind": kind, "title": title, "at_us": program.events[number - 1][1] if number else 0, "event": number,
        "asked": state.asked, "asleep": sum(event[3] for event in state.asleep.values()), "allocated": None, "reserved": state.reserved(), "limit": program.limit,
        "request": request, "holders": state.holders(), "unused": [], "advice": [], "device_error": "",
        "window": found, "at": number - windows[found]["first"] if found is not None else 0
    }


def histogram(values, weights=None):
    counts, sums = collections.Counter(), collections.Counter()
    for i, value in enumerate(values):
        log = int(math.log2(max(1, value)))
        counts[log] += 1
        sums[log] += weights[i] if weights else value
    return [[log, counts[log], sums[log]] for log in sorted(counts)]


def lives(program):
    born = {event[8]: event for event in program.events if event[0] == ALLOCATE}
    freed = {event[8]: event[1] for event in program.events if event[0] == FREE}
    return [(event[3], freed[block] - event[1]) for block, event in born.items() if block in freed]


def flame(state):
    sums = collections.defaultdict(lambda: [0, 0])
    for event in state.live.values():
        sums[event[4]][0] += event[3]
        sums[event[4]][1] += 1
    return [[stack, *both] for stack, both in sums.items()]


def calls(program):
    names = {RESERVE: "segment_alloc", RELEASE: "segment_free", MAP: "map", UNMAP: "unmap"}
    return [[
        name,
        sum(e[0] == kind for e in program.events),
        sum(e[3] for e in program.events if e[0] == kind)
    ] for kind, name in names.items()]


def recording(program, name, columns=200, spans=(), moments=()):
    """`spans`: (first, last) of each window; `moments`: (number of events, kind, title)."""
    windows = [window(program, first, last) for first, last in spans]
    peak = max(states(program, *range(1, len(program.events) + 1)).items(), key=lambda item: item[1].asked)[0] \
        if len(program.events) <= 5000 else None
    moments = sorted([*moments, *([(peak, "peak", "")] if peak else []), (len(program.events), "end", "")])
    found = states(program, *(number for number, *_ in moments))
    finished = lives(program)
    pairs = collections.Counter((int(math.log2(size)), int(math.log2(max(1, us)))) for size, us in finished)
    allocated = [event for event in program.events if event[0] == ALLOCATE]
    at_peak = found[peak] if peak else found[moments[0][0]]
    return {
        "name": name, "file": f"{name}.trace", "source": "trace", "device": "cuda:0", "placed_by": None,
        "events": len(program.events), "allocations": len(allocated), "failed": len(program.failures),
        "duration_us": program.events[-1][1], "has_times": True, "notes": ["This recording is made up."],
        "streams": program.streams, "pools": program.pools, "labels": program.labels, "frames": program.frames,
        "stacks": program.stacks, "timeline": timeline(program, columns), "windows": windows, "moments": [
            moment(program, found[number], number, kind, title, windows) for number, kind, title in moments
        ], "heat": None,
        "flame": {"peak": flame(at_peak), "end": flame(found[len(program.events)]),
                  "longest": []}, "sizes": histogram([event[3] for event in allocated]),
        "lifetimes": histogram([us for _, us in finished], [size for size, _ in finished]),
        "size_life": [[*both, n] for both, n in sorted(pairs.items())
                      ], "leaks": [], "labels_peak": [], "calls": calls(program)
    }


def model(*recordings, comparison=None):
    return {
        "format": 1, "made_by": "Cistern, made up", "command": "cistern report made-up.trace",
        "recordings": list(recordings), "comparison": comparison
    }
