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
  require(totals.has_value());
  return totals->bytes;
}

template <class T>
const T* read(std::span<const uint8_t> body) {
  auto table = parse<T>(body);
  require(table || !table.error().text.empty());
  return table ? *table : nullptr;
}

template <class Request, class Answer>
void read_both(const frame& got, kind request) {
  if (got.kind == request)
    read<Request>(got.body);
  else
    read<Answer>(got.body);
}

void read_frame(const frame& got) {
  auto request =
      is_request(got.kind) || got.kind == kind::error
          ? got.kind
          : static_cast<kind>(static_cast<uint16_t>(got.kind) & static_cast<uint16_t>(~answer_bit));
  switch (request) {
    case kind::hello: return read_both<wire::Hello, wire::HelloAnswer>(got, request);
    case kind::open_space: return read_both<wire::OpenSpace, wire::OpenSpaceAnswer>(got, request);
    case kind::register_region:
      return read_both<wire::RegisterRegion, wire::RegisterRegionAnswer>(got, request);
    case kind::unregister_region:
      return read_both<wire::UnregisterRegion, wire::UnregisterRegionAnswer>(got, request);
    case kind::map_segment: return read_both<wire::MapSegment, wire::MapSegmentAnswer>(got, request);
    case kind::lookup:
      if (got.kind != request)
        read<wire::LookupAnswer>(got.body);
      else if (auto* table = read<wire::Lookup>(got.body))
        sum = touch(table->prefix());
      return;
    case kind::read_lease: return read_both<wire::ReadLease, wire::ReadLeaseAnswer>(got, request);
    case kind::load:
      if (got.kind != request)
        read<wire::LoadAnswer>(got.body);
      else if (auto* table = read<wire::Load>(got.body))
        sum = touch(table->prefix()) + touch(*table->runs());
      return;
    case kind::store:
      if (got.kind != request)
        read<wire::StoreAnswer>(got.body);
      else if (auto* table = read<wire::Store>(got.body))
        sum = touch(table->prefix()) + touch(*table->runs());
      return;
    case kind::reserve: return read_both<wire::Reserve, wire::ReserveAnswer>(got, request);
    case kind::commit: return read_both<wire::Commit, wire::CommitAnswer>(got, request);
    case kind::abort: return read_both<wire::Abort, wire::AbortAnswer>(got, request);
    case kind::release: return read_both<wire::Release, wire::ReleaseAnswer>(got, request);
    case kind::cancel: return read_both<wire::Cancel, wire::CancelAnswer>(got, request);
    case kind::clear: return read_both<wire::Clear, wire::ClearAnswer>(got, request);
    case kind::await_lookup: return read_both<wire::AwaitLookup, wire::AwaitLookupAnswer>(got, request);
    case kind::end_inference: return read_both<wire::EndInference, wire::EndInferenceAnswer>(got, request);
    case kind::policies: return read_both<wire::Policies, wire::PoliciesAnswer>(got, request);
    case kind::set_policy: return read_both<wire::SetPolicy, wire::SetPolicyAnswer>(got, request);
    case kind::status: return read_both<wire::Status, wire::StatusAnswer>(got, request);
    case kind::error: read<wire::Error>(got.body); return;
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
