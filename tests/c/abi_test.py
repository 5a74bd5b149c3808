"""libcistern.so shows the C functions that are kept in symbols.txt, what is cistern's of the C++ API, and
nothing else."""

import pathlib
import re
import subprocess
import sys
import unittest

KEPT = pathlib.Path(__file__).with_name("symbols.txt")
# What PyTorch finds by name (interop/plugin); no header declares it.
PLUGIN = "cistern_torch_plugin_"
# The third pattern: what is virtual, and can be thrown across the library's border.
# NVTX finds it by name (allocator/history/nvtx_ranges.cpp).
NVTX = "InitializeInjectionNvtx2"
CPP = re.compile(r"_ZNK?7cistern|_ZT[ISV]N7cistern")


def shown(library):
    text = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True,
                          text=True).stdout
    names = (line.split() for line in text.splitlines())
    # A: the version's own name, which is no symbol of the library's.
    return [fields[2].split("@")[0] for fields in names if fields[1] != "A"]


class Symbols(unittest.TestCase):
    def setUp(self):
        self.names = shown(LIBRARY)

    def test_the_c_functions_are_those_that_are_kept(self):
        self.assertEqual(sorted(n for n in self.names if n.startswith("cistern_")),
                         KEPT.read_text().split())

    def test_the_list_is_that_of_the_header(self):
        headers = sorted((KEPT.parents[2] / "include/cistern").glob("*.h"))
        text = "".join(header.read_text() for header in headers)
        declared = re.findall(r"^CISTERN_API [\w* ]*?[ *](cistern_\w+)\(", text, re.M)
        kept = [name for name in KEPT.read_text().split() if not name.startswith(PLUGIN)]
        self.assertEqual(sorted(declared), kept)

    def test_nothing_else_is_shown(self):
        others = [n for n in self.names if not n.startswith("cistern_") and not CPP.match(n)]
        self.assertEqual(others, [NVTX])


if __name__ == "__main__":
    LIBRARY = sys.argv.pop(1)
    unittest.main()
