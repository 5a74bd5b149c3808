"""What the hooks know of HIP's functions, held against the header that is there.

hip_names_test.py FOLDER_OF_HOOKS FOLDER_OF_HEADERS LIBRARY"""

import pathlib
import re
import subprocess
import sys
import unittest

import later_calls

# They take a stream, and submit nothing that touches memory.
HARMLESS_WITH_A_STREAM = """
    hipConfigureCall hipEventRecord hipEventRecordWithFlags hipExtStreamCreateWithCUMask hipExtStreamGetCUMask
    hipFreeAsync hipGetStreamDeviceId hipKernelNameRefByPtr hipMallocAsync hipMallocFromPoolAsync
    hipStreamBeginCapture hipStreamBeginCaptureToGraph hipStreamCopyAttributes hipStreamCreate
    hipStreamCreateWithFlags hipStreamCreateWithPriority hipStreamDestroy hipStreamEndCapture
    hipStreamGetAttribute hipStreamGetCaptureInfo hipStreamGetCaptureInfo_v2 hipStreamGetDevice
    hipStreamGetFlags hipStreamGetId hipStreamGetPriority hipStreamIsCapturing hipStreamQuery
    hipStreamSetAttribute hipStreamSynchronize hipStreamUpdateCaptureDependencies hipStreamWaitEvent""".split()


def base(name):
    return name.removesuffix("_spt")


class Names(unittest.TestCase):
    def setUp(self):
        header = (HEADERS / "hip" / "hip_runtime_api.h").read_text(encoding="utf-8", errors="replace")
        header = re.sub(r"/\*.*?\*/|//[^\n]*", "", header, flags=re.S)
        self.declared = dict(re.findall(r"hipError_t\s+(hip[A-Z]\w*)\s*\(([^;{]*?)\)\s*;", header))
        self.harmless = set(re.search(r'R"\((.*?)\)"', (HOOKS / "harmless.cpp").read_text(), re.S)[1].split())
        rows = (HOOKS / "submission_hooks.cpp").read_text()
        pairs = re.findall(r"^  CISTERN_PAIR\(X, (\w+)\)", rows, re.M)
        self.submitting = {*pairs, *(f"{name}_spt" for name in pairs), *re.findall(r"^  X\((\w+), \)", rows, re.M)}
        self.assertEqual(len(self.submitting), 93)
        self.undeclared = set(re.findall(r"X\((hip\w+)\)", (HOOKS / "unknown_hooks.cpp").read_text()))
        functions = (HOOKS.parents[1] / "driver" / "hip" / "functions.hpp").read_text()
        hooked = functions[functions.index("CISTERN_HOOKED_FUNCTIONS"):functions.index("CISTERN_CALLED_FUNCTIONS")]
        self.hooked = set(re.findall(r"X\((hip\w+)\)", hooked))

    def test_every_function_of_the_header_is_known(self):
        self.assertGreater(len(self.declared), 300)
        known = self.harmless | self.submitting | self.undeclared
        self.assertEqual(sorted(set(self.declared) - known), [])

    def test_nothing_is_harmless_and_submits(self):
        submitting = {base(name) for name in self.submitting | self.undeclared}
        self.assertEqual(sorted(self.harmless & submitting), [])

    def test_what_takes_a_stream_is_not_harmless_by_oversight(self):
        found = {name for name, arguments in self.declared.items() if re.search(r"\bhipStream_t\b", arguments)}
        self.assertEqual(sorted((found & self.harmless) - set(HARMLESS_WITH_A_STREAM)), [])

    def test_what_changes_a_later_call_is_seen_or_asked_for(self):
        found = later_calls.unlooked_at(self.harmless, {base(name) for name in self.hooked}, later_calls.HIP_SEEN,
                                        later_calls.HIP_ASKED, later_calls.HIP_NOTHING)
        self.assertEqual(found, ([], [], []))

    def test_what_has_a_hook_otherwise_is_harmless(self):
        self.assertGreater(len(self.hooked), 40)
        self.assertEqual(sorted({base(name) for name in self.hooked} - self.harmless), [])

    def test_programs_that_are_linked_to_hip_find_every_hook_by_name(self):
        listed = subprocess.run(["nm", "-D", "--defined-only", LIBRARY], capture_output=True, text=True, check=True)
        exported = {line.split()[-1] for line in listed.stdout.splitlines()}
        self.assertEqual(sorted((self.submitting | self.undeclared | self.hooked) - exported), [])


if __name__ == "__main__":
    HOOKS, HEADERS, LIBRARY = map(pathlib.Path, sys.argv[1:4])
    unittest.main(argv=[sys.argv[0]])
