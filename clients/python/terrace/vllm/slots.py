"""Adjacent places of one size; a caller that takes several gets neighbours."""

from __future__ import annotations

from bisect import insort


class Slots:
    def __init__(self, count: int) -> None:
        self._free: list[tuple[int, int]] = [(0, count)] if count else []  # (first, number), ascending, not adjacent
        self._left = count

    @property
    def left(self) -> int:
        return self._left

    def take(self, most: int) -> tuple[int, int]:
        """Returns (first, number): at most `most` places, fewer if no free run is as long; none if none is free."""
        if not self._free or most <= 0:
            return 0, 0
        fitting = [run for run in self._free if run[1] >= most]
        first, length = min(fitting, key=lambda run: run[1]) if fitting else max(self._free, key=lambda run: run[1])
        taken = min(length, most)
        self._free.remove((first, length))
        if taken < length:
            insort(self._free, (first + taken, length - taken))
        self._left -= taken
        return first, taken

    def give_back(self, first: int, count: int) -> None:
        if count == 0:
            return
        insort(self._free, (first, count))
        at = self._free.index((first, count))
        self._left += count
        if at + 1 < len(self._free) and first + count == self._free[at + 1][0]:
            count += self._free.pop(at + 1)[1]
            self._free[at] = (first, count)
        if at > 0 and sum(self._free[at - 1]) == first:
            before = self._free.pop(at - 1)
            self._free[at - 1] = (before[0], before[1] + count)
