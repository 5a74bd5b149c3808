"""The fate of bytes while a pool sleeps. Needs no library."""

import enum


class Contents(enum.IntEnum):
    """The fate of a block's bytes while its pool sleeps."""

    SAVE = 0  #: they are the same after wake
    DROP = 1  #: they are anything after wake
    ZERO = 2  #: they are zero after wake
