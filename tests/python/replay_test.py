"""Figures are those that the command prints."""

import dataclasses
import gzip
import inspect
import io
import json
import os
import pathlib
import pickle
import pty
import re
import subprocess

import cistern
import pytest
from cistern import _places


def by_hand(*arguments):
    ran = subprocess.run([_places.command(), "replay", "--json", *arguments], capture_output=True,
                         text=True)
    (row,) = ran.stdout.splitlines()
    return json.loads(row)


def different(replay, row):
    """What differs, but for what depends on the machine: its speed, where its memory lies."""
    return {name: (getattr(replay, name), value) for name, value in row.items()
            if name not in ("ns_per_event", "host_bytes_peak") and getattr(replay, name) != value}


@pytest.mark.parametrize("policy", ["cistern", "torch-rules", "torch-expandable", "driver-pool", "direct"])
def test_figures_are_those_of_the_command(trace, policy):
    replay = cistern.replay(trace, policy, gpu_lag_us=10000)
    row = by_hand("--device=sim", "--policy", policy, "--gpu-lag-us=10000", str(trace))
    assert replay.ok and replay.failure == "" and replay.ns_per_event > 0
    assert different(replay, row) == {} and replay.policy == policy
    assert replay.peak_reserved_bytes >= replay.peak_requested_bytes


def test_every_key_of_the_command_is_a_field(trace):
    named = {field.name for field in dataclasses.fields(cistern.Replay)}
    assert named == set(by_hand("--device=sim", str(trace)))


def test_what_was_run_is_in_the_result(trace):
    replay = cistern.replay(trace, conf="expandable_segments:true", capacity="64GiB", gpu_lag_us=7, repeat=2, check=True)
    assert (replay.conf, replay.capacity_bytes, replay.gpu_lag_us) == ("expandable_segments:true", 64 << 30, 7)
    assert (replay.repeat, replay.threads, replay.checked, replay.races) == (2, 1, True, 0)
    assert replay.version == cistern.__version__ and replay.program_ms > 0


def test_an_argument_without_effect_is_a_warning(trace):
    with pytest.warns(UserWarning, match="--conf has no effect: .* direct does not"):
        replay = cistern.replay(trace, "direct", conf="expandable_segments:true")
    assert replay.ok and replay.conf is None
    with pytest.warns(UserWarning):
        replay = cistern.replay(trace, "direct", conf="expandable_segments:true", capacity="1GiB")
    assert not replay.ok and "note" not in replay.failure and "out of memory" in replay.failure


def long_command(tmp_path, monkeypatch):
    """A command that shows progress where it is told, and a row that is not ok, with its reason."""
    program = tmp_path / "cistern"
    row = by_hand("--device=sim", str(tmp_path / "short.trace"))
    row.update(ok=False, failure="why")
    program.write_text(f"""#!/bin/sh
for argument; do case $argument in --progress=*) echo HALFWAY >>"${{argument#--progress=}}";; esac; done
echo '{json.dumps(row)}'
exit 1
""")
    program.chmod(0o755)
    monkeypatch.setattr(_places, "command", lambda: program)


@pytest.mark.parametrize("progress, shown", [(True, True), (False, False)])
def test_progress_goes_to_the_terminal_and_the_failure_to_the_result(tmp_path, monkeypatch, progress, shown):
    path = tmp_path / "short.trace"
    path.write_text("a 1000 0 1\n")
    long_command(tmp_path, monkeypatch)
    ours, theirs = pty.openpty()
    kept = os.dup(2)
    try:
        os.dup2(theirs, 2)
        replay = cistern.replay(path, progress=progress)
    finally:
        os.dup2(kept, 2)
        os.close(kept)
    os.set_blocking(ours, False)
    try:
        text = os.read(ours, 4096)
    except BlockingIOError:
        text = b""
    os.close(ours)
    os.close(theirs)
    assert replay.failure == "why" and (b"HALFWAY" in text) == shown and b"why" not in text


def test_nothing_is_shown_without_a_terminal(tmp_path, monkeypatch, capfd):
    path = tmp_path / "short.trace"
    path.write_text("a 1000 0 1\n")
    long_command(tmp_path, monkeypatch)
    assert cistern.replay(path).failure == "why"
    assert capfd.readouterr().err == ""


def test_options_and_rounds_and_fit_and_threads_count(trace):
    replay = cistern.replay(trace, conf={"recycle": "off", "page_size": "20MiB"}, repeat=2)
    assert not different(replay, by_hand("--device=sim", "--no-recycle", "--page-size=20MiB", "--repeat=2",
                                str(trace)))
    assert len(replay.calls_by_round) == 2 and replay.fit is None
    assert 0.9 < cistern.replay(trace, fit=True).fit <= 1
    assert cistern.replay(trace, threads=2).events == replay.events


def test_a_program_that_does_not_fit_is_a_result(trace):
    for capacity in (1 << 30, "1GiB"):
        replay = cistern.replay(trace, capacity=capacity)
        assert not replay.ok and replay.efficiency is None
        assert "out of memory on sim device 0" in replay.failure
        assert replay.peak_reserved_bytes <= 1 << 30


def test_a_block_that_another_stream_uses_is_reserved_until_the_use_ends(tmp_path):
    path = tmp_path / "used.trace"
    path.write_text(f"a {40 << 20} 0 1\nf 0 2\na {40 << 20} 0 2\ne 0 3\n")
    for policy in ("cistern", "torch-rules", "torch-expandable"):
        replay = cistern.replay(path, policy)
        assert replay.peak_reserved_bytes == 2 * replay.peak_requested_bytes == 80 << 20


def test_a_trace_that_lacks_the_uses_has_no_figure(tmp_path):
    path = tmp_path / "lacks.trace"
    path.write_text('# {"name": "x", "stream_uses": "missing"}\na 1000 0 1\na 2000 3 1\nf 0 2\n')
    with pytest.raises(cistern.ReplayError, match="policy torch-expandable: no figure.*stream_uses"):
        cistern.replay(path, "torch-expandable")
    assert cistern.replay(path, "direct").peak_requested_bytes == 3000


def test_races_are_looked_for(tmp_path):
    path = tmp_path / "short.trace"
    path.write_text("a 1000 0 1\na 2000 0 1\nf 0 2\nf 1 3\n")
    replay = cistern.replay(path, check=True)
    assert replay.ok and replay.events == 4 and replay.trace == "short"


def test_a_file_may_have_any_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("-", "--help", "a b,c.trace", "\u00fc.trace"):
        (tmp_path / name).write_text("a 1000 0 1\nf 0 2\n")
        assert cistern.replay(name).events == 2


@pytest.mark.parametrize("arguments, kind, text", [
    ({"trace": "none.trace"}, cistern.ReplayError, "none.trace.*No such file"),
    ({"trace": __file__}, cistern.ReplayError, r"replay_test.py:1:1: expected"),
    ({"trace": 5}, TypeError, "trace must be a path, not int"),
    ({"trace": "a\0b"}, cistern.InvalidArgumentError, "null character"),
    ({"policy": "best"}, cistern.ReplayError, "best"),
    ({"policy": "cistern,direct"}, cistern.InvalidArgumentError, "one policy"),
    ({"policy": None}, TypeError, "policy must be a str"),
    ({"conf": "speed:11"}, cistern.ReplayError, "speed"),
    ({"conf": 5}, TypeError, "conf"),
    ({"capacity": "much"}, cistern.ReplayError, "much"),
    ({"capacity": -1}, cistern.InvalidArgumentError, "capacity is -1"),
    ({"capacity": 1.5}, TypeError, "capacity must be an int"),
    ({"capacity": 1 << 30, "fit": True}, cistern.ReplayError, "fit"),
    ({"device": "quantum"}, cistern.ReplayError, "quantum"),
    ({"repeat": 0}, cistern.ReplayError, "repeat"),
    ({"threads": 10**6}, cistern.ReplayError, "threads"),
    ({"capacity": "24"}, cistern.ReplayError, "24 is 24 bytes; write 24GiB"),
    ({"progress": "yes"}, TypeError, "progress must be a bool, not str"),
    ({"gpu_lag_us": "1"}, TypeError, "gpu_lag_us must be an int"),
])
def test_what_cannot_be_replayed_says_why(trace, arguments, kind, text):
    with pytest.raises(kind, match=text):
        cistern.replay(**{"trace": trace, **arguments})


def test_a_gpu_of_a_snapshot_is_chosen():
    snapshot = pathlib.Path(__file__).parents[1] / "trace/samples/snapshot.p4.pickle"
    with pytest.raises(cistern.ReplayError, match=r"p4.pickle: records several GPUs: choose one by gpu=N "
                                                  r"\(snapshot.p4 \[cuda:0\], snapshot.p4 \[cuda:1\]\)"):
        cistern.replay(snapshot)
    replay = cistern.replay(snapshot, gpu=1)
    assert replay.trace == "snapshot.p4 [cuda:1]" and replay.file == str(snapshot)
    with pytest.raises(cistern.ReplayError, match="has no history of cuda:2; it has that of cuda:0, cuda:1"):
        cistern.replay(snapshot, gpu=2)
    with pytest.raises(TypeError, match="gpu must be an int"):
        cistern.replay(snapshot, gpu="1")


def snapshot_of(traces, segments):
    return pickle.dumps({"device_traces": traces, "segments": segments})


EVENT = {"action": "alloc", "addr": 1 << 20, "size": 512, "stream": 0}
SEGMENT = {"device": 1, "address": 1 << 20, "stream": 0,
           "blocks": [{"address": 1 << 20, "size": 512, "state": "active_allocated"}]}


def test_a_file_that_records_nothing_says_how_to_record(tmp_path):
    for content, text in [
        (b"", "is empty; `cistern run --trace FILE"),
        (b'# {"name": "x"}\n', "records no allocation; `cistern run --trace FILE"),
        (b"Thread,Time,Action,Pointer,Size,Stream\n", "set RMM's logging resource"),
        (snapshot_of([], [SEGMENT]), r"only 1 block of 512 B .*torch.cuda.memory._record_memory_history\("),
        (snapshot_of([[], []], []), r"has no history of allocations; call torch.cuda.memory._record"),
    ]:
        path = tmp_path / "nothing"
        path.write_bytes(content)
        with pytest.raises(cistern.ReplayError, match=text):
            cistern.replay(path)


def test_memory_without_a_history_is_a_warning(tmp_path):
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(snapshot_of([[EVENT]], [SEGMENT]))
    with pytest.warns(UserWarning, match="cuda:1 has 1 block of 512 B and no history"):
        assert cistern.replay(path).ok


def test_without_the_command_the_error_names_where_it_was_looked_for(trace, monkeypatch):
    monkeypatch.setattr(_places, "command", lambda: None)
    with pytest.raises(cistern.NotSupportedError, match="looked for:\n  .*_bin/cistern|interop/command"):
        cistern.replay(trace)


def test_a_command_that_dies_is_an_error(trace, tmp_path, monkeypatch):
    program = tmp_path / "cistern"
    program.write_text("#!/bin/sh\nkill -9 $$\n")
    program.chmod(0o755)
    monkeypatch.setattr(_places, "command", lambda: program)
    with pytest.raises(cistern.ReplayError, match="ended with -9"):
        cistern.replay(trace)


def test_the_arguments_are_the_options_of_the_command():
    printed = subprocess.run([_places.command(), "replay", "--help"], capture_output=True, text=True, check=True).stdout
    options = {name.replace("-", "_") for name in re.findall(r"^  (?:-h,)?--([a-z-]+)", printed, re.M)}
    options -= {"help", "json", "csv", "overflow"}  # the results are objects, of the allocators' rules alone
    several = set(inspect.signature(cistern.replay_all).parameters)
    assert several == options - {"policy"} | {"traces", "policies"}
    assert set(inspect.signature(cistern.replay).parameters) == several - {"traces", "policies"} | {"trace", "policy"}


def test_a_program_that_is_made_up():
    made_up = cistern.replay(generate="serve:3")
    assert not different(made_up, by_hand("--device=sim", "--generate", "serve:3")) and made_up.trace == "serve:3"
    with pytest.raises(cistern.InvalidArgumentError, match="is 2 programs"):
        cistern.replay(generate="serve:1-2")
    with pytest.raises(cistern.InvalidArgumentError, match="either a trace or generate="):
        cistern.replay()
    with pytest.raises(cistern.InvalidArgumentError, match="either a trace or generate="):
        cistern.replay("it.trace", generate="serve:1")


def test_several_options_the_last_of_which_wins(trace):
    several = cistern.replay(trace, conf=["recycle:eager,page_size:2MiB", {"recycle": "off"}], page_size=20 << 20)
    row = by_hand("--device=sim", "--conf=recycle:eager,page_size:2MiB", "--conf=recycle:off", "--page-size=20MiB",
                  str(trace))
    assert not different(several, row) and several.pages["recycled"] == 0
    assert not different(cistern.replay(trace, no_recycle=True), by_hand("--device=sim", "--no-recycle", str(trace)))


def test_a_file_that_is_open(trace):
    with open(trace, "rb") as file:
        replay = cistern.replay(file)
    assert replay.events == cistern.replay(trace).events
    assert cistern.replay(io.BytesIO(b"a 1000 0 1\nf 0 2\n")).events == 2
    with pytest.raises(TypeError, match="must be a binary file, and its read.. gave str"):
        cistern.replay(io.StringIO("a 1000 0 1\n"))
    with pytest.raises(cistern.InvalidArgumentError, match="two files that are open"):
        cistern.replay_all([io.BytesIO(b""), io.BytesIO(b"")])


def test_what_may_be_unpacked_and_the_picture(tmp_path, trace):
    packed = tmp_path / "long.trace.gz"
    packed.write_bytes(gzip.compress(b"a 1000 0 1\nf 0 2\n" * 10000))
    with pytest.raises(cistern.ReplayError, match="long.trace.gz"):
        cistern.replay(packed, max_unpacked="1KiB")
    picture = tmp_path / "it.svg"
    assert cistern.replay(trace, plot=picture).ok and "<svg" in picture.read_text()
    with pytest.raises(cistern.ReplayError, match="has to end in .svg"):
        cistern.replay(trace, plot=tmp_path / "it.png")


def test_several_programs_under_several_policies(tmp_path):
    traces = []
    for name, size in (("small", 1000), ("large", 3 << 20)):
        traces.append(tmp_path / f"{name}.trace")
        traces[-1].write_text(f"a {size} 0 1\nf 0 2\n")
    rows = cistern.replay_all(traces, ["cistern", "direct"], generate=["serve:1"], capacity="2MiB")
    assert [(row.trace, row.policy) for row in rows] == [
        (name, policy) for name in ("small", "large", "serve:1") for policy in ("cistern", "direct")]
    assert [row.ok for row in rows] == [True, True, False, False, False, False]
    for row in rows:
        assert bool(row.failure) != row.ok and "cistern: " not in row.failure
    assert [row.policy for row in cistern.replay_all(traces[:1])] == ["cistern"]
    with pytest.raises(cistern.ReplayError, match="needs a trace"):
        cistern.replay_all()
    for arguments in ({"traces": str(traces[0])}, {"traces": traces[0]}, {"policies": "direct"}, {"generate": "serve:1"}):
        with pytest.raises(TypeError, match=f"{next(iter(arguments))} must be several"):
            cistern.replay_all(**{"traces": traces, **arguments})


def test_a_picture_that_cannot_be_written_is_an_error(tmp_path):
    file = tmp_path / "short.trace"
    file.write_text("a 1000 0 1\nf 0 2\n")
    with pytest.raises(cistern.ReplayError, match="cannot be written"):
        cistern.replay(file, plot="/nowhere/it.svg")
