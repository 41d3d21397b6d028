"""LMCache's keys as its native plugins get them: MODEL@RANK@GROUP@HASH, with @SALT behind it or not; numbers and hash in
hexadecimal digits."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from ..spaces import Pool, SpaceSpec

MODEL_BYTES = 256  # of a space's `model`
DIGEST_BYTES = range(8, 33)


@dataclass(frozen=True)
class Family:
    """What objects have in common that can follow each other in one prompt."""

    model: str
    place: str  #: rank and group of layers
    salt: str


@dataclass(frozen=True)
class Owner:
    """What the user says about the engine."""

    revision: str = ""  #: of the model's weights and of all that decides about the bytes of its KV
    salt: str = ""  #: added to LMCache's own


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
    model = family.model
    if len(model.encode()) > MODEL_BYTES:
        model = hashlib.sha256(model.encode()).hexdigest()
    salt = "@".join(part for part in (owner.salt, family.salt) if part)
    return SpaceSpec(
        model=model, revision=owner.revision, dtype="bytes", layout=f"lmcache-{family.place}-{nbytes}", salt=salt,
        pools=(Pool("chunk", object_bytes=nbytes),),
    )
