"""Whether a file or folder is the user's own, so that what it holds may be run.

A file is the user's own if the user, or root, owns it, and nobody else may write to it. (Root may
do anything anyway.)
"""

from __future__ import annotations

import errno
import grp
import os
import pwd
import stat
from pathlib import Path


class NotPrivate(Exception):
    """Others may write to a folder. The text names it."""


def home() -> Path:
    """The user's home folder. $HOME may be another user's, as under a sudo that keeps it. Then the
    folder is the one that the system has for this user. RuntimeError if there is no such folder."""
    named = Path.home()
    try:
        if named.stat().st_uid == os.geteuid():
            return named
        return Path(pwd.getpwuid(os.geteuid()).pw_dir)
    except (OSError, KeyError):
        return named


def make_folder(named: Path) -> Path:
    """Makes the folder, and the missing ones above it, for the user alone. Returns its path,
    without links. NotPrivate if others may write there; OSError."""
    for above in [*reversed(named.parents), named]:
        if not above.exists():
            above.mkdir(mode=0o700, exist_ok=True)
    folder = named.resolve()
    if not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))
    found = folder.stat()
    if not _is_trusted(found.st_uid):
        raise NotPrivate(f"{folder} belongs to user {found.st_uid}, who could change what is compiled there")
    if _others_write(found):
        raise NotPrivate(f"others may write to {folder} (chmod go-w), and what is compiled there is run")
    for above in folder.parents:
        _check_above(above, folder)
    return folder


def is_kept(path: Path) -> bool:
    """Whether it is a file that nobody else can have written. OSError."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return False
    return stat.S_ISREG(found.st_mode) and _is_trusted(found.st_uid) and not _others_write(found)


# In a user namespace, files of root outside seem to belong to the overflow user.
def _check_above(above: Path, folder: Path) -> None:
    found = above.stat()
    trusted = _is_trusted(found.st_uid) or _is_unmapped(found.st_uid)
    sticky = found.st_mode & stat.S_ISVTX
    if not trusted or (_others_write(found) and not sticky):
        raise NotPrivate(f"others may write to {above}, and so put another folder in place of {folder}")


def _is_trusted(user: int) -> bool:
    return user in (os.geteuid(), 0)


def _is_unmapped(user: int) -> bool:
    """Whether it is the overflow user, and stands for users that this namespace does not know.
    Outside a namespace the user of that number is an ordinary one: nobody."""
    try:
        if user != int(Path("/proc/sys/kernel/overflowuid").read_text(encoding="ascii")):
            return False
        rows = [line.split() for line in Path("/proc/self/uid_map").read_text(encoding="ascii").splitlines()]
        return not any(int(first) <= user < int(first) + int(count) for first, _, count in rows)
    except (OSError, ValueError):
        return False


def _others_write(found: os.stat_result) -> bool:
    if found.st_mode & stat.S_IWOTH:
        return True
    return bool(found.st_mode & stat.S_IWGRP) and not _is_private_group(found.st_gid)


# Many systems give each user a group of its own name, and let the group write.
def _is_private_group(group: int) -> bool:
    try:
        user = pwd.getpwuid(os.geteuid()).pw_name
        found = grp.getgrgid(group)
    except KeyError:
        return False
    return found.gr_name == user and set(found.gr_mem) <= {user}
