"""The exceptions that calls raise: the daemon's (or libterrace's) code and text, with one class per code."""

from __future__ import annotations

import enum


class Code(enum.IntEnum):
    """The codes of docs/protocol.md."""

    BUSY = 1
    NOT_FOUND = 2
    GONE = 3
    DEADLINE = 4
    CANCELLED = 5
    NO_SPACE = 6
    BAD_REQUEST = 7
    DENIED = 8
    UNSUPPORTED = 9
    INTERNAL = 10


class Error(Exception):
    """An error from the daemon or libterrace. Decide by the class, or by `code`; show `text` to people: it says what
    was expected, what came and what to do."""

    code: Code = Code.INTERNAL

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


class Busy(Error):
    """A limit is reached; the same request may succeed later."""

    code = Code.BUSY


class NotFound(Error):
    """The named thing does not exist."""

    code = Code.NOT_FOUND


class Gone(Error):
    """The named thing existed and has ended: a lease, a region, or the daemon itself (then `Connection.alive` is
    false)."""

    code = Code.GONE


class DeadlineExceeded(Error, TimeoutError):
    """The request's time is over."""

    code = Code.DEADLINE


class Cancelled(Error):
    """The request was cancelled, or its connection ended."""

    code = Code.CANCELLED


class NoSpace(Error):
    """Nothing can be evicted; the text says what holds the memory."""

    code = Code.NO_SPACE


class BadRequest(Error, ValueError):
    """The request contradicts the protocol or itself."""

    code = Code.BAD_REQUEST


class Denied(Error):
    """This client, or its trust group, may not do this."""

    code = Code.DENIED


class Unsupported(Error):
    """The request is valid, but not with this daemon, kernel or build."""

    code = Code.UNSUPPORTED


class Internal(Error):
    """An error of Terrace itself."""

    code = Code.INTERNAL


_by_code: dict[int, type[Error]] = {
    kind.code: kind
    for kind in (Busy, NotFound, Gone, DeadlineExceeded, Cancelled, NoSpace, BadRequest, Denied, Unsupported, Internal)
}


def make(code: int, text: str) -> Error:
    """Returns the exception for a code; the compiled module raises it."""
    return _by_code.get(code, Internal)(text)
