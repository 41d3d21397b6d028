"""The compiled module. Terms are those of docs/protocol.md; times are seconds unless a name says otherwise.

Bytes: a `BytesLike` has the buffer protocol, or is an array or a CPU tensor with DLPack.
"""

from collections.abc import Iterable, Iterator, Sequence
from types import TracebackType
from typing import Any, Generic, Protocol, TypeVar, final

T = TypeVar("T", covariant=True)

class _DLPack(Protocol):
    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

class _HasBuffer(Protocol):
    def __buffer__(self, flags: int, /) -> memoryview: ...

BytesLike = bytes | bytearray | memoryview | _HasBuffer | _DLPack
Tokens = Iterable[int] | BytesLike
Run = tuple[int, int] | tuple[int, int, int, int] | BytesLike

def address_of(object: BytesLike) -> tuple[int, int]:
    """Returns the address of an object's bytes in this process, and their number."""

class Buffer:
    """Shared memory by the buffer protocol (`memoryview(b)`, `numpy.frombuffer(b)`) and by DLPack (`torch.from_dlpack(b)`),
    without a copy. Every view keeps the memory as it is: one of a leased object keeps the lease."""

    def __buffer__(self, flags: int, /) -> memoryview: ...
    def __len__(self) -> int: ...
    def __dlpack__(self, **kwargs: Any) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def readonly(self) -> bool: ...

@final
class Memory(Buffer):
    """Shared memory of this process that a daemon may map: a sealed memfd. It is zero at first."""

    def __init__(self, nbytes: int, *, name: str = "terrace-python") -> None: ...
    def fileno(self) -> int: ...
    def commit(self) -> None:
        """Makes all pages exist, large ones if the kernel has them. Before the first access this takes a tenth of the
        time of the accesses, and stores from large pages are faster. Raises NoSpace; Unsupported before Linux 5.14."""

@final
class Prefix:
    """The chunks that a request is about. Holds a copy of its source, and serves any number of requests."""

    @staticmethod
    def of_tokens(
        tokens: Tokens,
        *,
        parent: bytes = b"",
        parent_tokens: int = 0,
        lora: str = "",
        salt: str = "",
        items: Iterable[tuple[str, int, int]] = (),
        tags: Iterable[str] = (),
    ) -> Prefix:
        """Names chunks by the whole prompt, or by the tokens after the digest `parent`, which stands for
        `parent_tokens`. `items`: multimodal items as (identifier, first token, tokens). Arrays have one dimension
        and integers of 4 or 8 bytes in this machine's byte order. Numbers that do not fit in 32 bits, dicts, sets
        and booleans are refused."""

    @staticmethod
    def of_digests(
        digests: Iterable[bytes] | BytesLike,
        *,
        width: int | None = None,
        unit: int = 0,
        end_offsets: Tokens = (),
        lora: str = "",
        salt: str = "",
        tags: Iterable[str] = (),
    ) -> Prefix:
        """Names chunks by digests: one `bytes` object per digest, or all without gaps with `width` bytes each (default
        32), or an array of bytes with a row each. `unit`: a DigestUnit. `lora` and `salt`: with `sha256_cbor` and
        chunks of one hash block, those that the digests were made with; the first digest alone does not tell them
        apart."""

    @property
    def wire_bytes(self) -> int: ...

@final
class TensorPlace:
    @property
    def offset(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def first_layer(self) -> int: ...
    @property
    def layers(self) -> int: ...

@final
class OpenPool:
    """A pool of an open space; its index in `Space.pools` is the number by which requests name it."""

    @property
    def name(self) -> str: ...
    @property
    def object_bytes(self) -> int: ...
    @property
    def tensors(self) -> list[TensorPlace]: ...

@final
class Space:
    """An open space; survives reconnects of the connection that opened it."""

    @property
    def fingerprint(self) -> bytes: ...
    @property
    def pools(self) -> list[OpenPool]: ...

@final
class Region:
    """Memory that the daemon knows. It is unregistered at the end of a `with` block, by `unregister`, or with its last
    reference. Memory of a device whose last reference goes is kept until the connection is closed."""

    def __enter__(self) -> Region: ...
    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def mapped(self) -> bool:
        """True if the daemon has mapped it, because it is sealed; otherwise the daemon reads and writes through the
        descriptor, which is slower."""
    @property
    def registered(self) -> bool: ...
    @property
    def device(self) -> str:
        """The UUID of the GPU that has the memory, or "host"; empty for shared memory."""
    def run_of(self, memory: BytesLike) -> tuple[int, int]:
        """Returns the place of these bytes in the region: (offset, bytes)."""
    def unregister(self, *, timeout: float | None = None) -> None:
        """Unregisters the region. For memory of a device it waits until nothing accesses it any more; after an error
        it may still be accessed, and is kept until the connection is closed (`Gone`), or for ever. For other memory
        it does not wait."""

@final
class Arrivals:
    """Counters in registered `Memory` that the daemon raises while a load runs. Each counts the leading chunks of its
    pool that have arrived, whose bytes may be read. Use them for one request at a time. Threads may wait while
    others use the connection."""

    def __init__(self, memory: Memory, region: Region, offset: int, count: int) -> None:
        """Uses `count` counters of 4 bytes at `offset`, a multiple of 4."""
    def __len__(self) -> int: ...
    def chunks(self, counter: int) -> int: ...
    def wait(self, counter: int, chunks: int, *, timeout: float | None = None) -> bool:
        """Waits until this many chunks have arrived. False: the request ended before that, or the time is over."""
    def end(self) -> None:
        """Says that the request has ended: waiting threads return."""

@final
class Bell:
    """Tells the daemon to look at the counters that stores wait for (`after`). Rings for its connection, also after that has
    reconnected. Usable on any thread, also while others wait in the connection."""

    def ring(self) -> None:
        """Rings. Call it once a counter has been written. Never waits."""
    def ring_after(self, stream: int, device: str) -> None:
        """Rings when everything queued in a GPU's stream so far is done, such as a write of the counter. `stream`: as
        PyTorch's `cuda_stream`, and not the default one. `device`: the GPU's UUID, as `Region.device`.
        `Unsupported` without a driver."""
    def open(self, device: str) -> None:
        """Finds the GPU now, instead of when one of its streams first rings."""
    def fileno(self) -> int:
        """Returns an eventfd: writing the number 1 to it, as 8 bytes, rings. A reconnect does not change it."""

@final
class LayeredLoad:
    """A slot of a `LayerRing`, for one load of as many pools as it has layers: `layers` of `load` and `submit_load`.
    It ends with the load's answer, or with the last reference to its ticket."""

    def wait_on(self, stream: int, layer: int) -> None:
        """Makes later work in a GPU's stream wait until the load's pool number `layer` has arrived, or the load has
        ended; its answer then says whether the layer counts. May be called before the load is sent. `stream`: as
        PyTorch's `cuda_stream`, and not the default one."""
    def pass_on(self, stream: int) -> None:
        """Call it behind the stream's last wait: the slot may be used again when the stream has got there."""
    def pass_now(self) -> None:
        """Call it for a load whose layers no stream waits for."""
    def arrived(self, layer: int) -> bool: ...
    def wait(self, layer: int, *, timeout: float | None = None) -> bool:
        """Waits on this thread, while others use the connection. False: the layer has not arrived in time."""
    def end(self) -> None:
        """Ends a slot that no load was sent with, or whose load nobody waits for any longer: its streams go on, and
        the slot is used again once the daemon has answered."""

@final
class LayerRing:
    """Generations of loads into memory of a GPU, for whose layers its streams wait without a processor. Make another
    one when its region was unregistered, as after `Gone`."""

    def __init__(
        self, memory: Memory, region: Region, device: str, *, layers: int, loads: int = 3, offset: int = 0
    ) -> None:
        """Uses `memory` from `offset` on; `register_generations` has registered it as `region`. `device`: the GPU's
        UUID, as `Region.device`. `loads`: number of slots, at least 3."""
    def begin(self, *, timeout: float | None = None) -> LayeredLoad:
        """Returns the next slot. `Busy`: its load has not ended, or its stream has not passed."""
    def open(self) -> None:
        """Finds the GPU and pins the memory now, instead of for the first stream that waits."""
    @staticmethod
    def bytes_for(loads: int, layers: int) -> int: ...

@final
class DeviceMemory:
    """Memory of a GPU that `Connection.register_device_region` takes, whatever a framework allocates with: it comes
    from cuMemAlloc. It is freed with its last reference; a region counts as one. Nothing may access it any more
    then."""

    def __init__(self, nbytes: int, device: str) -> None:
        """`device`: the GPU's UUID. Raises `NoSpace`; `Unsupported` without a driver."""
    @property
    def address(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...

@final
class StoreCounter:
    """A counter that a GPU's streams raise, for `after` of stores. Make another one when its region was unregistered,
    as after `Gone`."""

    def __init__(self, memory: Memory, region: Region, device: str, *, offset: int = 0) -> None:
        """Uses `memory` at `offset`; `register_generations` has registered it as `region`, and streams use no other
        counters in it. `device`: the GPU's UUID, as `Region.device`. `Unsupported` without a driver."""
    def raise_after(self, stream: int) -> tuple[Region, int, int]:
        """Gives the counter its next value when everything queued in a GPU's stream so far is done. Returns `after`
        for the store that waits for that; call `Bell.ring_after` next. `stream`: as PyTorch's `cuda_stream`, the
        same each time, and not the default one."""

@final
class Rows:
    """The runs of objects that lie in rows of one size: for each of `rows` a run of `row_bytes` bytes at `offset + row
    * row_bytes`. With `count`, each has that many pieces, `stride` bytes apart, like those of a block in each
    layer. An array of 4-byte or 8-byte integers is read at once."""

    def __init__(
        self, rows: Tokens, row_bytes: int, *, offset: int = 0, stride: int = 0, count: int = 1
    ) -> None: ...
    @staticmethod
    def in_slots(offset: int, slot_bytes: int, slots: int, parts: Sequence[tuple[int, int]]) -> Rows:
        """The runs of objects in slots that lie side by side from `offset` on: in each slot a run for each of `parts`, which
        are pairs of an offset in the slot and a number of bytes."""
    def __len__(self) -> int: ...

@final
class Lease:
    """The right to read found objects. It is given back at the end of a `with` block, by `release`, or with its last
    reference; but not before the last view of an object that was read under it is gone."""

    def __enter__(self) -> Lease: ...
    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None: ...
    @property
    def id(self) -> bytes:
        """16 bytes, to be passed to other connections of the trust group."""
    @property
    def released(self) -> bool: ...
    def release(self) -> None:
        """Gives the lease back. A second call does nothing."""

@final
class Missing:
    """The first object that ended a prefix early."""

    @property
    def chunk(self) -> int:
        """Its chunk in the prefix or the lease, from 0."""
    @property
    def pool(self) -> int:
        """Number of its pool: the index in `Space.pools`."""
    @property
    def rank(self) -> int:
        """Its rank. A chunk is found when all ranks of the space have stored it."""
    @property
    def damaged(self) -> bool:
        """True if it was found, but could not be read or had wrong bytes."""

@final
class Lookup:
    @property
    def requested_chunks(self) -> int: ...
    @property
    def found_chunks(self) -> int:
        """Number of leading chunks that are present."""
    @property
    def found_tokens(self) -> int: ...
    @property
    def usable_tokens(self) -> int:
        """Number of tokens found; it ends at least one token before the prompt's end."""
    @property
    def tail_tokens(self) -> int:
        """Not 0: the last found chunk is the partial one of a saved turn, with so many tokens."""
    @property
    def cursors(self) -> list[int]:
        """Those that were saved with the turn at whose end the found prefix ends."""
    @property
    def first_token(self) -> int:
        """Position in the prompt where the first chunk begins."""
    @property
    def recompute_chunks(self) -> int:
        """Further chunks that are present but faster to compute."""
    @property
    def pending_chunks(self) -> int:
        """Under a lease: further chunks that a remote store has, and that had not come when three quarters of the lookup's time
        were over. Another lookup goes on with them."""
    @property
    def brought_chunks(self) -> int:
        """Of the found ones: those that came from a remote store to host memory for this lease."""
    @property
    def tiers(self) -> bytes:
        """Number of the fastest `Tier` of each found chunk."""
    @property
    def chunk_tokens(self) -> int:
        """Set by `await_lookup`: tokens per chunk of that lookup's space; otherwise 0."""
    @property
    def lease(self) -> Lease | None:
        """The lease, if it was asked for and anything was found."""
    @property
    def missing(self) -> Missing | None:
        """What ended the prefix; None: all chunks were found, or a lease has no room for more."""
    @property
    def digests(self) -> list[bytes]:
        """Digests of the requested chunks as they are looked up, with tags, if asked for. They serve to compare
        hashing. An answer to `await_lookup` has none."""

@final
class Located:
    """Objects in place, read-only: chunk by chunk, pool by pool. They keep the lease."""

    def __len__(self) -> int: ...
    def __getitem__(self, i: int, /) -> Buffer: ...
    def __iter__(self) -> Iterator[Buffer]: ...
    @property
    def objects(self) -> list[Buffer]: ...
    @property
    def first_token(self) -> int: ...
    @property
    def missing(self) -> Missing | None:
        """What ended them early; None: all were located, or host memory had no room for more."""
    def copy_into(self, destinations: Iterable[BytesLike]) -> int:
        """Copies into other memory, one destination per object, and returns the number of bytes."""

@final
class Loaded:
    @property
    def requested_chunks(self) -> int: ...
    @property
    def delivered_chunks(self) -> int:
        """The contiguous prefix that arrived."""
    @property
    def delivered_tokens(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def bytes_by_tier(self) -> list[int]:
        """Indexed by the number of the `Tier`; may be shorter."""
    @property
    def first_token(self) -> int: ...
    @property
    def missing(self) -> Missing | None:
        """What ended the load early; None: everything was delivered."""
    @property
    def recompute_chunks(self) -> int:
        """Further chunks that are present but faster to compute."""

@final
class Stored:
    @property
    def stored_chunks(self) -> int: ...
    @property
    def present_chunks(self) -> int:
        """Chunks that were already present; nothing was copied."""
    @property
    def nbytes(self) -> int: ...

@final
class Reservation:
    """Staging memory of chunks that this process writes itself. It ends by `Connection.commit`, or by `abort`, which
    the end of a `with` block calls. Both raise BufferError while a view of its memory exists."""

    def __enter__(self) -> Reservation: ...
    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None: ...
    @property
    def open(self) -> bool: ...
    @property
    def objects(self) -> list[Buffer]:
        """The memory for each object's bytes, writable. It is empty for an object that is already present."""
    def write(self, sources: Sequence[BytesLike]) -> None:
        """Copies one source per object."""
    def abort(self) -> None: ...

@final
class Announced:
    """How far an announcement has got."""

    @property
    def announced_chunks(self) -> int: ...
    @property
    def found_chunks(self) -> int:
        """Leading ones that are present."""
    @property
    def ended(self) -> bool:
        """True if no more of them will come."""

@final
class Ticket(Generic[T]):
    """A request in progress. When its last reference goes, it is forgotten, not cancelled."""

    @property
    def done(self) -> bool:
        """True if the result, or an error, can be taken without waiting, as far as `Connection.poll` has received
        answers."""
    def result(self, timeout: float | None = None) -> T:
        """Waits for the result and takes it, once. After DeadlineExceeded by this `timeout` it may be called again."""
    def cancel(self) -> None:
        """Asks the daemon to end the request, and forgets it, without waiting. The daemon may be writing a load's
        region until a later call on that region has been answered."""

@final
class Options:
    def __init__(
        self,
        *,
        priority: int | None = None,
        trace: str = "",
        inference: int = 0,
        session: int = 0,
        turn: int = 0,
        time_ns: int | None = None,
        prefill_tokens_per_s: int | None = None,
        no_load: bool | None = None,
        no_store: bool | None = None,
    ) -> None:
        """An option that is None has the value of the space's `defaults`. `priority`: smaller is more urgent. `trace`:
        shown in the daemon's log and in error texts. `inference`: one number for everything that belongs to an
        inference request. `prefill_tokens_per_s`: for this request, instead of the space's; 0: everything found is
        returned. `no_load`: lookups, and loads and prefetches of a prefix, find nothing. `no_store`: store and
        reserve keep nothing."""

@final
class SavedTurn:
    """What a session keeps after a turn."""

    @property
    def tokens(self) -> int: ...
    @property
    def held_chunks(self) -> int:
        """Leading chunks that a held session holds; 0: nothing is held, and `unheld` says why."""
    @property
    def held_bytes(self) -> int: ...
    @property
    def lease(self) -> bytes:
        """The id of a lease that belongs to the session, for `read_lease` and `load` of what it holds. Zeros: nothing is
        held."""
    @property
    def unheld(self) -> str: ...

@final
class Session:
    """A conversation whose turns send only their new tokens (docs/sessions.md). It ends at the end of a `with` block, by
    `close`, or with its last reference, unless it is kept. If the daemon has forgotten it, the next turn sends the
    whole prompt."""

    def __enter__(self) -> Session: ...
    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None: ...
    @property
    def id(self) -> bytes:
        """16 bytes. Whoever has them may use the session within its trust group."""
    @property
    def tokens(self) -> int: ...
    @property
    def digest(self) -> bytes:
        """Of all its tokens: what `adopt_session` needs beside the id and their number."""
    def continued(self, prompt: Tokens, unchanged: int, *, tail: bool = False) -> Prefix:
        """Returns the prefix of a store, reserve or load whose chunks begin at `unchanged` or behind it: `prompt` without
        the tokens that the session has. `first_chunk` of such a request counts from the start of the prompt. With
        `tail` the tokens behind the last whole chunk are a chunk, too."""
    def close(self) -> None:
        """A kept session goes on, and can be adopted."""

class Connection:
    def __init__(
        self,
        path: str,
        *,
        name: str = "python",
        timeout: float | None = None,
        observes: bool = False,
        socket_buffer_bytes: int = 1048576,
        backoff_least: float = 0.01,
        backoff_most: float = 2.0,
    ) -> None: ...
    def _daemon(self) -> dict[str, Any]: ...
    def _open_space(self, described: object, timeout: float | None = None) -> Space: ...
    def close_space(self, space: Space, *, timeout: float | None = None) -> None:
        """Ends the connection's use of the space, however often it opened it; the objects stay. `Busy` while the
        connection holds a lease or a reservation in it, also by a view of an object that was read."""
    def _register(
        self, descriptor: int, nbytes: int, base: int = 0, keeps: object = None, timeout: float | None = None
    ) -> Region: ...
    def _register_device(
        self, address: int, nbytes: int, keeps: object = None, timeout: float | None = None
    ) -> Region: ...
    def _register_host_device(
        self, descriptor: int, nbytes: int, base: int = 0, keeps: object = None, timeout: float | None = None
    ) -> Region: ...
    def register_generations(self, memory: Memory, device: str, *, timeout: float | None = None) -> Region:
        """Registers counters of 32 bits, at most 256 KiB, that the device ("host", or the UUID of a GPU) may write,
        for `after` of stores."""
    def bell(self, *, timeout: float | None = None) -> Bell:
        """Returns the connection's bell, the same one each time. It must have been asked for before a store is sent
        whose `after` has not been reached yet."""
    def _move(
        self, space: Space, what: Prefix | Tokens, to: int, timeout: float | None = None
    ) -> tuple[int, int, int, int, int, int, int]: ...
    def _evict(
        self, space: Space, what: Prefix | Tokens, tiers: Iterable[int], timeout: float | None = None
    ) -> tuple[int, int]: ...
    def _clear(self, space: Space | None = None, timeout: float | None = None) -> tuple[int, int]: ...
    def _status(self, timeout: float | None = None) -> dict[str, Any]: ...
    def _policies(self, timeout: float | None = None) -> dict[str, Any]: ...
    @property
    def alive(self) -> bool:
        """False once the daemon is known to be lost. Asks nobody: a call that meets a loss reveals it."""
    def fileno(self) -> int:
        """Returns a descriptor that is readable when answers have come (then call `poll`). `reconnect` changes it.
        `Gone` when the daemon is lost."""
    def poll(self) -> int:
        """Receives the answers that have come, and returns their number. Never waits."""
    def close(self, *, timeout: float | None = None) -> None:
        """Closes the connection. Waits, for `timeout` or a minute, until no device accesses the memory of regions that
        were not unregistered, and then releases it. Memory for which the daemon has not confirmed that by then is
        never released. For other memory it does not wait."""
    def reconnect(self, timeout: float | None = None) -> bool:
        """Makes one attempt, or raises `Gone` at once while it is too early for another. Opens the spaces and
        registers the regions anew; leases, reservations and tickets are gone. Returns True if it is the same
        daemon."""
    def open_session(
        self,
        space: Space,
        *,
        held: bool = False,
        keep: bool = False,
        lora: str = "",
        salt: str = "",
        timeout: float | None = None,
    ) -> Session:
        """Opens a conversation. `held`: what a save finds of it stays in the tiers until the next one. `keep`: it does not
        end with its handle and its connection. `lora` and `salt` are those of all its turns."""
    def fork_session(self, session: Session, tokens: int, *, keep: bool = False, timeout: float | None = None) -> Session:
        """Opens a session with the first `tokens` of another one, or with fewer: `Session.tokens` says how many."""
    def adopt_session(
        self,
        space: Space,
        id: bytes,
        tokens: int,
        digest: bytes,
        *,
        held: bool = False,
        keep: bool = False,
        lora: str = "",
        salt: str = "",
    ) -> Session:
        """Returns a handle for a session that another connection of the trust group has opened with the same options."""
    def close_session(self, id: bytes, *, timeout: float | None = None) -> bool:
        """Ends a session, also a kept one. False: there is no such session."""
    def lookup_turn(
        self,
        session: Session,
        prompt: Tokens,
        unchanged: int,
        *,
        lease: bool = False,
        tail: bool = False,
        items: Iterable[tuple[str, int, int]] = (),
        tiers: Iterable[int] = (),
        id: bytes | None = None,
        options: Options | None = None,
        timeout: float | None = None,
    ) -> Lookup:
        """Begins a turn: looks up `prompt`, whose first `unchanged` tokens are those of the session, and makes it the
        session's. Only what is behind them is sent, so nothing notices if they differ from the session's. `items`:
        those of the whole prompt. `tail`: also finds the partial chunk that ends a saved turn."""
    def save_turn(
        self,
        session: Session,
        prompt: Tokens,
        unchanged: int,
        *,
        tail: bool = False,
        cursors: Iterable[int] = (),
        items: Iterable[tuple[str, int, int]] = (),
        options: Options | None = None,
        timeout: float | None = None,
    ) -> SavedTurn:
        """Ends a turn whose chunks are stored: makes `prompt`, with what the model has said, the session's. `tail`: the
        partial chunk at its end is stored, too, in all pools and on all ranks (else `NotFound`), and is saved with
        `cursors`, one number for each pool or none."""
    def lookup(
        self,
        space: Space,
        what: Prefix | Tokens,
        *,
        lease: bool = False,
        tiers: Iterable[int] = (),
        id: bytes | None = None,
        digests: bool = False,
        options: Options | None = None,
        timeout: float | None = None,
    ) -> Lookup:
        """Finds out how much of a prefix is present. `lease`: keeps what is found readable. `tiers`: searches only
        these `Tier`s. `id`: 16 bytes by which others may wait for the answer. `digests`: the answer contains those
        of the requested chunks."""
    def submit_lookup(
        self,
        space: Space,
        what: Prefix | Tokens,
        *,
        lease: bool = False,
        tiers: Iterable[int] = (),
        id: bytes | None = None,
        digests: bool = False,
        options: Options | None = None,
        timeout: float | None = None,
    ) -> Ticket[Lookup]: ...
    def await_lookup(self, id: bytes, *, options: Options | None = None, timeout: float | None = None) -> Lookup:
        """Returns the answer of another connection's lookup, also of one that begins after this call."""
    def submit_await_lookup(
        self, id: bytes, *, options: Options | None = None, timeout: float | None = None
    ) -> Ticket[Lookup]: ...
    def submit_announce(
        self,
        space: Space,
        what: Prefix | Tokens,
        name: bytes,
        *,
        options: Options | None = None,
        timeout: float | None = None,
    ) -> Ticket[Announced]:
        """Tells who follows `name`, 16 bytes, that this client is going to store these chunks. The ticket is done when all are
        present, from whatever connection. Cancel it if they will not be stored; it ends with this connection in any case."""
    def follow(
        self, name: bytes, *, chunks: int = 0, options: Options | None = None, timeout: float | None = None
    ) -> Announced:
        """Waits until the first `chunks` (0: all) of what was announced as `name` are present, or no more of them will come;
        also if it is announced after this call."""
    def submit_follow(
        self, name: bytes, *, chunks: int = 0, options: Options | None = None, timeout: float | None = None
    ) -> Ticket[Announced]: ...
    def cancel_lookup(self, id: bytes, *, timeout: float | None = None) -> bool: ...
    def adopt(self, id: bytes) -> Lease:
        """Returns a handle on a lease that another connection took. The handle releases that lease. For reading under
        it, its id is enough."""
    def read_lease(
        self,
        lease: Lease | bytes,
        *,
        first_chunk: int = 0,
        chunks: int = 0,
        pools: Iterable[int] = (),
        give_up_earlier: bool = False,
        options: Options | None = None,
        timeout: float | None = None,
    ) -> Located:
        """Returns the places of leased objects, without a copy. `Denied` in a group whose memory is not shared: use
        `load`. If it returns fewer chunks than requested, host memory had no room for more: ask for the rest with
        `give_up_earlier` when nothing that was read before is in use (else BufferError)."""
    def load_under_lease(
        self,
        lease: Lease | bytes,
        into: Iterable[BytesLike],
        *,
        first_chunk: int = 0,
        chunks: int = 0,
        pools: Iterable[int] = (),
        timeout: float | None = None,
    ) -> int:
        """Copies leased objects into any memory of this process, one destination per object: on this thread, without
        the daemon. Returns the number of bytes. With `chunks`, objects for which host memory has no room at once
        come part by part: BufferError if objects that were read under the lease before are in use then."""
    def submit_read_lease(
        self,
        lease: Lease | bytes,
        *,
        first_chunk: int = 0,
        chunks: int = 0,
        pools: Iterable[int] = (),
        give_up_earlier: bool = False,
        options: Options | None = None,
        timeout: float | None = None,
    ) -> Ticket[Located]: ...
    def load(
        self,
        space: Space | None,
        what: Prefix | Tokens | Lease | bytes,
        region: Region,
        runs: Iterable[Run] | Rows,
        *,
        first_chunk: int = 0,
        chunks: int = 0,
        runs_per_object: Iterable[int] = (),
        pools: Iterable[int] = (),
        arrivals: Arrivals | None = None,
        layers: LayeredLoad | None = None,
        options: Options | None = None,
        timeout: float | None = None,
    ) -> Loaded:
        """The daemon copies into a region. `what` may be a lease, or the 16 bytes of its id; `space` may be None then.
        `runs`: `Rows`, or for each object (offset, bytes[, stride, count]) or memory that lies in the region.
        `arrivals`: one counter for each requested pool; with `submit_load` call its `end` when the ticket is done.
        `layers`: a slot of a `LayerRing`, for a load into memory of its GPU."""
    def submit_load(
        self,
        space: Space | None,
        what: Prefix | Tokens | Lease | bytes,
        region: Region,
        runs: Iterable[Run] | Rows,
        *,
        first_chunk: int = 0,
        chunks: int = 0,
        runs_per_object: Iterable[int] = (),
        pools: Iterable[int] = (),
        arrivals: Arrivals | None = None,
        layers: LayeredLoad | None = None,
        options: Options | None = None,
        timeout: float | None = None,
    ) -> Ticket[Loaded]: ...
    def store(
        self,
        space: Space,
        what: Prefix | Tokens,
        region: Region,
        runs: Iterable[Run] | Rows,
        *,
        first_chunk: int = 0,
        chunks: int = 0,
        runs_per_object: Iterable[int] = (),
        pools: Iterable[int] = (),
        after: tuple[Region, int, int] | None = None,
        options: Options | None = None,
        timeout: float | None = None,
    ) -> Stored:
        """The daemon copies out of a region, which may be overwritten after the answer. `after`, for memory of a
        device: (region, offset, value), a counter of 4 bytes that must have reached this value before anything is
        read; its region comes from `register_generations`. The writer of the counter then rings the connection's
        `bell`; if nobody has asked for a bell, a counter that has not been reached is a `BadRequest`."""
    def submit_store(
        self,
        space: Space,
        what: Prefix | Tokens,
        region: Region,
        runs: Iterable[Run] | Rows,
        *,
        first_chunk: int = 0,
        chunks: int = 0,
        runs_per_object: Iterable[int] = (),
        pools: Iterable[int] = (),
        after: tuple[Region, int, int] | None = None,
        options: Options | None = None,
        timeout: float | None = None,
    ) -> Ticket[Stored]: ...
    def reserve(
        self,
        space: Space,
        what: Prefix | Tokens,
        *,
        first_chunk: int = 0,
        chunks: int = 0,
        pools: Iterable[int] = (),
        options: Options | None = None,
        timeout: float | None = None,
    ) -> Reservation: ...
    def submit_reserve(
        self,
        space: Space,
        what: Prefix | Tokens,
        *,
        first_chunk: int = 0,
        chunks: int = 0,
        pools: Iterable[int] = (),
        options: Options | None = None,
        timeout: float | None = None,
    ) -> Ticket[Reservation]: ...
    def commit(
        self, reservation: Reservation, *, options: Options | None = None, timeout: float | None = None
    ) -> Stored: ...
    def submit_commit(
        self, reservation: Reservation, *, options: Options | None = None, timeout: float | None = None
    ) -> Ticket[Stored]: ...
    def end_inference(
        self,
        inference: int,
        *,
        output_tokens: int | None = None,
        reason: int = 0,
        session_closed: bool = False,
        think_time: float | None = None,
        time_ns: int | None = None,
        wait: bool = True,
        timeout: float | None = None,
    ) -> None:
        """Reports how an inference request ended. `reason`: a FinishReason. `wait`: until the daemon has answered; without,
        a connection that is lost is no error."""
    def set_policy(self, tier: str, policy: str, *, timeout: float | None = None) -> str:
        """Sets the eviction policy of a tier, and returns the name of the previous one."""
