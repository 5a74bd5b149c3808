"""`python -m cistern`: what it says of the installation, and that it is the program `cistern` else."""

import json
import os
import shutil
import signal
import subprocess
import sys

import cistern
import pytest
from cistern import _places
from cistern.torch import _digest
from conftest import PACKAGE


def said(*arguments, given="", expect=0, **environment):
    ran = subprocess.run([sys.executable, "-B", "-m", "cistern", *map(str, arguments)], input=given,
                         capture_output=True, text=True, timeout=120,
                         env={**os.environ, "PYTHONPATH": str(PACKAGE),
                              **{name: str(value) for name, value in environment.items()}})
    assert ran.returncode == expect, ran.stdout + ran.stderr
    return ran


# ---- info ----------------------------------------------------------------------------------------


def test_without_arguments_it_says_what_is_installed():
    printed = said().stdout
    assert printed == said("info").stdout
    assert printed.startswith(f"Cistern {cistern.__version__}\nPython: ")
    for name in ("library", "command", "headers", "sources"):
        assert f"\n{name}: /" in printed
    assert "\ncuda: " in printed or "\ncuda device 0: " in printed


def test_info_as_json_names_files_that_are_there(tmp_path):
    (tmp_path / "kept.so").write_bytes(b"1234567")
    info = json.loads(said("info", "--json", CISTERN_BACKEND="sim", CISTERN_CACHE=tmp_path).stdout)
    assert info["version"] == cistern.__version__
    assert info["files"]["library"] == str(_places.library())
    assert all(os.path.exists(path) for path in info["files"].values() if path is not None)
    assert info["cache"] == {"folder": str(tmp_path), "files": 1, "bytes": 7, "problem": None}
    (sim,) = info["backends"]
    assert (sim["name"], sim["compiled_in"], sim["problem"]) == ("sim", True, None)
    assert sim["devices"][0] == {"ordinal": 0, "total_bytes": 80 << 30, "free_bytes": 80 << 30}


def test_info_names_pytorch_without_importing_it(tmp_path):
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch/__init__.py").write_text("raise SystemExit('it was imported')")
    (tmp_path / "torch-2.11.0.dist-info").mkdir()
    (tmp_path / "torch-2.11.0.dist-info/METADATA").write_text("Name: torch\nVersion: 2.11.0+cu130\n")
    path = f"{PACKAGE}:{tmp_path}"
    assert "\nPyTorch: 2.11.0+cu130\n" in said("info", PYTHONPATH=path, CISTERN_BACKEND="sim").stdout
    assert json.loads(said("info", "--json", PYTHONPATH=path).stdout)["torch"]["version"] == "2.11.0+cu130"


def test_info_says_which_extension_fits_the_installed_pytorch(site, tmp_path):
    (site / "cistern/_lib").mkdir()
    shutil.copy(_places.library(), site / "cistern/_lib/libcistern.so.0")
    header = tmp_path / "torch/include/a.h"
    header.parent.mkdir(parents=True)
    header.write_text("// a")
    (tmp_path / "torch/__init__.py").write_text("raise SystemExit('it was imported')")
    (tmp_path / "torch-2.11.0.dist-info").mkdir()
    (tmp_path / "torch-2.11.0.dist-info/METADATA").write_text("Name: torch\nVersion: 2.11.0+cu130\n")
    compiled = site / "cistern/torch/_compiled"
    compiled.mkdir()
    digests = {_digest.of_files(tmp_path / "torch/include", ["a.h"]): {"name": "for_2.11.so", "bytes": 3}}
    (compiled / "for_2.11.so").write_text("ELF")
    (compiled / "table.json").write_text(json.dumps({"2.10": {"headers": [], "digests": {}},
                                                     "2.11": {"headers": ["a.h"], "digests": digests}}))
    alone = {"PYTHONPATH": f"{site}:{tmp_path}", "CISTERN_ROOT": "", "CISTERN_BACKEND": "sim"}
    found = json.loads(said("info", "--json", **alone).stdout)["torch"]
    assert found["compiled_ahead"] == ["2.10", "2.11"]
    assert found["extension"] == str(compiled / "for_2.11.so")
    assert "\nPyTorch: extensions compiled ahead: 2.10, 2.11\n" in said("info", **alone).stdout
    (compiled / "for_2.11.so").write_text("EL")
    torn = said("info", **alone).stdout
    assert f"\nPyTorch: {compiled}/for_2.11.so has 2 bytes, and was made with 3; to mend it, " in torn
    assert "\nPyTorch: its extension: compiled on this machine" in torn
    (compiled / "for_2.11.so").unlink()
    missing = json.loads(said("info", "--json", **alone).stdout)["torch"]
    assert missing["extension"] is None and f"{compiled}/for_2.11.so is missing" in missing["problem"]
    header.write_text("// another")
    assert json.loads(said("info", "--json", **alone).stdout)["torch"]["extension"] is None
    for text in ("", "[]", '{"2.15": null}', '{"2.11": {"headers": ["a'):
        (compiled / "table.json").write_text(text)
        assert f"\nPyTorch: {compiled}/table.json is damaged: " in said("info", **alone).stdout
    (compiled / "table.json").unlink()
    assert f"\nPyTorch: {compiled}/table.json: No such file" in said("info", **alone).stdout


def test_info_obeys_the_backend_of_the_environment_or_refuses_it(run):
    sim = said("info", CISTERN_BACKEND="sim").stdout
    assert "\nsim device 0: 80.0 GiB" in sim and "cuda" not in sim
    wrong = said("info", CISTERN_BACKEND="simm", expect=2)
    assert wrong.stdout == ""
    assert wrong.stderr.startswith("cistern: CISTERN_BACKEND: unknown backend 'simm': must be auto, ")
    assert run("import cistern; print(cistern.Allocator().backend)", CISTERN_BACKEND="sim") == "sim\n"
    assert "InvalidArgumentError: CISTERN_BACKEND: " in run("import cistern; cistern.Allocator()", expect=1,
                                                           CISTERN_BACKEND="SIM")


def test_without_the_library_info_says_why_and_what_else_it_knows(tmp_path):
    wrong = {"CISTERN_ROOT": tmp_path / "none"}
    for arguments in ((), ("info",)):
        said_ = said(*arguments, expect=1, **wrong)
        assert said_.stderr == ""
        assert said_.stdout.startswith(f"cistern: CISTERN_ROOT is '{tmp_path}/none', and libcistern.so.0 is not there; ")
        assert "\nlibrary: none\n" in said_.stdout and "\nPyTorch: " in said_.stdout
    info = json.loads(said("info", "--json", expect=1, **wrong).stdout)
    assert info["version"] is None and info["backends"] == [] and "CISTERN_ROOT" in info["problem"]
    assert info["files"]["package"] == str(PACKAGE / "cistern")


def test_without_the_library_every_program_says_why_without_a_traceback(tmp_path):
    script = tmp_path / "cistern"
    script.write_text("import sys\nfrom cistern.__main__ import main\nsys.exit(main())\n")
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE), "CISTERN_ROOT": str(tmp_path)}
    for program in (["-m", "cistern", "--version"], ["-mcistern", "run", "true"], [script, "version"],
                    ["-m", "cistern.torch", "job.py"]):
        ran = subprocess.run([sys.executable, "-B", *program], capture_output=True, text=True, env=environment)
        assert ran.returncode == 1 and ran.stdout == "", ran
        assert ran.stderr.startswith(f"cistern: CISTERN_ROOT is '{tmp_path}', and libcistern.so.0 is not there; ")
    for program in (["-c", "import cistern", "info"], ["-m", "timeit", "-n1", "-r1", "import cistern"]):
        ran = subprocess.run([sys.executable, "-B", *program], capture_output=True, text=True, env=environment)
        assert ran.returncode == 1 and "Traceback" in ran.stderr and "ImportError: cistern: CISTERN_ROOT" in ran.stderr


def test_info_names_files_in_any_encoding(tmp_path):
    printed = said("info", PYTHONIOENCODING="ascii", CISTERN_BACKEND="sim", CISTERN_CACHE=tmp_path / "é").stdout
    assert f"\ncache: {tmp_path}/\\xe9 (0 files" in printed


@pytest.mark.parametrize("shell, why", [(">/dev/full", "No space left on device"), (">&-", "Bad file descriptor")])
def test_an_output_that_cannot_be_written_is_an_error_of_info(shell, why):
    ran = subprocess.run(["bash", "-c", f'"{sys.executable}" -B -m cistern info {shell}'], capture_output=True, text=True,
                         env={**os.environ, "PYTHONPATH": str(PACKAGE), "CISTERN_BACKEND": "sim"})
    assert (ran.returncode, ran.stderr) == (1, f"cistern: the output cannot be written: {why}\n")


def test_info_refuses_what_it_does_not_know():
    assert "unrecognized arguments: --jsn" in said("info", "--jsn", expect=2).stderr


# ---- The program ---------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [("version",), ("options",), ("replay", "--generate=train:1", "--json"),
                                       ("doctor", "--device=sim"), ("replay",), ("bogus",), ("--bogus",)])
def test_each_command_is_the_programs(arguments):
    there = subprocess.run([_places.command(), *arguments], capture_output=True, text=True)
    here = said(*arguments, expect=there.returncode)
    assert here.stderr == there.stderr
    if "--json" not in arguments:  # which has times
        assert here.stdout == there.stdout
    assert bool(here.stdout) == bool(there.stdout)


def test_the_help_is_the_programs_and_names_info():
    there = subprocess.run([_places.command(), "--help"], capture_output=True, text=True, check=True).stdout
    for way in ("--help", "-h", "help"):
        here = said(way).stdout
        assert here.endswith(there) and "\n  info  " in here
    assert said("help", "info").stdout == said("info", "--help").stdout


def test_the_standard_streams_are_the_programs(trace):
    unpacked = subprocess.run(["gzip", "-dc", trace], capture_output=True, text=True, check=True).stdout
    row = json.loads(said("replay", "--json", "-", given=unpacked).stdout)
    assert row["events"] == 41224


def test_signals_reach_the_program_and_end_it(trace):
    running = subprocess.Popen([sys.executable, "-B", "-m", "cistern", "replay", "-"], stdin=subprocess.PIPE,
                               env={**os.environ, "PYTHONPATH": str(PACKAGE)})
    while os.path.basename(os.readlink(f"/proc/{running.pid}/exe")) != "cistern":
        assert running.poll() is None
    running.terminate()
    assert running.wait(60) == -signal.SIGTERM


def test_a_program_that_cannot_be_run_or_is_missing_is_named(site, tmp_path):
    (site / "cistern/_lib").mkdir()
    shutil.copy(_places.library(), site / "cistern/_lib/libcistern.so.0")
    alone = {"PYTHONPATH": site, "CISTERN_ROOT": ""}
    missing = said("version", expect=1, **alone).stderr
    assert missing == ("cistern: this package was built without the command: install CLI11, nlohmann_json and zlib "
                       "(their headers), and run the command again that built it; looked for:\n"
                       f"  {site}/cistern/_bin/cistern\n")
    (site / "cistern/_bin").mkdir()
    (site / "cistern/_bin/cistern").write_text("not a program")
    refused = said("version", expect=1, **alone).stderr
    assert refused == f"cistern: {site}/cistern/_bin/cistern cannot be run: Permission denied\n"


def test_a_reader_that_stops_ends_it_as_the_program():
    for arguments in ("options", "info"):
        shell = f'"{sys.executable}" -B -m cistern {arguments} | true; echo ${{PIPESTATUS[0]}}'
        ran = subprocess.run(["bash", "-c", shell], capture_output=True, text=True,
                             env={**os.environ, "PYTHONPATH": str(PACKAGE)})
        assert ran.stderr == "" and ran.stdout.strip() in ("0", "141"), ran
