"""The compiled module. Terms as in docs/protocol.md; times are seconds unless a name says otherwise.

Bytes: what is called `BytesLike` here has the buffer protocol, or is an array or a tensor of the CPU with DLPack.
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
    """Where an object's bytes lie in this process, and how many there are."""

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
    """Shared memory of this process that a daemon may map: a sealed memfd. Zeros at first."""

    def __init__(self, nbytes: int, *, name: str = "terrace-python") -> None: ...
    def fileno(self) -> int: ...
    def commit(self) -> None:
        """All pages exist from now on, large ones where the kernel has them. Before the first access it takes a tenth of
        the time of the accesses, and stores from large pages are faster. Raises NoSpace; Unsupported before Linux 5.14."""

@final
class Prefix:
    """Which chunks a request is about. Holds a copy of what it was made of, and serves any number of requests."""

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
        """The whole prompt, or what follows the digest `parent`, which stands for `parent_tokens`. `items`: multimodal
        ones as (identifier, first token, tokens). Arrays have one dimension and integers of 4 or 8
        bytes in this machine's byte order. Numbers that do not fit in 32 bits, dicts, sets and booleans are refused."""

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
        """One `bytes` object a digest, or all behind each other with `width` bytes each (default 32), or an array of bytes with a
        row each. `unit`: a DigestUnit. `lora` and `salt`: with `sha256_cbor` and chunks of one hash block, those that the
        digests were made with; the first digest alone does not tell them apart."""

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
    """A pool of an open space; its place in `Space.pools` is the number by which requests name it."""

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
    """Memory that the daemon knows. Unregistered at the end of a `with` block, by `unregister`, or with its last reference; if it is
    memory of a device, the last one lets the memory go when the connection is closed."""

    def __enter__(self) -> Region: ...
    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def mapped(self) -> bool:
        """The daemon has it mapped, because it is sealed; otherwise it reads and writes through the descriptor, slower."""
    @property
    def registered(self) -> bool: ...
    @property
    def device(self) -> str:
        """The UUID of the GPU that has the memory, or "host"; empty: it is shared memory."""
    def run_of(self, memory: BytesLike) -> tuple[int, int]:
        """Where these bytes lie in the region: (offset, bytes)."""
    def unregister(self, *, timeout: float | None = None) -> None:
        """Of memory of a device: waits until nothing accesses it any more. After an error it may be accessed still, and is kept until
        the connection is closed (`Gone`), or for ever. Of other memory it does not wait."""

@final
class Arrivals:
    """Counters in registered `Memory` that the daemon raises while a load runs: each says how many leading chunks of its
    pool have arrived, whose bytes may be read. For one request at a time. Threads may wait while others use the
    connection."""

    def __init__(self, memory: Memory, region: Region, offset: int, count: int) -> None:
        """`count` counters of 4 bytes at `offset`, a multiple of 4."""
    def __len__(self) -> int: ...
    def chunks(self, counter: int) -> int: ...
    def wait(self, counter: int, chunks: int, *, timeout: float | None = None) -> bool:
        """Until so many have arrived. False: the request has ended before that, or the time is over."""
    def end(self) -> None:
        """The request has ended: whoever waits returns."""

@final
class Bell:
    """Tells the daemon to look at the counters that stores wait for (`after`). Rings for its connection, also after that has
    reconnected. Usable on any thread, also while others wait in the connection."""

    def ring(self) -> None:
        """Once a counter has been written. Never waits."""
    def ring_after(self, stream: int, device: str) -> None:
        """Rings when all that is in a GPU's stream by now is done: a write of the counter. `stream`: as PyTorch's `cuda_stream`, and
        not the default one. `device`: the GPU's UUID, as `Region.device`. `Unsupported` without a driver."""
    def open(self, device: str) -> None:
        """Finds the GPU now, and not when one of its streams rings first."""
    def fileno(self) -> int:
        """An eventfd: whoever writes the number 1 to it, as 8 bytes, rings. Not changed by a reconnect."""

@final
class LayeredLoad:
    """A slot of a `LayerRing`, for one load of as many pools as it has layers: `layers` of `load` and `submit_load`. It ends with the load's
    answer, or with the last reference to its ticket."""

    def wait_on(self, stream: int, layer: int) -> None:
        """What follows in a GPU's stream begins when the load's `layer`th pool has arrived, or the load has ended: then its answer says
        whether it counts. May come before the load is sent. `stream`: as PyTorch's `cuda_stream`, and not the default one."""
    def pass_on(self, stream: int) -> None:
        """Behind the stream's last wait: the slot may be used again when the stream has come there."""
    def pass_now(self) -> None:
        """For a load whose layers no stream waits for."""
    def arrived(self, layer: int) -> bool: ...
    def wait(self, layer: int, *, timeout: float | None = None) -> bool:
        """Waits on this thread, while others use the connection. False: it has not arrived in time."""
    def end(self) -> None:
        """Of a slot that no load was sent with; or whose load nobody waits for any longer: its streams go on, and the slot is used again once
        the daemon has answered."""

@final
class LayerRing:
    """Generations of loads into memory of a GPU, for whose layers its streams wait without a processor. Another one is needed when its region
    was unregistered, as after `Gone`."""

    def __init__(
        self, memory: Memory, region: Region, device: str, *, layers: int, loads: int = 3, offset: int = 0
    ) -> None:
        """In `memory`, from `offset` on, which is registered as `region` by `register_generations`. `device`: the GPU's UUID, as
        `Region.device`. `loads`: slots, at least 3."""
    def begin(self, *, timeout: float | None = None) -> LayeredLoad:
        """The next slot. `Busy`: its load has not ended, or its stream has not passed."""
    def open(self) -> None:
        """Finds the GPU and pins the memory now, and not for the first stream that waits."""
    @staticmethod
    def bytes_for(loads: int, layers: int) -> int: ...

@final
class DeviceMemory:
    """Memory of a GPU that `Connection.register_device_region` takes, whatever a framework allocates with: it is of cuMemAlloc. Freed with its
    last reference, which a region is one of; nothing accesses it any more then."""

    def __init__(self, nbytes: int, device: str) -> None:
        """`device`: the GPU's UUID. `NoSpace`; `Unsupported` without a driver."""
    @property
    def address(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...

@final
class StoreCounter:
    """A counter that a GPU's streams raise, for `after` of stores. Another one is needed when its region was unregistered, as after `Gone`."""

    def __init__(self, memory: Memory, region: Region, device: str, *, offset: int = 0) -> None:
        """In `memory` at `offset`, which is registered as `region` by `register_generations`, and has no other counters that streams
        use. `device`: the GPU's UUID, as `Region.device`. `Unsupported` without a driver."""
    def raise_after(self, stream: int) -> tuple[Region, int, int]:
        """When all that is in a GPU's stream by now is done, the counter has its next value. Gives `after` for the store that waits for that;
        `Bell.ring_after` comes behind it. `stream`: as PyTorch's `cuda_stream`, the same each time, and not the default one."""

@final
class Rows:
    """The runs of objects that lie in rows of one size: for `rows` a run each, of `row_bytes` bytes, at `offset` and
    `row * row_bytes`. With `count`: of so many pieces each, `stride` bytes apart, as those of a block in each layer. An array of
    4-byte or 8-byte integers is read at once."""

    def __init__(
        self, rows: Tokens, row_bytes: int, *, offset: int = 0, stride: int = 0, count: int = 1
    ) -> None: ...
    def __len__(self) -> int: ...

@final
class Lease:
    """The right to read found objects. Given back at the end of a `with` block, by `release`, or with its last reference;
    but not before the last view of an object that was read under it is gone."""

    def __enter__(self) -> Lease: ...
    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None: ...
    @property
    def id(self) -> bytes:
        """16 bytes, to be given to other connections of the trust group."""
    @property
    def released(self) -> bool: ...
    def release(self) -> None:
        """A second time does nothing."""

@final
class Missing:
    """The first object that ended a prefix early."""

    @property
    def chunk(self) -> int:
        """Of the prefix or the lease, from 0."""
    @property
    def pool(self) -> int:
        """Its number: the place in `Space.pools`."""
    @property
    def rank(self) -> int:
        """A chunk is found when all ranks of the space have stored it."""
    @property
    def damaged(self) -> bool:
        """It was found, and could not be read or had wrong bytes."""

@final
class Lookup:
    @property
    def requested_chunks(self) -> int: ...
    @property
    def found_chunks(self) -> int:
        """Leading chunks that are present."""
    @property
    def found_tokens(self) -> int: ...
    @property
    def usable_tokens(self) -> int:
        """Ends at least one token before the prompt's end."""
    @property
    def first_token(self) -> int:
        """Of the prompt: where the first chunk begins."""
    @property
    def recompute_chunks(self) -> int:
        """Further ones are present, but computing them is faster."""
    @property
    def tiers(self) -> bytes:
        """Of each found chunk the number of its fastest `Tier`."""
    @property
    def chunk_tokens(self) -> int:
        """Of `await_lookup`: how many tokens a chunk of that lookup's space has; otherwise 0."""
    @property
    def lease(self) -> Lease | None:
        """When asked for, and anything was found."""
    @property
    def missing(self) -> Missing | None:
        """What ended the prefix; None: all chunks were found, or a lease has no room for more."""
    @property
    def digests(self) -> list[bytes]:
        """When asked for: of the requested chunks, as they are looked up, with tags. To compare hashing. An answer to
        `await_lookup` has none."""

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
        """What ended them early; None: all came, or host memory had no room for more."""
    def copy_into(self, destinations: Iterable[BytesLike]) -> int:
        """Copies into other memory, one destination an object, and gives the number of bytes."""

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
        """By the number of the `Tier`; may be shorter."""
    @property
    def first_token(self) -> int: ...
    @property
    def missing(self) -> Missing | None:
        """What ended the load early; None: all was delivered."""
    @property
    def recompute_chunks(self) -> int:
        """Further ones are present, but computing them is faster."""

@final
class Stored:
    @property
    def stored_chunks(self) -> int: ...
    @property
    def present_chunks(self) -> int:
        """Were there already; nothing was copied."""
    @property
    def nbytes(self) -> int: ...

@final
class Reservation:
    """Staging memory of chunks that this process writes itself. Ends by `Connection.commit`; or by `abort`, which the end of
    a `with` block does. Both raise BufferError while a view of its memory exists."""

    def __enter__(self) -> Reservation: ...
    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None: ...
    @property
    def open(self) -> bool: ...
    @property
    def objects(self) -> list[Buffer]:
        """Where each object's bytes go, writable. Empty ones are present already."""
    def write(self, sources: Sequence[BytesLike]) -> None:
        """Copies one source an object."""
    def abort(self) -> None: ...

@final
class Ticket(Generic[T]):
    """A request under way. With its last reference it is forgotten, not cancelled."""

    @property
    def done(self) -> bool:
        """The result, or an error, can be taken without waiting, as far as `Connection.poll` has taken in what came."""
    def result(self, timeout: float | None = None) -> T:
        """Waits and takes it, once. After DeadlineExceeded by this `timeout` it may be called again."""
    def cancel(self) -> None:
        """Asks the daemon to end the request, and forgets it, without waiting. The daemon may be writing a load's region
        until a later call on that region has been answered."""

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
        """What is None is as the space's `defaults` say. `priority`: the smaller, the more urgent. `trace`: shown in the daemon's log and in error texts. `inference`: one
        number for all that belongs to an inference request. `prefill_tokens_per_s`: of this request instead of the space's;
        0: all that is found is given. `no_load`: lookups, and loads and prefetches of a prefix, find nothing. `no_store`: store
        and reserve keep nothing."""

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
        """The connection no longer uses the space, however often it opened it; its objects stay. `Busy` while the
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
        """Counters of 32 bits, at most 256 KiB, that the device ("host", or the UUID of a GPU) may write: for `after` of stores."""
    def bell(self, *, timeout: float | None = None) -> Bell:
        """The connection's, the same each time. A store whose `after` has not been reached yet needs that it was asked for before."""
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
        """False once the daemon is lost. Asks nobody: a loss shows when a call meets it."""
    def fileno(self) -> int:
        """Readable when answers have come (then call `poll`). Changes with `reconnect`. `Gone` when the daemon is lost."""
    def poll(self) -> int:
        """Takes in the answers that have come, and gives their number. Never waits."""
    def close(self, *, timeout: float | None = None) -> None:
        """Waits until no device accesses the memory of regions that were not unregistered, and then lets it go: as long as `timeout`, or
        for a minute. Memory of which the daemon has not said so by then is never let go. Of other memory it does not wait."""
    def reconnect(self, timeout: float | None = None) -> bool:
        """One attempt, or `Gone` at once while it is too early for another. Opens the spaces and registers the regions
        anew; leases, reservations and tickets are gone. True: it is the same daemon."""
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
        """How much of a prefix is there. `lease`: keeps what is found readable. `tiers`: only these `Tier`s are searched.
        `id`: 16 bytes by which others may wait for the answer. `digests`: the answer has those of the requested chunks."""
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
        """The answer of another connection's lookup, also of one that comes after this call."""
    def submit_await_lookup(
        self, id: bytes, *, options: Options | None = None, timeout: float | None = None
    ) -> Ticket[Lookup]: ...
    def cancel_lookup(self, id: bytes, *, timeout: float | None = None) -> bool: ...
    def adopt(self, id: bytes) -> Lease:
        """A handle on a lease that another connection took: it releases that lease. To read under it, its id will do."""
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
        """Where leased objects lie, without a copy. `Denied` in a group whose memory is not shared: use `load`. Fewer
        chunks than were asked for: host memory had no room for more. Ask for the rest with `give_up_earlier` when
        nothing of what was read before is in use (else BufferError)."""
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
        """Copies leased objects into any memory of this process, one destination an object: on this thread, without the
        daemon. Gives the number of bytes. With `chunks`, what host memory has no room for at once comes part by part:
        BufferError if objects that were read under the lease before are in use then."""
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
        `runs`: `Rows`, or of each object (offset, bytes[, stride, count]) or memory that lies in the region.
        `arrivals`: one counter for each requested pool; with `submit_load` call its `end` when the ticket is done.
        `layers`: of a `LayerRing`, into memory of its GPU."""
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
        """The daemon copies out of a region, which may be written again when the answer is here. `after`, of memory of a device:
        (region, offset, value), a counter of 4 bytes that must have reached this value before anything is read; its region is of
        `register_generations`. Whoever has written it rings the connection's `bell`; if nobody has asked for a bell, a counter that has
        not been reached is a `BadRequest`."""
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
        timeout: float | None = None,
    ) -> None:
        """Tells how an inference request ended. `reason`: a FinishReason."""
    def set_policy(self, tier: str, policy: str, *, timeout: float | None = None) -> str:
        """Gives a tier another eviction policy, and returns the name of the one before."""
