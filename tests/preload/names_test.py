"""What the hooks know of the driver's functions, held against the header of the toolkit that is there.

names_test.py FOLDER_OF_HOOKS FOLDER_OF_HEADERS LIBRARY"""

import pathlib
import re
import subprocess
import sys
import unittest

import later_calls

# They take a stream, and submit nothing that touches memory.
HARMLESS_WITH_A_STREAM = """
    cuEventRecord cuEventRecordWithFlags cuGreenCtxStreamCreate cuMemAllocAsync cuMemAllocFromPoolAsync
    cuMemFreeAsync cuStreamBeginCapture cuStreamBeginCaptureToGraph cuStreamCopyAttributes cuStreamCreate
    cuStreamCreateWithPriority cuStreamDestroy cuStreamEndCapture cuStreamGetAttribute cuStreamGetCaptureInfo
    cuStreamGetCtx cuStreamGetDevice cuStreamGetFlags cuStreamGetGreenCtx cuStreamGetId cuStreamGetPriority
    cuStreamIsCapturing cuStreamQuery cuStreamSetAttribute cuStreamSynchronize
    cuStreamUpdateCaptureDependencies cuStreamWaitEvent""".split()


def without_version(name):
    return re.sub(r"(_v\d+)?(_pt[sd][sz])?$", "", name)


class Names(unittest.TestCase):
    def setUp(self):
        header = (HEADERS / "cuda.h").read_text(encoding="utf-8", errors="replace")
        self.declared = dict(re.findall(r"CUresult\s+(?:CUDAAPI\s+)?(cu[A-Z]\w*)\s*\(([^;]*?)\)\s*;", header))
        # The header spells some by a macro that adds a suffix.
        self.declared |= {f"{name}_{kind.lower()}": "" for kind, name in
                          re.findall(r"__CUDA_API_(PTDS|PTSZ)\((cu\w+)\)", header)}
        self.harmless = set(re.search(r'R"\((.*?)\)"', (HOOKS / "harmless.cpp").read_text(), re.S)[1].split())
        pairs = re.findall(r"PAIR\(X, (cu\w+), (\w+),\s+\\?\s*\"(cu\w+)\"", (HOOKS / "submission_hooks.cpp").read_text())
        self.submitting = [(symbol, suffix, name) for symbol, spelling, name in pairs for suffix in ("", spelling)]
        self.assertEqual(len(self.submitting), 122)
        self.undeclared = re.findall(r"X\((cu\w+)\)", (HOOKS / "unknown_hooks.cpp").read_text())
        functions = (HOOKS.parents[1] / "driver" / "cuda" / "functions.hpp").read_text()
        hooked = functions[functions.index("CISTERN_HOOKED_FUNCTIONS"):functions.index("CISTERN_CALLED_FUNCTIONS")]
        self.hooked = {without_version(name) for name in re.findall(r"X\((cu\w+)", hooked)}

    def test_every_function_of_the_header_is_known(self):
        known = self.harmless | {name for _, _, name in self.submitting}
        known |= {without_version(name) for name in self.undeclared}
        self.assertGreater(len(self.declared), 400)
        self.assertEqual(sorted({without_version(name) for name in self.declared} - known), [])

    def test_nothing_is_harmless_and_submits(self):
        names = {name for _, _, name in self.submitting} | {without_version(name) for name in self.undeclared}
        self.assertEqual(sorted(self.harmless & names), [])

    def test_what_takes_a_stream_is_not_harmless_by_oversight(self):
        found = {without_version(name) for name, arguments in self.declared.items()
                 if re.search(r"\bCUstream\b", arguments)}
        self.assertEqual(sorted((found & self.harmless) - set(HARMLESS_WITH_A_STREAM)), [])

    def test_what_changes_a_later_call_is_seen_or_asked_for(self):
        found = later_calls.unlooked_at(self.harmless, self.hooked, later_calls.CUDA_SEEN, later_calls.CUDA_ASKED,
                                        later_calls.CUDA_NOTHING)
        self.assertEqual(found, ([], [], []))

    def test_what_submits_is_in_the_header_in_that_spelling(self):
        for symbol, suffix, _ in self.submitting:
            self.assertIn(symbol + suffix, self.declared)

    def test_every_spelling_that_the_header_has_is_a_hook(self):
        hooks = {symbol + suffix for symbol, suffix, _ in self.submitting} | set(self.undeclared)
        symbols = {symbol for symbol, _, _ in self.submitting}
        spelled = {name for name in self.declared if re.sub(r"_pt[sd][sz]$", "", name) in symbols}
        self.assertEqual(sorted(spelled - hooks), [])

    def test_programs_that_are_linked_to_the_driver_find_what_submits_by_name(self):
        listed = subprocess.run(["nm", "-D", "--defined-only", LIBRARY], capture_output=True, text=True, check=True)
        exported = {line.split()[-1] for line in listed.stdout.splitlines()}
        wanted = {symbol + suffix for symbol, suffix, _ in self.submitting} | set(self.undeclared)
        self.assertEqual(sorted(wanted - exported), [])


if __name__ == "__main__":
    HOOKS, HEADERS, LIBRARY = map(pathlib.Path, sys.argv[1:4])
    unittest.main(argv=[sys.argv[0]])
