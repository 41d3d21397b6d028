"""LMCache's keys as its native plugins get them: MODEL@RANK@GROUP@HASH, with @SALT behind it or not; numbers and hash in
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
    """What objects have in common that can follow each other in one prompt."""

    model: str
    place: str  #: rank and group of layers
    salt: str


logger = logging.getLogger("lmcache.terrace")


@dataclass(frozen=True)
class Owner:
    """What the user says about the engine."""

    revision: str | None = None  #: of the model's weights and of all that decides about the bytes of its KV; None: its files say it
    salt: str = ""  #: added to LMCache's own

    def revision_of(self, model: str) -> str | None:
        """None: the files are not those of before, so nobody can say which weights an engine has."""
        return _revision_of(model) if self.revision is None else self.revision


_first: dict[str, str] = {}  # what the files of each model were when it was met first; empty: they could not be looked at
_told: set[str] = set()  # of these models, and of those with an @ behind that have changed


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
    """With the digest of the chunk."""
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
    """By family, in the order of the keys: their places and digests."""
    families: dict[Family, tuple[list[int], list[bytes]]] = {}
    for place, key in enumerate(keys):
        family, digest = family_of(key)
        places, digests = families.setdefault(family, ([], []))
        places.append(place)
        digests.append(digest)
    return [(family, *rest) for family, rest in families.items()]


def spec_of(family: Family, nbytes: int, owner: Owner) -> SpaceSpec:
    """The space of a family's objects of one size."""
    salt = f"{owner.salt}@{family.salt}" if owner.salt or family.salt else ""  # LMCache's has no @
    return SpaceSpec(
        model=model_name(family.model), revision=owner.revision_of(family.model) or "", dtype="bytes", layout=f"lmcache-{family.place}-{nbytes}", salt=salt,
        pools=(Pool("chunk", object_bytes=nbytes),),
    )
