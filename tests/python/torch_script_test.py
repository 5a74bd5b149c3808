"""python -m cistern.torch, with nothing of PyTorch: what is used and recorded is made up (made_up_torch)."""

import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import cistern
import pytest
from conftest import PACKAGE

MADE_UP = Path(__file__).with_name("made_up_torch")
TRACE = '# {"name": "made up"}\na %d 0 5\nf 0 5\n'
ONE = json.dumps({"0": TRACE % (3 << 20)})
THREE = json.dumps({"1": TRACE % (3 << 30), "10": TRACE % (1 << 30), "0": TRACE % (2 << 30)})
GIB = 1 << 30
USED_ONE = json.dumps({"0": (3 << 20, GIB, 12, 3, 0, 0, 7, 2_000_000)})
USED_THREE = json.dumps({"0": (2 * GIB, 2 * GIB, 5, 0, 1, 0, 1, 500_000_000), "1": (3 * GIB, 4 * GIB, 6, 0, 0, 2, 0, 10**9),
                         "10": (GIB, 8 * GIB, 7, 1, 0, 0, 0, 0)})
MORE = ("cistern.torch: --compare before the script adds what PyTorch's own allocator would have reserved, and "
        "--report PAGE.html draws who held the memory\n")
PEERS = ("PyTorch", "PyTorch, expandable segments")


@pytest.fixture
def launch(tmp_path):
    """Runs Python in an empty folder, with the made-up PyTorch; returns what it printed and its exit status."""
    (tmp_path / "at").mkdir()
    with tempfile.TemporaryDirectory(dir="/tmp") as short:  # a socket's path has 107 bytes at most
        (tmp_path / "tmp").symlink_to(short)

        def launched(*arguments, python=("-m", "cistern.torch"), expect=0, shell=None, **environment):
            command = [sys.executable, "-B", *python, *map(str, arguments)]
            ran = subprocess.run(
                command if shell is None else ["sh", "-c", f'"$@" {shell}', "sh", *command],
                capture_output=True, text=True, timeout=120, check=False, cwd=tmp_path / "at",
                env={**os.environ, "PYTHONPATH": f"{MADE_UP}:{PACKAGE}", "TMPDIR": short,
                     "TRACES": ONE, "USED": USED_ONE, **environment})
            assert ran.returncode == expect, ran.stderr
            return ran

        yield launched


@pytest.fixture
def script(tmp_path):
    def written(source, name="script.py"):
        (tmp_path / name).write_text(source)
        return tmp_path / name

    return written


def left(tmp_path):
    return sorted(path.name for path in (tmp_path / "tmp").iterdir())


# ---- What was used -----------------------------------------------------------------------------------


def test_three_lines_say_what_was_used_and_nothing_is_recorded(launch, script, tmp_path):
    assert launch(script("")).stderr == (
        "cistern.torch: the script's process requested 3.00 MiB at the peak on cuda:0, and Cistern reserved 1.00 GiB\n"
        "cistern.torch: Cistern took memory from the driver 12 times, gave some back 3 times and moved 7 pages, in 0.002 "
        "s; 0 requests waited for that, and 0 failed for lack of memory\n" + MORE)
    assert left(tmp_path) == []


def test_of_several_gpus_the_fullest_is_named_and_counts_are_summed(launch, script):
    assert launch(script(""), USED=USED_THREE).stderr == (
        "cistern.torch: the script's process requested 3.00 GiB at the peak on cuda:1, the fullest of 3 GPUs, and Cistern "
        "reserved 4.00 GiB\n"
        "cistern.torch: Cistern took memory from the driver 18 times, gave some back 1 time and moved 1 page, in 1.500 s; "
        "1 request waited for that, and 2 failed for lack of memory\n" + MORE)


def test_a_script_without_cuda_is_said_to_have_used_nothing(launch, script):
    assert launch(script(""), USED="{}").stderr == (
        "cistern.torch: the script's process requested no GPU memory through PyTorch\n"
        "cistern.torch: PyTorch finds a GPU, whose memory Cistern would have served\n" + MORE)
    no_gpu = script("import sys, types\n"
                    "sys.modules['torch'] = types.SimpleNamespace(cuda=types.SimpleNamespace(is_available=bool))")
    assert launch(no_gpu, USED="{}").stderr.splitlines()[1] == (
        "cistern.torch: PyTorch finds no GPU, and `cistern doctor` says what this machine has")


def test_without_the_native_mode_a_line_says_why_and_the_script_runs_on_the_plug_in(launch, script):
    program = script("import cistern.torch; print(cistern.torch.enabled())")
    ran = launch(program, NO_NATIVE="no crt/host_config.h, and said:\na.cpp:1: error")
    assert ran.stdout == "plugin\n"
    assert ran.stderr.startswith("cistern.torch: no crt/host_config.h, and said; PyTorch's plug-in interface is used "
                                 "instead, without ") and ran.stderr.count("\n") == 1
    for option in ("--report", "--trace"):
        refused = launch(option, "file", program, expect=1, NO_NATIVE="no headers")
        assert (refused.stdout, refused.stderr) == ("", "cistern.torch: no headers\n")


def test_a_process_of_torchrun_names_its_rank(launch, script):
    first = "cistern.torch: the script's process requested"
    assert launch(script(""), RANK="0", WORLD_SIZE="1").stderr.startswith(first)
    assert launch(script(""), RANK="3", WORLD_SIZE="4").stderr.startswith(first.replace("process", "process of rank 3"))


@pytest.mark.parametrize("end", ["raise MemoryError('of the script')", "import sys; sys.exit(3)"])
def test_a_script_that_fails_has_the_three_lines_last(launch, script, end):
    ran = launch(script(end), expect=1 if "raise" in end else 3)
    assert ran.stderr.splitlines()[-3].startswith("cistern.torch: the script's process") and ran.stderr.endswith(MORE)
    assert ran.stderr.count("\n") == 3 or "MemoryError: of the script\ncistern.torch: " in ran.stderr


@pytest.mark.parametrize("options, recorded", [(["--compare"], "a trace"), (["--trace", "t"], "a trace"),
                                               (["--report", "p"], "a history"), (["--compare", "--report", "p"], "a history")])
def test_an_option_that_needs_a_record_makes_one(launch, script, options, recorded):
    said = launch(*options, script("")).stderr
    assert said.startswith(f"made up: {recorded} is recorded\ncistern.torch: the script's process requested 3.00 MiB")
    assert MORE not in said and ("PyTorch, expandable segments" in said) == ("--compare" in options)


# ---- The end ---------------------------------------------------------------------------------------


def test_a_child_of_fork_leaves_its_parents_recording_alone(launch, script, tmp_path):
    forks = script("""
import os, sys
pid = os.fork()
if pid == 0:
    sys.exit(0)
os.waitpid(pid, 0)
print("the parent goes on")
""")
    ran = launch("--trace", tmp_path / "f.trace", forks)
    assert ran.stdout == "the parent goes on\n" and ran.stderr.count("requested") == 1
    assert (tmp_path / "f.trace").read_text() == TRACE % (3 << 20)
    assert left(tmp_path) == []


def test_the_trace_goes_where_the_command_said(launch, script, tmp_path):
    launch("--trace", "f.trace.gz", script("import os; os.chdir('/')"))
    with gzip.open(tmp_path / "at/f.trace.gz", "rt") as text:
        assert text.read() == TRACE % (3 << 20)


@pytest.mark.parametrize("wanted", ["none/f.trace", "", "folder", "file/f.trace"])
def test_a_trace_that_cannot_be_written_is_said_before_anything_is_run(launch, script, tmp_path, wanted):
    (tmp_path / "at/folder").mkdir()
    (tmp_path / "at/file").touch()
    ran = launch("--trace", wanted, script("print('run')"), expect=1)
    assert ran.stdout == "" and left(tmp_path) == []
    assert re.fullmatch(r"python -m cistern.torch: --trace: .*at/.*\n", ran.stderr)


def test_a_script_that_is_not_there_leaves_no_trace(launch, tmp_path):
    ran = launch("--trace", "f.trace", "none.py", expect=1)
    assert ran.stderr == "python -m cistern.torch: there is no script none.py\n"
    assert list((tmp_path / "at").iterdir()) == [] and left(tmp_path) == []


def test_a_trace_that_is_there_is_kept_until_the_end(launch, script, tmp_path):
    (tmp_path / "at/f.trace").write_text("before")
    ran = launch("--trace", "f.trace", script("print(open('f.trace').read())"))
    assert ran.stdout == "before\n" and (tmp_path / "at/f.trace").read_text() == TRACE % (3 << 20)


def test_what_cannot_be_written_at_the_end_is_kept_elsewhere(launch, script, tmp_path):
    (tmp_path / "at/gone").mkdir()
    ran = launch("--trace", "gone/f.trace", script("import os; os.rmdir('gone')"))
    assert "requested" in ran.stderr
    kept = Path(re.search(r"what was recorded is kept in (.*)", ran.stderr)[1])
    assert kept.parent.samefile(tmp_path / "tmp") and (kept / "0.trace").read_text() == TRACE % (3 << 20)


@pytest.mark.parametrize("how", ["sys.stdout.close()", "sys.stdout = None", "os.close(1)",
                                 "sys.stderr.close()", "sys.stderr = None", "sys.stderr = object()",
                                 "sys.stdout = object()", "sys.stderr = open('f', 'w')"])
def test_streams_that_are_gone_lose_nothing(launch, script, tmp_path, how):
    program = [sys.executable, "-m", "cistern.torch", "--trace", "f.trace", script(f"import os, sys; {how}")]
    ran = launch("-c", f"import subprocess; subprocess.run({list(map(str, program))!r})", python=())
    assert "requested" in ran.stderr
    assert (tmp_path / "at/f.trace").exists() and left(tmp_path) == []


@pytest.mark.parametrize("shell", [">/dev/full", ">&-", "2>&-", "2>/dev/full", ">&- 2>&-"])
def test_streams_that_never_were_lose_no_trace(launch, script, tmp_path, shell):
    program = script("import sys; sys.stdout and sys.stdout.write('said')")
    launch("--trace", "f.trace", program, shell=f"{shell}; :")
    assert (tmp_path / "at/f.trace").read_text() == TRACE % (3 << 20) and left(tmp_path) == []


# ---- The page --------------------------------------------------------------------------------------


def test_a_page_is_drawn_and_named(launch, script, tmp_path):
    ran = launch("--report", "page.html", script("import os; os.chdir('/')"))
    assert (tmp_path / "at/page.html").read_text() == "0.trace" and left(tmp_path) == []
    assert ran.stderr.splitlines()[-1] == f"cistern.torch: the report is {tmp_path / 'at/page.html'}"


def test_the_gpus_of_a_run_share_a_page(launch, script, tmp_path):
    launch("--report", "page.html", "--trace", "t.trace", script(""), TRACES=THREE)
    assert (tmp_path / "at/page.html").read_text() == "0.trace 1.trace 10.trace"
    assert (tmp_path / "at/t.trace").read_text() == TRACE % (2 << 30) and left(tmp_path) == []


def test_each_process_of_torchrun_has_a_page(launch, script, tmp_path):
    launch("--report", "page.html", script(""), RANK="3", WORLD_SIZE="4")
    launch("--report", "alone.html", script(""), RANK="0", WORLD_SIZE="1")
    assert (tmp_path / "at/page.rank3.html").exists() and (tmp_path / "at/alone.html").exists()


@pytest.mark.parametrize("end", ["raise MemoryError", "import sys; sys.exit(3)"])
def test_a_script_that_fails_has_a_page(launch, script, tmp_path, end):
    launch("--report", "page.html", script(end), expect=1 if "raise" in end else 3)
    assert (tmp_path / "at/page.html").exists()


def test_what_cannot_be_drawn_is_kept(launch, script, tmp_path):
    ran = launch("--report", "page.html", script(""), NO_PAGE="this build cannot draw")
    assert "cistern.torch: --report: this build cannot draw\n" in ran.stderr and "requested" in ran.stderr
    kept = Path(re.search(r"what was recorded is kept in (.*)", ran.stderr)[1])
    assert (kept / "0.trace").exists() and not (tmp_path / "at/page.html").exists()


def test_what_is_not_whole_is_said_and_drawn(launch, script, tmp_path):
    ran = launch("--report", "page.html", script(""), NOT_WHOLE="no space left")
    assert "cistern.torch: the trace is not whole: no space left\n" in ran.stderr
    assert (tmp_path / "at/page.html").exists()


@pytest.mark.parametrize("wanted", ["none/page.html", ""])
def test_a_page_that_cannot_be_written_is_said_before_anything_is_run(launch, script, tmp_path, wanted):
    ran = launch("--report", wanted, script("print('run')"), expect=1)
    assert ran.stdout == "" and re.fullmatch(r"python -m cistern.torch: --report: .*at/.*\n", ran.stderr)


def test_a_script_without_cuda_has_no_page(launch, script, tmp_path):
    ran = launch("--report", "page.html", script(""), TRACES="{}", expect=1)
    assert "--report: nothing was recorded, and no file is written" in ran.stderr
    launch("--report", "page.html", script("import sys; sys.exit(3)"), TRACES="{}", expect=3)
    assert not (tmp_path / "at/page.html").exists() and left(tmp_path) == []


# ---- The comparison ----------------------------------------------------------------------------------


def compared(ran):
    return dict(re.findall(r"^  (\S.*?)  +([\d.]+) GiB", ran.stderr, re.M))


def test_the_comparison_has_the_figures_of_the_trace(launch, script, tmp_path):
    rows = compared(launch("--compare", script("")))
    assert left(tmp_path) == [] and rows == {"asked for": "0.003", "reserved": "1.000", "PyTorch": "0.020",
                    "PyTorch, expandable segments": "0.020"}


def test_uses_by_other_streams_count_in_the_models(launch, script, tmp_path):
    used = TRACE.replace("}", ', "stream_uses": "recorded"}').replace("f 0 5\n", "f 0 5\na %d 1 5\ne 0 5\n")
    rows = compared(launch("--compare", script(""), TRACES=json.dumps({"0": used % (30 << 20, 30 << 20)})))
    assert rows["asked for"] == "0.029" and rows["PyTorch"] == "0.059"


def test_a_model_without_a_figure_says_why(launch, script, tmp_path):
    lacks = TRACE.replace("}", ', "stream_uses": "missing"}') + "a 5 1 5\n"
    ran = launch("--compare", script(""), TRACES=json.dumps({"0": lacks % (3 << 20)}))
    for peer in PEERS:
        assert re.search(rf"^  {peer} +.*: no figure: .* \(stream_uses", ran.stderr, re.M), ran.stderr
    assert "modelled" not in ran.stderr


def test_several_gpus_are_summed_and_have_a_trace_each(launch, script, tmp_path):
    ran = launch("--compare", "--trace", "t.trace.gz", script(""), TRACES=THREE, USED=USED_THREE)
    assert "at the peak, the sum of 3 GPUs" in ran.stderr
    rows = compared(ran)
    assert rows["asked for"] == "6.000" and rows["reserved"] == "14.000"
    assert all(6 <= float(rows[peer]) < 6.1 for peer in PEERS)
    for name, gib in (("t", 2), ("t.cuda1", 3), ("t.cuda10", 1)):
        path = tmp_path / f"at/{name}.trace.gz"
        assert cistern.replay(path).peak_requested_bytes == gib << 30
        assert str(path) in ran.stderr


def test_a_script_without_cuda_has_no_trace_and_no_comparison(launch, script, tmp_path):
    ran = launch("--compare", "--trace", "f.trace", script(""), TRACES="{}", USED="{}", expect=1)
    assert "requested no GPU memory" in ran.stderr and "no file is written" in ran.stderr and not compared(ran)
    assert not (tmp_path / "at/f.trace").exists() and left(tmp_path) == []


def test_a_trace_that_cannot_be_replayed_has_a_reason(launch, script, tmp_path):
    ran = launch("--compare", "--trace", "f.trace", script(""), TRACES='{"0": "none"}')
    assert re.search(r"^  PyTorch +\S", ran.stderr, re.M) and "reserved" in ran.stderr
    assert (tmp_path / "at/f.trace").read_text() == "none" and left(tmp_path) == []


@pytest.mark.parametrize("wanted, made", [("t.trace", "t.cuda1.trace"), ("t.trace.gz", "t.cuda1.trace.gz"),
                                          ("v1.5.gz", "v1.cuda1.5.gz"), ("t", "t.cuda1"),
                                          ("a.b/t", "a.b/t.cuda1")])
def test_names_beside(wanted, made):
    from cistern.torch import _recording
    assert _recording.beside(wanted, 1) == made
