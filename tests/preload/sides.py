"""The two sides of handle_program, each a `cistern run` of its own, and the handle that is carried between them."""

import subprocess


class Side:
    """handle_program under `cistern run`: as a user, and behind a command such as unshare."""

    def __init__(self, bench, what, user=None, behind=(), extra=None, stdin=None):
        env = {**bench.environment(True), "TMPDIR": "/tmp", **(extra or {})}
        self.process = subprocess.Popen(
            [*behind, bench.command, "run", "--quiet", "--", bench.path("handle_program"), what], env=env, text=True,
            stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, user=user, group=user)


class Giver(Side):
    def __init__(self, bench, **how):
        super().__init__(bench, "give", stdin=subprocess.PIPE, **how)

    def __enter__(self):
        self.handle, _, self.distance = self.process.stdout.readline().strip().rpartition(" ")
        return self

    def __exit__(self, *_):
        _, self.said = self.process.communicate(timeout=60)
        if self.process.returncode != 0:
            raise AssertionError(self.said)

    def name(self):
        """Of its socket: what stands behind 16 bytes of the handle."""
        return bytes.fromhex(self.handle)[16:].rstrip(b"\0")

    def pid(self):
        """Of the program, not of `cistern run` before it."""
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children") as children:
            return int(children.read().split()[0])


def opened(bench, giver, extra=None, **how):
    """What another process gets of it, and what is said there."""
    side = Side(bench, "open", extra={"HANDLE": giver.handle, **(extra or {})}, stdin=subprocess.DEVNULL, **how)
    out, err = side.process.communicate(timeout=60)
    return out.strip(), err
