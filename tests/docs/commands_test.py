"""README.md's lines of `cistern replay` run as they stand there.

commands_test.py COMMAND    the built `cistern`"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]
COMMAND = pathlib.Path(sys.argv.pop(1)).resolve()


def lines():
    blocks = re.findall(r"^```sh\n(.*?)^```$", (TOP / "README.md").read_text(), re.M | re.S)
    return [line for block in blocks for line in block.splitlines() if line.startswith("cistern replay")]


class Commands(unittest.TestCase):
    def test_they_run(self):
        self.assertGreaterEqual(len(lines()), 4)
        path = {**os.environ, "PATH": f"{COMMAND.parent}:{os.environ['PATH']}"}
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "bench").symlink_to(TOP / "bench")
            for line in lines():
                ran = subprocess.run(line, shell=True, cwd=folder, env=path, capture_output=True, text=True)
                self.assertEqual((ran.returncode, ran.stderr), (0, ""), line)
                self.assertIn("cistern", ran.stdout, line)
                for made in re.findall(r"--plot (\S+)", line):
                    self.assertIn("<svg", (pathlib.Path(folder) / made).read_text(), line)


if __name__ == "__main__":
    unittest.main()
