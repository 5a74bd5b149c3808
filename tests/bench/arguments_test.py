"""Each benchmark program refuses an argument that it does not know, before it measures anything.

arguments_test.py FOLDER    where bench_* were built"""

import pathlib
import subprocess
import sys
import unittest

PROGRAMS = [path for path in sorted(pathlib.Path(sys.argv.pop(1)).glob("bench_*")) if path.is_file()]


def refusal(program, *arguments):
    ran = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 2, (ran.returncode, ran.stdout, ran.stderr)
    assert ran.stdout == ""
    return ran.stderr


class Refused(unittest.TestCase):
    def test_there_are_programs(self):
        self.assertIn("bench_hot_path", [program.name for program in PROGRAMS])

    def test_an_unknown_argument_is_named_with_what_is_allowed(self):
        for program in PROGRAMS:
            for arguments in (["--secnods=5"], ["--secnods", "5"]):
                with self.subTest(program.name):
                    said = refusal(program, *arguments)
                    self.assertIn("--secnods", said)
                    self.assertIn("allowed", said)

    def test_options_for_all_programs_are_no_reason(self):
        for program in PROGRAMS:
            with self.subTest(program.name):
                said = refusal(program, "--device=sim", "--peers=none", "--benchmark_filter=none", "--secnods=5")
                self.assertNotIn("--device=sim'", said)
                self.assertTrue("--secnods" in said or "none" in said, said)


if __name__ == "__main__":
    unittest.main()
