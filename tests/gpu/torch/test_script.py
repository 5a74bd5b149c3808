"""python -m cistern.torch: a script that is not changed."""

import gzip
import os
import subprocess
import sys

from cistern import replay

SCRIPT = """
import sys, torch
assert __name__ == "__main__" and sys.argv[1:] == ["--steps", "3"]
blocks = [torch.ones(8 << 20, dtype=torch.uint8, device="cuda") for _ in range(3)]
del blocks[1]
big = torch.ones(16 << 20, dtype=torch.uint8, device="cuda")
print("done", torch.cuda.get_allocator_backend())
sys.exit(7)
"""


def test_a_script_runs_as_it_is_and_its_trace_replays(tmp_path):
    script, trace = tmp_path / "script.py", tmp_path / "kept.trace.gz"
    script.write_text(SCRIPT)
    ran = subprocess.run(
        [sys.executable, "-m", "cistern.torch", "--trace", str(trace), str(script), "--steps", "3"],
        capture_output=True, text=True, check=False,
    )
    assert ran.returncode == 7, ran.stderr
    assert ran.stdout.split() == ["done", "cistern"]
    for said in ("asked for", "reserved", "PyTorch, expandable segments"):
        assert said in ran.stderr
    with gzip.open(trace, "rt") as lines:
        events = [line[0] for line in lines]
    assert events.count("a") == 4 and events.count("f") >= 1
    assert replay(trace).peak_requested_bytes == 32 << 20


def test_no_script_is_said(tmp_path):
    ran = subprocess.run(
        [sys.executable, "-m", "cistern.torch", str(tmp_path / "none.py")],
        capture_output=True, text=True, check=False, env=dict(os.environ),
    )
    assert ran.returncode == 1 and "there is no script" in ran.stderr
