"""Cistern's own history under PyTorch: files of each device, dumps of a failure, and the example's plants."""

import json
import re
from pathlib import Path

from conftest import run_alone

TRAIN = Path(__file__).resolve().parents[2] / "examples/train.py"
BEGIN = """
import os, sys, tempfile
from cistern.torch import _native
cistern.torch.enable("native")
"""


def texts(lines, kind):
    return [line.split(" ", 1)[1] for line in lines if line.startswith(f"{kind} ")]


def stack_of(lines, number):
    """Its frames, the innermost first: "function file line"."""
    frames, nodes = texts(lines, "N"), texts(lines, "S")
    found = []
    while number:
        number, frame = map(int, nodes[number - 1].split())
        found.append(frames[frame - 1])
    return found


def test_each_device_has_a_file(tmp_path):
    run_alone(BEGIN + f"""
_native.record_begin({str(tmp_path)!r}, "a name!", history=True)
def ours(device):
    return torch.empty(3 << 20, dtype=torch.uint8, device=device)
for device in ("cuda:0", "cuda:1"):
    with cistern.label("made"):
        held = ours(device)
cistern.mark("step 1")
assert _native.record_end(history=True) is None
""")
    for device in (0, 1):
        lines = (tmp_path / f"{device}.trace").read_text().splitlines()
        assert json.loads(lines[0][2:])["name"] == "aname"
        allocation = next(line.split() for line in lines if line.startswith(f"a {3 << 20} "))
        assert stack_of(lines, int(allocation[5]))[0].startswith('"ours" "<string>" ')
        assert texts(lines, "L") == ['0 "made"'] and any(line.endswith('"step 1"') for line in texts(lines, "t"))


def test_a_backward_pass_has_stacks_of_its_own_thread(tmp_path):
    run_alone(BEGIN + f"""
weight = torch.ones(3 << 18, device="cuda", requires_grad=True)
loss = (weight * 2).sum()
_native.record_begin({str(tmp_path)!r}, "name", history=True)
loss.backward()
assert _native.record_end(history=True) is None
""")
    lines = (tmp_path / "0.trace").read_text().splitlines()
    functions = [frame.split('"')[1] for line in lines if line.startswith(f"a {3 << 20} ") and line.split()[3] != "0"
                 for frame in stack_of(lines, int(line.split()[5]))]
    assert any("autograd" in each for each in functions) and not any(each.startswith("cistern") for each in functions)


def test_a_failure_leaves_a_dump_and_its_error_names_the_command(tmp_path):
    out, _ = run_alone(f"""
try:
    cistern.torch.enable("native", oom_dump={str(tmp_path)!r} + "/none")
except ValueError as wrong:
    print(wrong)
cistern.torch.enable("native", oom_dump={str(tmp_path)!r})
def keep():
    return torch.empty(5 << 20, dtype=torch.uint8, device="cuda")
held = keep()
try:
    torch.empty(1 << 45, dtype=torch.uint8, device="cuda")
except torch.OutOfMemoryError as full:
    print(full)
""")
    assert out.startswith(f"cistern.torch: oom_dump: {tmp_path}/none is no folder\n")
    dumps = list(tmp_path.glob("oom-*.trace"))
    assert len(dumps) == 1 and f"cistern report {dumps[0]}" in out
    lines = dumps[0].read_text().splitlines()
    assert lines[-1].startswith(f"o {1 << 45} ") and any('"keep"' in frame for frame in texts(lines, "N"))


def test_the_example_runs_out_of_memory_where_it_says(tmp_path):
    run_alone(BEGIN + f"""
sys.argv = ["train.py"]
source = open({str(TRAIN)!r}).read()
_native.record_begin({str(tmp_path)!r}, "train", history=True)
try:
    exec(compile(source, {str(TRAIN)!r}, "exec"), {{"__name__": "__main__"}})
except torch.OutOfMemoryError:
    print("out of memory")
assert _native.record_end(history=True) is None
""")
    lines = (tmp_path / "0.trace").read_text().splitlines()
    failed = next(line for line in lines if line.startswith("o "))
    assert stack_of(lines, int(failed.split()[4]))[0].startswith('"Attention.forward" ')
    report = json.loads(re.search(r"\{.*", failed)[0])
    assert report["requested"] + report["allocated"] > report["limit"] == 512 << 20
    allocations = [line.split() for line in lines if line.startswith("a ")]
    freed = {int(line.split()[1]) for line in lines[:lines.index(failed)] if line.startswith("f ")}
    held = {}
    for number, allocation in enumerate(allocations):
        if number not in freed:
            name = stack_of(lines, int(allocation[5]))[0].split('"')[1]
            held[name] = held.get(name, 0) + int(allocation[1])
    assert max(held, key=held.get) == "Index.load" and held["Index.load"] == 272 << 20
    assert held["Samples.keep"] == 24 * (2 << 20)
