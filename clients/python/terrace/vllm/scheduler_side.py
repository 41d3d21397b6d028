"""The connector in the scheduler: looks prompts up, leases what is found, and orders its workers to load and store.
Nothing here waits: a lookup's answer is taken in a later step. Used by one thread.

A lease belongs to this connection until every worker has reported that it no longer needs it; workers use it by its
id.
"""

from __future__ import annotations

import contextlib
import logging
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from .._libterrace import Lease, Lookup, Options, Prefix, Ticket
from ..errors import Error
from ..link import HANDSHAKE_SECONDS, Link, Session
from ..spaces import FinishReason, Tier
from .adapters import Adapters, Tags
from .block_hashes import BlockHashes, EnginesHashes
from .handover import Handover
from .orders import NULL_BLOCK, Ending, LoadOrder, Report, StoreOrder
from .parameters import NOTHING, Parameters, parameters_of
from .plan import Plan

# so small that a send never waits: everything in flight fits into any socket's buffer
DIGEST_BYTES_IN_FLIGHT = 128 << 10
TRACE_CHARACTERS = 64  # of a request's id, whose characters may take four bytes each
SECONDS_BETWEEN_LINES = 60.0  # interval of log lines of one kind
CLEAR_SECONDS = 60.0
PROMPTS_ASKED_FOR = 16_384  # of which it is remembered that a new daemon was asked for them
REASONS = {"stop": FinishReason.STOP, "repetition": FinishReason.STOP, "length": FinishReason.LENGTH,
           "abort": FinishReason.ABORTED, "error": FinishReason.ABORTED}  # by vLLM's reasons


@dataclass(slots=True)
class _Asked:
    """A request's lookup: in progress, then answered."""

    since: float
    session: Session
    ticket: Ticket[Lookup] | None
    nbytes: int  #: bytes of its digests
    found: int | None = None  #: chunks found; None: unknown
    lease: Lease | None = None
    tiers: bytes = b""
    computed: int = 0  #: tokens that vLLM has itself, as it last said
    reports: int = 0  #: number of the workers' reports when it was asked
    first: float = 0.0  #: when the request's first lookup was sent
    pending: int = 0  #: further chunks that a remote store has, and that had not come when it was answered
    before: int = -1  #: chunks found by the lookup before this one; -1: there was none


@dataclass(slots=True)
class _Turn:
    """A request that is a turn of a conversation."""

    inference: int
    used: bool = False  #: the daemon was told with a lookup that its prompt is used


@dataclass(slots=True)
class _Track:
    """A request that has blocks."""

    request: Any
    stored: int | None  #: chunks that are stored or were ordered to be; None: as many as vLLM has computed when it
                        #: continues
    blocks: list[list[int]] = field(default_factory=list)


@dataclass(slots=True)
class Counters:
    lookups: int = 0
    lookup_misses: int = 0  #: nothing was found, or nothing beyond what vLLM has
    lookups_failed: int = 0  #: no answer in time, or an error
    lookup_seconds: float = 0.0


class SchedulerSide:
    def __init__(
        self, path: str, plan: Plan, *, name: str, lookup_seconds: float, layered: bool, log: logging.Logger,
        adapters: Adapters, hashes: BlockHashes = EnginesHashes(), load_seconds: float = 5.0, store_seconds: float = 60.0,
    ) -> None:
        """`layered`: what is in host memory is loaded in the step that uses it, if the plan allows it. `load_seconds`: a
        request waits so long for what a remote store has, as long as more of it comes. `store_seconds`: by then workers have
        stored what they were told to, or do not."""
        self._link = Link(path, name, [plan.spec], None, log)
        self._plan, self._log, self._lookup_seconds, self._load_seconds = plan, log, lookup_seconds, load_seconds
        self._layered = layered and plan.layered
        self._asked: dict[str, _Asked] = {}
        self._computed: dict[str, int] = {}  # tokens of each request without blocks that vLLM has itself, as it last said
        self._late: list[_Asked] = []  # lookups not answered in time
        self._failed: set[str] = set()  # requests that did not get what was found, and therefore compute
        self._adapters, self._hashes = adapters, hashes
        self._tags: dict[str, Tags | None] = {}  # tags of the keys of each request; None: it is not cached
        self._tracks: dict[str, _Track] = {}
        # By number of the load: its lease, its request, and the number of workers that still need it.
        self._leases: dict[int, tuple[Lease, str, int]] = {}
        self._orders: list[LoadOrder] = []
        self._overwritten: set[int] = set()  # blocks that were given to requests since the last step
        self._cleared = False  # since the last step
        self._keeps = False  # a worker has KV to store that is still in its blocks
        self._numbers = 0
        self._failures = 0
        self._usable = True
        self._reports = 0
        self._away = False  # a worker had no connection to the daemon when it last reported
        self._session: Session | None = None  # the last one
        self._gap = False  # what vLLM has may be lacking in the daemon: it was away, or it is another one than before
        self._asked_for: dict[bytes, None] = {}  # the last chunks of prompts that vLLM has whole, in this session
        self._told: dict[str, float] = {}
        self._parameters: dict[str, Parameters] = {}  # of each request
        self._turns: dict[str, _Turn] = {}  # of requests that name their conversation, or say when it goes on
        self._inferences = secrets.randbits(62)  # their last number, unique among all engines
        self._uses: list[_Asked] = []  # lookups that only tell the daemon of a use
        self._endings: list[Ending] = []  # since the last step
        self._handover = Handover(store_seconds, self._tell)
        self.counters = Counters()

    @property
    def connected(self) -> bool:
        return self._link.session is not None

    def await_attempt(self, seconds: float = HANDSHAKE_SECONDS) -> None:
        """Waits until the first attempt to connect is over."""
        self._link.await_attempt(seconds)

    @property
    def keeps(self) -> bool:
        """True if workers need further steps: they have KV to store that is still in its blocks, or are to be told that
        requests have ended."""
        return self._keeps or bool(self._endings)

    @property
    def failures_seen(self) -> int:
        """Number of failed layered loads, as the workers count them."""
        return self._failures

    # ---- what can be loaded ----

    def matched(self, request: Any, computed: int) -> tuple[int | None, bool]:
        """Implements vLLM's get_num_new_matched_tokens."""
        name, chunk = request.request_id, self._plan.chunk_tokens
        self._computed[name] = computed
        count = min((request.num_tokens - 1) // chunk, len(request.block_hashes) // self._plan.hashes_per_chunk)
        if not self._usable or name in self._failed or getattr(request, "skip_reading_prefix_cache", False):
            return 0, False
        if (tags := self._tags_of(request)) is None:
            return 0, False
        if self._hands_over(request, tags, count if count * chunk > computed else 0):
            return None, False
        asked = self._asked.get(name)
        if asked is None:
            if computed % chunk or (count * chunk <= computed and not self._may_lack(request, count)):
                self._tell_use(request, count, tags)
                return 0, False
            nbytes = count * len(self._hashes.of(request)[0])
            if self._digest_bytes_under_way and self._digest_bytes_under_way + nbytes > DIGEST_BYTES_IN_FLIGHT:
                self._poll()
                return None, False
            if not (asked := self._ask(request, count, tags)):
                return 0, False
            self._asked[name] = asked
        self._poll()
        if asked.ticket is not None and time.monotonic() - asked.since > self._lookup_seconds:
            self._give_up(asked)
        if asked.ticket is not None or self._may_be_back(asked) or self._asks_again(request, asked, count, tags):
            return None, False
        asked.computed = computed
        external = 0 if self._away else min(asked.found or 0, count) * chunk - computed
        if external <= 0 or asked.lease is None:
            return 0, False
        return external, not (self._layered and self._in_memory(asked, computed // chunk, (computed + external) // chunk))

    def _may_lack(self, request: Any, count: int) -> bool:
        """Whether the daemon may lack a prompt that vLLM has whole. Then it is looked up like others, once, and `allocated`
        sees that what is missing is stored."""
        session = self._link.session
        if session is not self._session and session is not None:
            self._gap = self._gap or self._session is not None
            self._session, self._asked_for = session, {}
        if session is None or not self._gap or not count:
            return False
        last = self._digests(request, count - 1, count)[0]
        if last in self._asked_for:
            return False
        if len(self._asked_for) == PROMPTS_ASKED_FOR:
            del self._asked_for[next(iter(self._asked_for))]
        self._asked_for[last] = None
        return True

    def _hands_over(self, request: Any, tags: Tags, wanted: int) -> bool:
        """Announces what the request stores, if it says so. Returns whether it has to wait for chunks that another engine
        stores."""
        name = request.request_id
        if (asks := self._parameters.get(name)) is None:
            asks = parameters_of(request, lambda text: self._tell("parameters", text))
            self._parameters[name] = asks
            if asks.session or asks.session_ends or asks.think_seconds is not None:
                self._inferences += 1
                self._turns[name] = _Turn(self._inferences)
        session = self._link.session
        if asks.announce and session is not None and not self._handover.announces(name):
            chunks = min(request.num_tokens // self._plan.chunk_tokens, len(request.block_hashes) // self._plan.hashes_per_chunk)
            self._handover.announce(name, session, asks.announce, self._digests(request, 0, chunks), tags)
        if not asks.follow or not wanted:
            return False
        self._poll()
        return self._handover.follows(name, self._link.session, asks.follow, wanted, asks.follow_seconds)

    def _may_be_back(self, asked: _Asked) -> bool:
        """A worker that was away reports in each step whether it still is, and its last report may be long ago."""
        return self._away and asked.reports == self._reports and time.monotonic() - asked.since <= self._lookup_seconds

    @staticmethod
    def _in_memory(asked: _Asked, first: int, end: int) -> bool:
        return all(tier <= Tier.HOST for tier in asked.tiers[first:end])

    @property
    def _digest_bytes_under_way(self) -> int:
        return sum(one.nbytes for one in (*self._asked.values(), *self._uses) if one.ticket is not None)

    def _tell_use(self, request: Any, count: int, tags: Tags) -> None:
        """A turn uses its prompt also if vLLM has all of its KV itself; the daemon's policies learn it from a lookup."""
        turn = self._turns.get(request.request_id)
        if turn is None or turn.used or not count:
            return
        self._poll()
        nbytes = count * len(self._hashes.of(request)[0])
        if not self._digest_bytes_under_way or self._digest_bytes_under_way + nbytes <= DIGEST_BYTES_IN_FLIGHT:
            if (asked := self._ask(request, count, tags)) is not None:
                self._uses.append(asked)

    def _ask(self, request: Any, count: int, tags: Tags) -> _Asked | None:
        session = self._link.session
        if session is None or self._still_late(session):
            return None
        digests = self._digests(request, 0, count)
        width = len(digests[0])
        del digests[DIGEST_BYTES_IN_FLIGHT // width :]
        turn = self._turns.get(request.request_id)
        options = Options(
            trace=request.request_id[:TRACE_CHARACTERS],  # for terrace explain --lookup
            inference=turn.inference if turn else 0, session=self._parameters.get(request.request_id, NOTHING).session,
        )
        try:
            ticket = session.connection.submit_lookup(
                session.spaces[0], Prefix.of_digests(digests, tags=tags), lease=True, timeout=self._lookup_seconds, options=options)
        except Error as problem:
            self._failure(session, "a lookup could not be sent", problem)
            return None
        self.counters.lookups += 1
        if turn is not None:
            turn.used = True
        now = time.monotonic()
        return _Asked(now, session, ticket, len(digests) * width, reports=self._reports, first=now)

    def _asks_again(self, request: Any, asked: _Asked, count: int, tags: Tags) -> bool:
        """Goes on with what a remote store has, as long as more of it comes. What was found stays leased meanwhile."""
        found = asked.found or 0
        if not asked.pending or found <= asked.before or time.monotonic() - asked.first > self._load_seconds:
            return False
        asked.pending = 0
        if not (again := self._ask(request, count, tags)):
            return False
        again.first, again.before = asked.first, found
        again.found, again.lease, again.tiers = asked.found, asked.lease, asked.tiers
        self._asked[request.request_id] = again
        return True

    def _poll(self) -> None:
        session = self._link.session
        problem: Error | None = None
        if session is not None:
            try:
                session.connection.poll()
            except Error as lost:
                problem = lost
        for asked in self._asked.values():
            if asked.ticket is not None and (asked.session is not session or asked.ticket.done):
                self._settle(asked)
        # A lease that came with an answer ends with its ticket.
        self._uses = [one for one in self._uses if one.session is session and one.ticket and not one.ticket.done]
        if session is not None and not session.connection.alive:
            self._link.lost(session, str(problem or "the connection ended"))

    def _settle(self, asked: _Asked) -> None:
        ticket, asked.ticket = asked.ticket, None
        assert ticket is not None
        self.counters.lookup_seconds += time.monotonic() - asked.since
        if asked.session is not self._link.session:
            self.counters.lookups_failed += 1
            asked.found, asked.lease = None, None  # a lookup before this one may have found some
            return
        try:
            answer = ticket.result(0)
        except Error as problem:
            self.counters.lookups_failed += 1
            self._tell("lookup", f"a lookup failed: {problem}")
            return
        if asked.lease is not None:  # of the lookup before
            self._release(asked.lease)
        asked.found, asked.lease, asked.tiers = answer.found_chunks, answer.lease, answer.tiers
        asked.pending = answer.pending_chunks
        if answer.found_chunks == 0:
            self.counters.lookup_misses += 1

    def _give_up(self, asked: _Asked) -> None:
        """Counts the lookup as a miss. Nothing else is asked until the answer comes."""
        self._late.append(_Asked(asked.since, asked.session, asked.ticket, 0))
        asked.ticket = None
        self.counters.lookups_failed += 1
        self._tell("late", f"no answer to a lookup within {self._lookup_seconds} s: everything misses until it comes")

    def _still_late(self, session: Session) -> bool:
        if self._late:
            self._poll()
            self._late = [one for one in self._late
                          if one.session is session and session.connection.alive and one.ticket and not one.ticket.done]
        return bool(self._late)

    # ---- what is to be moved ----

    def allocated(self, request: Any, blocks: Sequence[Sequence[int]], external: int) -> None:
        """Implements vLLM's update_state_after_alloc."""
        name, chunk = request.request_id, self._plan.chunk_tokens
        if (computed := self._computed.pop(name, None)) is not None:  # otherwise its blocks have been given before
            self._give(blocks, computed)
        asked = self._asked.pop(name, None)
        stored: int | None = None
        if external > 0 and asked is not None and asked.lease is not None:
            first, count = asked.computed // chunk, external // chunk
            self._numbers += 1
            layered = self._layered and self._in_memory(asked, first, first + count)
            taken = tuple(tuple(of_group[first : first + count]) for of_group in blocks)
            self._orders.append(LoadOrder(self._numbers, name, asked.lease.id, first, taken, layered, self._inference_of(name)))
            self._leases[self._numbers] = (asked.lease, name, self._plan.workers)
            stored = first + count
        elif asked is not None and asked.found is not None and self._plan.groups == 1:
            stored = min(asked.found, asked.computed // chunk)  # chunks that the daemon has lost are stored again
        if asked is not None or name not in self._tracks:
            self._tracks[name] = _Track(request, stored)

    def orders(self, output: Any) -> tuple[list[LoadOrder], list[StoreOrder]]:
        """Returns the orders of a step; `output` is vLLM's SchedulerOutput."""
        loads, self._orders = self._orders, []
        stores: list[StoreOrder] = []
        if len(self._handover):
            self._poll()
        self._handover.advance(self._link.session)
        for new in output.scheduled_new_reqs:
            self._give(new.block_ids, new.num_computed_tokens)
            if (track := self._tracks.get(new.req_id)) is not None:
                track.blocks = [list(of_group) for of_group in new.block_ids]
                self._store(track, new.num_computed_tokens, output.num_scheduled_tokens[new.req_id], stores)
        self._overwritten.update(copy.dst_block_id for copy in getattr(output, "kv_cache_block_copies", None) or ())
        cached = output.scheduled_cached_reqs
        for i, name in enumerate(cached.req_ids):
            self._give(cached.new_block_ids[i] or (), cached.num_computed_tokens[i] if name in cached.resumed_req_ids else 0)
            track = self._tracks.get(name)
            if track is None:
                continue
            if name in cached.resumed_req_ids:
                track.blocks = [list(of_group) for of_group in cached.new_block_ids[i]]
            elif cached.new_block_ids[i] is not None:
                for of_group, more in zip(track.blocks, cached.new_block_ids[i]):
                    of_group.extend(more)
            self._store(track, cached.num_computed_tokens[i], output.num_scheduled_tokens[name], stores)
        return loads, stores

    def _give(self, blocks: Sequence[Sequence[int]], computed: int) -> None:
        """A request was given blocks; it shares those of its first `computed` tokens with others."""
        first = computed // self._plan.chunk_tokens
        self._overwritten.update(block for of_group in blocks for block in of_group[first:])

    def overwritten(self) -> tuple[set[int], bool]:
        """Returns the blocks that the step may overwrite, and whether the cache was cleared since the last step. Called
        after `orders`."""
        told = self._overwritten, self._cleared
        self._overwritten, self._cleared = set(), False
        return told

    def endings(self) -> list[Ending]:
        """Returns the turns that have ended since the last step."""
        told, self._endings = self._endings, []
        return told

    def _store(self, track: _Track, computed: int, scheduled: int, stores: list[StoreOrder]) -> None:
        chunk = self._plan.chunk_tokens
        end = min((computed + scheduled) // chunk, len(track.request.block_hashes) // self._plan.hashes_per_chunk)
        first = computed // chunk if track.stored is None else track.stored
        track.stored = max(first, end)
        taken = [of_group[first:end] for of_group in track.blocks]
        while first < end and any(NULL_BLOCK in of_group[:1] for of_group in taken):  # some groups lack it
            first, taken = first + 1, [of_group[1:] for of_group in taken]
        if first >= end or not taken or any(len(of_group) < end - first or NULL_BLOCK in of_group for of_group in taken):
            return
        tags = self._tags_of(track.request)
        self._gap = self._gap or self._link.session is None
        if self._usable and self._link.session is not None and tags is not None:
            parent = self._digests(track.request, first - 1, first)[0] if first else b""
            stores.append(StoreOrder(track.request.request_id, parent, self._digests(track.request, first, end),
                                     tuple(tuple(of_group) for of_group in taken), tags,
                                     self._inference_of(track.request.request_id)))

    def _inference_of(self, name: str) -> int:
        return self._turns[name].inference if name in self._turns else 0

    def _tags_of(self, request: Any) -> Tags | None:
        """Returns the tags of the request's adapter as it was when the request came."""
        name: str = request.request_id
        if name not in self._tags:
            self._tags[name] = self._adapters.tags(getattr(request, "lora_request", None))
        return self._tags[name]

    def _digests(self, request: Any, first: int, end: int) -> list[bytes]:
        scale, hashes = self._plan.hashes_per_chunk, self._hashes.of(request)
        return list(hashes[(first + 1) * scale - 1 : end * scale : scale])

    # ---- what has become of it ----

    def reported(self, report: Report) -> None:
        self._reports += 1
        self._away, self._keeps = report.away, report.keeps
        for number, workers in report.ended.items():
            if number in self._leases:
                lease, name, left = self._leases[number]
                if left > workers:
                    self._leases[number] = (lease, name, left - workers)
                else:
                    self._release(self._leases.pop(number)[0])
        self._handover.withdraw(report.not_stored)
        self._failed |= report.failed & self._tracks.keys()
        if report.failures > self._failures or report.failed:
            self._failures = max(self._failures, report.failures)
            for track in self._tracks.values():  # stores ordered meanwhile were not carried out
                track.stored = None
        if report.unusable and self._usable:
            self._usable = False

    def finished(self, name: str, reason: str = "", output_tokens: int = 0) -> None:
        """The request is over. `reason`: as vLLM calls it."""
        if (asked := self._asked.pop(name, None)) is not None and asked.lease is not None:
            self._release(asked.lease)
        track = self._tracks.pop(name, None)
        self._handover.finished(name, (track.stored or 0) if track is not None else 0)
        asks, turn = self._parameters.pop(name, NOTHING), self._turns.pop(name, None)
        if turn is not None and turn.used:
            self._endings.append(Ending(name, turn.inference, REASONS.get(reason, FinishReason.UNKNOWN), output_tokens,
                                        asks.session_ends, asks.think_seconds))
        self._tags.pop(name, None)
        self._computed.pop(name, None)
        self._hashes.forget(name)
        self._failed.discard(name)
        for number in [number for number, (_, request, _) in self._leases.items() if request == name]:
            self._release(self._leases.pop(number)[0])

    def clear(self) -> bool:
        """Forgets all KV of this engine's space, for all engines. Waits."""
        self._cleared = True
        session = self._link.session
        if session is None:
            return False
        try:
            session.connection.clear(session.spaces[0], timeout=CLEAR_SECONDS)
        except Error as problem:
            self._failure(session, "the cache could not be cleared", problem)
            return False
        return True

    def close(self) -> None:
        self._link.close()

    @staticmethod
    def _release(lease: Lease) -> None:
        with contextlib.suppress(Error):
            lease.release()

    def _failure(self, session: Session, what: str, problem: Error) -> None:
        if session.connection.alive:
            self._tell(what, f"{what}: {problem}")
        else:
            self._link.lost(session, str(problem))

    def _tell(self, kind: str, text: str) -> None:
        """Logs at most one line per minute of each kind."""
        now = time.monotonic()
        if now - self._told.get(kind, -SECONDS_BETWEEN_LINES) >= SECONDS_BETWEEN_LINES:
            self._told[kind] = now
            self._log.warning("Terrace: %s", text)
