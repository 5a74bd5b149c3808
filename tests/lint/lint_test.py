"""Each check finds what it is there to find, in a repository made for the purpose."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "cmake" / "lint"))
sys.dont_write_bytecode = True

import codefont
import floors
import length
import links
import names
import vendors
import words


class Planted(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.top = pathlib.Path(folder.name)
        subprocess.run(["git", "init", "-q", folder.name], check=True)

    def found(self, check, name, text):
        """What `check` finds in a repository whose only file is this one."""
        place = self.top / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
        result = check.findings(self.top)
        place.unlink()
        return result

    def assert_found(self, check, name, text, line):
        self.assertEqual([f.split(": ")[0] for f in self.found(check, name, text)],
                         [f"{name}:{line}"])

    def assert_clean(self, check, name, text):
        self.assertEqual(self.found(check, name, text), [])

    def test_an_include_of_a_folder_above_is_found(self):
        for name, included in [
            ("allocator/base/a.hpp", "cistern/device.hpp"),
            ("allocator/device/a.hpp", "cistern/allocator.hpp"),
            ("include/cistern/options.hpp", "cistern/pool.hpp"),
            ("include/cistern/graph.hpp", "pools/pool_registry.hpp"),
            ("allocator/layout/a.cpp", "allocator/device/call_names.hpp"),
            ("allocator/device/sim/a.cpp", "allocator/layout/layout.hpp"),
            ("allocator/engine/a.cpp", "pools/pool.hpp"),
            ("allocator/engine/a.cpp", "allocator/history/memory_history.hpp"),
            ("pools/a.cpp", "allocator/history/memory_history.hpp"),
            ("pools/a.cpp", "handles/handle.hpp"),
            ("handles/a.cpp", "pools/pool.hpp"),
            ("interop/trace/a.cpp", "allocator/engine/engine.hpp"),
            ("allocator/base/a.cpp", "tests/support/catch.hpp"),
        ]:
            self.assert_found(floors, name, f'#pragma once\n#include "{included}"\n', 2)

    def test_an_include_of_a_folder_below_is_not(self):
        for name, included in [
            ("allocator/engine/a.cpp", "allocator/layout/layout.hpp"),
            ("allocator/engine/a.cpp", "cistern/device.hpp"),
            ("include/cistern/graph.hpp", "cistern/pool.hpp"),
            ("pools/a.cpp", "allocator/engine/engine.hpp"),
            ("allocator/history/a.cpp", "allocator/engine/engine.hpp"),
            ("allocator/assembly.cpp", "allocator/history/memory_history.hpp"),
            ("interop/command/a.cpp", "interop/trace/trace_file.hpp"),
            ("tests/base/a.cpp", "interop/trace/trace_file.hpp"),
            ("allocator/base/a.cpp", "fmt/format.h"),
        ]:
            self.assert_clean(floors, name, f'#include "{included}"\n')

    def test_an_include_of_a_room_above_or_beside_is_found(self):
        for name, included in [
            ("heap/a.hpp", "cache/thread_cache.hpp"),
            ("pages/a.cpp", "engine.hpp"),
            ("backing/a.cpp", "pages/page.hpp"),
            ("engine.cpp", "exchange/exchange.hpp"),
            ("nowhere/a.hpp", "heap/heap.hpp"),
        ]:
            text = f'#include "allocator/engine/{included}"\n'
            self.assert_found(floors, f"allocator/engine/{name}", text, 1)

    def test_an_include_of_a_room_below_or_the_same_is_not(self):
        for name, included in [
            ("heap/a.hpp", "ground/request.hpp"),
            ("heap/a.hpp", "heap/completion.hpp"),
            ("paths/a.cpp", "exchange/exchange.hpp"),
        ]:
            self.assert_clean(floors, f"allocator/engine/{name}",
                              f'#include "allocator/engine/{included}"\n')

    def test_an_include_of_a_source_file_is_found(self):
        for name in ["allocator/engine/a.cpp", "tests/pools/a.cpp", "bench/a.cpp"]:
            self.assert_found(floors, name, '#include "allocator/engine/engine.cpp"\n', 1)

    def test_a_vendor_conditional_or_header_is_found(self):
        for text in ["#if defined(CISTERN_VENDOR_CUDA)\n", "#ifdef __HIP_PLATFORM_AMD__\n",
                     "#include <cuda_runtime.h>\n", "#include <hip/hip_runtime_api.h>\n",
                     "# include <cublas_v2.h>\n"]:
            self.assert_found(vendors, "allocator/engine/a.cpp", text, 1)
            self.assert_clean(vendors, "allocator/device/vendor/alias.hpp", text)
            self.assert_clean(vendors, "interop/preload/driver/vendor_names.hpp", text)
        self.assert_found(vendors, "interop/preload/hooks/a.cpp", "#if CISTERN_VENDOR_HIP\n", 1)
        self.assert_clean(vendors, "handles/cuda/a.hpp", "#include <cublas_v2.h>\n")
        self.assert_found(vendors, "handles/cuda/a.hpp", "#ifdef CUDART_VERSION\n", 1)
        self.assert_found(vendors, "handles/a.hpp", "#include <cublas_v2.h>\n", 1)
        self.assert_clean(vendors, "allocator/engine/a.cpp", "#include <cuchar>\n#if FOO\n")

    def test_a_long_file_is_found(self):
        self.assert_found(length, "bench/a.cpp", "\n" * 501, 501)
        self.assert_clean(length, "bench/a.cpp", "\n" * 500)

    def test_a_name_that_stands_in_two_folders_is_found(self):
        def found_beside(other, name):
            (self.top / other).parent.mkdir(parents=True, exist_ok=True)
            (self.top / other).write_text("")
            found = self.found(names, name, "")
            (self.top / other).unlink()
            return [f.split(": ")[0] for f in found]

        for other, name in [
            ("allocator/base/a.cpp", "pools/a.cpp"),
            ("handles/a.hpp", "interop/c/a.cpp"),
            ("interop/hooks/a.hpp", "interop/hooks/cuda/b/a.hpp"),
            ("interop/hooks/a.hpp", "interop/hooks/cuda/a.hpp"),
            ("handles/cuda/a.hpp", "interop/cuda/a.hpp"),
        ]:
            self.assertEqual(found_beside(other, name), [f"{name}:1"])
        for other, name in [
            ("pools/a.hpp", "pools/a.cpp"),
            ("pools/a.hpp", "pools/ab.hpp"),
            ("include/cistern/a.hpp", "pools/a.cpp"),
            ("pools/a.cpp", "tests/pools/a.cpp"),
            ("interop/hooks/cuda/a.cpp", "interop/hooks/hip/a.cpp"),
        ]:
            self.assertEqual(found_beside(other, name), [])

    def test_a_link_that_leads_nowhere_is_found(self):
        for link in ["none.md", "../above.md", "#nothing", "a.md#nothing"]:
            self.assert_found(links, "docs/a.md", f"# Some heading\n[x]({link})\n", 2)
        for link in ["a.md", "#some-heading", "https://example.org/x", "../docs"]:
            self.assert_clean(links, "docs/a.md", f"# Some heading\n[x]({link})\n")
        self.assert_clean(links, "docs/a.md", "```\n[x](none.md)\n```\n`[&](auto)`\n")

    def test_code_font_for_what_does_not_exist_is_found(self):
        for name, text in [
            ("allocator/base/option_table.cpp",
             'OptionRow kTable[] = {\n    {"recycle", "", Rule{{"budget", "off"}}, "Whether"},\n'
             '    {"max_split_size", "max_split_size_mb", Rule{}, "Free"},\n'
             '    {"history_stacks", "", SwitchRule{}, "Whether"},\n};\n'),
            ("include/cistern/a.hpp", "namespace cistern { struct Pool { void* allocate(); }; }  // once take()\n"
                                      "int cistern_free(void*);\n"),
            ("interop/a.cpp", 'add("--fit"); getenv("CISTERN_CONF"); policies("torch-rules", "sampled");\n'),
            ("tests/a.cpp", 'getenv("CISTERN_OLD"); add("--old"); cistern_old(); DeviceWork work;\n'),
        ]:
            (self.top / name).parent.mkdir(parents=True, exist_ok=True)
            (self.top / name).write_text(text)
        for code in ["recycle:never", "recycled:off", "max_split_size_kb:20", "CISTERN_CONF=sampled:off", "--never", "--old",
                     "cistern replay --never", "CISTERN_OLD", "CISTERN_OLD=1 ./app", "Pool::take()", "take", "cistern_old",
                     "cistern::Pool::give()", "b.hpp", "base/a.hpp", "allocator/none", "torch-none",
                     "cistern replay\n--never"]:
            self.assert_found(codefont, "docs/a.md", f"One\nand `{code}`.\n", 2)
        for code in ["recycle:off", "CISTERN_CONF=recycle:budget,history_stacks:True", "max_split_size_mb:20", "--fit",
                     "cistern replay it.trace --fit", "CISTERN_CONF", "Pool::allocate(64)", "cistern_free", "DeviceWork",
                     "a.hpp", "cistern/a.hpp", "base", "torch-rules", "sampled:7000", "cudaMalloc", "git --never",
                     "NCCL_GRAPH_REGISTER=0", "torch.cuda.none()", "/usr/lib/none.so", "history-PID-N.trace", "4096",
                     "1.5 GB"]:
            self.assert_clean(codefont, "README.md", f"One\nand `{code}`.\n")
        self.assert_clean(codefont, "docs/a.md", "```\n`none`\n```\n\n    `none`\n")
        self.assert_clean(codefont, "allocator/README.md", "`none`\n")

    def test_an_unfinished_place_is_found(self):
        self.assert_found(words, "bench/a.cpp", "// TODO: finish\n", 1)
        self.assert_clean(words, "bench/a.cpp", "// finished\n")


if __name__ == "__main__":
    unittest.main()
