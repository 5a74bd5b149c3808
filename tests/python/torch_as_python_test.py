"""python -m cistern.torch script.py is as python script.py, -m module as python -m module, and so are the processes
that they begin."""

import re
import sys
import zipfile

import pytest
from torch_script_test import launch, left, script  # noqa: F401: fixtures

FACTS = """
import os, sys
names = sorted(set(globals()) - {"__annotations__"})
print(sys.argv, sys.path, __file__, __name__, __spec__, __package__, __builtins__, type(__loader__))
print(names, sys.modules["__main__"].__dict__ is globals(), list[int] if sys.version_info > (3, 9) else 0)
def annotated(of: int): pass
print(annotated.__annotations__)
"""


def both(launch, *arguments, **environment):  # noqa: F811
    """What a script prints by python, and on Cistern."""
    return [re.sub("at 0x[0-9a-f]+", "", launch(*arguments, python=python, **environment).stdout)
            for python in ((), ("-m", "cistern.torch"))]


@pytest.mark.parametrize("arguments", [[], ["--", "-x"], ["--trace", "t"], ["-h"], ["a", "--", "", "-"]])
def test_arguments_are_passed_on_as_they_are(launch, script, arguments):  # noqa: F811
    plain, ours = both(launch, script(FACTS), *arguments)
    assert plain == ours != ""


def test_two_dashes_before_the_script_are_not_its(launch, script):  # noqa: F811
    program = script("import sys; print(sys.argv[1:])")
    assert launch("--trace=t", "--", program, "--", "x").stdout == "['--', 'x']\n"


@pytest.mark.parametrize("arguments", [[], ["--trace"], ["--trace", "t"], ["--other", "s.py"], ["--compare=1", "s.py"], ["--compare"], ["--"], ["-m"], ["--trace", "t", "-m"]])
def test_a_command_that_is_none(launch, arguments):  # noqa: F811
    assert "usage: python -m cistern.torch" in launch(*arguments, expect=2).stderr


@pytest.mark.parametrize("name", ["../script.py", "./link.py", "link.py", "folder/../link.py", "other/link.py"])
def test_paths_are_as_by_python(launch, script, tmp_path, name):  # noqa: F811
    script(FACTS)
    (tmp_path / "at/folder").mkdir()
    (tmp_path / "at/link.py").symlink_to("../script.py")
    (tmp_path / "at/other").symlink_to(tmp_path / "at")
    plain, ours = both(launch, name)
    assert plain == ours != ""


@pytest.mark.skipif(sys.version_info < (3, 11), reason="a variable of Python 3.11")
def test_the_safe_path_is_respected(launch, script):  # noqa: F811
    plain, ours = both(launch, script(FACTS), PYTHONSAFEPATH="1")
    assert plain == ours != ""


def test_main_is_there_after_the_last_line(launch, script):  # noqa: F811
    plain, ours = both(launch, script("""
import atexit, pickle, threading, time
class Kept: pass
def ends(when): print(when, type(pickle.loads(pickle.dumps(Kept()))).__module__)
def works():
    time.sleep(0.2)
    ends("thread")
atexit.register(ends, "exit")
threading.Thread(target=works).start()
"""))
    assert plain == ours == "thread __main__\nexit __main__\n"


@pytest.mark.parametrize("name", ["program.zip", "program"])
def test_a_program_of_several_files(launch, tmp_path, name):  # noqa: F811
    sources = {"__main__.py": "import sys, beside; print(beside.x, sys.argv, sys.path)", "beside.py": "x = 1"}
    for file, text in sources.items():
        if name.endswith(".zip"):
            with zipfile.ZipFile(tmp_path / name, "a") as packed:
                packed.writestr(file, text)
        else:
            (tmp_path / name).mkdir(exist_ok=True)
            (tmp_path / name / file).write_text(text)
    plain, ours = both(launch, tmp_path / name, "x")
    assert plain.split("] [")[0] == ours.split("] [")[0] and str(tmp_path / name) in ours


# ---- Modules ---------------------------------------------------------------------------------------


@pytest.fixture
def modules(tmp_path):
    """Of the current folder: `plain`, and a package whose __main__ and `inner` import `beside`."""
    at = tmp_path / "at"
    (at / "package").mkdir()
    (at / "plain.py").write_text(FACTS)
    for name in ("__main__", "inner"):
        (at / f"package/{name}.py").write_text("from . import beside\n" + FACTS)
    (at / "package/__init__.py").touch()
    (at / "package/beside.py").touch()


@pytest.mark.parametrize("module", [["-m", "plain"], ["-mplain"], ["-m", "package"], ["-m", "package.inner"]])
@pytest.mark.parametrize("arguments", [[], ["--", "-x"], ["-m", "x"], ["--trace", "t"], ["-h"]])
def test_a_module_is_run_as_by_python(launch, modules, module, arguments):  # noqa: F811
    plain, ours = both(launch, *module, *arguments)
    assert plain == ours != ""


def test_options_come_before_the_module(launch, modules, tmp_path):  # noqa: F811
    ran = launch("--trace", "t.trace", "-m", "package.inner", "--trace", "x")
    assert ran.stdout.startswith(f"['{tmp_path / 'at/package/inner.py'}', '--trace', 'x']")
    assert (tmp_path / "at/t.trace").exists() and not (tmp_path / "at/x").exists()


def test_a_script_may_be_called_like_the_option(launch, tmp_path):  # noqa: F811
    (tmp_path / "at/-m").write_text("import sys; print(sys.argv)")
    assert launch("--", "-m", "x").stdout == "['-m', 'x']\n"


@pytest.mark.skipif(sys.version_info < (3, 11), reason="a variable of Python 3.11")
def test_a_module_is_not_looked_for_in_the_current_folder_if_that_is_unsafe(launch, modules, tmp_path):  # noqa: F811
    for python in (("-m", "cistern.torch"), ()):
        ran = launch("-m", "plain", python=python, expect=1, PYTHONSAFEPATH="1")
        assert "No module named plain" in ran.stderr


@pytest.mark.parametrize("name", ["none", "package.none", "none.inner", "os.none", ""])
def test_a_module_that_is_not_there(launch, modules, name, tmp_path):  # noqa: F811
    plain, ours = (launch("-m", name, python=python, expect=1).stderr for python in ((), ("-m", "cistern.torch")))
    assert plain.splitlines()[-1] in ours.splitlines()
    assert left(tmp_path) == []


@pytest.mark.parametrize("way", ["spawn", "forkserver", "fork"])
def test_children_of_a_module_are_on_cistern(launch, tmp_path, way):  # noqa: F811
    (tmp_path / "at/package").mkdir()
    (tmp_path / "at/package/begins.py").write_text(CHILDREN)
    name = "__main__" if way == "fork" else "__mp_main__"
    assert launch("-m", "package.begins", way).stdout == f"1 native {name} begins.py\n0 native {name} begins.py\n"


def test_an_error_names_its_line(launch, script):  # noqa: F811
    program = script("\n\nraise ValueError('why')\n")
    said = launch(program, expect=1).stderr
    assert f'File "{program}", line 3' in said and "raise ValueError('why')" in said
    assert "line 2" in launch(script("x = 1\nx = = 2\n"), expect=1).stderr


def test_exit_statuses(launch, script):  # noqa: F811
    launch(script("import sys; sys.exit(7)"), expect=7)
    launch(script("raise SystemExit"), expect=0)


# ---- Children --------------------------------------------------------------------------------------

CHILDREN = """
import multiprocessing, os, sys
import cistern.torch
def says(depth):
    print(depth, cistern.torch.enabled(), __name__, os.path.basename(__file__), flush=True)
    if depth:
        begins(depth - 1)
def begins(depth):
    child = multiprocessing.get_context(sys.argv[1]).Process(target=says, args=(depth,))
    child.start()
    child.join()
    assert child.exitcode == 0
if __name__ == "__main__":
    os.chdir("/")
    begins(1)
"""


@pytest.mark.parametrize("way", ["spawn", "forkserver", "fork"])
def test_children_have_the_mode_of_their_parent(launch, script, way):  # noqa: F811
    ran = launch(script(CHILDREN), way, NO_NATIVE="no headers")
    assert [line.split()[1] for line in ran.stdout.splitlines()] == ["plugin", "plugin"]


@pytest.mark.parametrize("way", ["spawn", "forkserver", "fork"])
def test_children_are_on_cistern_and_record_nothing(launch, script, tmp_path, way):  # noqa: F811
    program = script(CHILDREN)
    name = "__main__" if way == "fork" else "__mp_main__"
    ran = launch("--compare", program, way)
    assert ran.stdout == f"1 native {name} script.py\n0 native {name} script.py\n"
    assert ran.stderr.count("recorded") == ran.stderr.count("requested") == 1 and left(tmp_path) == []
    plain = launch(program, way, python=())
    assert plain.stdout == ran.stdout.replace("native", "None")


def test_children_for_which_there_is_no_pytorch_run_as_before(launch, script):  # noqa: F811
    ran = launch(script("import os; os.environ['NO_TORCH'] = '1'\n" + CHILDREN), "spawn")
    assert ran.stdout == "1 None __mp_main__ script.py\n0 None __mp_main__ script.py\n"
    assert "not on Cistern" not in ran.stderr


def test_nothing_of_the_current_folder_is_imported(launch, script, tmp_path):  # noqa: F811
    for name in ("gzip", "torch", "argparse", "atexit", "json", "pkgutil", "runpy", "multiprocessing"):
        (tmp_path / "at" / f"{name}.py").write_text(f"print('the folder has a {name}')")
    ran = launch(script("import gzip; print('ran')"))
    assert ran.stdout == "ran\n"
