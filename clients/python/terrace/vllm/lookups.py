"""Remembers the answers about keys that the scheduler asks for, until it no longer needs them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection
from dataclasses import dataclass

from .keys import by_group

_UNKNOWN = object()
SEGMENTS = 8  # segments in which a window's search continues after a miss, at a time


@dataclass(slots=True)
class Batch:
    """Keys of one request and one group, in the order in which they were asked."""

    keys: list[bytes]
    backward: bool  #: asked from the end of the prompt: a miss does not end the search


class Lookups:
    """The scheduler's lookups. The first one of a key has no answer yet; the lookups of a step are then sent together.

    A hit is reported once: vLLM then moves the key to its host pool and asks that. A miss is kept until its request
    no longer needs it, because the scheduler repeats its lookups until all are answered.
    """

    def __init__(self) -> None:
        self._known: dict[bytes, bool | None] = {}  # None: asked and not answered
        self._of_request: dict[str, list[bytes]] = {}  # except for those of this step
        self._asked: defaultdict[str, list[bytes]] = defaultdict(list)  # asked in this step

    def ask(self, key: bytes, request: str) -> bool | None:
        """Returns None if the answer is not known yet."""
        answer = self._known.get(key, _UNKNOWN)
        if answer is None or answer is False:
            return answer
        if answer is True:
            del self._known[key]
            return True
        self._known[key] = None
        self._asked[request].append(key)
        return None

    def take(self, position: Callable[[str, bytes], int | None] = lambda request, key: None) -> list[Batch]:
        """Returns the lookups since the last call. `position`: where a key ends in its request's prompt, if known."""
        if not self._asked:
            return []
        batches = []
        for request, asked in self._asked.items():
            self._of_request.setdefault(request, []).extend(asked)
            for keys in by_group(asked):
                first, last = position(request, keys[0]), position(request, keys[-1])
                batches.append(Batch(keys, first is not None and last is not None and first > last))
        self._asked.clear()
        return batches

    def answer(self, batch: Batch, found: int) -> list[Batch]:
        """Takes an answer: the first `found` keys are present, the next one is not. Returns what a backward search
        must ask next. In a forward search keys after the miss do not matter; they are forgotten, so that they can
        be asked again."""
        for key in batch.keys[:found]:
            self._settle(key, True)
        if found >= len(batch.keys):
            return []
        self._settle(batch.keys[found], False)
        rest = batch.keys[found + 1 :]
        if not batch.backward:
            for key in rest:
                if self._known.get(key, _UNKNOWN) is None:
                    del self._known[key]
            return []
        rest = [key for key in rest if self._known.get(key, _UNKNOWN) is None]
        size = -(-len(rest) // SEGMENTS)
        return [Batch(rest[i : i + size], True) for i in range(0, len(rest), size)] if rest else []

    def give_up(self, batch: Batch) -> None:
        """Counts all keys as missing, because there will be no answer."""
        for key in batch.keys:
            self._settle(key, False)

    def miss(self, keys: Collection[bytes], request: str) -> None:
        """Counts keys that could not be loaded as missing while the request asks; otherwise it would retry for ever."""
        if request not in self._of_request and request not in self._asked:
            return
        for key in keys:
            self._known[key] = False
        self._of_request.setdefault(request, []).extend(keys)

    def forget(self, request: str) -> None:
        """The request asks no more, for now."""
        for key in self._of_request.pop(request, []) + self._asked.pop(request, []):
            self._known.pop(key, None)

    def __len__(self) -> int:
        return len(self._known)

    def _settle(self, key: bytes, found: bool) -> None:
        if self._known.get(key, _UNKNOWN) is None:
            self._known[key] = found
