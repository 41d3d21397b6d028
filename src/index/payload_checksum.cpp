#include "index/payload_checksum.hpp"

#include <xxhash.h>
#ifdef TERRACE_XXHASH_DISPATCHES // the same values, with the instructions that the processor has (decision 112)
#include <xxh_x86dispatch.h>
#endif

#include <new>

namespace terrace {

uint64_t payload_checksum(std::span<const std::byte> payload) {
  return XXH3_64bits(payload.data(), payload.size());
}

payload_checksummer::payload_checksummer() : state_(XXH3_createState()) {
  if (!state_)
    throw std::bad_alloc(); // like any other failed allocation
  XXH3_64bits_reset(state_.get());
}

void payload_checksummer::update(std::span<const std::byte> piece) {
  XXH3_64bits_update(state_.get(), piece.data(), piece.size());
}

uint64_t payload_checksummer::value() const { return XXH3_64bits_digest(state_.get()); }

void payload_checksummer::restart() { XXH3_64bits_reset(state_.get()); }

void payload_checksummer::release::operator()(XXH3_state_s* state) const { XXH3_freeState(state); }

} // namespace terrace
