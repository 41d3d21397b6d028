// The limits of bench/python: the rates of libterrace with the same daemon, in turns with the measured
// client.
//
//   terrace_beside SOCKET OBJECT_BYTES OBJECTS               looks the chain up
//   terrace_beside SOCKET OBJECT_BYTES OBJECTS DESCRIPTOR    loads it under a lease into that memory
//
// Standard input: 32 bytes for each of the chain's digests, then a byte for each pass. Each pass ends with a
// line: the median of its lookups in us, or its GB/s. The descriptor's memory has room for the objects of one
// call. It is shared, because the rate of a copy depends on where the pages lie: on a machine without large
// pages it differs by a tenth from process to process.
#include "bench/harness.hpp"
#include "bench/sockets.hpp"
#include "bench/statistics.hpp"
#include "bench/workload.hpp"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

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

struct subject {
  client::connection daemon;
  client::space space;
  std::vector<digest> chain;

  client::lookup_result look_up(bool lease) {
    auto hit = must(daemon.lookup({.in = space, .what = client::prefix::of_digests(chain), .lease = lease}),
                    "looking up");
    if (hit.found_chunks != chain.size())
      give_up("a stored chunk was not found");
    return hit;
  }
};

double lookups(subject& of) {
  constexpr int warm_up = 500, measured = 3000;
  microseconds_each(warm_up, [&] { of.look_up(false); });
  return median(microseconds_each(measured, [&] { of.look_up(false); }));
}

double loads(subject& of, const std::vector<std::span<uint8_t>>& into) {
  auto objects = static_cast<uint32_t>(of.chain.size()), depth = static_cast<uint32_t>(into.size());
  double seconds = seconds_of([&] {
    auto hit = of.look_up(true);
    for (uint32_t first = 0; first < objects; first += depth)
      must(of.daemon.load_under_lease(hit.held, {.first = first, .count = depth}, into), "loading");
  });
  return static_cast<double>(objects * into.front().size()) / 1e9 / seconds;
}

int run(const std::string& socket, uint64_t object_bytes, size_t objects, std::optional<int> memory) {
  auto chain = digests_from(STDIN_FILENO, objects);
  std::vector<std::span<uint8_t>> into;
  for (auto left = memory ? mapped(*memory) : std::span<uint8_t>(); left.size() >= object_bytes;
       left = left.subspan(object_bytes))
    into.push_back(left.first(object_bytes));
  if (memory && (into.empty() || objects % into.size() != 0))
    give_up("expected memory for a part of the objects that divides their number");

  auto connection = connect(socket);
  auto space = must(connection.open_space(space_of(object_bytes)), "opening a space");
  subject of{std::move(connection), space, std::move(chain)};
  for (uint8_t go = 0; read_all(STDIN_FILENO, {&go, 1});) {
    std::printf("%f\n", memory ? loads(of, into) : lookups(of));
    std::fflush(stdout);
  }
  return 0;
}

} // namespace

} // namespace terrace::bench

int main(int count, char** words) {
  if (count != 4 && count != 5)
    terrace::bench::give_up("expected SOCKET OBJECT_BYTES OBJECTS [DESCRIPTOR]");
  return terrace::bench::run(words[1], std::strtoull(words[2], nullptr, 10),
                             std::strtoul(words[3], nullptr, 10),
                             count == 5 ? std::optional(std::atoi(words[4])) : std::nullopt);
}
