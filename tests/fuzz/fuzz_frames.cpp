// Whatever bytes a peer sends, in whatever pieces: the decoder yields frames or a stated reason, and `parse` a table
// whose every field can be read, or a stated reason.
//
// The first byte of the input says whose bytes these are and how large the pieces of each receive are; every receive
// may bring descriptors too, as the second byte says.
#include "protocol/frame_decoder.hpp"
#include "protocol/verify.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>

using namespace terrace;
using namespace terrace::protocol;

namespace {

volatile uint64_t sum = 0; // so that no read is optimised away

void require(bool truth) {
  if (!truth)
    std::abort();
}

/// Reads every digest and token, as a lookup would.
uint64_t touch(const wire::Prefix* prefix) {
  uint64_t total = 0;
  if (!prefix)
    return total;
  for (uint32_t i = 0; i < digest_count(*prefix); ++i)
    total += digest_at(*prefix, i).bytes[0];
  if (prefix->tokens())
    for (uint32_t token : *prefix->tokens())
      total += token;
  if (prefix->items())
    for (const auto* item : *prefix->items())
      total += item->identifier()->size();
  return total;
}

uint64_t touch(const run_vector& runs) {
  auto totals = check_runs(runs, region_bytes_max);
  require(totals.has_value() || runs.size() > 16'384);
  return totals ? totals->bytes : 0;
}

/// Verifies the body, and reads what the daemon goes through element by element.
template <class T>
void read(std::span<const uint8_t> body) {
  auto parsed = parse<T>(body);
  require(parsed || !parsed.error().text.empty());
  if (!parsed)
    return;
  const T& table = **parsed;
  if constexpr (requires { touch(table.prefix()); })
    sum = touch(table.prefix());
  if constexpr (requires { touch(*table.runs()); })
    sum = sum + touch(*table.runs());
}

void read_frame(const frame& got) {
  switch (static_cast<uint16_t>(got.kind)) {
#define TERRACE_VERB(NAME, TABLE, NUMBER, ...)                                                               \
  case NUMBER: {                                                                                             \
    return read<wire::TABLE>(got.body);                                                                      \
  }                                                                                                          \
  case NUMBER | answer_bit: {                                                                                \
    return read<wire::TABLE##Answer>(got.body);                                                              \
  }
#include "protocol/verbs.def"
    case static_cast<uint16_t>(kind::error): return read<wire::Error>(got.body);
  }
  std::abort(); // the decoder yields known kinds only
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2)
    return 0;
  size_t piece = (data[0] >> 1) == 0 ? SIZE_MAX : data[0] >> 1;
  frame_decoder decoder({.accepts = data[0] & 1 ? direction::answers : direction::requests,
                         .idle_bytes = 256,
                         .frame_bytes_max = 1 << 20});
  uint8_t descriptors = data[1];
  std::span<const uint8_t> rest(data + 2, size - 2);
  while (!rest.empty()) {
    auto area = decoder.write_area();
    require(!area.empty());
    size_t bytes = std::min({piece, rest.size(), area.size()});
    std::copy_n(rest.begin(), bytes, area.begin());
    rest = rest.subspan(bytes);
    descriptor_list list;
    if (descriptors & 1)
      list.push_back(unique_fd(::open("/dev/null", O_RDONLY | O_CLOEXEC)));
    descriptors = static_cast<uint8_t>(descriptors >> 1);
    auto ok = decoder.commit(bytes, std::move(list), false);
    require(ok || !ok.error().text.empty());
    while (auto got = decoder.next()) {
      require(reinterpret_cast<uintptr_t>(got->body.data()) % frame_alignment == 0);
      read_frame(*got);
    }
    if (!ok)
      break;
  }
  return 0;
}
