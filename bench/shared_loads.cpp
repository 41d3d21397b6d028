// The limit of `python_load` (bench/python): what libterrace reaches with the same objects of the same daemon, into the same memory.
// The rate of a copy depends on where its pages lie: from process to process by a tenth on a machine without large pages. So
// another daemon, or memory of another process, would say more about pages than about the client.
//
//   terrace_shared_loads SOCKET OBJECT_BYTES OBJECTS DESCRIPTOR
//
// Standard input: 32 bytes for each of the chain's digests, then a byte for each pass, which ends with a line: its GB/s. The
// descriptor's memory has room for the objects of one call.
#include "bench/harness.hpp"
#include "bench/sockets.hpp"
#include "bench/workload.hpp"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace terrace::bench {

namespace {

std::vector<digest> digests_from(int fd, size_t count) {
  std::vector<digest> chain(count);
  for (digest& one : chain)
    if (!read_all(fd, one.bytes))
      give_up("expected 32 bytes for each digest of the chain");
  return chain;
}

std::span<uint8_t> mapped(int fd) {
  struct stat info {};
  if (::fstat(fd, &info) != 0)
    give_up("expected a descriptor of shared memory");
  auto bytes = static_cast<size_t>(info.st_size);
  void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED)
    give_up("cannot map the shared memory");
  return {static_cast<uint8_t*>(at), bytes};
}

int run(const std::string& socket, uint64_t object_bytes, uint32_t objects, int memory) {
  auto chain = digests_from(STDIN_FILENO, objects);
  auto target = mapped(memory);
  std::vector<std::span<uint8_t>> into;
  for (; target.size() >= object_bytes; target = target.subspan(object_bytes))
    into.push_back(target.first(object_bytes));
  auto depth = static_cast<uint32_t>(into.size());
  if (depth == 0 || objects % depth != 0)
    give_up("expected memory for a part of the objects that divides their number");

  auto connection = connect(socket);
  auto space = must(connection.open_space(space_of(object_bytes)), "opening a space");
  for (uint8_t go = 0; read_all(STDIN_FILENO, {&go, 1});) {
    double seconds = seconds_of([&] {
      auto hit = must(
          connection.lookup({.in = space, .what = client::prefix::of_digests(chain), .lease = true}), "looking up");
      if (hit.found_chunks != objects)
        give_up("a stored chunk was not found");
      for (uint32_t first = 0; first < objects; first += depth)
        must(connection.load_under_lease(hit.held, {.first = first, .count = depth}, into), "loading");
    });
    std::printf("%f\n", static_cast<double>(objects * object_bytes) / 1e9 / seconds);
    std::fflush(stdout);
  }
  return 0;
}

} // namespace

} // namespace terrace::bench

int main(int count, char** words) {
  if (count != 5)
    terrace::bench::give_up("expected SOCKET OBJECT_BYTES OBJECTS DESCRIPTOR");
  return terrace::bench::run(words[1], std::strtoull(words[2], nullptr, 10),
                             static_cast<uint32_t>(std::strtoul(words[3], nullptr, 10)), std::atoi(words[4]));
}
