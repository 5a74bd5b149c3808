"""Made-up recordings whose answers are known: who held the memory, what failed, and which line leaks."""

import base64

import made_up_model as models
from made_up_program import MIB, Program

MAIN = ("main", "train.py", 120)
TORCH = ("call", "/usr/lib/python3/site-packages/torch/nn/module.py", 1501)


def training():
    """Attention holds most. Each step leaks 1 MiB at train.py:88. The last step asks for 96 MiB and finds no memory."""
    program = Program(limit=384 * MIB)
    program.pools, program.streams = ["default", "private (0, 1)"], ["0", "7"]
    train = program.label("train")
    forward = program.label("forward", train)
    attention = program.label("attention", forward)
    optimizer = program.label("optimizer", train)
    weights = program.stack(MAIN, ("build", "model.py", 31))
    states = program.stack(MAIN, ("make_states", "optimizer.py", 55))
    act = program.stack(MAIN, ("step", "train.py", 71), TORCH, ("forward", "model.py", 64))
    scores = program.stack(MAIN, ("step", "train.py", 71), TORCH, ("attend", "attention.py", 42))
    log = program.stack(MAIN, ("step", "train.py", 71), ("log_loss", "train.py", 88))
    copies = program.stack(MAIN, ("prefetch", "loader.py", 17))
    for _ in range(6):
        program.allocate(10 * MIB, weights, train)
    for _ in range(4):
        program.allocate(8 * MIB, states, optimizer)
    program.allocate(12 * MIB, weights, train, pool=1)
    failed = []
    for step in range(9):
        program.mark(f"step {step}")
        held = [program.allocate(9 * MIB, act, forward) for _ in range(4 + step % 3)]
        held += [program.allocate(40 * MIB, scores, attention) for _ in range(3)]
        program.allocate(MIB, log, train)
        batch = program.allocate(6 * MIB, copies, 0, stream=1)
        if step == 8:
            program.allocate(96 * MIB, scores, attention)
            failed.append(len(program.events))
        program.free(batch, used_elsewhere=True)
        for block in filter(None, reversed(held)):
            program.free(block)
        program.uses_end(batch)
    return program, failed, {
        "log": log, "scores": scores, "act": act, "forward": forward, "attention": attention, "train": train
    }


def heat(recording, rows, columns):
    """A coarse map that fills from the left, for a picture whose look is known."""
    edges = [recording["duration_us"] * i / columns for i in range(columns + 1)]
    used = bytes(
        min(255, 255 * column // columns) if row < rows * 3 // 4 else 0 for column in range(columns)
        for row in range(rows))
    return {
        "rows": rows, "columns": columns, "edges": edges, "row_bytes": 8 * MIB,
        "segments": [[0x7F0000000000, rows * 8 * MIB, 0, rows]], "used": base64.b64encode(used).decode(),
        "mapped": base64.b64encode(bytes(255 for _ in range(rows * columns))).decode()
    }


def training_recording(name="training"):
    program, failed, known = training()
    number = failed[0]
    recording = models.recording(program,
                                 name,
                                 spans=[(0, 60), (number - 60, number + 12)],
                                 moments=[(number, "failure", "Failed request"),
                                          *((i, "mark", program.marks[event[8]])
                                            for i, event in enumerate(program.events, start=1) if event[0] == 8)
                                          ])
    failure = next(moment for moment in recording["moments"] if moment["kind"] == "failure")
    free = failure["reserved"] - failure["asked"]
    failure["unused"] = [{
        "why": "too_small", "bytes": free - 14 * MIB, "largest": 12 * MIB,
        "text": f"{(free - 14 * MIB) >> 20} MiB is free in pieces of at most 12 MiB, smaller than the request."
    }, {"why": "other_stream", "bytes": 14 * MIB, "largest": 14 * MIB, "text": "14 MiB belongs to stream 7."}]
    failure["advice"] = [
        "A limit that is 64 MiB higher would have been enough.",
        "Expandable segments would have joined the free pieces."
    ]
    recording["leaks"] = [{
        "stack": known["log"], "label": known["train"], "blocks": 9, "bytes": 9 * MIB, "first_us": 100000,
        "growth": [MIB * (i * 9 // 19) for i in range(20)], "bytes_per_second": 12.5 * MIB, "bytes_per_step": MIB,
        "size": None
    }]
    recording["labels_peak"] = [{
        "label": known["train"], "peak": 420 * MIB, "at_us": failure["at_us"], "end": 101 * MIB
    }, {"label": known["forward"], "peak": 300 * MIB, "at_us": failure["at_us"],
        "end": 0}, {"label": known["attention"], "peak": 156 * MIB, "at_us": failure["at_us"], "end": 0}]
    flame = recording["flame"]
    flame["longest"] = [[stack, size, blocks, 250000] for stack, size, blocks in flame["end"]]
    recording["timeline"]["policies"] = [{
        "name": "torch", "reserved": [int(1.1 * value) for value in recording["timeline"]["reserved"]],
        "failed_at": failure["at_us"], "peak": 500 * MIB
    }, {
        "name": "torch-expandable",
        "reserved": [int(0.9 * value) for value in recording["timeline"]["reserved"]], "failed_at": None,
        "peak": 430 * MIB
    }]
    recording["heat"] = heat(recording, 48, 100)
    recording["marks"] = [[event[1], i, program.marks[event[8]]]
                          for i, event in enumerate(program.events) if event[0] == 8]
    return recording, known


def bare_recording():
    """A program without stacks, labels, addresses, reserved memory or times."""
    program = Program(limit=1 << 40)
    for block in [program.allocate(MIB) for _ in range(10)]:
        program.free(block)
    recording = models.recording(program, "bare")
    recording.update(has_times=False, calls=[], device="")
    recording["timeline"].update(reserved=None, limit=None)
    for moment in recording["moments"]:
        moment.update(reserved=None, limit=None)
    return recording


def empty_recording():
    """A recording without any event."""
    recording = bare_recording()
    flat = {"edges": [0], "asked": [], "allocated": None, "reserved": None, "limit": None, "policies": [],
            "stacked": {"pool": [], "stream": [], "label": [], "site": []}}
    recording.update(events=0, allocations=0, duration_us=0, timeline=flat, moments=[], windows=[], sizes=[],
                     lifetimes=[], size_life=[], flame={"peak": [], "end": [], "longest": []})
    return recording


def failing_recording():
    """Five requests that find no memory."""
    program = Program(limit=32 * MIB)
    numbers = []
    for _ in range(5):
        program.allocate(MIB)
        program.allocate(40 * MIB)
        numbers.append(len(program.events))
    return models.recording(program, "failures", spans=[(0, len(program.events))],
                            moments=[(number, "failure", "Failed request") for number in numbers])


def snapshot_recording():
    """What lives at one moment, without any history: every event happens at once."""
    program = Program(limit=64 * MIB, tick_us=0)
    for _ in range(3):
        program.allocate(4 * MIB, program.stack(MAIN, ("build", "model.py", 31)))
    recording = models.recording(program, "snapshot", columns=1, spans=[(0, len(program.events))])
    recording["heat"] = heat(recording, 4, 1)
    return recording


def sleeping_recording():
    """A pool sleeps, while another lives: event 5 is the sleep, event 6 the wake."""
    program = Program(limit=64 * MIB)
    program.pools = ["default", "weights (0, 1)"]
    line = program.stack(MAIN, ("build", "model.py", 31))
    program.allocate(6 * MIB, line)
    program.allocate(12 * MIB, line, pool=1)
    program.sleep(program.segments[1])
    program.wake(program.segments[1])
    return models.recording(program, "sleeping", spans=[(0, len(program.events))])


def compared():
    """Two nights: attention grew, the log went."""
    before, known = training_recording("monday")
    after, _ = training_recording("tuesday")
    comparison = {
        "before": 0, "after": 1, "peak": [400 * MIB, 480 * MIB],
        "grew": [[known["scores"], known["scores"], "train / forward / attention", 100 * MIB, 180 * MIB, 3,
                  5]], "went": [[known["log"], -1, "train", 9 * MIB, 0, 9, 0]]
    }
    return models.model(before, after, comparison=comparison)


def named(name):
    """The model of a story."""
    return {
        "training": lambda: models.model(training_recording()[0]),
        "bare": lambda: models.model(bare_recording()), "compared": compared,
        "failures": lambda: models.model(failing_recording()),
        "sleeping": lambda: models.model(sleeping_recording()),
        "snapshot": lambda: models.model(snapshot_recording()),
        "empty": lambda: models.model(empty_recording()),
        "both": lambda: models.model(training_recording()[0], bare_recording())
    }[name]()
