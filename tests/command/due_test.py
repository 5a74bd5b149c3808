"""tests/due.py runs the tests whose files are newer than their last pass, and no others."""

import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

DUE = pathlib.Path(__file__).resolve().parents[1] / "due.py"


class Due(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.top = pathlib.Path(folder.name).resolve()
        self.build, self.sources = self.top / "build", self.top / "sources"
        for made in (self.build, self.sources, self.sources / "data"):
            made.mkdir()
        self.write("first", "exit 0")
        self.write("second", "exit 0")
        (self.sources / "data/one").touch()
        (self.sources / "needed").touch()
        (self.build / "CTestTestfile.cmake").write_text(f"""
add_test(first "{self.sources}/first" "{self.sources}/data")
add_test(second "{self.sources}/second")
set_tests_properties(second PROPERTIES REQUIRED_FILES "{self.sources}/needed")
add_test(of_a_gpu "{self.sources}/none")
set_tests_properties(of_a_gpu PROPERTIES LABELS gpu)
""")
        for file in self.sources.rglob("*"):  # older than any pass
            os.utime(file, (1, 1))

    def write(self, name, text):
        script = self.sources / name
        script.write_text(f"#!/bin/sh\n{text}\n")
        script.chmod(0o755)

    def due(self, status=0):
        ran = subprocess.run([sys.executable, "-B", DUE, self.build], capture_output=True, text=True, check=False)
        self.assertEqual(ran.returncode != 0, status != 0, ran.stdout + ran.stderr)
        return ran.stdout.splitlines()[0].partition("due: ")[2].split()

    def test_each_runs_once_until_a_file_of_its_own_changes(self):
        self.assertEqual(self.due(), ["first", "second"])
        self.assertEqual(self.due(), [])
        for file, test in [("second", "second"), ("data/one", "first"), ("needed", "second")]:
            with self.subTest(file=file):
                now = time.time() + 1
                os.utime(self.sources / file, (now, now))
                self.assertEqual(self.due(), [test])
                os.utime(self.sources / file, (1, 1))

    def test_what_has_failed_stays_due(self):
        self.write("first", "exit 1")
        self.assertEqual(self.due(status=1), ["first", "second"])
        self.assertEqual(self.due(status=1), ["first"])
        self.write("first", "exit 0")
        self.assertEqual(self.due(), ["first"])
        self.assertEqual(self.due(), [])


if __name__ == "__main__":
    unittest.main()
