"""Histories: stacks of Python, labels, marks, and their files."""

import json
import re
import threading

import cistern
import pytest
from conftest import MIB


def lines(path):
    return path.read_text().splitlines()


def definitions(text, kind):
    """The definitions of one kind: number 1 is the first."""
    return [line.split(" ", 1)[1] for line in text if line.startswith(f"{kind} ")]


def stacks(text):
    """Of each allocation: the names of its functions, the innermost first."""
    frames = [json.loads(re.match(r'"(\\.|[^"])*"', each)[0]) for each in definitions(text, "N")]
    nodes = [list(map(int, each.split())) for each in definitions(text, "S")]
    for line in text:
        if line.startswith("a "):
            number, found = int(line.split()[5]), []
            while number:
                number, frame = nodes[number - 1]
                found.append(frames[frame - 1].rpartition(".")[2])
            yield found


def labels(text):
    """Of each allocation: its label with those around it."""
    tree = [each.split(" ", 1) for each in definitions(text, "L")]
    for line in text:
        if line.startswith("a "):
            number, found = int(line.split()[6]), []
            while number:
                parent, name = tree[number - 1]
                number = int(parent)
                found.insert(0, json.loads(name))
            yield found


def take(allocator, size=MIB):
    return allocator.allocate(size)


def outer(allocator):
    return take(allocator)


@pytest.fixture
def dumped(allocator, tmp_path):
    """The lines of a dump of what is recorded."""

    def dump():
        allocator.dump_history(tmp_path / "dump.trace")
        return lines(tmp_path / "dump.trace")

    return dump


def test_an_allocation_has_its_lines_of_python(allocator, dumped):
    allocator.record_history()
    blocks = [outer(allocator), take(allocator)]
    both = list(stacks(dumped()))
    own = "test_an_allocation_has_its_lines_of_python"
    assert both[0][:3] == ["take", "outer", own] and both[1][:2] == ["take", own]
    for block in blocks:
        allocator.free(block)


def test_equal_stacks_are_one_and_lines_are_told_apart(allocator, dumped):
    allocator.record_history()
    for _ in range(3):
        allocator.free(outer(allocator))
    first = dumped()
    assert len({line.split()[5] for line in first if line.startswith("a ")}) == 1
    allocator.free(outer(allocator))
    assert len({line.split()[5] for line in dumped() if line.startswith("a ")}) == 2


def test_a_frame_names_its_file_and_line(allocator, dumped):
    allocator.record_history()
    allocator.free(take(allocator))
    where = take.__code__.co_firstlineno + 1
    assert any(f'"take" "{__file__}" {where}' in line for line in dumped())


def test_an_error_that_is_on_its_way_stays(allocator, dumped):
    allocator.record_history()

    class Frees:
        def __del__(self):
            exec(compile("allocator.free(allocator.allocate(512))", "new", "exec"), {"allocator": allocator})

    def fail():
        kept = Frees()
        raise ValueError(kept is None)

    with pytest.raises(ValueError):
        fail()
    assert any('"new"' in line for line in dumped())


def test_code_that_is_gone_keeps_its_text(allocator, dumped):
    allocator.record_history()
    for number in range(50):
        exec(compile(f"def f{number}(a): a.free(a.allocate(512))\nf{number}(allocator)", "made", "exec"),
             {"allocator": allocator})
    names = [found[0] for found in stacks(dumped())]
    assert names == [f"f{number}" for number in range(50)]


def test_threads_have_stacks_and_labels_of_their_own(allocator, dumped):
    allocator.record_history()

    def work():
        with cistern.label("there"):
            allocator.free(take(allocator))

    with cistern.label("here"):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert list(labels(dumped())) == [["there"]]
    assert "work" in " ".join(next(stacks(dumped())))


def test_stacks_can_be_left_out(allocator, dumped):
    allocator.record_history(stacks=False)
    allocator.free(take(allocator))
    assert not any(line.startswith(("N ", "S ")) for line in dumped())
    allocator.record_history(stacks="c++")
    allocator.free(take(allocator))
    assert not any("history_test.py" in line for line in dumped())


def test_labels_nest_and_end_with_their_block(allocator, dumped):
    allocator.record_history(stacks=False)

    @cistern.label("decorated")
    def decorated():
        allocator.free(take(allocator))

    again = cistern.label("step")
    with again, cistern.label('a "quoted" né'), again:
        allocator.free(take(allocator))
    with pytest.raises(ValueError), again:
        raise ValueError
    decorated()
    allocator.free(take(allocator))
    assert list(labels(dumped())) == [["step", 'a "quoted" né', "step"], ["decorated"], []]


def test_a_label_knows_its_peak(allocator):
    allocator.record_history(stacks=False)
    with cistern.label("outer"), cistern.label("inner"):
        allocator.free(take(allocator, 3 * MIB))
        block = take(allocator)
    usage = allocator.label_usage()
    assert usage["outer / inner"] == usage["outer"] == cistern.LabelUsage(current=MIB, peak=3 * MIB)
    allocator.free(block)
    assert allocator.label_usage()["outer"].current == 0


def test_a_moment_is_named(allocator, dumped):
    allocator.record_history(stacks=False)
    allocator.mark("step 1")
    cistern.mark("of the shared ones")
    assert [line.split(" ", 2)[2] for line in dumped() if line.startswith("t ")] == ['"step 1"']


def test_a_file_has_every_event_and_can_be_replayed(allocator, tmp_path):
    allocator.record_history(tmp_path / "all.trace", name="whole")
    for _ in range(5000):
        allocator.free(take(allocator, 4096))
    allocator.stop_history()
    text = lines(tmp_path / "all.trace")
    assert sum(line.startswith("a ") for line in text) == 5000
    assert cistern.replay(tmp_path / "all.trace").trace == "whole"


def test_what_cannot_be_is_an_error(allocator, tmp_path):
    with pytest.raises(cistern.InvalidArgumentError, match="stacks is 'rust'"):
        allocator.record_history(stacks="rust")
    with pytest.raises(TypeError, match="stacks must be a bool or a str, not int"):
        allocator.record_history(stacks=1)
    with pytest.raises(cistern.InvalidArgumentError, match="most_events"):
        allocator.record_history(most_events=0)
    with pytest.raises(cistern.FileError, match="none"):
        allocator.record_history(tmp_path / "none/file")
    with pytest.raises(cistern.FileError, match="none"):
        allocator.dump_history(tmp_path / "none/file")
    with pytest.raises(TypeError, match="name must be a str, not int"):
        cistern.label(3)
    with pytest.raises(cistern.InvalidArgumentError, match="null character"):
        cistern.mark("a\0b")
    allocator.stop_history()
    assert allocator.label_usage() == {}


def test_the_end_of_the_interpreter_stops_no_thread(run):
    assert run("""
import threading, time, cistern
allocator = cistern.default()
allocator.record_history()
def work():
    while True:
        allocator.free(allocator.allocate(4096))
for _ in range(4):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.2)
print("end")
""", CISTERN_BACKEND="sim") == "end\n"


def test_a_child_of_fork_ends_although_its_parents_threads_gathered(run):
    assert run("""
import os, sys, threading, time, cistern
allocator = cistern.default()
allocator.record_history()
def work():
    while True:
        allocator.free(allocator.allocate(4096))
for _ in range(4):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.1)
for _ in range(20):
    child = os.fork()
    if child == 0:
        sys.exit(0)
    assert os.waitpid(child, 0)[1] == 0
print("end")
""", CISTERN_BACKEND="sim") == "end\n"


def test_statistics_and_leaks_are_printed_at_the_end(run):
    told = run("""
import os, sys, cistern
os.dup2(1, 2)
cistern.default().allocate(5 << 20)
""", CISTERN_BACKEND="sim", CISTERN_STATS="1")
    assert "5.00 MiB" in told
