"""`cistern.torch.enable()` where the extension cannot be had: "auto" goes on with a warning, "native" is an
error, whatever went wrong. torch_ahead_test.py has the choice of an extension that was compiled ahead.
No PyTorch: what is made here is no extension, and compilers are scripts."""

import ctypes
import os
import pathlib
import shutil
import stat
import subprocess
import sys
import tempfile
import types
import warnings

import pytest
from cistern.torch import _build, _cached, _compiled, _enable, _native, _newer, _plugin, _private


@pytest.fixture
def cache(monkeypatch, tmp_path):
    """A folder for what is compiled; PyTorch is said to be there."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("CISTERN_CACHE", str(folder))
    monkeypatch.setattr(_enable, "_check_torch", lambda: None)
    monkeypatch.setattr(_enable, "_enabled", None)
    monkeypatch.setattr(_native, "_release", lambda: _native.NEWEST)
    monkeypatch.setattr(_plugin, "install", lambda: None)
    monkeypatch.setattr(_build, "digest", lambda command: "made")
    monkeypatch.setattr(_compiled, "find", lambda: None)
    compiles_by(monkeypatch, tmp_path, "exit 0")
    return folder


def compiles_by(monkeypatch, tmp_path, script):
    """A compiler; $out is what it is to make."""
    compiler = tmp_path / "compiler"
    compiler.write_text(f'#!/bin/sh\necho run >>{tmp_path}/runs\nwhile [ "$1" != -o ]; do shift; done\nout=$2\n'
                        f"{script}\n")
    compiler.chmod(0o755)
    monkeypatch.setattr(_build, "command_line", lambda: [str(compiler)])


def runs(tmp_path):
    return (tmp_path / "runs").read_text().count("run")


def refused(*said):
    with pytest.warns(UserWarning) as warned:
        assert _enable.enable("auto") == "plugin"
    _enable._enabled = None
    with pytest.raises(RuntimeError) as raised:
        _enable.enable("native")
    for text in (str(warned[0].message), str(raised.value)):
        assert all(each in text for each in said), text


@pytest.mark.parametrize("patience, terminal, said", [(0.01, True, True), (0.01, False, False), (60, True, False)])
def test_a_long_compile_says_on_a_terminal_what_it_is_at(cache, monkeypatch, tmp_path, patience, terminal, said):
    compiles_by(monkeypatch, tmp_path, "sleep 0.3; echo made >$out")
    monkeypatch.setattr(_build, "_PATIENCE", patience)
    monkeypatch.setattr(_build.os, "isatty", lambda number: number == 2 and terminal)
    written = []
    monkeypatch.setattr(_build.os, "write", lambda number, text: written.append((number, text)))
    _build.compile_to(_build.command_line(), cache / "made.so")
    text = b"".join(text for number, text in written if number == 2)
    assert (b"compiling the extension for this PyTorch; it takes" in text) == said
    assert (cache / "made.so").is_file()


def test_a_cache_that_cannot_be_made(cache):
    cache.write_text("a file")
    refused(str(cache), "CISTERN_CACHE")


def test_a_cache_below_a_file(cache, monkeypatch):
    cache.write_text("a file")
    monkeypatch.setenv("CISTERN_CACHE", str(cache / "below"))
    refused("Not a directory", "CISTERN_CACHE")


def test_a_cache_that_cannot_be_written(cache):
    if os.getuid() == 0:
        pytest.skip("root may write everywhere")
    cache.mkdir(mode=0o500)
    refused("Permission denied", "CISTERN_CACHE")


def test_no_home(cache, monkeypatch):
    def none():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("CISTERN_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(_cached.Path, "home", none)
    refused("no home folder", "CISTERN_CACHE")


def test_a_compiler_whose_words_are_not_utf8(cache, monkeypatch, tmp_path):
    compiles_by(monkeypatch, tmp_path, r"printf 'error: \377 no such release\n'; exit 1")
    refused("no such release")


def test_a_compiler_that_writes_nothing(cache):
    refused("wrote nothing")


def test_a_compiler_that_cannot_be_run(cache, monkeypatch):
    monkeypatch.setattr(_build, "command_line", lambda: ["/dev/null"])
    refused("/dev/null")


def test_sources_that_are_missing(cache, monkeypatch):
    def missing():
        raise ImportError("cistern: the folder of sources for PyTorch is not found")

    monkeypatch.setattr(_build, "command_line", missing)
    refused("the folder of sources for PyTorch is not found")


@pytest.mark.parametrize("version, package", [("13.0", "cu13"), ("12.8", "cuda_runtime")])
def test_the_headers_that_come_with_pytorch_are_before_those_of_a_toolkit(monkeypatch, tmp_path, version, package):
    def having(folder, *headers):
        for header in headers or ("cuda_runtime_api.h", "crt/host_config.h"):
            (folder / "include" / header).parent.mkdir(parents=True, exist_ok=True)
            (folder / "include" / header).touch()
        return folder / "include"

    packages, toolkit = tmp_path / "site/nvidia", having(tmp_path / "toolkit")
    monkeypatch.setattr(_build.importlib.util, "find_spec",
                        lambda name: types.SimpleNamespace(submodule_search_locations=[str(packages)]))
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "toolkit"))
    other = having(packages / ("cu13" if package == "cuda_runtime" else "cuda_runtime"))
    assert _build._cuda_headers(version) == [toolkit]
    own = having(packages / package, "cuda_runtime_api.h")
    assert _build._cuda_headers(version) == [own, toolkit]
    if package == "cuda_runtime":  # pip's nvcc of CUDA 12 has a folder of its own
        nvcc = having(packages / "cuda_nvcc", "crt/host_config.h")
        assert _build._cuda_headers(version) == [own, nvcc]
    having(packages / package, "crt/host_config.h")
    assert _build._cuda_headers(version) == [own]
    shutil.rmtree(toolkit)
    shutil.rmtree(own)
    assert _build._cuda_headers(version) == [other]


@pytest.mark.parametrize("version, package", [("13.2", "nvidia-cuda-crt==13.2.*"), ("12.8", "nvidia-cuda-nvcc-cu12==12.8.*")])
def test_a_header_of_nvcc_that_is_nowhere_is_named_with_its_package(monkeypatch, tmp_path, version, package):
    (tmp_path / "cuda_runtime_api.h").touch()
    monkeypatch.setattr(_build, "_cuda_folders", lambda version: [tmp_path])
    with pytest.raises(_build.BuildError) as raised:
        _build._cuda_headers(version)
    assert str(raised.value) == (f"crt/host_config.h is not found: `pip install '{package}'` brings it, or set CUDA_HOME; "
                                 f"looked in {tmp_path}")
    with pytest.raises(_build.BuildError, match="^crt/host_config.h is not found: set CUDA_HOME"):
        _build._cuda_headers(None)


def test_what_is_cached_and_does_not_load_is_made_anew_once(cache, monkeypatch, tmp_path):
    compiles_by(monkeypatch, tmp_path, "echo no library >$out")
    cache.mkdir()
    kept = cache / "cistern_torch-made.so"
    kept.write_text("torn")
    with pytest.raises(_build.BuildError, match="does not load: .*invalid ELF|does not load: .*too short"):
        _cached.load()
    assert runs(tmp_path) == 1 and kept.read_text() == "no library\n"


def test_what_is_made_and_does_not_load_is_not_made_again(cache, monkeypatch, tmp_path):
    compiles_by(monkeypatch, tmp_path, "echo no library >$out")
    with pytest.raises(_build.BuildError, match="does not load"):
        _cached.load()
    assert runs(tmp_path) == 1


def test_a_cached_library_loads_after_it_was_made_anew(cache, monkeypatch, tmp_path):
    (tmp_path / "empty.c").touch()
    cc = os.environ.get("CC", "cc")
    compiles_by(monkeypatch, tmp_path, f"exec {cc} -shared -fPIC -o $out {tmp_path}/empty.c")
    cache.mkdir()
    (cache / "cistern_torch-made.so").write_text("torn")
    _cached.load()
    _cached.load()
    assert runs(tmp_path) == 1


def test_a_cached_library_that_is_truncated_is_made_anew(cache, monkeypatch, tmp_path):
    make_library(monkeypatch, tmp_path)
    _cached.load()
    kept = cache / "cistern_torch-made.so"
    whole = kept.read_bytes()
    assert not _cached._is_torn(kept)
    kept.unlink()  # this process has the other one loaded
    kept.write_bytes(whole[:len(whole) // 2])
    kept.chmod(0o755)
    assert _cached._is_torn(kept)
    _cached.load()
    assert runs(tmp_path) == 2 and len(kept.read_bytes()) == len(whole)


def test_a_folder_from_which_nothing_may_be_run_is_named(cache, monkeypatch, tmp_path):
    cache.mkdir()
    (cache / "cistern_torch-made.so").write_text("torn")
    monkeypatch.setattr(_cached, "_is_noexec", lambda path: True)
    refused("mounted noexec", "CISTERN_CACHE")
    assert not (tmp_path / "runs").exists()


def test_a_cache_named_from_the_current_folder(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CISTERN_CACHE", ".")
    assert _cached.folder() == tmp_path


# ---- A PyTorch that is newer than the newest known one: _newer.py --------------------------------------


@pytest.fixture
def newer(cache, monkeypatch, tmp_path):
    """PyTorch is such a one, the extension compiles to a library, and `tests_by` says what its self-test
    does."""
    make_library(monkeypatch, tmp_path)
    monkeypatch.setattr(_native, "_release", lambda: (_native.NEWEST[0], _native.NEWEST[1] + 1))

    def tests_by(script):
        path = tmp_path / "self_test.py"
        path.write_text(f"import os, sys\nopen({str(tmp_path / 'tests')!r}, 'a').write('run')\n{script}\n")
        monkeypatch.setattr(_newer, "_SCRIPT", path)

    return tests_by


def self_tests(tmp_path):
    return (tmp_path / "tests").read_text().count("run")


def test_a_newer_pytorch_is_used_if_the_extension_passes_its_test(newer, cache, tmp_path):
    newer("assert os.environ['CISTERN_BACKEND'] == 'sim' and sys.argv[1].endswith('.so')")
    with pytest.warns(UserWarning, match=r"is later than the releases .* so it is used") as warned:
        _cached.load(_native._check_newer)
    assert len(warned) == 1 and mode_of(cache / "cistern_torch-made.tested") == 0o644
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _cached.load(_native._check_newer)
    assert self_tests(tmp_path) == 1


def test_a_newer_pytorch_is_not_used_if_the_extension_fails_its_test(newer, tmp_path):
    newer("print('raw_alloc() is not as it should be'); print('a warning', file=sys.stderr); sys.exit(10)")
    refused("fails its own test: raw_alloc() is not as it should be\n", "a later release than any",
            "cistern_torch-made.tested")
    assert self_tests(tmp_path) == 1  # the second time the result is known


@pytest.mark.parametrize("script, said", [
    ("print('RuntimeError: there is no driver'); sys.exit(1)", "here: RuntimeError: there is no driver; the next"),
    ("import no_such_module", "here: ModuleNotFoundError: No module named 'no_such_module'; the next"),
    ("sys.exit(3)", "the test ended with 3"),
    ("os.kill(os.getpid(), 11)", "the test was ended by SIGSEGV"),
    ("os.kill(os.getpid(), 40)", "the test was ended by signal 40"),
    ("import time; time.sleep(60)", "the test has not ended after 1 seconds"),
])
def test_an_end_that_may_be_the_machines_fault_is_not_kept(newer, cache, monkeypatch, tmp_path, script, said):
    monkeypatch.setattr(_newer, "_PATIENCE", 1.0)
    newer(script)
    refused(said, "a later release than any", "cannot be tested here: ")
    assert self_tests(tmp_path) == 2 and not (cache / "cistern_torch-made.tested").exists()
    newer("")
    with pytest.warns(UserWarning, match="passes its own test"):
        _cached.load(_native._check_newer)


@pytest.mark.parametrize("kept, tests", [(b"passed\n", 0), (b"\xff\xfe", 1), (b" \n", 1)])
def test_a_kept_result_is_read_with_care(newer, cache, tmp_path, kept, tests):
    newer("")
    cache.mkdir(mode=0o700)
    (cache / "cistern_torch-made.tested").write_bytes(kept)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _cached.load(_native._check_newer)
    assert (self_tests(tmp_path) if tests else (tmp_path / "tests").exists()) == tests


def test_a_result_that_others_may_write_is_not_believed(newer, cache, tmp_path):
    newer("print('wrong'); sys.exit(10)")
    cache.mkdir(mode=0o700)
    (cache / "cistern_torch-made.tested").write_text("passed")
    (cache / "cistern_torch-made.tested").chmod(0o666)
    refused("wrong")


def test_a_known_pytorch_is_not_tested(newer, monkeypatch, tmp_path):
    newer("")
    monkeypatch.setattr(_native, "_release", lambda: _native.NEWEST)
    with pytest.raises(AttributeError, match="cistern_torch_"):  # the library has no verb
        _enable.enable("native")
    assert not (tmp_path / "tests").exists()


def test_what_a_newer_interface_has_that_is_missing_here_is_named(newer, monkeypatch, tmp_path):
    compiles_by(monkeypatch, tmp_path, "cat >&2 <<E\na.cpp:1: error: new-expression of abstract class type\n"
                "a.hpp:2: note:     'virtual void somethingNew(int)'\na.hpp:3: note: declared here\nE\nexit 1")
    refused("somethingNew", "a later release than any")
    with pytest.raises(_build.BuildError) as raised:
        _cached.load()
    assert "declared here" not in str(raised.value)


# ---- The self-test: _self_test.py ----------------------------------------------------------------------


@pytest.mark.parametrize("differs, status, said", [(1, 10, "no\n"), (0, 1, "RuntimeError: no\n")])
def test_the_self_test_says_what_an_extension_refuses(tmp_path, differs, status, said):
    source = tmp_path / "wrong.c"
    source.write_text('const char* cistern_torch_install(void) { return 0; }\n'
                      f'const char* cistern_torch_self_test(_Bool* differs) {{ *differs = {differs}; '
                      'return "no\\nframe #0: c10::Error"; }\n')
    library = tmp_path / "wrong.so"
    subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-o", library, source], check=True)
    (tmp_path / "torch.py").write_text("")
    ran = subprocess.run([sys.executable, _newer._SCRIPT, library], capture_output=True, text=True, check=False,
                         env={**os.environ, "PYTHONPATH": str(tmp_path)})
    assert (ran.returncode, ran.stdout) == (status, said), ran.stderr


# ---- Nobody else may write what is run: _private.py ----------------------------------------------------


def make_library(monkeypatch, tmp_path):
    (tmp_path / "empty.c").touch()
    cc = os.environ.get("CC", "cc")
    compiles_by(monkeypatch, tmp_path, f"exec {cc} -shared -fPIC -o $out {tmp_path}/empty.c")


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def open_umask():
    before = os.umask(0)
    yield
    os.umask(before)


def test_folder_and_file_are_the_users_alone_whatever_the_umask(cache, monkeypatch, tmp_path, open_umask):
    below = cache / "a" / "b"
    monkeypatch.setenv("CISTERN_CACHE", str(below))
    make_library(monkeypatch, tmp_path)
    _cached.load()
    assert [mode_of(path) for path in (cache, below, below / "cistern_torch-made.so")] == [0o700, 0o700, 0o755]


def test_a_file_that_others_may_write_is_made_anew(cache, monkeypatch, tmp_path):
    make_library(monkeypatch, tmp_path)
    cache.mkdir(mode=0o700)
    kept = cache / "cistern_torch-made.so"
    kept.write_text("another user's")
    kept.chmod(0o666)
    _cached.load()
    assert runs(tmp_path) == 1 and mode_of(kept) == 0o755


def test_a_link_in_place_of_the_file_is_made_anew(cache, monkeypatch, tmp_path):
    make_library(monkeypatch, tmp_path)
    cache.mkdir(mode=0o700)
    (tmp_path / "other.so").write_text("another user's")
    (cache / "cistern_torch-made.so").symlink_to(tmp_path / "other.so")
    _cached.load()
    assert runs(tmp_path) == 1 and (tmp_path / "other.so").read_text() == "another user's"


@pytest.mark.parametrize("mode", [0o777, 0o1777])
def test_a_folder_that_others_may_write(cache, mode):
    cache.mkdir()
    cache.chmod(mode)
    refused(f"others may write to {cache}", "CISTERN_CACHE")
    assert mode_of(cache) == mode and not list(cache.iterdir())


def test_a_folder_below_one_that_others_may_write(cache, monkeypatch):
    cache.mkdir()
    cache.chmod(0o777)
    monkeypatch.setenv("CISTERN_CACHE", str(cache / "below"))
    refused(f"others may write to {cache}", "CISTERN_CACHE")
    cache.chmod(0o1777)  # there nobody can rename another's folder
    (cache / "below").rmdir()
    compiled = pytest.raises(_build.BuildError, _cached.load)
    assert "wrote nothing" in str(compiled.value)


def test_a_folder_of_another_user(cache, monkeypatch):
    monkeypatch.setattr(_private.os, "geteuid", lambda: os.getuid() + 1)
    cache.mkdir(mode=0o700)
    if os.getuid() == 0:
        os.chown(cache, 4711, -1)
    refused("belongs to user" if os.getuid() == 0 else "", "CISTERN_CACHE")


@pytest.mark.skipif(os.getuid() != 0, reason="only root can make a folder of another user")
def test_a_folder_below_one_of_nobodys(cache, monkeypatch):
    cache.mkdir(mode=0o755)
    os.chown(cache, 65534, 65534)
    monkeypatch.setenv("CISTERN_CACHE", str(cache / "below"))
    refused(f"others may write to {cache}", "CISTERN_CACHE")


def enter_user_namespace(user):
    """As a user who is root in a namespace of their own. Whether that may be had here."""
    if os.getuid() == 0:
        os.setgid(user)
        os.setuid(user)
    c_library = ctypes.CDLL(None)
    c_library.prctl(4, 1, 0, 0, 0)  # PR_SET_DUMPABLE: else /proc/self is not the user's
    if c_library.unshare(0x10000000) != 0:  # CLONE_NEWUSER
        return False
    pathlib.Path("/proc/self/uid_map").write_text(f"0 {user} 1")
    return True


def test_in_a_user_namespace_the_folders_above_are_roots_though_root_is_unknown_there():
    user = os.getuid() or 4711
    above = pathlib.Path(tempfile.mkdtemp(dir="/tmp"))
    os.chown(above, user, user if os.getuid() == 0 else -1)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            if not enter_user_namespace(user):
                status = 77
            elif _private.make_folder(above / "kept").stat().st_uid == 0 and pathlib.Path("/").stat().st_uid != 0:
                status = 0
        finally:
            os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    shutil.rmtree(above)
    if status == 77:
        pytest.skip("no user namespace is allowed here")
    assert status == 0


@pytest.mark.skipif(os.getuid() != 0, reason="only root can place a file of another user")
def test_a_file_of_another_user_is_made_anew(cache, monkeypatch, tmp_path):
    make_library(monkeypatch, tmp_path)
    cache.mkdir(mode=0o700)
    kept = cache / "cistern_torch-made.so"
    kept.write_text("another user's")
    os.chown(kept, 4711, 4711)
    _cached.load()
    assert runs(tmp_path) == 1 and kept.stat().st_uid == 0


def test_a_relative_xdg_cache_home_is_ignored(monkeypatch, tmp_path):
    monkeypatch.delenv("CISTERN_CACHE", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", "here")
    assert _cached.folder() == tmp_path / ".cache" / "cistern"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "there"))
    assert _cached.folder() == tmp_path / "there" / "cistern"


def test_a_home_that_sudo_has_kept_is_not_used(monkeypatch, tmp_path):
    kept, own = tmp_path / "theirs", tmp_path / "own"
    kept.mkdir()
    monkeypatch.delenv("CISTERN_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(kept))
    monkeypatch.setattr(_private.os, "geteuid", lambda: os.getuid() + 1)
    monkeypatch.setattr(_private.pwd, "getpwuid", lambda user: types.SimpleNamespace(pw_dir=str(own)))
    assert _cached.folder() == own / ".cache" / "cistern"
