/* Stores two chunks of a prompt and finds them again, in C. Start `terraced --socket SOCKET --state-dir DIR` first, then
 *
 *   cc -std=c11 store_and_find.c $(pkg-config --cflags --libs terrace) -o store_and_find
 *   ./store_and_find SOCKET
 */
#include <terrace/client/terrace.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_TOKENS 256
#define OBJECT_BYTES (1 << 20)

static void must(terrace_code code, const terrace_error* error) {
  if (code != TERRACE_OK) {
    fprintf(stderr, "%s\n", error->text);
    exit(1);
  }
}

int main(int argc, char** argv) {
  if (argc != 2)
    return 2;
  terrace_error error;
  terrace_connection* daemon;
  must(terrace_connect(argv[1], "example", -1, &daemon, &error), &error);

  terrace_pool pool = {.name = "kv", .object_bytes = OBJECT_BYTES};
  terrace_space_spec spec = {.size = sizeof spec, .model = "llama", .dtype = "bf16", .layout = "paged", .pools = &pool, .pool_count = 1};
  terrace_space* space;
  must(terrace_open_space(daemon, &spec, -1, &space, &error), &error);

  terrace_memory* memory; /* shared memory: the daemon copies out of it */
  terrace_region* region;
  must(terrace_memory_create("kv", 2 * OBJECT_BYTES, &memory, &error), &error);
  memset(terrace_memory_data(memory), 1, 2 * OBJECT_BYTES);
  must(terrace_register(daemon, memory, -1, &region, &error), &error);

  uint32_t tokens[2 * CHUNK_TOKENS];
  for (size_t i = 0; i < 2 * CHUNK_TOKENS; ++i)
    tokens[i] = 7;
  terrace_prefix prompt = {.size = sizeof prompt, .tokens = tokens, .token_count = 2 * CHUNK_TOKENS};
  terrace_run runs[2] = {{.offset = 0, .bytes = OBJECT_BYTES}, {.offset = OBJECT_BYTES, .bytes = OBJECT_BYTES}};
  must(terrace_store(daemon, space, &prompt, 0, 0, region, runs, 2, -1, NULL, &error), &error);

  terrace_found found;
  terrace_objects* objects; /* in the daemon's memory, until the lease is released */
  must(terrace_lookup(daemon, space, &prompt, 1, -1, &found, &error), &error);
  must(terrace_read_lease(daemon, found.lease, 0, 0, -1, &objects, &error), &error);
  size_t bytes;
  terrace_objects_data(objects, 0, &bytes);
  printf("%u chunks found, %zu bytes in the first\n", (unsigned)found.found_chunks, bytes);

  terrace_objects_free(objects);
  terrace_release(found.lease);
  must(terrace_unregister(daemon, region, -1, &error), &error);
  terrace_memory_free(memory);
  terrace_space_free(space);
  terrace_disconnect(daemon);
  return 0;
}
