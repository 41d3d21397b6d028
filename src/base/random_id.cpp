#include "base/random_id.hpp"

#include <sys/random.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

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

result<void> probe_random() {
  unsigned char byte = 0;
  if (::getrandom(&byte, sizeof byte, 0) == static_cast<ssize_t>(sizeof byte))
    return {};
  return fail(errc::unsupported, std::string("there are no random numbers: getrandom failed with ") +
                                     std::strerror(errno) +
                                     "; in a container, use a seccomp profile that allows getrandom");
}

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
