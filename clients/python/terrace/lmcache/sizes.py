"""How large the objects of a family are. The daemon keeps objects of one size in a space, and LMCache asks whether it has some
without saying how large they are; so the sizes of each family are records, which are objects of the daemon as well."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable

from ..spaces import SpaceSpec
from .keys import Family, Owner, spec_of

RECORD_BYTES = 4096
SIZES_MAX = 64  #: of one family; LMCache uses one for as long as its chunks have as many tokens

Load = Callable[[bytes], bytes | None]
Store = Callable[[bytes, bytes], None]


class Sizes:
    """What is known of them in this process. Safe on any thread.

    The records of a family are numbered from 0, and never change: two servers may write the same number, and the first one
    decides. The daemon may evict records like any other object; whoever stores next writes them again."""

    def __init__(self, owner: Owner, load: Load, store: Store) -> None:
        """`load` and `store` move a record by its digest; one that is not there is None."""
        self._owner, self._load, self._store = owner, load, store
        self._known: dict[Family, list[int]] = {}
        self._recorded: dict[Family, list[int]] = {}  # when the records were read last
        self._lock = threading.Lock()
        self.space: SpaceSpec = spec_of(Family("lmcache", "sizes", ""), RECORD_BYTES, Owner(revision=""))  #: of the records

    def known(self, family: Family) -> list[int]:
        """Without asking the daemon."""
        with self._lock:
            return list(self._known.get(family, ()))

    def of(self, family: Family) -> list[int]:
        """Those that the daemon may have."""
        with self._lock:
            self._read(family)
            return list(self._known[family])

    def add(self, family: Family, nbytes: int) -> None:
        """Before an object of that size is stored. Where the daemon keeps no record, others do not find the object."""
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

    def _read(self, family: Family) -> list[int]:
        recorded: list[int] = []
        while len(recorded) < SIZES_MAX and (record := self._load(self._key(family, len(recorded)))) is not None:
            nbytes = json.loads(record)
            if not isinstance(nbytes, int) or nbytes <= 0:
                raise ValueError(f"expected the size of objects, got {record[:40]!r}")
            recorded.append(nbytes)
        known = self._known.setdefault(family, [])
        known.extend(nbytes for nbytes in recorded if nbytes not in known)
        self._recorded[family] = recorded
        return recorded

    def _key(self, family: Family, number: int) -> bytes:
        text = json.dumps([family.model, family.place, family.salt, self._owner.revision_of(family.model), self._owner.salt, number])
        return hashlib.sha256(text.encode()).digest()
