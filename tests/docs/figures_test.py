"""What README.md says that recorded programs reserve still holds, to one part in a hundred: an engine
that places otherwise has its pages written anew (./dev docs).

figures_test.py PROGRAM"""

import pathlib
import re
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))

import figures
from pages_test import rows


def size(text):
    return float(text.replace("*", "").split()[0])


class Reserves(unittest.TestCase):
    def test_the_readme_is_true(self):
        page = (figures.TOP / "README.md").read_text()
        shown = {row[0]: row for row in rows(page) if row[0] in figures.TRACES}
        self.assertGreaterEqual(len(shown), 6)
        for row in rows(figures.reserves(figures.Figures(PROGRAM)))[2:]:
            if row[0] not in shown:
                continue  # recorded since
            for then, now in zip(shown[row[0]][1:], row[1:]):
                self.assertAlmostEqual(size(then) / size(now), 1, delta=0.01, msg=row)

    def test_the_picture_is_true(self):
        with tempfile.TemporaryDirectory() as folder:
            anew = pathlib.Path(folder) / "anew.svg"
            figures.draw(PROGRAM, anew)
            then, now = (re.findall(r"peak ([\d.]+) GiB", path.read_text())
                         for path in [figures.PICTURE, anew])
        self.assertGreaterEqual(len(then), 4)
        self.assertEqual(len(then), len(now))
        for before, after in zip(then, now):
            self.assertAlmostEqual(float(before) / float(after), 1, delta=0.01)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
