"""vLLM's keys: the hash of a block of tokens, and 4 bytes with the number of its group of layers."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

GROUP_BYTES = 4


@dataclass(slots=True)
class Part:
    """Keys of one group, with the rows of the host pool that belong to them."""

    group: int
    keys: list[bytes]
    rows: Sequence[int]


def group_of(key: bytes) -> int:
    return int.from_bytes(key[-GROUP_BYTES:], "big")


def digests_of(keys: Collection[bytes]) -> bytes:
    """Of keys of one group, one digest after the other."""
    return b"".join([key[:-GROUP_BYTES] for key in keys])


def width_of(keys: Sequence[bytes]) -> int:
    """Bytes of a digest."""
    return len(keys[0]) - GROUP_BYTES


def parts_of(keys: Collection[bytes], rows: Sequence[int], most: int) -> list[Part]:
    """Divides a transfer by groups, in the order of the keys, into parts of at most `most` keys."""
    every = list(keys)
    if len(every) != len(rows):
        raise ValueError(f"expected a row for each key, got {len(every)} keys and {len(rows)} rows")
    if not every:
        return []
    first = every[0][-GROUP_BYTES:]
    if all([key.endswith(first) for key in every]):  # nearly always; a list is faster than a generator
        return _pieces(group_of(every[0]), every, rows, most)
    places: dict[int, list[int]] = {}
    for place, key in enumerate(every):
        places.setdefault(group_of(key), []).append(place)
    return [
        piece
        for group, of_group in places.items()
        for piece in _pieces(group, [every[i] for i in of_group], [int(rows[i]) for i in of_group], most)
    ]


def _pieces(group: int, keys: list[bytes], rows: Sequence[int], most: int) -> list[Part]:
    if len(keys) <= most:
        return [Part(group, keys, rows)]
    return [Part(group, keys[i : i + most], rows[i : i + most]) for i in range(0, len(keys), most)]
