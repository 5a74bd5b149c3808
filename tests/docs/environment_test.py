"""docs/environment.md lists the variables that the sources read: no more, and no fewer."""

import functools
import pathlib
import re
import subprocess
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]
PAGE = (TOP / "docs/environment.md").read_text()
CONSTANT = re.compile(r'constexpr (?:const )?char\b[*\s]*(?:const )?\s*(k\w+)(?:\[\])? = "([A-Z][A-Z0-9_]+)"')
READS = {
    (".cpp", ".hpp"): re.compile(r'(?:\b(?:(?:secure_)?getenv|environment|trustedVariable)\(|\.variable = )'
                                 r'(k\w+|"[A-Z][A-Z0-9_]*")[),]'),
    (".py",): re.compile(r'os\.(?:environ(?:\.get\(|\[)|getenv\()("[A-Z][A-Z0-9_]*")(?!\]\s*=[^=])'),
    (".sh", ""): re.compile(r'\$\{([A-Z][A-Z0-9_]*):?[-=?]'),
    (".cmake", ".txt", ".in"): re.compile(r'\$ENV\{([A-Z][A-Z0-9_]*)\}'),
}
# A library reads them, for a folder of files of the moment.
BY_OTHERS = {"TMPDIR"}


def files():
    listed = subprocess.run(["git", "-C", TOP, "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True,
                            check=True).stdout.split()
    return [TOP / name for name in listed
            if not name.startswith(("tests/", "docs/")) and (TOP / name).is_file()]


def texts(endings):
    for path in files():
        if path.suffix in endings:
            try:
                yield path, path.read_text()
            except UnicodeDecodeError:
                pass  # a recorded trace


@functools.cache
def read_in_sources():
    """Each variable, and a file that reads it."""
    constants = dict(found for _, text in texts((".cpp", ".hpp")) for found in CONSTANT.findall(text))
    found = {}
    for endings, pattern in READS.items():
        for path, text in texts(endings):
            for name in pattern.findall(text):
                found[constants.get(name, name.strip('"'))] = path
    return found


def rows():
    """The first cell of each row is the names of variables; there are five."""
    return [[cell.strip() for cell in line.strip("|").split(" | ")]
            for line in PAGE.splitlines() if line.startswith("| `")]


def listed():
    return [name for row in rows() for name in re.findall(r"`(\w+)`", row[0])]


class Environment(unittest.TestCase):
    def test_what_the_sources_read_is_listed(self):
        found = read_in_sources()
        self.assertGreater(len(found), 20)
        for name, path in found.items():
            self.assertIn(name, listed(), f"{path} reads it")

    def test_what_is_listed_is_read(self):
        for name in listed():
            self.assertIn(name, read_in_sources().keys() | BY_OTHERS)

    def test_no_variable_is_listed_twice_and_each_row_is_whole(self):
        self.assertEqual(len(listed()), len(set(listed())))
        for row in rows():
            self.assertEqual(len(row), 5, row)
            self.assertTrue(all(row), row)

    def test_security_lists_those_of_an_installation(self):
        security = (TOP / "docs/security.md").read_text()
        users = PAGE[:PAGE.index("## To build")]
        for name in re.findall(r"`(\w+)`", " ".join(row.split(" | ")[0] for row in users.splitlines()
                                                    if row.startswith("| `"))):
            self.assertIn(f"`{name}`", security)


if __name__ == "__main__":
    unittest.main()
