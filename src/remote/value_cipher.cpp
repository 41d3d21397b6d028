#include "remote/value_cipher.hpp"

#include "index/sha256.hpp"

#include <openssl/evp.h>

#include <algorithm>
#include <cassert>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <string>

namespace terrace::remote {

namespace {

void require_cipher(bool succeeded) {
  if (!succeeded)
    std::abort(); // no memory, or a libcrypto without AES
}

const uint8_t* octets(const std::byte* bytes) { return reinterpret_cast<const uint8_t*>(bytes); }
uint8_t* octets(std::byte* bytes) { return reinterpret_cast<uint8_t*>(bytes); }

} // namespace

// ---- one value ----

void value_crossing::release::operator()(evp_cipher_ctx_st* context) const { EVP_CIPHER_CTX_free(context); }

void value_crossing::begin(const evp_cipher_st* algorithm, bool encrypts, const digest& key,
                           std::span<const std::byte, value_header_bytes> header, const value_seal& seal) {
  context_.reset(EVP_CIPHER_CTX_new());
  require_cipher(context_ && EVP_CipherInit_ex2(context_.get(), algorithm, key.bytes.data(),
                                                seal.nonce.data(), encrypts ? 1 : 0, nullptr) == 1);
  const auto told = authenticated_part(header);
  int count = 0;
  require_cipher(EVP_CipherUpdate(context_.get(), nullptr, &count, octets(told.data()),
                                  static_cast<int>(told.size())) == 1);
}

size_t value_crossing::advance(size_t bytes_max) {
  if (done_)
    return 0;
  const size_t bytes = std::min({from_.size(), bytes_max, size_t{INT_MAX / 2}});
  int count = 0;
  if (bytes != 0)
    require_cipher(EVP_CipherUpdate(context_.get(), octets(to_.data()), &count, octets(from_.data()),
                                    static_cast<int>(bytes)) == 1);
  assert(static_cast<size_t>(count) == bytes);
  from_ = from_.subspan(bytes);
  to_ = to_.subspan(bytes);
  if (from_.empty()) {
    finish();
    context_.reset();
    done_ = true;
  }
  return bytes;
}

// ---- a realm ----

void value_cipher::release::operator()(evp_cipher_ctx_st* context) const { EVP_CIPHER_CTX_free(context); }
void value_cipher::release::operator()(evp_cipher_st* algorithm) const { EVP_CIPHER_free(algorithm); }

value_cipher::value_cipher(std::span<const uint8_t> key, const writer_number& writer)
    : writer_(writer), gcm_(EVP_CIPHER_fetch(nullptr, "AES-256-GCM", nullptr)), names_(EVP_CIPHER_CTX_new()) {
  assert(key.size() == key_.size());
  std::copy(key.begin(), key.end(), key_.begin());
  const digest of_names = hkdf_sha256(key, {}, "digests");
  const std::unique_ptr<evp_cipher_st, release> cbc(EVP_CIPHER_fetch(nullptr, "AES-256-CBC", nullptr));
  constexpr std::array<uint8_t, 16> zero{};
  require_cipher(gcm_ && cbc && names_ &&
                 EVP_EncryptInit_ex2(names_.get(), cbc.get(), of_names.bytes.data(), zero.data(), nullptr) ==
                     1 &&
                 EVP_CIPHER_CTX_set_padding(names_.get(), 0) == 1);
}

value_cipher::~value_cipher() = default;

digest value_cipher::name_of(const digest& chunk) {
  constexpr std::array<uint8_t, 16> zero{};
  std::array<uint8_t, sizeof chunk.bytes> chained;
  int count = 0;
  require_cipher(EVP_EncryptInit_ex2(names_.get(), nullptr, nullptr, zero.data(), nullptr) == 1 &&
                 EVP_EncryptUpdate(names_.get(), chained.data(), &count, chunk.bytes.data(),
                                   static_cast<int>(chunk.bytes.size())) == 1 &&
                 static_cast<size_t>(count) == chained.size());
  digest name;
  std::copy(chained.end() - name_bytes, chained.end(), name.bytes.begin());
  return name;
}

const digest& value_cipher::key_of(const remote_identity& object, const writer_number& writer) {
  const std::tuple which{object.space, object.epoch, writer};
  if (auto known = keys_.find(which); known != keys_.end())
    return known->second;
  std::string info = "value";
  info.append(reinterpret_cast<const char*>(object.space.data()), object.space.size());
  info.append(epoch_text(object.epoch));
  if (keys_.size() == keys_max)
    keys_.clear();
  return keys_.emplace(which, hkdf_sha256(key_, writer, info)).first->second;
}

value_seal value_cipher::next_seal() {
  value_seal seal{.writer = writer_};
  ++sealed_;
  static_assert(sizeof sealed_ + 4 == sizeof seal.nonce);
  std::memcpy(seal.nonce.data() + 4, &sealed_, sizeof sealed_);
  return seal;
}

// ---- sealing ----

value_sealing::value_sealing(value_cipher& by, const value_header& header, std::span<const std::byte> payload,
                             std::span<std::byte> into,
                             std::span<std::byte, value_header_bytes> sealed_header)
    : value_crossing(payload, into), header_(header), sealed_header_(sealed_header) {
  assert(payload.size() == into.size() && !header.seal && header.checksum == 0);
  header_.seal = by.next_seal();
  std::array<std::byte, value_header_bytes> block;
  encode(header_, block);
  begin(by.gcm_.get(), true, by.key_of(header_.identity, header_.seal->writer), block, *header_.seal);
}

void value_sealing::finish() {
  int count = 0;
  auto& tag = header_.seal->tag;
  require_cipher(EVP_EncryptFinal_ex(context_.get(), nullptr, &count) == 1 &&
                 EVP_CIPHER_CTX_ctrl(context_.get(), EVP_CTRL_AEAD_GET_TAG, static_cast<int>(tag.size()),
                                     tag.data()) == 1);
  encode(header_, sealed_header_);
}

// ---- opening ----

value_opening::value_opening(value_cipher& by, std::span<const std::byte, value_header_bytes> header,
                             std::span<std::byte> bytes, const expected_part& expected)
    : value_crossing(bytes, bytes) {
  assert(expected.encrypted);
  auto found = verify_header(header, bytes.size(), expected);
  done_ = true;
  if (!found) {
    verified_ = tl::unexpected(found.error());
    return;
  }
  done_ = false;
  verified_ = found->generation;
  seal_ = *found->seal;
  begin(by.gcm_.get(), false, by.key_of(found->identity, seal_.writer), header, seal_);
}

void value_opening::finish() {
  int count = 0;
  std::array<uint8_t, 16> unused;
  require_cipher(EVP_CIPHER_CTX_ctrl(context_.get(), EVP_CTRL_AEAD_SET_TAG,
                                     static_cast<int>(seal_.tag.size()), seal_.tag.data()) == 1);
  if (EVP_DecryptFinal_ex(context_.get(), unused.data(), &count) != 1)
    verified_ = tl::unexpected(
        rejected_value{value_fault::not_authentic,
                       "a value that a daemon of this realm has encrypted was expected; it was changed, or "
                       "encrypted with another key; treated as a miss"});
}

} // namespace terrace::remote
