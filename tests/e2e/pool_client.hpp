// A client of spaces with several pools.
#pragma once

#include "workload.hpp"

#include <cstring>
#include <utility>

namespace terrace::e2e {

/// Returns the content of a chunk's object in one pool. It differs from those in other pools.
inline digest content_of(digest chunk, size_t pool) {
  chunk.bytes[0] = static_cast<uint8_t>(chunk.bytes[0] ^ (pool + 1));
  return chunk;
}

/// A client that stores and loads any pools of a space; each object has a piece of `piece_bytes` of the
/// region.
class pool_client {
 public:
  static constexpr uint64_t piece_bytes = 256 << 10;

  pool_client(const std::string& socket, const client::space_spec& spec, const std::string& name = "pools")
      : inner_(socket, name, 16 * mebibyte, spec) {}

  tester& operator*() { return inner_; }
  client::connection* operator->() { return &*inner_; }
  std::span<const client::open_pool> pools() { return inner_->pools_of(inner_.space()); }

  result<client::store_result> store(const std::vector<digest>& chain, client::chunk_range range,
                                     std::vector<uint8_t> wanted, bool named = true) {
    auto objects = lay_out(chain, range, wanted);
    for (size_t i = 0; i < objects.size(); ++i)
      fill_content(objects[i].first, piece(i, objects[i].second));
    auto request = inner_.store_of(chain, range);
    request.runs = runs_;
    if (named)
      request.pools = wanted;
    return inner_->store(request, patiently());
  }

  /// Loads and compares every delivered byte; returns the number of chunks.
  uint32_t load_and_check(const std::vector<digest>& chain, client::chunk_range range,
                          std::vector<uint8_t> wanted, bool named = true) {
    auto objects = lay_out(chain, range, wanted);
    std::memset(inner_.memory().data(), 0, inner_.memory().size());
    auto request = inner_.load_of(chain, range);
    request.runs = runs_;
    if (named)
      request.pools = wanted;
    auto loaded = inner_->load(request, patiently());
    EXPECT_TRUE(loaded) << loaded.error().text;
    if (!loaded)
      return 0;
    for (size_t i = 0; i < loaded->delivered_chunks * wanted.size(); ++i)
      EXPECT_TRUE(has_content(objects[i].first, piece(i, objects[i].second))) << "object " << i;
    return loaded->delivered_chunks;
  }

  std::span<uint8_t> piece(size_t i, uint64_t bytes) {
    return inner_.memory().bytes().subspan(i * piece_bytes, bytes);
  }

 protected:
  std::span<const client::run> runs() const { return runs_; }

  /// Returns the objects of a request, and one run for each.
  std::vector<std::pair<digest, uint64_t>>
  lay_out(const std::vector<digest>& chain, client::chunk_range range, const std::vector<uint8_t>& wanted) {
    std::vector<std::pair<digest, uint64_t>> objects;
    runs_.clear();
    for (uint32_t c = range.first; c < range.first + range.count; ++c)
      for (uint8_t pool : wanted) {
        uint64_t bytes = pools()[pool].object_bytes;
        runs_.push_back({.offset = objects.size() * piece_bytes, .bytes = bytes});
        objects.emplace_back(content_of(chain[c], pool), bytes);
      }
    return objects;
  }

 private:
  tester inner_;
  std::vector<client::run> runs_;
};

/// 6 layers of 2 x 16 tokens x 512 elements, and one latent layer each: 96 KiB + 24 KiB in each of two
/// groups.
inline client::space_spec layered_space() {
  auto spec = test_space();
  spec.dtype = "bfloat16";
  spec.pools = {{.name = "kv",
                 .object_bytes = 0,
                 .tensors = {{.layers = 6, .hidden = 512},
                             {.format = client::tensor_format::kv_mla,
                              .dtype = "fp8",
                              .kv_size = 1,
                              .layers = 6,
                              .hidden = 512,
                              .first_layer = 6}},
                 .layer_groups = 2}};
  return spec;
}

} // namespace terrace::e2e
