"""`cistern sleep` and `cistern wake`: the order of the driver's calls, what is undone, what is refused.

order_test.py COMMAND DRIVERS PROGRAMS    the built `cistern`; the folders of drivers and programs of these tests"""

import contextlib
import os
import pathlib
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import bench

COMMAND, DRIVERS, PROGRAMS = sys.argv[1:4]
MACHINE = bench.Machine
MIB = 1 << 20


def kept(pid):
    """The file with the memory that the process needs to wake."""
    return list(pathlib.Path("/dev/shm").glob(f"cistern-asleep-{pid}-*"))


class Case(bench.Case):
    def setUp(self):
        self.machine = bench.Machine(COMMAND, DRIVERS, PROGRAMS)
        self.addCleanup(self.machine.close)

    def process(self, state=MACHINE.RUNNING, memory=0):
        made = bench.sleeper()
        process = made.__enter__()
        self.addCleanup(made.__exit__, None, None, None)
        self.machine.has_cuda(process.pid, state, memory)
        self.addCleanup(lambda: [path.unlink() for path in kept(process.pid)])
        return process.pid

    def limit(self, pid, most):
        """From now on the process is in a control group that admits `most` bytes. Skips where none can be made."""
        limits = {"memory": "memory.limit_in_bytes", "": "memory.max"}
        for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines():
            _, kinds, path = line.split(":", 2)
            group = pathlib.Path("/sys/fs/cgroup", kinds, path[1:], f"cistern-{os.getpid()}")
            if kinds in limits and (group.parent / limits[kinds]).exists():
                with contextlib.suppress(OSError):
                    group.mkdir()
                    self.addCleanup(group.rmdir)
                    (group / limits[kinds]).write_text(str(most))
                    (group / "cgroup.procs").write_text(str(pid))
                    self.addCleanup((group.parent / "cgroup.procs").write_text, str(pid))
                    return
        self.skipTest("no control group of memory can be made here")

    def done(self, *args, **environment):
        ended = self.machine.run(*args, **environment)
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        return ended.stdout

    def refused(self, *args, status=1, **environment):
        ended = self.machine.run(*args, **environment)
        self.assertEqual((ended.returncode, ended.stdout), (status, ""), ended.stderr)
        self.assertTrue(ended.stderr.startswith("cistern: "), ended.stderr)
        return ended.stderr[len("cistern: "):].rstrip("\n")


class Order(Case):
    def test_sleep_locks_and_saves_and_wake_restores_and_unlocks(self):
        pid = self.process(memory=300 * MIB)
        said = self.done("sleep", pid)
        self.assertEqual((self.machine.calls(), self.machine.state(pid)), (["lock", "save"], MACHINE.SAVED))
        self.assertRegex(said, rf"^process {pid} is asleep after \d+\.\d{{3}} s; its caches were not emptied: it does "
                         r"not run on Cistern, or was started without CISTERN_SLEEPABLE=1\n"
                         r"  GPU 0: 300.00 MiB before, 0 B now\n$")
        said = self.done("wake", pid)
        self.assertEqual((self.machine.calls(), self.machine.state(pid)), (["restore", "unlock"], MACHINE.RUNNING))
        self.assertRegex(said, rf"^process {pid} is awake after \d+\.\d{{3}} s\n  GPU 0: 0 B before, 300.00 MiB now\n$")

    def test_where_processes_are_not_listed_the_free_memory_says_it(self):
        pid = self.process(memory=300 * MIB)
        environment = {"FAKE_OTHER_NAMESPACE": "1"}
        self.assertIn("  GPU 0: 300.00 MiB more free, of all processes\n", self.done("sleep", pid, **environment))
        self.assertIn("  GPU 0: 300.00 MiB less free, of all processes\n", self.done("wake", pid, **environment))

    def test_the_gpus_that_the_command_may_see_do_not_matter(self):
        pid = self.process()
        self.done("sleep", pid, CUDA_VISIBLE_DEVICES="")
        self.done("wake", pid, CUDA_VISIBLE_DEVICES="7")

    def test_several_sleep_in_the_order_in_which_they_are_named(self):
        pids = [self.process() for _ in range(3)]
        said = self.done("sleep", *pids).splitlines()
        self.assertEqual([line.split()[1] for line in said], list(map(str, pids)))
        self.done("wake", *pids)
        self.assertEqual({self.machine.state(pid) for pid in pids}, {MACHINE.RUNNING})

    def test_one_that_is_refused_keeps_all_awake(self):
        first, asleep = self.process(), self.process(MACHINE.SAVED)
        self.assertEqual(self.refused("sleep", first, asleep), f"process {asleep} is asleep already")
        self.assertEqual(self.machine.calls(), [])

    def test_a_failure_says_which_were_not_tried(self):
        pids = [self.process() for _ in range(3)]
        self.machine.plans(save=999)
        said = self.refused("sleep", *pids)
        self.assertIn(f"process {pids[0]} cannot be saved", said)
        self.assertIn(f"\nnot tried: {pids[1]}, {pids[2]}", said)


class Failures(Case):
    def test_what_cannot_be_saved_is_unlocked(self):
        pid = self.process(memory=MIB)
        self.machine.plans(save=2)
        self.assertEqual(self.refused("sleep", pid), f"process {pid} cannot be saved: cuCheckpointProcessCheckpoint: "
                         "CUDA_ERROR_2; it goes on")
        self.assertEqual((self.machine.calls(), self.machine.state(pid)), (["lock", "save", "unlock"], MACHINE.RUNNING))
        self.assertEqual(kept(pid), [])

    def test_what_cannot_be_unlocked_either_is_said_and_wake_unlocks_it(self):
        pid = self.process()
        self.machine.plans(save=2, unlock=999)
        self.assertIn(f"; it is locked: `cistern wake {pid}` unlocks it", self.refused("sleep", pid))
        self.machine.plans()
        self.assertIn("is locked", self.refused("sleep", pid))
        self.machine.calls()
        self.assertIn(f"process {pid} is unlocked, and was not asleep", self.done("wake", pid))
        self.assertEqual((self.machine.calls(), self.machine.state(pid)), (["unlock"], MACHINE.RUNNING))

    def test_what_does_not_come_to_rest_goes_on(self):
        pid = self.process()
        self.machine.plans(lock=600)
        self.assertEqual(self.refused("sleep", "--timeout", "2", pid),
                         f"process {pid} did not come to rest within 2.0 s (--timeout): it goes on")
        self.assertEqual(self.machine.calls(), ["lock"])

    def test_what_cannot_be_locked_is_not_unlocked(self):
        pid = self.process()
        self.machine.plans(lock=801)
        self.assertIn("cannot be locked: cuCheckpointProcessLock: CUDA_ERROR_801; it goes on", self.refused("sleep", pid))
        self.assertEqual(self.machine.calls(), ["lock"])

    def test_what_cannot_be_restored_sleeps_on(self):
        pid = self.process(MACHINE.SAVED)
        self.machine.plans(restore=2)
        self.assertIn("cannot be restored: cuCheckpointProcessRestore: CUDA_ERROR_2; it is asleep",
                      self.refused("wake", pid))
        self.assertEqual(self.machine.calls(), ["restore"])
        self.machine.plans()
        self.done("wake", pid)

    def test_a_driver_that_does_not_return_is_left(self):
        pid = self.process(memory=MIB)
        self.machine.plans(save=(0, 30_000))
        begin = time.monotonic()
        said = self.refused("sleep", "--timeout", "0.5", pid)
        self.assertLess(time.monotonic() - begin, 20)
        self.assertEqual(said, f"process {pid}: cuCheckpointProcessCheckpoint has not returned within 0.5 s, and goes on")
        self.assertEqual(len(kept(pid)), 1)  # it may be asleep yet

    def test_a_signal_between_lock_and_save_unlocks(self):
        for sent in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGTSTP):
            pid = self.process()
            self.machine.plans(lock=(0, 1000))
            command = self.machine.start("sleep", pid)
            self.until(lambda: "lock" in self.machine.calls())
            command.send_signal(sent)
            _, said = command.communicate()
            self.assertEqual((command.returncode, said),
                             (1, f"cistern: process {pid} is not put to sleep, as a signal has come; it goes on\n"))
            self.assertEqual((self.machine.calls(), self.machine.state(pid)), (["unlock"], MACHINE.RUNNING))

    def test_what_a_killed_command_has_locked_is_unlocked_by_wake(self):
        pid = self.process()
        self.machine.plans(save=(0, 30_000))
        command = self.machine.start("sleep", pid)
        self.until(lambda: "save" in self.machine.calls())
        command.kill()
        command.communicate()
        self.machine.plans()
        self.assertIn(f"process {pid} is locked: another program saves it, or one has ended before it was through; "
                      f"`cistern wake {pid}` unlocks it", self.refused("sleep", pid))
        self.done("wake", pid)
        self.assertEqual(self.machine.state(pid), MACHINE.RUNNING)

    def test_an_output_that_is_full_is_said_and_the_process_sleeps(self):
        pid = self.process()
        with open("/dev/full", "w") as full:
            ended = subprocess.run([COMMAND, "sleep", str(pid)], env=self.machine.environment(), stdout=full,
                                   stderr=subprocess.PIPE, text=True)
        self.assertEqual((ended.returncode, self.machine.state(pid)), (1, MACHINE.SAVED))
        self.assertIn("the output cannot be written", ended.stderr)

    def test_a_signal_does_not_stop_a_process_from_waking(self):
        pid = self.process(MACHINE.SAVED)
        self.machine.plans(restore=(0, 1000))
        command = self.machine.start("wake", pid)
        self.until(lambda: "restore" in self.machine.calls())
        command.send_signal(signal.SIGINT)
        command.communicate()
        self.assertEqual((command.returncode, self.machine.state(pid)), (0, MACHINE.RUNNING))

    def test_more_than_the_processs_control_group_has_left_is_not_saved(self):
        pid = self.process(memory=1 << 30)
        self.limit(pid, 300 * MIB)
        said = self.refused("sleep", pid)
        self.assertRegex(said, rf"^process {pid} has 1.00 GiB of device memory, and the host has (29\d|300)\.\d\d MiB left")
        self.assertEqual((self.machine.calls(), self.machine.state(pid)), ([], MACHINE.RUNNING))

    def test_a_wake_without_room_is_refused_before_the_driver_tries(self):
        pid = self.process(memory=600 * MIB)
        self.done("sleep", pid)
        other = self.process(memory=600 * MIB)
        self.machine.calls()
        self.assertEqual(self.refused("wake", pid),
                         f"process {pid} needs 600.00 MiB on GPU 0, which has 424.00 MiB free; it is asleep")
        self.assertEqual((self.machine.calls(), self.machine.state(pid)), ([], MACHINE.SAVED))
        self.machine.has_cuda(other, MACHINE.SAVED)
        self.done("wake", pid)
        self.assertEqual(kept(pid), [])

    @unittest.skipUnless(os.geteuid() == 0, "to become another user takes root")
    def test_the_need_is_kept_from_other_users_and_theirs_is_not_believed(self):
        pid = self.process(memory=600 * MIB)
        self.done("sleep", pid)
        facts = kept(pid)[0].stat()
        self.assertEqual((facts.st_uid, stat.S_IMODE(facts.st_mode)), (0, 0o600))
        kept(pid)[0].write_text(f"{1 << 60}\n")
        self.assertIn("needs 1.00 EiB on GPU 0", self.refused("wake", pid))
        os.chown(kept(pid)[0], 4711, 4711)
        self.done("wake", pid)

    def test_a_need_that_cannot_be_kept_is_said(self):
        pid = self.process(memory=MIB)
        self.done("sleep", pid)
        path = kept(pid)[0]
        path.unlink()
        path.mkdir()
        self.machine.has_cuda(pid)
        self.assertIn(f"  wake will not look whether there is room: {path}: File exists\n", self.done("sleep", pid))
        path.rmdir()

    def test_more_than_the_host_has_left_is_not_saved(self):
        pid = self.process(memory=1 << 60)
        self.assertIn("has 1.00 EiB of device memory, and the host has", self.refused("sleep", pid))
        self.assertEqual((self.machine.calls(), self.machine.state(pid)), ([], MACHINE.RUNNING))

    def test_a_process_that_ends_meanwhile_is_said(self):
        process = subprocess.Popen(["sleep", "60"])
        self.machine.has_cuda(process.pid)
        self.machine.plans(lock=(999, 1000))
        command = self.machine.start("sleep", process.pid)
        self.until(lambda: "lock" in self.machine.calls())
        process.kill()
        process.wait()
        self.assertIn("cannot be locked: it has ended meanwhile", command.communicate()[1])
        self.assertEqual(command.returncode, 1)

    def test_two_commands_at_once_do_not_meet(self):
        pid = self.process()
        self.machine.plans(save=(0, 1500))
        first = self.machine.start("sleep", pid)
        self.until(lambda: "save" in self.machine.calls())
        for verb in ("sleep", "wake"):
            self.assertEqual(self.refused(verb, pid),
                             f"process {pid} is being put to sleep or woken by another `cistern` just now")
        first.communicate()
        self.assertEqual((first.returncode, self.machine.state(pid)), (0, MACHINE.SAVED))


class Refusals(Case):
    def test_what_is_no_process(self):
        for text in ("abc", "0", "00", "12x", "1.5", "99999999", "99999999999999999999", "4194305", "-1", " 1", "", "+1"):
            self.assertEqual(self.refused("sleep", text, status=2),
                             f"PID is '{text}': must be the number of a process, from 1 to 4194304")
        self.assertIn("is required", self.refused("wake", status=2))
        self.assertIn("--timeout", self.refused("sleep", "--timeout", "0", "1", status=2))

    def test_one_that_is_named_twice(self):
        pid = self.process()
        self.assertEqual(self.refused("sleep", pid, f"0{pid}", status=2), f"process {pid} is named twice")

    def test_one_that_does_not_exist(self):
        process = subprocess.Popen(["true"])
        process.wait()
        self.assertEqual(self.refused("sleep", process.pid), f"process {process.pid} does not exist")

    def test_the_command_itself(self):
        line = f'exec {COMMAND} sleep $$'
        ended = subprocess.run(["sh", "-c", line], env=self.machine.environment(), capture_output=True, text=True)
        self.assertRegex(ended.stderr, r"^cistern: process \d+ is this command itself\n$")

    def test_one_that_has_ended_and_was_not_waited_for(self):
        process = subprocess.Popen(["true"])
        self.until(lambda: ") Z " in pathlib.Path(f"/proc/{process.pid}/stat").read_text())
        self.assertIn("has ended, and its parent", self.refused("sleep", process.pid))
        process.wait()

    def test_a_thread(self):
        numbers = []
        ready, end = threading.Event(), threading.Event()

        def run():
            numbers.append(threading.get_native_id())
            ready.set()
            end.wait()
        thread = threading.Thread(target=run)
        thread.start()
        ready.wait()
        try:
            self.assertEqual(self.refused("sleep", numbers[0]),
                             f"process {numbers[0]} is a thread of process {os.getpid()}: name that")
        finally:
            end.set()
            thread.join()

    def test_one_that_is_stopped(self):
        pid = self.process()
        os.kill(pid, signal.SIGSTOP)
        self.until(lambda: ") T " in pathlib.Path(f"/proc/{pid}/stat").read_text())
        self.assertEqual(self.refused("sleep", pid), f"process {pid} is stopped: let it go on first (kill -CONT {pid})")

    def test_one_without_cuda(self):
        with bench.sleeper() as process:
            for verb in ("sleep", "wake"):
                self.assertEqual(self.refused(verb, process.pid), f"process {process.pid} has no CUDA that the driver "
                                 "could save (cuCheckpointProcessGetState: CUDA_ERROR_1)")

    def test_one_without_cuda_names_those_that_it_has_started(self):
        with bench.sleeper("sh", "-c", "sleep 60 & sleep 60 & wait") as process:
            children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children")
            self.until(lambda: len(children.read_text().split()) == 2)
            started = children.read_text().split()
            self.assertTrue(self.refused("sleep", process.pid).endswith("; it has started " + ", ".join(started)))
            for each in started:
                os.kill(int(each), signal.SIGKILL)

    def test_one_that_is_in_the_wrong_state(self):
        pid = self.process()
        self.assertEqual(self.refused("wake", pid), f"process {pid} is not asleep")
        self.done("sleep", pid)
        self.assertEqual(self.refused("sleep", pid), f"process {pid} is asleep already")
        self.machine.has_cuda(pid, MACHINE.FAILED)
        for verb in ("sleep", "wake"):
            self.assertIn("has failed in the driver", self.refused(verb, pid))

    @unittest.skipUnless(os.geteuid() == 0, "to become another user takes root")
    def test_another_users(self):
        pid = self.process()
        with tempfile.TemporaryDirectory(dir="/tmp") as folder:  # which that user may enter
            os.chmod(folder, 0o755)
            command = shutil.copy(COMMAND, folder)
            ended = subprocess.run([command, "sleep", str(pid)], user=4711, group=4711, capture_output=True, text=True)
        self.assertEqual((ended.returncode, ended.stderr), (1, f"cistern: process {pid} belongs to user 0: only that "
                                                            "user and root may do that\n"))

    def test_no_driver_an_old_one_and_one_without_a_gpu(self):
        pid = self.process()
        self.assertRegex(self.refused("sleep", pid, driver="none"), "^NVIDIA's driver is not there, and it alone can save "
                         "a process .ROCm's cannot.: ")
        self.assertIn("too old to save a process: it is of CUDA 12.4", self.refused("wake", pid, driver="old"))
        self.machine.plans(init=100)
        self.assertEqual(self.refused("sleep", pid), "NVIDIA's driver cannot be used (cuInit: CUDA_ERROR_100)")

    def test_the_other_vendors_backend(self):
        pid = self.process()
        for backend in ("hip", "sim"):
            self.assertIn(f"CISTERN_BACKEND is {backend}", self.refused("sleep", pid, status=2, CISTERN_BACKEND=backend))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
