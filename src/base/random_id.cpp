#include "base/random_id.hpp"

#include <sys/random.h>

#include <cstdlib>

namespace terrace {

namespace {

void fill(std::array<uint8_t, 16>& bytes) {
  // Up to 256 bytes are never interrupted and never short (getrandom(2)).
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    std::abort();
}

} // namespace

lease_id random_lease_id() {
  lease_id id;
  fill(id.bytes);
  return id;
}

boot_id random_boot_id() {
  boot_id id;
  fill(id.bytes);
  return id;
}

} // namespace terrace
