"""How many bytes host_activations() moves in a step, where that follows what steps need."""

from __future__ import annotations

from typing import Any

from . import _usage

#: Of the capacity. If the device could not serve what should have fitted, so much more is left free.
_PART, _LEAST = 1 / 256, 64 << 20
#: After so many steps without overflow, half of that is free for use again, and needs count for half as long.
_FORGETS = 200
#: The steps for which the need of one counts, at first and at most.
_LASTS_AT_FIRST, _LASTS = 2, 1024


class Adapting:
    """The budget of one device: what steps need beyond what the device has for them.

    The most that a step needed counts for two steps after it. If the device overflows once less is moved, that
    counts for twice as many from then on, as steps need more by turns. That is forgotten while steps are quiet.

    `slack`: bytes that the device could not serve, because of their places or sizes. It grows by twice as much each
    time that a step overflows which should have fitted: it needed no more than the ones before."""

    def __init__(self) -> None:
        self.slack = 0
        self._whole = 0  # what a step needed at its peak beyond its base, with what it had moved
        self._since = 0  # the most of the steps since then
        self._age, self._lasts = 0, _LASTS_AT_FIRST  # how many those are, and may be
        self._fell = False  # less is moved than before, and no step has overflowed since
        self._quiet = self._misses = 0
        self._handed_out = 0

    def begin(self, store: Any) -> None:
        """A step begins: the store gets its budget."""
        self._handed_out = _handed_out(store.device)
        store.budget, store.slack = self.budget(store.capacity, store.base), self.slack

    def end(self, store: Any, failed: bool) -> None:
        """It has ended, or failed: then it may have needed more."""
        if failed and store.used + store.need - store.base < self._whole:
            return
        overflowed = _handed_out(store.device) > self._handed_out
        self.after(store.used, store.need, store.capacity, overflowed, store.base)
        store.budget = self.budget(store.capacity, store.base)
        if store.refused:  # the host has no more
            store.budget = min(store.budget, store.used)

    def after(self, moved: int, need: int, capacity: int, overflowed: bool, base: int = 0) -> None:
        """A step has ended. `need`: the most bytes that it needed of the device at a time, with `moved` bytes on the
        host. `base`: what there was when it began."""
        more = max(_LEAST, int(capacity * _PART)) << min(self._misses, 8)
        whole, expected = moved + need - base, self._whole
        if not overflowed:
            self._misses, self._quiet = 0, self._quiet + 1
            if self._quiet % _FORGETS == 0:
                self.slack //= 2
                self._lasts, self._fell = max(_LASTS_AT_FIRST, self._lasts // 2), False
        else:
            self._quiet = 0
            if self._fell:
                self._lasts, self._fell = min(2 * self._lasts, _LASTS), False
            if expected and whole <= expected + more:
                self.slack = max(self.slack, capacity - need) + more
                self._misses += 1
        self._note(whole)

    def _note(self, whole: int) -> None:
        self._age += 1
        self._since = max(self._since, whole)
        if whole >= self._whole:
            self._whole, self._since, self._age = whole, 0, 0
        elif self._age >= self._lasts:
            self._whole, self._since, self._age, self._fell = self._since, 0, 0, True

    def budget(self, capacity: int, base: int = 0) -> int:
        """That of a step that begins with `base` bytes: tensors that came since the last one began stay, too."""
        return max(0, self._whole + base - capacity + self.slack) if self._whole else 0


def _handed_out(device: int) -> int:
    figures = _usage.figures_of(device)
    return 0 if figures is None else int(figures.handed_out)
