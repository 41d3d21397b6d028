// The names of objects in a remote store.
//
// A realm is what several daemons share: a prefix, and a secret key. Two daemons find each other's objects if both
// are equal and so is every field of the space.
//
//   <prefix>t1/<space>/<epoch>/<pool>.<rank>/{<digest>}          the first part of an object
//   <prefix>t1/<space>/<epoch>/<pool>.<rank>/{<digest>}/p<part>  the others, from 1 on
//   <prefix>t1/epoch/<space>                                   the space's epoch token (epoch_token.hpp)
//   <prefix>t1/epoch/<realm>                                   that of all spaces together
//
//   space   32 hexadecimal digits: the first 16 bytes of HMAC-SHA256(realm key, fingerprint of the space)
//   realm   the same of a text instead of a fingerprint
//   epoch   16 hexadecimal digits: both tokens, combined by exclusive or. Whoever replaces one clears the space, or all
//   pool, rank, part   decimal
//   digest  as many hexadecimal digits as the space's digests have; in braces, so that a cluster keeps all parts at one node
//
// Whoever reads the store cannot tell which model or salt a space belongs to, and whoever guesses a salt cannot
// compute the keys of its space. The digests themselves are not hidden: equal prompts of two spaces show equal digests
// unless the spaces have different seeds.
//
// A realm that encrypts its values (value_cipher.hpp) hides the digests as well, and derives the key of its names: it is another
// realm than the one of the same key and prefix without encryption. Pure.
#pragma once

#include "base/digest.hpp"
#include "base/error.hpp"
#include "index/object_header.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace terrace::remote {

/// Stands for a space where others may read: see above.
using realm_space = std::array<uint8_t, 16>;

/// The object that a key names. All of it is in the header of the value as well.
struct remote_identity {
  realm_space space{};
  uint64_t epoch = 0; ///< the space's token; 0 is never used
  uint16_t pool = 0;
  uint16_t rank = 0;
  digest chunk;
  uint8_t digest_width = digest::max_size; ///< significant bytes of `chunk`: 8 to 32

  friend bool operator==(const remote_identity&, const remote_identity&) = default;
};

/// Whether it may be the prefix of a realm: at most 64 letters, digits, '.', '_', '-' and '/'.
bool is_prefix(std::string_view text);

class realm {
 public:
  static constexpr size_t key_bytes_min = 32;
  static constexpr size_t key_bytes_max = 1024;
  static constexpr size_t prefix_bytes_max = 64;

  /// Errors (`bad_request`): a key that is too short or too long, a prefix with other characters than letters, digits,
  /// '.', '_', '-' and '/'. No error text contains the key.
  static result<realm> make(std::string_view prefix, std::span<const uint8_t> key, bool encrypts = false);

  realm_space space_of(const space_fingerprint& fingerprint) const;
  std::string key_of(const remote_identity& object, uint32_t part = 0) const;
  /// The key of another part of the object whose first part has this one.
  static std::string key_of_part(const std::string& first, uint32_t part) {
    return first + "/p" + std::to_string(part);
  }
  std::string epoch_key_of(const realm_space& space) const;
  std::string epoch_key_of_all() const;
  const std::string& prefix() const { return prefix_; }
  /// That of a `value_cipher`; empty: values are not encrypted.
  std::span<const uint8_t> cipher_key() const { return cipher_key_; }

  /// The names of another realm with the same prefix. Precondition: a key of allowed length.
  realm with_key(std::span<const uint8_t> key) const { return realm(prefix_, key, cipher_key_); }

 private:
  realm(std::string_view prefix, std::span<const uint8_t> key, std::span<const uint8_t> cipher_key)
      : prefix_(prefix), key_(key.begin(), key.end()), cipher_key_(cipher_key.begin(), cipher_key.end()) {}

  std::string prefix_;
  std::vector<uint8_t> key_; ///< of the names
  std::vector<uint8_t> cipher_key_;
};

/// The epoch in the keys of a space. Precondition: neither is 0. The result is not 0 either.
constexpr uint64_t combined_epoch(uint64_t of_space, uint64_t of_all) {
  return of_space == of_all ? of_space : of_space ^ of_all;
}

/// The text of an epoch token, 16 lower-case hexadecimal digits, in keys and as the value of its own key.
std::string epoch_text(uint64_t epoch);
/// Errors (`internal`): not such a text, or 0. Then the token is lost, and a new one clears the space.
result<uint64_t> parse_epoch(std::string_view text);

} // namespace terrace::remote
