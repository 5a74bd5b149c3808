"""Another distribution that installs a package `cistern` into the same folder."""

import os
import subprocess
import sys

import pytest

OURS, OTHER = "cistern_gpu-0.1.0.dist-info", "cistern-0.1.5.dist-info"


@pytest.fixture
def both(site):
    """Both are installed; the other one first."""
    for name in (OURS, OTHER):
        (site / name).mkdir()
    (site / "cistern/cistern.py").write_text("")
    return site


def python(site, *arguments):
    return subprocess.run([sys.executable, "-B", *arguments], capture_output=True, text=True, timeout=120,
                          env={**os.environ, "PYTHONPATH": str(site)})


def warned(site):
    """What a program that imports the package has on its standard error."""
    ran = python(site, "-c", "import cistern; cistern.Allocator('sim').destroy()")
    assert ran.returncode == 0, ran.stderr
    return ran.stderr


def test_alone_nothing_is_said(site):
    (site / OURS).mkdir()
    (site / "cistern_other-1.0.dist-info").mkdir()
    assert warned(site) == ""


@pytest.mark.parametrize("folder", [OTHER, "cistern-0.1.5-py3.11.egg-info"])
def test_after_the_other_the_import_warns(both, folder):
    (both / OTHER).rename(both / folder)
    said = warned(both)
    assert "UserWarning: cistern: " in said and f"{both}/cistern has files of two distributions" in said
    assert "cistern-gpu 0.1.0" in said and "cistern 0.1.5" in said
    assert "pip uninstall cistern cistern-gpu" in said
    assert said.startswith("<string>:1: ")  # the line that imports it


@pytest.mark.parametrize("module", ["cistern.torch", "cistern.allocator", "cistern.replay"])
def test_before_the_other_each_module_that_is_left_is_an_error(both, run, module):
    (both / "cistern/__init__.py").write_text("")  # as the other one's is
    said = run(f"import {module}", expect=1, PYTHONPATH=str(both))
    assert "ImportError: cistern: " in said
    assert "cistern-gpu 0.1.0" in said and "cistern 0.1.5" in said


def test_before_the_other_the_command_says_so(both):
    (both / "cistern/__init__.py").write_text("")
    for arguments in ([], ["info"], ["version"]):
        ran = python(both, "-m", "cistern", *arguments)
        assert (ran.returncode, ran.stdout) == (1, "")
        assert ran.stderr.startswith("cistern: ") and "cistern 0.1.5" in ran.stderr


def test_an_init_that_the_other_took_with_it_is_an_error(site, run):
    (site / OURS).mkdir()
    (site / "cistern/__init__.py").unlink()
    said = run("import cistern.torch", expect=1, PYTHONPATH=str(site))
    assert f"ImportError: cistern: {site}/cistern/__init__.py is missing or is not that of cistern-gpu" in said


def test_info_names_the_other(both):
    ran = python(both, "-W", "ignore", "-m", "cistern", "info")
    assert ran.returncode == 0, ran.stderr
    assert "\ninstalled as: cistern-gpu 0.1.0\nconflict: cistern 0.1.5 has written into the same folder\n" in ran.stdout
