"""The sizes of a family's objects. The daemon keeps objects of one size in a space, and LMCache asks whether it has
some without giving their size. So the sizes of each family are stored as records, which are objects of the daemon
as well."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable

from ..spaces import SpaceSpec
from .keys import Family, Owner, spec_of

RECORD_BYTES = 4096
SIZES_MAX = 64  # sizes of one family; LMCache uses one as long as its chunks have the same number of tokens

Load = Callable[[bytes], bytes | None]
Store = Callable[[bytes, bytes], None]


class Sizes:
    """The sizes that this process knows. Safe on any thread.

    The records of a family are numbered from 0, and never change: two servers may write a record of the same
    number, and the first one decides. The daemon may evict records like any other object; the next store writes
    them again."""

    def __init__(self, owner: Owner, load: Load, store: Store) -> None:
        """`load` and `store` move a record by its digest; `load` returns None for an absent one."""
        self._owner, self._load, self._store = owner, load, store
        self._known: dict[Family, list[int]] = {}
        self._recorded: dict[Family, list[int | None]] = {}  # sizes when the records were last read; None: of no use
        self._lock = threading.Lock()
        self.space: SpaceSpec = spec_of(Family("lmcache", "sizes", ""), RECORD_BYTES, Owner(revision=""))  #: space of the records

    def known(self, family: Family) -> list[int]:
        """Returns the known sizes without asking the daemon."""
        with self._lock:
            return list(self._known.get(family, ()))

    def of(self, family: Family) -> list[int]:
        """Returns the sizes that the daemon may have."""
        with self._lock:
            self._read(family)
            return list(self._known[family])

    def add(self, family: Family, nbytes: int) -> None:
        """Adds a size before an object of that size is stored. If the daemon keeps no record, other servers do not
        find the object."""
        with self._lock:
            if nbytes in self._recorded.get(family, ()):
                return
            recorded = self._read(family)
            while nbytes not in recorded and len(recorded) < SIZES_MAX:
                number = len(recorded)
                self._store(self._key(family, number), json.dumps(nbytes).encode().ljust(RECORD_BYTES))
                recorded = self._read(family)  # another server may have been first
                if len(recorded) == number:
                    return

    def _read(self, family: Family) -> list[int | None]:
        recorded: list[int | None] = []
        while len(recorded) < SIZES_MAX and (record := self._load(self._key(family, len(recorded)))) is not None:
            recorded.append(_size(record))
        known = self._known.setdefault(family, [])
        known.extend(nbytes for nbytes in recorded if nbytes is not None and nbytes not in known)
        self._recorded[family] = recorded
        return recorded

    def _key(self, family: Family, number: int) -> bytes:
        text = json.dumps([family.model, family.place, family.salt, self._owner.revision_of(family.model), self._owner.salt, number])
        return hashlib.sha256(text.encode()).digest()


def _size(record: bytes) -> int | None:
    """Returns None for what is no size: it takes a number, and says nothing about the other records."""
    try:
        nbytes = json.loads(record)
    except ValueError:
        return None
    return nbytes if type(nbytes) is int and nbytes > 0 else None
