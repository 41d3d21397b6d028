"""LMCache's keys as its native plugins get them: MODEL@RANK@GROUP@HASH, followed by @SALT or not; numbers and hash in
hexadecimal digits."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass

from ..spaces import Pool, SpaceSpec
from ..weights import Unidentified, identity_of, model_name, process_identity

DIGEST_BYTES = range(8, 33)


@dataclass(frozen=True)
class Family:
    """The common properties of objects that can follow each other in one prompt."""

    model: str
    place: str  #: rank and group of layers
    salt: str


logger = logging.getLogger("lmcache.terrace")


@dataclass(frozen=True)
class Owner:
    """The user's settings for the engine."""

    revision: str | None = None  #: revision of the model's weights and of everything else that determines the bytes of
                                 #: its KV; None: the model's files determine it
    salt: str = ""  #: added to LMCache's own salt

    def revision_of(self, model: str) -> str | None:
        """Returns None if the files have changed, so that nobody can say which weights an engine has."""
        return _revision_of(model) if self.revision is None else self.revision


_first: dict[str, str] = {}  # identity of each model's files when it was first met; empty: they could not be read
_told: set[str] = set()  # models that were logged, and, with an @ appended, those that have changed


def _revision_of(model: str) -> str | None:
    why = ""
    try:
        digest = identity_of(model).digest
    except Unidentified as problem:
        digest, why = "", str(problem)
    if _first.setdefault(model, digest) != digest:
        _tell(model + "@", f"KV of {model!r} is not cached until this server is started again: the model's files have changed")
        return None
    if digest:
        return digest
    _tell(model, f'KV of {model!r} is not shared beyond this server: {why}. "revision" names the weights')
    return "process-" + process_identity()


def _tell(about: str, text: str) -> None:
    if about not in _told:
        _told.add(about)
        logger.warning("Terrace: %s", text)


def family_of(key: str) -> tuple[Family, bytes]:
    """Returns the family of a key, and the digest of its chunk."""
    fields = key.split("@")
    if len(fields) not in (4, 5):
        raise ValueError(f"expected MODEL@RANK@GROUP@HASH or MODEL@RANK@GROUP@HASH@SALT, got {key!r}")
    model, rank, group, chunk = fields[:4]
    try:
        digest = bytes.fromhex(chunk)
    except ValueError:
        digest = b""
    if len(digest) not in DIGEST_BYTES:
        digest = hashlib.sha256(chunk.encode()).digest()
    return Family(model, f"{rank}-{group}", fields[4] if len(fields) == 5 else ""), digest


def runs_of(keys: Sequence[str]) -> list[tuple[Family, list[int], list[bytes]]]:
    """Groups keys by family, in their order: their places and digests, which have one width."""
    families: dict[tuple[Family, int], tuple[list[int], list[bytes]]] = {}
    for place, key in enumerate(keys):
        family, digest = family_of(key)
        places, digests = families.setdefault((family, len(digest)), ([], []))
        places.append(place)
        digests.append(digest)
    return [(family, *rest) for (family, _), rest in families.items()]


def spec_of(family: Family, nbytes: int, owner: Owner) -> SpaceSpec:
    """Returns the space of a family's objects of one size."""
    salt = f"{owner.salt}@{family.salt}" if owner.salt or family.salt else ""  # LMCache's salt contains no @
    return SpaceSpec(
        model=model_name(family.model), revision=owner.revision_of(family.model) or "", dtype="bytes", layout=f"lmcache-{family.place}-{nbytes}", salt=salt,
        pools=(Pool("chunk", object_bytes=nbytes),),
    )
