"""vLLM's transfer jobs: which parts of each are in progress, and how the job ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(slots=True)
class Finished:
    job: int
    is_load: bool
    request: str
    success: bool  #: every key succeeded
    arrived: list[bytes]  #: keys of a load that arrived
    lost: list[bytes]  #: keys of a load whose rows and keys can no longer be used
    nbytes: int
    seconds: float


@dataclass(slots=True)
class _Job:
    is_load: bool
    request: str
    parts: int
    began: float
    success: bool = True
    arrived: list[bytes] = field(default_factory=list)
    lost: list[bytes] = field(default_factory=list)
    nbytes: int = 0


class Jobs:
    def __init__(self) -> None:
        self._jobs: dict[int, _Job] = {}
        self._finished: list[Finished] = []

    def begin(self, job: int, is_load: bool, request: str, parts: int, now: float) -> None:
        """Begins a job. A job without parts is finished at once."""
        if job in self._jobs:
            raise ValueError(f"expected a new job, got {job}, which is under way")
        self._jobs[job] = _Job(is_load, request, parts, now)
        if parts == 0:
            self._finish(job, now)

    def end_part(self, job: int, keys: Sequence[bytes], delivered: int, nbytes: int, now: float) -> None:
        """Ends a part: its first `delivered` keys were stored or loaded, the others were not."""
        of = self._jobs[job]
        of.nbytes += nbytes
        of.success = of.success and delivered == len(keys)
        if of.is_load:
            of.arrived += keys[:delivered]
            of.lost += keys[delivered:]
        of.parts -= 1
        if of.parts == 0:
            self._finish(job, now)

    def take_finished(self) -> list[Finished]:
        finished, self._finished = self._finished, []
        return finished

    def __len__(self) -> int:
        """Number of jobs in progress, or finished and not taken."""
        return len(self._jobs) + len(self._finished)

    @property
    def under_way(self) -> int:
        return len(self._jobs)

    def _finish(self, job: int, now: float) -> None:
        of = self._jobs.pop(job)
        self._finished.append(
            Finished(job, of.is_load, of.request, of.success, of.arrived, of.lost, of.nbytes, now - of.began)
        )
