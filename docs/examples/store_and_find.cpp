// Stores two chunks of a prompt and finds them again. Start `terraced --socket SOCKET --state-dir DIR` first, then
//
//   c++ -std=c++20 store_and_find.cpp $(pkg-config --cflags --libs terrace) -o store_and_find
//   ./store_and_find SOCKET
#include <terrace/client/client.hpp>

#include <cstdio>
#include <cstring>

int main(int argc, char** argv) {
  using namespace terrace::client;
  if (argc != 2)
    return 2;
  auto daemon = connection::connect({.path = argv[1], .name = "example"});
  if (!daemon) {
    std::fprintf(stderr, "%s\n", daemon.error().text.c_str());
    return 1;
  }
  space_spec spec{.model = "llama", .dtype = "bf16", .layout = "paged"};
  spec.pools = {{.name = "kv", .object_bytes = 1 << 20}};
  auto space = daemon->open_space(spec).value();
  std::vector<uint32_t> tokens(512, 7);                // two chunks of 256 tokens
  auto memory = region::create("kv", 2 << 20).value(); // shared memory: the daemon copies out of it
  std::memset(memory.data(), 1, memory.size());
  auto registered = daemon->register_region(memory).value();
  std::vector<run> runs = {{.offset = 0, .bytes = 1 << 20}, {.offset = 1 << 20, .bytes = 1 << 20}};
  daemon->store({.in = space, .what = prefix::of_tokens(tokens), .region = &registered, .runs = runs})
      .value();
  auto hit = daemon->lookup({.in = space, .what = prefix::of_tokens(tokens), .lease = true}).value();
  auto found = daemon->read_lease(hit.held.id()).value(); // in the daemon's memory, while `hit.held` lives
  std::printf("%u chunks found, %zu bytes in the first\n", hit.found_chunks, found.objects[0].size());
}
