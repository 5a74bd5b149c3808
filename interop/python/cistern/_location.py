"""Where memory lies. Needs no library."""

import enum


class Location(enum.IntEnum):
    """The place of memory. The device reads and writes both."""

    DEVICE = 0  #: in the device's own memory
    HOST = 1  #: in the host's memory, which the device reaches over the bus (docs/overflow.md)
