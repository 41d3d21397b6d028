// Encrypts the values of a realm, and hides the digests in their keys.
//
//   value_cipher cipher(realm.cipher_key(), writer);   // writer: random, of this run
//   value_sealing sealing(cipher, header, payload, into, sealed_header);
//   while (!sealing.done()) sealing.advance(256 << 10);
//   ...
//   value_opening opening(cipher, header, bytes, expected);   // decrypts the bytes where they are
//   while (!opening.done()) opening.advance(256 << 10);
//   if (opening.verified()) ...                               // before that, nobody uses a byte of them
//
// A value is encrypted with AES-256-GCM (NIST SP 800-38D): the bytes behind the header, of which there are as many as before (and fewer
// than the payload has if they were compressed: value_compression.hpp). The tag
// authenticates these and the header, so a value is the one that a daemon of the realm has written for this very object and part.
//
//   key    HKDF-SHA-256 (RFC 5869) of the realm's cipher key. Salt: the writer's random number. Info: space and epoch
//   nonce  4 bytes 0, then 8 bytes: the number of the value among all that the writer has encrypted, from 1 on
//
// A nonce never repeats under a key: two writers have different keys, as long as 256 random bits differ, and one never uses a
// number again. Random nonces of 96 bits would be safe for 2^32 values of all machines together only. A clear changes the epoch, and so
// the key. The writer's number is chosen at start, so a virtual machine must not be continued twice from the same state.
//
// A key in the store has, instead of a chunk's digest, 16 bytes that stand for it: CBC-MAC of its 32 bytes with AES-256 under a key of
// its own. It is a pseudorandom function for messages of one length. Who can compute the digest of a prompt does not find it in the
// store. HMAC would cost a lookup ten times as much.
//
// Pure, one thread.
#pragma once

#include "base/digest.hpp"
#include "remote/value_header.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <tuple>

struct evp_cipher_ctx_st;
struct evp_cipher_st;

namespace terrace::remote {

/// A value as it crosses a cipher.
class value_crossing {
 public:
  bool done() const { return done_; }
  /// Takes at most so many bytes; returns how many. An empty value is done after the first call.
  size_t advance(size_t bytes_max);

 protected:
  struct release {
    void operator()(evp_cipher_ctx_st* context) const;
  };
  value_crossing(std::span<const std::byte> from, std::span<std::byte> to) : from_(from), to_(to) {}
  ~value_crossing() = default;
  value_crossing(const value_crossing&) = delete;
  value_crossing& operator=(const value_crossing&) = delete;
  void begin(const evp_cipher_st* algorithm, bool encrypts, const digest& key,
             std::span<const std::byte, value_header_bytes> header, const value_seal& seal);
  virtual void finish() = 0;

  std::unique_ptr<evp_cipher_ctx_st, release> context_;
  std::span<const std::byte> from_;
  std::span<std::byte> to_;
  bool done_ = false;
};

class value_cipher {
 public:
  using writer_number = std::array<uint8_t, 32>;
  static constexpr uint8_t name_bytes = 16;
  static constexpr size_t keys_max = 256; ///< that are kept

  /// Aborts if libcrypto has no AES-256.
  value_cipher(std::span<const uint8_t> key, const writer_number& writer);
  ~value_cipher();
  value_cipher(const value_cipher&) = delete;
  value_cipher& operator=(const value_cipher&) = delete;

  /// Stands for the chunk in keys and headers: `name_bytes` significant bytes.
  digest name_of(const digest& chunk);

 private:
  friend class value_sealing;
  friend class value_opening;
  struct release {
    void operator()(evp_cipher_ctx_st* context) const;
    void operator()(evp_cipher_st* algorithm) const;
  };

  const digest& key_of(const remote_identity& object, const writer_number& writer);
  value_seal next_seal();

  std::array<uint8_t, 32> key_{};
  writer_number writer_;
  uint64_t sealed_ = 0;
  std::unique_ptr<evp_cipher_st, release> gcm_;
  std::unique_ptr<evp_cipher_ctx_st, release> names_;
  /// Deriving one takes about as long as decrypting 8 KiB.
  std::map<std::tuple<realm_space, uint64_t, writer_number>, digest> keys_;
};

/// Encrypts one value.
class value_sealing final : public value_crossing {
 public:
  /// `header`: without seal and checksum. `into` has the size of `payload`, and may be the same; both, and `sealed_header`, stay until it is done, and
  /// only then is `sealed_header` filled.
  value_sealing(value_cipher& by, const value_header& header, std::span<const std::byte> payload,
                std::span<std::byte> into, std::span<std::byte, value_header_bytes> sealed_header);

 private:
  void finish() override;

  value_header header_;
  std::span<std::byte, value_header_bytes> sealed_header_;
};

/// Decrypts and verifies one value.
class value_opening final : public value_crossing {
 public:
  /// Decrypts `bytes` where they are; they stay until it is done. It is done at once if the header is not the expected one.
  value_opening(value_cipher& by, std::span<const std::byte, value_header_bytes> header,
                std::span<std::byte> bytes, const expected_part& expected);

  /// Returns the value's generation, or why it is not the expected part. Precondition: done.
  const tl::expected<uint64_t, rejected_value>& verified() const { return verified_; }

 private:
  void finish() override;

  tl::expected<uint64_t, rejected_value> verified_;
  value_seal seal_;
};

} // namespace terrace::remote
