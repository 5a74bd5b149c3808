"""How many bytes host_activations() moves in a step, where that follows overflow."""

from __future__ import annotations

from typing import Any

#: Of the device's capacity; so much stays free before less is moved.
_MARGIN = 0.02
_LEAST_MARGIN = 64 << 20
#: After so many steps without overflow, what seemed to be free has proved to be.
_PROVES = 10
#: After so many steps without overflow, half of what was not seen is forgotten.
_FORGETS = 200


class Adapting:
    """The budget of a device, from what overflow has served in each step, and what was free of the device when it
    was fullest. That is looked at when a tensor is saved or restored, and so it misses what lives between. `unseen`
    is what seemed to be free in a step that was full, or in the one after which less was moved and it was full."""

    def __init__(self, handed_out: int, reserved: int) -> None:
        self.unseen = 0
        self._seemed = 0  # to be free, when less was moved the last time; until that has proved right
        self._quiet = 0
        self._handed_out, self._reserved = handed_out, reserved

    def served(self, figures: Any) -> int:
        """Bytes of host memory that overflow needed since it was asked last. No more than were handed out, and than
        were there."""
        there = max(self._reserved, figures.reserved)
        least: int = min(there, figures.handed_out - self._handed_out)
        self._handed_out, self._reserved = figures.handed_out, figures.reserved
        return max(0, least)

    def after(self, budget: int, served: int, capacity: int, peak: int) -> int:
        """The next budget. `peak`: the most that was seen of the device in use; 0: nothing was seen."""
        seems = capacity - peak if peak > 0 else 0
        if served > 0:
            self.unseen = max(self.unseen, seems, self._seemed)
            self._quiet = self._seemed = 0
            return budget + served
        self._quiet += 1
        if self._quiet == _PROVES:
            self._seemed = 0
        if self._quiet % _FORGETS == 0:
            self.unseen //= 2
        spare = seems - self.unseen - max(_LEAST_MARGIN, int(capacity * _MARGIN))
        if spare <= 0 or budget == 0:
            return budget
        self._quiet, self._seemed = 0, seems
        return max(0, budget - spare)
