"""Each entry of docs/security.md's lists is so.

security_test.py COMMAND ROOT [LIBRARY FOLDER_OF_THE_DRIVER FOLDER_OF_PROGRAMS]    the built `cistern`; a checkout
with a build; what tests/preload is run with, where this build has it. What needs root or a compiler is skipped
where that is not there."""

import gzip
import json
import os
import pathlib
import pickle
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests/preload"))

import runs
import sides

PAGE = (TOP / "docs/security.md").read_text()
OTHER = 4711  # a user whom nobody is
COMMAND, ROOT, *PRELOAD = sys.argv[1:]
BENCH = runs.Bench(COMMAND, *PRELOAD) if PRELOAD else None
PYTHON = {**os.environ, "CISTERN_ROOT": ROOT, "PYTHONPATH": str(TOP / "interop/python"),
          "PYTHONDONTWRITEBYTECODE": "1"}
CC = shutil.which(os.environ.get("CC", "cc"))
TRACE = "# {\"name\": \"it\"}\na 4096 0 0\nf 0 5\n"

tested = {}  # which test has an entry, by how the entry begins


def says(*beginnings):
    """The test is of the entries that begin so."""
    def mark(test):
        tested.update(dict.fromkeys(beginnings, test.__name__))
        return test
    return mark


def elsewhere(beginning, file, name):
    """The entry has its test in another file."""
    tested[beginning] = (file, name)


RIGHTS, STRANGERS = "tests/preload/rights_test.py", "tests/sharing/strangers_test.cpp"
SLEEP = "tests/command/sleep/order_test.py"
BUILD, SCRIPT = "tests/python/torch_build_test.py", "tests/python/torch_as_python_test.py"
elsewhere("A process of another user gets", RIGHTS, "test_a_flood_of_another_users_connections_costs_its_owner_nothing")
elsewhere("Another network namespace", RIGHTS, "test_another_network_namespace_is_said")
elsewhere("The overflow user", RIGHTS, "test_the_overflow_user_shares_nothing_and_opens_nothing")
elsewhere("A program that changes its user", RIGHTS, "test_who_shares_and_then_becomes_another_user_is_refused_as_both")
elsewhere("With `CISTERN_SLEEPABLE`", "tests/command/sleep/caches_test.py",
          "test_there_is_one_thread_from_the_first_allocator_on")
elsewhere("That socket takes", "tests/command/sleep/caches_test.py", "test_another_user_gets_no_answer")
elsewhere("`cistern sleep` and", SLEEP, "test_another_users")
elsewhere("`cistern sleep` keeps", SLEEP, "test_a_wake_without_room_is_refused_before_the_driver_tries")
elsewhere("Only the process's user", SLEEP, "test_the_need_is_kept_from_other_users_and_theirs_is_not_believed")
elsewhere("`cistern.torch` keeps", BUILD, "test_folder_and_file_are_the_users_alone_whatever_the_umask")
elsewhere("It loads nothing from", BUILD, "test_a_file_that_others_may_write_is_made_anew")
elsewhere("A relative `XDG_CACHE_HOME`", BUILD, "test_a_relative_xdg_cache_home_is_ignored")
elsewhere("Such a program is told", RIGHTS, "test_a_program_with_rights_of_another_user_is_not_told_where_to_write")
elsewhere("`python -m cistern.torch` takes", SCRIPT, "test_nothing_of_the_current_folder_is_imported")
elsewhere("A trace is not trusted", "tests/recording/calls_fuzz_test.cpp", "a damaged trace in Cistern's format is read or refused")
elsewhere("An answer over the socket", STRANGERS, "an answer that makes no sense is refused, and its descriptors are")


def needs_preload(test):
    return unittest.skipUnless(PRELOAD, "this build has no `cistern run`")(test)


def run(*command, user=None, **env):
    return subprocess.run(command, env={**os.environ, **env}, user=user, group=user, capture_output=True, text=True,
                          timeout=120)


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


class Folder(unittest.TestCase):
    """A folder for each test, which other users may enter."""

    def setUp(self):
        made = tempfile.TemporaryDirectory(dir="/tmp")
        self.addCleanup(made.cleanup)
        self.folder = pathlib.Path(made.name)
        self.folder.chmod(0o755)

    def file(self, name, text):
        path = self.folder / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return str(path)


class Entries(unittest.TestCase):
    def test_each_entry_has_one_test(self):
        entries = re.findall(r"^- (.*)", PAGE, re.M)
        self.assertGreater(len(entries), 25)
        for entry in entries:
            self.assertEqual(len([begin for begin in tested if entry.startswith(begin)]), 1, entry)
        for begin in tested:
            self.assertTrue(any(entry.startswith(begin) for entry in entries), begin)

    def test_tests_that_are_elsewhere_are_there(self):
        for file, name in (test for test in tested.values() if isinstance(test, tuple)):
            self.assertIn(name, (TOP / file).read_text())

    def test_sentences_are_short(self):
        for entry in re.findall(r"^- (.*)", PAGE, re.M):
            for sentence in re.split(r"[.;:] ", entry):
                self.assertLessEqual(len(sentence.split()), 25, sentence)


class Opens(Folder):
    @says("A program that links the library")
    def test_no_file_and_no_socket(self):
        program = ("import os\nbefore = os.listdir('/proc/self/fd')\nimport cistern\n"
                   "with cistern.Allocator('sim') as allocator:\n"
                   "    allocator.free(allocator.allocate(64 << 20))\n"
                   "    assert os.listdir('/proc/self/fd') == before\n")
        ended = subprocess.run([sys.executable, "-c", program], env=PYTHON, capture_output=True, text=True)
        self.assertEqual(ended.returncode, 0, ended.stderr)

    @needs_preload
    @says("A program opens no socket before")
    def test_one_socket_at_the_first_handle(self):
        ended = BENCH.run("rights_program", "without", "sockets", BENCH.path("runtime_static"), "loop")
        self.assertEqual((ended.status, ended.calls("cudaMalloc")), (0, 1000), ended.err)
        with sides.Giver(BENCH) as giver:
            self.assertEqual(len(self.sockets(giver)), 1)

    def sockets(self, giver):
        links = [os.readlink(f"/proc/{giver.pid()}/fd/{each}") for each in os.listdir(f"/proc/{giver.pid()}/fd")]
        return [link for link in links if link.startswith("socket:")]

    @needs_preload
    @says("The socket is an abstract", "All users of the machine")
    def test_its_name_is_seen_and_the_key_is_not(self):
        with sides.Giver(BENCH) as giver, sides.Giver(BENCH) as second:
            names = pathlib.Path("/proc/net/unix").read_text()
            self.assertRegex(giver.name().decode(), rf"^cistern-{giver.pid()}-\d{{8,}}$")
            self.assertIn(f"@{giver.name().decode()}\n", names)
            keys = [int.from_bytes(bytes.fromhex(each.handle)[8:16], "little") for each in (giver, second)]
            self.assertNotEqual(*keys)
            for key in keys:
                self.assertGreater(key, 1 << 32)  # all but one in four billion
                self.assertNotRegex(names, f"{key}|{key:x}")

    @needs_preload
    @says("The socket answers processes")
    def test_the_key_is_needed(self):
        with sides.Giver(BENCH) as giver:
            handle = bytearray.fromhex(giver.handle)
            handle[8] ^= 1
            out, err = sides.opened(BENCH, giver, extra={"HANDLE": handle.hex()})
            self.assertEqual(out, "refused 1", err)
            self.assertEqual(sides.opened(BENCH, giver)[0], "opened 0")

    @needs_preload
    @says("To share a block")
    def test_the_pages_are_shared(self):
        with sides.Giver(BENCH) as giver:
            self.assertEqual(sides.opened(BENCH, giver, extra={"DISTANCE": giver.distance})[0], "beside opened 0")

    @needs_preload
    @says("Cistern does not clear memory")
    def test_a_block_holds_what_was_there(self):
        ended = BENCH.run("handle_program", "reuse")
        self.assertEqual((ended.status, ended.out), (0, "as it was\n"), ended.err)

    @needs_preload
    @says("`cistern run` keeps its records", "The folder of a run goes")
    def test_records_are_the_users_alone(self):
        before = os.umask(0)
        self.addCleanup(os.umask, before)
        with sides.Giver(BENCH, extra={"TMPDIR": str(self.folder)}):
            made = list(self.folder.rglob("*"))
            self.assertEqual([mode(path) for path in made if path.is_dir()], [0o700])
            self.assertEqual({mode(path) for path in made if path.is_file()}, {0o600})
        self.assertEqual(list(self.folder.iterdir()), [])


class Writes(Folder):
    def written(self):
        """Every kind of file, each written anew."""
        trace, names = self.file("t.trace", TRACE), {"plot": "p.svg", "snapshot": "s.json"}
        ended = run(COMMAND, "replay", trace, "--plot", str(self.folder / names["plot"]))
        self.assertEqual(ended.returncode, 0, ended.stderr)
        program = f"import cistern\ncistern.Allocator('sim').snapshot({str(self.folder / names['snapshot'])!r})"
        ended = subprocess.run([sys.executable, "-c", program], env=PYTHON, capture_output=True, text=True)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        if BENCH is not None:
            names.update(trace="r.trace", json="r.json")
            ended = subprocess.run(
                [COMMAND, "run", "--trace", str(self.folder / "r.trace"), "--json", str(self.folder / "r.json"), "--",
                 BENCH.path("runtime_static"), "loop"], env=BENCH.environment(True), capture_output=True, text=True)
            self.assertEqual(ended.returncode, 0, ended.stderr)
        return {kind: self.folder / name for kind, name in names.items()}

    @says("Files that you name", "A file that is there keeps")
    def test_modes(self):
        before = os.umask(0o027)
        self.addCleanup(os.umask, before)
        for path in self.written().values():
            self.assertEqual(mode(path), 0o640, path)
            path.chmod(0o600)
        for path in self.written().values():
            self.assertEqual(mode(path), 0o600, path)
            path.chmod(0o444)
        if os.geteuid() != 0:
            return  # root may write whatever the mode
        self.folder.chmod(0o777)
        plot = self.folder / "p.svg"
        was = plot.read_bytes()
        command = shutil.copy(COMMAND, self.folder)  # the build may lie where the other user cannot go
        ended = run(command, "replay", str(self.folder / "t.trace"), "--plot", str(plot), user=OTHER)
        self.assertIn("Permission denied", ended.stderr)
        self.assertNotEqual(ended.returncode, 0)
        self.assertEqual(plot.read_bytes(), was)


class Environment(Folder):
    def rows(self):
        cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines()
                 if line.startswith("| `")]
        return {name: row[-1] != "no" for row in cells for name in re.findall(r"`(\w+)`", row[0])}

    @says("Nothing else is read by name")
    def test_the_table_has_what_the_sources_read(self):
        read = set()
        for path in TOP.rglob("*.[chp]*"):
            if path.parts[len(TOP.parts)] not in ("allocator", "handles", "interop", "pools", "include"):
                continue
            text = path.read_text(errors="replace")
            if path.suffix == ".py":
                read.update(re.findall(r"environ(?:\.get\(|\[)\"(\w+)\"", text))
            elif path.suffix in (".cpp", ".hpp"):
                names = dict(re.findall(r"char\*? (?:const )?(k\w+)(?:\[\])? = \"(\w+)\"", text))
                names.update(dict(re.findall(r"char (kRun\w+)\[\] = \"(\w+)\"",
                                             (TOP / "interop/preload/process/preload_settings.hpp").read_text())))
                for quoted, constant in re.findall(r"(?:getenv|environment|trustedVariable)\((?:\"(\w+)\"|(?:\w+::)?(k\w+))\)",
                                                   text):
                    read.add(quoted or names[constant])
                read.update(re.findall(r"\.variable = \"(\w+)\"", text))
        self.assertGreater(len(read), 12)
        self.assertEqual(read, set(self.rows()))

    def marker(self, name="marker.so"):
        """A library that says that it has been loaded."""
        if CC is None:
            self.skipTest("no C compiler")
        source = self.file("marker.c", '#include <unistd.h>\n__attribute__((constructor)) static void f(void) {\n'
                                       '  (void)!write(2, "LOADED\\n", 7);\n}\n')
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run([CC, "-shared", "-fPIC", "-o", str(path), source], check=True)
        return str(path)

    def loads(self, *command, **env):
        return "LOADED" in run(*command, **env).stderr

    def test_variables_that_load_nothing(self):
        marker = self.marker()
        for name in (name for name, loads in self.rows().items() if not loads):
            self.assertFalse(self.loads(COMMAND, "doctor", **{name: marker}), name)
            self.assertFalse(self.loads(sys.executable, "-c", "import cistern; cistern.Allocator('sim')",
                                        **{**PYTHON, name: marker}), name)

    @needs_preload
    def test_variables_that_stand_before_a_program(self):
        marker = self.marker()
        self.assertTrue(self.loads(COMMAND, "run", "--", "/bin/true", CISTERN_PRELOAD=marker))
        ended = BENCH.run("/bin/true", extra={"LD_PRELOAD": marker, "CISTERN_PRELOAD": BENCH.library})
        self.assertIn("LOADED", ended.err)

    def hip(self):
        if "\nhip runtime:" not in run(COMMAND, "doctor").stdout:
            self.skipTest("this build has no HIP")

    def test_variables_that_name_hips_runtime(self):
        self.hip()
        marker = self.marker("lib/libamdhip64.so")
        self.assertTrue(self.loads(COMMAND, "doctor", CISTERN_HIP_LIBRARY=marker))
        self.assertTrue(self.loads(COMMAND, "doctor", ROCM_PATH=str(self.folder)))

    def loads_cuda(self):
        told = run(COMMAND, "doctor", "--device", "cuda").stdout
        return "not built in" not in told and not re.search("^cuda runtime: .*, linked$", told, re.M)

    def test_the_variable_that_names_cudas_runtime(self):
        if not self.loads_cuda():
            self.skipTest("this build loads no runtime of CUDA")
        marker = self.marker("libcudart.so.13")
        ended = run(COMMAND, "doctor", CISTERN_CUDA_LIBRARY=marker)
        self.assertIn("LOADED", ended.stderr)
        self.assertIn(f"CISTERN_CUDA_LIBRARY is {marker}, which cannot be loaded: {marker} tells no version",
                      ended.stdout)

    @says("A program with more rights")
    @unittest.skipUnless(os.geteuid() == 0, "only root can give rights")
    @unittest.skipIf(os.statvfs("/tmp").f_flag & os.ST_NOSUID, "/tmp is mounted nosuid")
    def test_a_program_with_more_rights_takes_no_library(self):
        self.hip()
        marker = self.marker("lib/libamdhip64.so")
        named = [{"CISTERN_HIP_LIBRARY": marker}, {"ROCM_PATH": str(self.folder)}]
        if self.loads_cuda():
            named.append({"CISTERN_CUDA_LIBRARY": marker})
        program = self.folder / "cistern"
        shutil.copyfile(COMMAND, program)
        for rights, loads in ((0o755, True), (0o4755, False)):
            program.chmod(rights)
            for env in named:
                ended = run(str(program), "doctor", user=OTHER, **env)
                self.assertEqual("LOADED" in ended.stderr, loads, ended.stderr)
                self.assertIn("hip:", ended.stdout)

    def test_variables_of_the_python_package(self):
        marker = self.marker("build/release/libcistern.so.0")
        self.assertTrue(self.loads(sys.executable, "-c", "import cistern", **{**PYTHON, "CISTERN_ROOT": str(self.folder)}))
        program = ("from cistern.torch import _build, _cached, _compiled\n_compiled.find = lambda: None\n"
                   "_build.command_line = lambda: ['/bin/false']\n_build.digest = lambda command: 'it'\n_cached.load()\n")
        for name, below in (("CISTERN_CACHE", "."), ("XDG_CACHE_HOME", "cistern")):
            kept = self.folder / name
            (kept / below).mkdir(parents=True, mode=0o700)
            shutil.copy(marker, kept / below / "cistern_torch-it.so")
            env = {key: value for key, value in PYTHON.items() if key != "CISTERN_CACHE"}
            ended = subprocess.run([sys.executable, "-c", program], env={**env, name: str(kept)}, capture_output=True,
                                   text=True)
            self.assertIn("LOADED", ended.stderr)

    @says("Python looks there")
    @unittest.skipIf(sys.version_info < (3, 11), "this Python has no -P")
    def test_the_current_folder(self):
        self.file("ctypes.py", "print('imported')\nraise SystemExit")
        for options, said in (([], "imported\n"), (["-P"], "")):
            ended = subprocess.run([sys.executable, *options, "-m", "cistern.torch", "none.py"], env=PYTHON,
                                   cwd=self.folder, capture_output=True, text=True)
            self.assertEqual(ended.stdout, said, ended.stderr)

    def test_variables_of_the_compiler(self):
        compiler = self.file("compiler", "#!/bin/sh\n")
        os.chmod(compiler, 0o755)
        (self.folder / "include").mkdir()
        (self.folder / "include/crt").mkdir()
        self.file("include/cuda_runtime_api.h", "")
        self.file("include/crt/host_config.h", "")
        program = ("from cistern.torch import _build\nprint(*_build._compiler(), *_build._cuda_headers())\n")
        ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                               env={**PYTHON, "CXX": compiler, "CUDA_HOME": str(self.folder)})
        self.assertEqual(ended.stdout.split(), [compiler, str(self.folder / "include")], ended.stderr)


class Holds(Folder):
    def run_with_a_secret(self, *options):
        """What is said, the summary as JSON, and the trace."""
        trace, summary = self.folder / "it.trace", self.folder / "it.json"
        ended = subprocess.run([COMMAND, "run", *options, "--trace", str(trace), "--json", str(summary), "--",
                                BENCH.path("runtime_static"), "loop", "--token=hidden"], env=BENCH.environment(True),
                               capture_output=True, text=True)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        return ended.stderr, summary.read_text(), trace.read_text()

    @needs_preload
    @says("With `--show-arguments`")
    def test_a_command_line_that_was_asked_for(self):
        said, summary, trace = self.run_with_a_secret("--show-arguments")
        for text in (said, json.loads(summary)["processes"][0]["program"], trace.splitlines()[0]):
            self.assertIn("runtime_static loop --token=hidden", text)

    @needs_preload
    @says("A trace of `cistern run` names", "The summary and its JSON", "Beside that, a trace")
    def test_a_trace_and_a_summary(self):
        for text in self.run_with_a_secret():
            self.assertNotIn("hidden", text)
            self.assertNotIn(BENCH.programs, text)
        said, summary, trace = self.run_with_a_secret("--stats")
        self.assertRegex(said, r"cistern: process \d+: runtime_static\n")
        self.assertEqual(json.loads(summary)["processes"][0]["program"], "runtime_static")
        head, *events = trace.splitlines()
        self.assertEqual(json.loads(head.lstrip("# ")), {"name": "runtime_static", "stream_uses": "recorded"})
        self.assertEqual(len(events), 2000)
        for event in events:
            self.assertRegex(event, r"^(a \d{1,8} \d{1,3} \d+|f \d{1,4} \d+)$")

    @says("A snapshot holds")
    def test_a_snapshot(self):
        program = ("import cistern, json\nallocator = cistern.Allocator('sim')\nkept = allocator.allocate(5 << 20)\n"
                   "print(json.dumps(allocator.snapshot()))\n")
        ended = subprocess.run([sys.executable, "-c", program], env=PYTHON, capture_output=True, text=True)
        shot = json.loads(ended.stdout)
        segment = {"address", "size", "kind", "in_pages", "location", "pool", "stream", "blocks"}
        block = {"address", "size", "requested", "state", "stream"}
        self.assertEqual(set(shot), {"version", "device", "segments"})
        self.assertEqual({key for each in shot["segments"] for key in each}, segment)
        self.assertEqual({key for each in shot["segments"] for part in each["blocks"] for key in part}, block)


class Trusts(Folder):
    def refusal(self, name, content):
        ended = run(COMMAND, "replay", self.file(name, content))
        self.assertEqual(ended.returncode, 2, ended.stderr)
        return ended.stderr

    @says("A pickle is read")
    def test_a_pickle_runs_nothing(self):
        class Calls:
            def __reduce__(self):
                return os.mkdir, (made,)

        made = str(self.folder / "made")
        for protocol in range(6):
            said = self.refusal(f"{protocol}.pickle", pickle.dumps({"device_traces": [Calls()]}, protocol))
            self.assertIn("refused; expected plain data", said)
        self.assertFalse(os.path.exists(made))

    @says("Packed data")
    def test_packed_data(self):
        self.assertIn("unpack to more than", self.refusal("bomb.trace.gz", gzip.compress(bytes(100 << 20))))

    @says("Control characters")
    def test_control_characters(self):
        name = "\x1b]0;it\x07\x1b[31m<script>\x00\r"
        trace = self.file("\x1b[31m.trace", TRACE.replace('"it"', json.dumps(name)))
        plot = self.folder / "it.svg"
        played = run(COMMAND, "replay", trace, "--plot", str(plot))
        missing = run(COMMAND, "replay", trace + ".none")
        none = run(COMMAND, "run", "--", "/nowhere/\x1b[31m", CISTERN_PRELOAD=BENCH.library) if PRELOAD else missing
        for text in (played.stdout, played.stderr, missing.stderr, none.stderr, plot.read_text()):
            self.assertNotRegex(text, "[\x00-\x08\x0b-\x1f\x7f]")
            self.assertNotIn("<script>", text if "svg" in text[:5] else "")
        self.assertIn("\\x1b", played.stdout)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]])
