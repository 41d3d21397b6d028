#include "remote/realm.hpp"

#include "index/sha256.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

namespace terrace::remote {

namespace {

bool allowed_in_prefix(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
         c == '-' || c == '/';
}

void append_hex(std::string& to, std::span<const uint8_t> bytes) {
  static constexpr char digits[] = "0123456789abcdef";
  const size_t begin = to.size();
  to.resize(begin + 2 * bytes.size());
  char* next = to.data() + begin;
  for (uint8_t byte : bytes) {
    *next++ = digits[byte >> 4];
    *next++ = digits[byte & 15];
  }
}

} // namespace

bool is_prefix(std::string_view text) {
  return text.size() <= realm::prefix_bytes_max && std::all_of(text.begin(), text.end(), allowed_in_prefix);
}

result<realm> realm::make(std::string_view prefix, std::span<const uint8_t> key, bool encrypts) {
  if (key.size() < key_bytes_min || key.size() > key_bytes_max)
    return fail(errc::bad_request, "a realm key of 32 to 1,024 bytes was expected, not of " +
                                       std::to_string(key.size()) +
                                       "; make one with: head -c 32 /dev/urandom > FILE");
  if (!is_prefix(prefix))
    return fail(errc::bad_request,
                "a prefix of at most 64 letters, digits, '.', '_', '-' and '/' was expected; shorten it, or "
                "leave out its other characters");
  if (!encrypts)
    return realm(prefix, key, {});
  return realm(prefix, hkdf_sha256(key, {}, "terrace remote names").bytes,
               hkdf_sha256(key, {}, "terrace remote values").bytes);
}

realm_space realm::space_of(const space_fingerprint& fingerprint) const {
  digest mac = hmac_sha256(key_, fingerprint);
  realm_space space;
  std::memcpy(space.data(), mac.bytes.data(), space.size());
  return space;
}

std::string realm::key_of(const remote_identity& object, uint32_t part) const {
  std::string key;
  key.reserve(prefix_.size() + 192);
  key.append(prefix_).append("t1/");
  append_hex(key, object.space);
  key.append(1, '/').append(epoch_text(object.epoch)).append(1, '/');
  key.append(std::to_string(object.pool)).append(1, '.').append(std::to_string(object.rank)).append("/{");
  append_hex(key, std::span(object.chunk.bytes).first(object.digest_width));
  key.append(1, '}');
  return part == 0 ? key : key_of_part(key, part);
}

std::string realm::epoch_key_of(const realm_space& space) const {
  return prefix_ + "t1/epoch/" + to_hex(space);
}

std::string realm::epoch_key_of_all() const {
  constexpr std::string_view all = "all spaces of the realm";
  digest mac = hmac_sha256(key_, {reinterpret_cast<const uint8_t*>(all.data()), all.size()});
  realm_space name;
  std::memcpy(name.data(), mac.bytes.data(), name.size());
  return epoch_key_of(name);
}

std::string epoch_text(uint64_t epoch) {
  std::array<uint8_t, sizeof epoch> bytes;
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<uint8_t>(epoch >> (8 * (bytes.size() - 1 - i)));
  return to_hex(bytes);
}

result<uint64_t> parse_epoch(std::string_view text) {
  uint64_t epoch = 0;
  auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), epoch, 16);
  if (wrong != std::errc() || epoch == 0 || epoch_text(epoch) != text)
    return fail(errc::internal,
                "an epoch token of 16 lower-case hexadecimal digits, not all 0, was expected; the "
                "space begins anew with another token");
  return epoch;
}

} // namespace terrace::remote
