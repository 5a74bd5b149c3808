"""The ends of processes, children of fork, and libraries that are not there."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest
from cistern import _places

SETUP = """
import os, sys, threading, time, traceback
import cistern
allocator = cistern.Allocator("sim")
pool, stream, buffer = allocator.pool(), allocator.stream(), allocator.buffer(1000)
with stream.recording():
    capture = allocator.capture(stream)
"""
ENDS = {
    "plainly": "",
    "with a cycle": "allocator.me = allocator; pool.me = pool; buffer.me = [buffer, pool]",
    "in a scope": "pool.scope().__enter__()",
    "by sys.exit in a scope": "with pool.scope(): sys.exit(0)",
    "by os._exit": "os._exit(0)",
    "by an atexit function that allocates": """
import atexit
atexit.register(lambda: allocator.free(allocator.allocate(1000)))""",
    "with an object whose end allocates": """
class Late:
    def __del__(self):
        allocator.free(allocator.allocate(1000)); buffer.free(); pool.destroy()
sys.late = Late()""",
    "with threads in calls": """
def work():
    while True:
        allocator.free(allocator.allocate(5 << 20))
for _ in range(4):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.05)""",
    "with the shared allocator": "shared = cistern.default(); kept = shared.buffer(1000)",
    "with everything in sys.modules": "sys.modules['everything'] = [allocator, pool, buffer, capture]",
}


@pytest.mark.parametrize("how", ENDS)
def test_a_process_ends(run, how):
    program = SETUP + ENDS[how]
    for _ in range(3):
        run(program, CISTERN_BACKEND="sim")


IN_A_CHILD = SETUP + """
def child(check):
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            check()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    _, status = os.waitpid(pid, 0)
    assert status == 0, status
"""


def test_a_child_of_fork_gets_exceptions(run):
    run(IN_A_CHILD + """
def refused(call, what):
    try:
        call()
    except cistern.InvalidStateError as error:
        assert "before a fork" in str(error) and what in str(error), error
    else:
        raise SystemExit(f"{what} was used")

def check():
    refused(lambda: allocator.allocate(1000), "an allocator")
    refused(lambda: allocator.free(buffer._owned.raw), "an allocator")
    refused(allocator.stats, "an allocator")
    refused(lambda: pool.allocate(1), "a pool")
    refused(lambda: pool.scope().__enter__(), "a pool")
    refused(lambda: buffer.size, "a buffer")
    refused(stream.synchronize, "an allocator")
    refused(lambda: stream.handle, "a stream")
    refused(lambda: capture.launching(0), "a capture")
    assert all("before a fork" in repr(thing) for thing in (allocator, pool, stream, buffer, capture))
    for end in (buffer.free, pool.destroy, stream.destroy, capture.release, allocator.destroy):
        end()  # the parent's: nothing happens

with pool.scope():
    child(check)
allocator.free(0)
assert buffer.size == 1024 and pool.use_count == 1
buffer.free(); capture.release(); pool.destroy(); stream.destroy(); allocator.destroy()
""")


def test_a_child_may_make_its_own_and_end_as_it_likes(run):
    run(IN_A_CHILD + """
def check():
    global pool, buffer, stream, capture, allocator
    del pool, buffer, stream, capture, allocator
    with cistern.Allocator("sim") as own, own.buffer(1000) as block:
        assert block.size == 1024
    grandchild = os.fork()
    if grandchild == 0:
        os._exit(0)
    assert os.waitpid(grandchild, 0)[1] == 0
child(check)
assert buffer.size == 1024

pid = os.fork()
if pid == 0:
    with buffer:
        sys.exit(0)  # an ordinary exit, with all that the parent had
assert os.waitpid(pid, 0)[1] == 0
assert allocator.stats().all.allocation.current == 1
""")


def test_a_scope_that_is_open_at_a_fork_ends_quietly_in_the_child(run):
    run(IN_A_CHILD + """
with pool.scope(), pool.stream_scope(stream), stream.recording():
    pid = os.fork()
if pid == 0:
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
assert pool.use_count == 1
""")


def test_multiprocessing_by_fork_and_by_spawn(run, tmp_path):
    (tmp_path / "worker.py").write_text("""
import cistern
def work(size):
    with cistern.Allocator("sim") as allocator, allocator.buffer(size) as buffer:
        return buffer.size
""")
    for way in ("fork", "spawn"):
        printed = run(f"""
import multiprocessing, sys
sys.path.insert(0, {str(tmp_path)!r})
import worker, cistern
if __name__ == "__main__":
    kept = cistern.Allocator("sim").buffer(1000)
    with multiprocessing.get_context({way!r}).Pool(2) as pool:
        print(pool.map(worker.work, [1000, 2000, 3000]))
""")
        assert printed == "[1024, 2048, 3072]\n"


# ---- The library ---------------------------------------------------------------------------------


def test_without_a_library_the_import_names_what_was_looked_for(run, site, tmp_path):
    nowhere = tmp_path / "nowhere"
    said = run("import cistern", expect=1, PYTHONPATH=str(site), CISTERN_ROOT=str(nowhere))
    assert f"ImportError: cistern: CISTERN_ROOT is '{nowhere}', and libcistern.so.0 is not there; looked for:" in said
    assert f"\n  {nowhere}/build/release/libcistern.so.0\n" in said
    said = run("import cistern", expect=1, PYTHONPATH=str(site), CISTERN_ROOT="")
    assert re.search(r"^ImportError: cistern: libcistern.so.0 is not found; looked for:", said, re.M)
    assert f"\n  {site}/cistern/_lib/libcistern.so.0\n" in said
    assert "Install the package (./dev wheel makes its wheel)" in said


def test_a_library_that_is_none_is_named(run, site, tmp_path):
    place = tmp_path / "root/build/release"
    place.mkdir(parents=True)
    (place / "libcistern.so.0").write_text("not a library")
    said = run("import cistern", expect=1, PYTHONPATH=str(site), CISTERN_ROOT=str(tmp_path / "root"))
    assert "ImportError: cistern: " in said and f"{place}/libcistern.so.0 cannot be used" in said


def test_places_stay_when_the_program_goes_to_another_folder(run, site, monkeypatch):
    root = _places.library().parents[2]
    monkeypatch.chdir(root.parent)
    printed = run("import os; from cistern import _places; os.chdir('/'); print(_places.library())",
                  PYTHONPATH=str(site), CISTERN_ROOT=root.name)
    assert printed == f"{root}/build/release/libcistern.so.0\n"


def test_places_are_looked_for_in_their_order(run, site):
    inside = site / "cistern"
    program = "from cistern import _places as p; print(*map(str, [{}]), sep='\\n')"
    every = "p.library(), p.command(), p.include()"
    (inside / "_lib").mkdir()
    shutil.copy(_places.library(), inside / "_lib/libcistern.so.0")
    for folder in ("_sources/include", "_sources/interop/torch"):
        (inside / folder).mkdir(parents=True)
    printed = run(program.format(every + ", p.torch_sources()"), PYTHONPATH=str(site), CISTERN_ROOT="")
    assert printed.split() == [str(inside / "_lib/libcistern.so.0"), "None",
                               str(inside / "_sources/include"), str(inside / "_sources/interop/torch")]
    root = _places.library().parents[2]
    printed = run(program.format(every), PYTHONPATH=str(site), CISTERN_ROOT=str(root))
    assert printed.split() == [str(root / "build/release/libcistern.so.0"),
                               str(root / "build/release/interop/command/cistern"),
                               str(root / "include")]


def unshared(*options):
    behind = ["unshare", *options, *([] if os.geteuid() == 0 else ["-r"])]
    if subprocess.run([*behind, "true"], capture_output=True).returncode != 0:
        pytest.skip(f"{' '.join(behind)} is not allowed here")
    return behind


def test_processes_of_one_number_write_the_same_snapshot(tmp_path):
    """In two PID namespaces, as in two containers."""
    behind = unshared("-p", "-f")
    program = ("import cistern, json, os, sys\n"
               "with cistern.Allocator('sim') as allocator:\n"
               "    for _ in range(300):\n"
               "        block = allocator.allocate(1 << 20)\n"
               "        allocator.snapshot(sys.argv[1])\n"
               "        json.load(open(sys.argv[1]))\n"
               "print(os.getpid())\n")
    command = [*behind, sys.executable, "-c", program, str(tmp_path / "shot.json")]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    said = [each.communicate(timeout=120) for each in both]
    assert said == [("1\n", "")] * 2
    assert [path.name for path in tmp_path.iterdir()] == ["shot.json"]


def test_a_process_of_the_overflow_user_allocates_as_ever(tmp_path):
    if subprocess.run(["unshare", "-U", "true"], capture_output=True).returncode != 0:
        pytest.skip("no user namespace is allowed here")
    program = "import cistern, os; cistern.Allocator('sim').allocate(1 << 20); print(os.geteuid())"
    ended = subprocess.run(["unshare", "-U", sys.executable, "-c", program], capture_output=True, text=True)
    assert ended.stdout == pathlib.Path("/proc/sys/kernel/overflowuid").read_text(), ended.stderr
