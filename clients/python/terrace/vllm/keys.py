"""vLLM's keys: the hash of a block of tokens, and 4 bytes with the number of its group of layers."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

GROUP_BYTES = 4


@dataclass(slots=True)
class Part:
    """Keys of one group, with their rows of the host pool."""

    group: int
    keys: list[bytes]
    rows: Sequence[int]


def group_of(key: bytes) -> int:
    return int.from_bytes(key[-GROUP_BYTES:], "big")


def digests_of(keys: Sequence[bytes]) -> bytearray:
    """Returns the digests of keys of one group, without gaps."""
    digests = bytearray().join(keys)
    for step in range(len(keys[0]), width_of(keys), -1):  # several times as fast as slicing each key
        del digests[width_of(keys) :: step]
    return digests


def width_of(keys: Sequence[bytes]) -> int:
    """Returns the bytes per digest."""
    return len(keys[0]) - GROUP_BYTES


def parts_of(keys: Collection[bytes], rows: Sequence[int], most: int) -> list[Part]:
    """Divides a transfer by groups, in the order of the keys, into parts of at most `most` keys."""
    every = list(keys)
    if len(every) != len(rows):
        raise ValueError(f"expected a row for each key, got {len(every)} keys and {len(rows)} rows")
    if not every:
        return []
    if _of_one_group(every):  # nearly always true
        return _pieces(group_of(every[0]), every, rows, most)
    places: dict[int, list[int]] = {}
    for place, key in enumerate(every):
        places.setdefault(group_of(key), []).append(place)
    return [
        piece
        for group, of_group in places.items()
        for piece in _pieces(group, [every[i] for i in of_group], [int(rows[i]) for i in of_group], most)
    ]


def by_group(keys: list[bytes]) -> list[list[bytes]]:
    """Returns the keys of each group, in their order."""
    if _of_one_group(keys):  # nearly always true
        return [keys]
    groups: dict[bytes, list[bytes]] = {}
    for key in keys:
        groups.setdefault(key[-GROUP_BYTES:], []).append(key)
    return list(groups.values())


def _of_one_group(keys: list[bytes]) -> bool:
    """Returns False also for keys of different lengths."""
    joined, step, group = b"".join(keys), len(keys[0]), keys[0][-GROUP_BYTES:]
    return len(joined) == step * len(keys) and all(
        [joined[step - GROUP_BYTES + i :: step] == group[i : i + 1] * len(keys) for i in range(GROUP_BYTES)]
    )


def _pieces(group: int, keys: list[bytes], rows: Sequence[int], most: int) -> list[Part]:
    if len(keys) <= most:
        return [Part(group, keys, rows)]
    return [Part(group, keys[i : i + most], rows[i : i + most]) for i in range(0, len(keys), most)]
