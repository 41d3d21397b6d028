/* The C interface of libterrace: for engines in C, and for languages that call C (Rust, Go, ...). <terrace/client/client.hpp> is the
 * C++ interface, which has more.
 *
 * Every function that can fail returns a code, TERRACE_OK if it has succeeded, and fills `error`, which may be null, with a text that
 * says what was expected and how to fix it. Results are written only on success.
 *
 * A connection belongs to one thread at a time, with all that was made with it. Each handle is freed by the function that its
 * comment names, in any order, also after its connection; null is allowed there.
 *
 * `timeout_ms` is the time by which a call returns in any case; negative: when the answer comes, or when the daemon is gone. When
 * the daemon is lost, every call returns TERRACE_GONE at once until terrace_reconnect succeeds: treat it as a miss and go on.
 *
 * Structs that may grow begin with their size: `terrace_prefix prompt = {.size = sizeof prompt, ...}`. A field that is zero has its
 * default. Texts are UTF-8 and end with a zero byte; null is the empty text.
 */
#ifndef TERRACE_H
#define TERRACE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The codes of docs/protocol.md. */
typedef enum terrace_code {
  TERRACE_OK = 0,
  TERRACE_BUSY = 1,      /* a limit is reached; the same request may succeed later */
  TERRACE_NOT_FOUND = 2, /* the named object does not exist */
  TERRACE_GONE = 3,      /* the daemon is lost, or the named object has existed and is gone */
  TERRACE_DEADLINE = 4,  /* the time is over */
  TERRACE_CANCELLED = 5,
  TERRACE_NO_SPACE = 6,    /* nothing can be evicted; the text says what holds the memory */
  TERRACE_BAD_REQUEST = 7, /* the arguments contradict each other or the protocol */
  TERRACE_DENIED = 8,
  TERRACE_UNSUPPORTED = 9,
  TERRACE_INTERNAL = 10 /* an error in Terrace */
} terrace_code;

typedef struct terrace_error {
  terrace_code code;
  char text[500]; /* a longer text is cut */
} terrace_error;

/* The version of the library, as "0.1.0". Never freed. */
const char* terrace_version(void);

/* ---- the connection ---- */

typedef struct terrace_connection terrace_connection; /* terrace_disconnect */

/* `path`: the daemon's socket. `name`: shown by `terrace status`. */
terrace_code terrace_connect(const char* path, const char* name, int64_t timeout_ms,
                             terrace_connection** connection, terrace_error* error);
void terrace_disconnect(terrace_connection* connection);

/* 0 once the daemon is known to be lost. Makes no system call. */
int terrace_alive(const terrace_connection* connection);

/* Makes one attempt, or returns TERRACE_GONE at once while it is too early for another. Opens the spaces and registers the regions
 * again; leases are gone. `same_daemon`, which may be null: 1 if the daemon was not started anew. */
terrace_code terrace_reconnect(terrace_connection* connection, int64_t timeout_ms, int* same_daemon,
                               terrace_error* error);

/* ---- spaces ---- */

/* One kind of state: attention KV, Mamba states, a sliding window. */
typedef struct terrace_pool {
  const char* name;      /* null: "kv" */
  uint64_t object_bytes; /* of one chunk on one rank */
  uint32_t trailing;     /* not 0: a prefix needs only its last `trailing` chunks of this pool */
  int replicated;        /* not 0: stored once for all ranks */
} terrace_pool;

typedef enum terrace_hash {
  TERRACE_SHA256_CBOR = 0, /* as vLLM hashes */
  TERRACE_SHA256 = 1,
  TERRACE_XXH3_128 = 2
} terrace_hash;

/* All that must match for KV to be interchangeable. Clients whose specs differ in a field before `rank` share nothing. */
typedef struct terrace_space_spec {
  size_t size;
  const char* model;
  const char* revision;
  const char* dtype;
  const char* layout;
  const char* salt;
  const terrace_pool* pools;
  size_t pool_count;
  uint32_t chunk_tokens;      /* 0: 256 */
  uint32_t hash_block_tokens; /* 0: 16 */
  uint32_t world_size;        /* 0: 1 */
  terrace_hash algorithm;
  const char* seed;
  uint32_t rank;
  uint32_t
      prefill_tokens_per_s; /* not 0: results leave out chunks that this client computes sooner than they arrive */
} terrace_space_spec;

typedef struct terrace_space terrace_space; /* terrace_space_free, which leaves the space open */

terrace_code terrace_open_space(terrace_connection* connection, const terrace_space_spec* spec,
                                int64_t timeout_ms, terrace_space** space, terrace_error* error);
void terrace_space_free(terrace_space* space);

/* ---- memory that the daemon may read and write ---- */

typedef struct terrace_memory terrace_memory; /* terrace_memory_free */

/* Shared memory of this process, zero at first. */
terrace_code terrace_memory_create(const char* name, uint64_t bytes, terrace_memory** memory,
                                   terrace_error* error);
void* terrace_memory_data(const terrace_memory* memory);
void terrace_memory_free(terrace_memory* memory);

typedef struct terrace_region terrace_region; /* terrace_unregister */

terrace_code terrace_register(terrace_connection* connection, const terrace_memory* memory,
                              int64_t timeout_ms, terrace_region** region, terrace_error* error);
/* `descriptor`: a memfd, which should have F_SEAL_SHRINK. It is duplicated. */
terrace_code terrace_register_descriptor(terrace_connection* connection, int descriptor, uint64_t bytes,
                                         int64_t timeout_ms, terrace_region** region, terrace_error* error);
/* Waits until the daemon does not access the memory any more. Frees the handle, also if it fails. */
terrace_code terrace_unregister(terrace_connection* connection, terrace_region* region, int64_t timeout_ms,
                                terrace_error* error);

/* ---- requests ---- */

/* The chunks that a request is about, by tokens or by digests. */
typedef struct terrace_prefix {
  size_t size;
  const uint32_t* tokens; /* the whole prompt */
  size_t token_count;
  const uint8_t* digests; /* one behind the other */
  size_t digest_count;
  size_t digest_bytes; /* of each; 0: 32 */
  const char* lora;
  const char* salt;
} terrace_prefix;

/* `count` pieces (0: one) of `bytes` each, `stride` bytes apart, from `offset` on in a region. */
typedef struct terrace_run {
  uint64_t offset;
  uint64_t bytes;
  uint64_t stride;
  uint64_t count;
} terrace_run;

typedef struct terrace_lease terrace_lease; /* terrace_release */

typedef struct terrace_found {
  uint32_t requested_chunks;
  uint32_t found_chunks; /* leading chunks that are present */
  uint64_t found_tokens;
  uint64_t usable_tokens;    /* ends at least one token before the end of the prompt */
  uint32_t recompute_chunks; /* further ones, which are present but faster to compute */
  terrace_lease* lease;      /* null: none was asked for, or nothing was found */
} terrace_found;

/* `lease`: not 0 if what is found shall stay until terrace_release. */
terrace_code terrace_lookup(terrace_connection* connection, const terrace_space* space,
                            const terrace_prefix* prefix, int lease, int64_t timeout_ms, terrace_found* found,
                            terrace_error* error);
void terrace_release(terrace_lease* lease);

typedef struct terrace_moved {
  uint32_t requested_chunks; /* of a store: 0 */
  uint32_t chunks;           /* a load: leading chunks that were delivered; a store: chunks that are new */
  uint32_t present_chunks;   /* a store: chunks that were there already; a load: 0 */
  uint64_t bytes;
} terrace_moved;

/* Copies objects into a region. Exactly one of `prefix`, with its `space`, and `lease` is not null. `first_chunk` and `chunks`: a part
 * of them; `chunks` 0: all from the first on. The runs follow the objects, by chunk, then pool: one for each object. */
terrace_code terrace_load(terrace_connection* connection, const terrace_space* space,
                          const terrace_prefix* prefix, const terrace_lease* lease, uint32_t first_chunk,
                          uint32_t chunks, const terrace_region* region, const terrace_run* runs,
                          size_t run_count, int64_t timeout_ms, terrace_moved* loaded, terrace_error* error);

/* Copies objects out of a region, which may be overwritten afterwards. Only whole chunks are stored. */
terrace_code terrace_store(terrace_connection* connection, const terrace_space* space,
                           const terrace_prefix* prefix, uint32_t first_chunk, uint32_t chunks,
                           const terrace_region* region, const terrace_run* runs, size_t run_count,
                           int64_t timeout_ms, terrace_moved* stored, terrace_error* error);

/* Objects in place, in the daemon's memory; read-only. They are valid until they are freed, and as long as the lease. */
typedef struct terrace_objects terrace_objects; /* terrace_objects_free */

/* TERRACE_DENIED in a trust group that maps no memory: use terrace_load. If there are fewer objects than the chunks have, host memory
 * had no room for more: read these, free them, and ask for the rest. */
terrace_code terrace_read_lease(terrace_connection* connection, const terrace_lease* lease,
                                uint32_t first_chunk, uint32_t chunks, int64_t timeout_ms,
                                terrace_objects** objects, terrace_error* error);
size_t terrace_objects_count(const terrace_objects* objects);
/* Null, with `bytes` 0, if there is no such object. */
const void* terrace_objects_data(const terrace_objects* objects, size_t index, size_t* bytes);
void terrace_objects_free(terrace_objects* objects);

/* Forgets all objects of the space, or, if it is null, of the whole trust group; no restart brings them back. */
terrace_code terrace_clear(terrace_connection* connection, const terrace_space* space, int64_t timeout_ms,
                           uint64_t* objects, terrace_error* error);

#ifdef __cplusplus
}
#endif

#endif
