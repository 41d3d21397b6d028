#include "base/random_id.hpp"

#include <sys/random.h>

#include <cstdlib>

namespace terrace {

namespace {

template <class T>
void fill(T& bytes) {
  static_assert(sizeof bytes == 16);
  // Up to 256 bytes are never interrupted and never short (getrandom(2)).
  if (::getrandom(&bytes, sizeof bytes, 0) != static_cast<ssize_t>(sizeof bytes))
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

entry_key_salt random_entry_key_salt() {
  entry_key_salt salt;
  fill(salt);
  return salt;
}

} // namespace terrace
