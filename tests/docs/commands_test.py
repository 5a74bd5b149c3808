"""The pages' lines of the command run as they stand there, and each block of code is run by some test or says why not.

commands_test.py COMMAND    the built `cistern`"""

import pathlib
import re
import sys
import tempfile
import unittest

import blocks

COMMAND = pathlib.Path(sys.argv.pop(1)).resolve()


class Commands(unittest.TestCase):
    def test_they_run(self):
        of_commands = [block for block in blocks.blocks() if blocks.commands(block)]
        self.assertGreater(len(of_commands), 9)
        for block in of_commands:
            with self.subTest(page=block.page, lines=block.text), tempfile.TemporaryDirectory() as folder:
                folder = pathlib.Path(folder)
                blocks.given(folder, COMMAND)
                ran = blocks.run_commands(block, folder, COMMAND)
                self.assertEqual((ran.returncode, ran.stderr), (0, ""))
                for made in re.findall(r"(?:--plot|-o) (\S+)", blocks.commands(block)):
                    self.assertRegex((folder / made).read_text(), "<svg|<html")


class Blocks(unittest.TestCase):
    def test_each_is_run_or_says_why_not(self):
        left = [block for block in blocks.blocks() if not blocks.runs_somewhere(block)]
        for block in left:
            rows = [row for row in blocks.NOT_RUN if row[0] == block.page and row[1] in block.text]
            self.assertEqual(len(rows), 1, f"{block.page}: rows of NOT_RUN for\n{block.text}")
        for page, part, _ in blocks.NOT_RUN:
            found = [block for block in left if block.page == page and part in block.text]
            self.assertEqual(len(found), 1, f"{page}: blocks with {part}")


if __name__ == "__main__":
    unittest.main()
