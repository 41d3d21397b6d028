// A space with a pool for each of four layers, and memory of a device that holds them layer by layer.
#pragma once

#include "gpu_daemon.hpp"
#include "pool_client.hpp"

#include <numeric>
#include <optional>
#include <stdexcept>

namespace terrace::e2e {

constexpr uint32_t device_layers = 4;
constexpr uint64_t layer_bytes = 32 << 10; ///< bytes of a layer of one chunk

/// 4 layers of 2 x 16 tokens x 512 elements of 2 bytes, each a pool.
inline client::space_spec four_layers() {
  auto spec = test_space();
  spec.dtype = "bfloat16";
  spec.pools = {{.name = "kv",
                 .object_bytes = 0,
                 .tensors = {{.layers = device_layers, .hidden = 512}},
                 .layer_groups = device_layers}};
  return spec;
}

/// A client whose engine has room for `chunks` chunks on a device: all chunks of the first layer, then of the
/// second one, and so on.
class layered_engine {
 public:
  layered_engine(const std::string& socket, device_kind kind, uint32_t chunks,
                 const client::space_spec& spec = four_layers(), const std::string& name = "engine")
      : chunks_(chunks), memory_(kind, uint64_t{chunks} * layers_of(spec) * layer_bytes),
        host_(socket, spec, name), layers_(layers_of(spec)) {
    auto made = host_->register_device_region(memory_.shared(), patiently());
    if (!made)
      throw std::runtime_error(made.error().text);
    region_ = std::move(*made);
  }

  pool_client& host() { return host_; } ///< stores from host memory, and loads into it
  tester& operator*() { return *host_; }
  client::connection* operator->() { return host_.operator->(); }
  engine_memory& memory() { return memory_; }
  client::registered_region& region() { return region_; }
  uint32_t layers() const { return layers_; }

  uint64_t place(uint32_t layer, size_t chunk) const { return (layer * chunks_ + chunk) * layer_bytes; }

  /// Stores all layers of the chain's chunks, from host memory.
  void store(const std::vector<digest>& chain) {
    std::vector<uint8_t> all(layers_);
    std::iota(all.begin(), all.end(), uint8_t{0});
    for (uint32_t first = 0; first < chain.size(); first += 8) {
      auto count = std::min<uint32_t>(8, static_cast<uint32_t>(chain.size()) - first);
      ASSERT_TRUE(host_.store(chain, {first, count}, all));
    }
  }

  /// Returns runs for these layers of the range's chunks, in the order of requests. Valid until the next
  /// call.
  std::span<const client::run> runs(client::chunk_range range, const std::vector<uint8_t>& layers) {
    runs_.clear();
    for (uint32_t chunk = range.first; chunk < range.first + range.count; ++chunk)
      for (uint8_t layer : layers)
        runs_.push_back({.offset = place(layer, chunk), .bytes = layer_bytes});
    return runs_;
  }

  /// Loads all chunks of the chain, in all layers.
  client::load_request load_of(const std::vector<digest>& chain) {
    auto request = (*host_).load_of(chain);
    request.region = &region_;
    all_.resize(layers_);
    std::iota(all_.begin(), all_.end(), uint8_t{0});
    request.runs = runs({0, static_cast<uint32_t>(chain.size())}, all_);
    return request;
  }

  /// Returns the memory's contents of a layer once the chain is loaded.
  std::vector<uint8_t> layer_of(const std::vector<digest>& chain, uint32_t layer) const {
    std::vector<uint8_t> bytes(chain.size() * layer_bytes);
    for (size_t chunk = 0; chunk < chain.size(); ++chunk)
      fill_content(content_of(chain[chunk], layer),
                   std::span(bytes).subspan(chunk * layer_bytes, layer_bytes));
    return bytes;
  }
  /// Returns the contents of all layers, one after the other.
  std::vector<uint8_t> all_layers_of(const std::vector<digest>& chain) const {
    std::vector<uint8_t> all;
    for (uint32_t layer = 0; layer < layers_; ++layer) {
      auto one = layer_of(chain, layer);
      all.insert(all.end(), one.begin(), one.end());
    }
    return all;
  }
  /// Returns whether all bytes of the chain are in the memory, which has been read as `bytes`.
  bool holds(const std::vector<uint8_t>& bytes, const std::vector<digest>& chain) const {
    for (uint32_t layer = 0; layer < layers_; ++layer) {
      auto expected = layer_of(chain, layer);
      if (!std::equal(expected.begin(), expected.end(),
                      bytes.begin() + static_cast<ptrdiff_t>(place(layer, 0))))
        return false;
    }
    return true;
  }

 private:
  static uint32_t layers_of(const client::space_spec& spec) {
    return std::accumulate(spec.pools.begin(), spec.pools.end(), 0U, [](uint32_t sum, const auto& pool) {
      return sum + std::max(pool.layer_groups, 1U);
    });
  }

  uint32_t chunks_;
  engine_memory memory_;
  pool_client host_;
  uint32_t layers_;
  client::registered_region region_;
  std::vector<client::run> runs_;
  std::vector<uint8_t> all_;
};

/// A page of generations of an engine, and its ring.
struct engine_ring {
  engine_ring(layered_engine& of, uint32_t loads)
      : memory(
            client::region::create("generations", client::layer_ring::bytes_for(loads, of.layers())).value()),
        page(of->register_generations(memory, of.memory().shared().device, patiently()).value()),
        ring(client::layer_ring::make(memory, page, {.loads = loads, .layers = of.layers()}).value()) {}

  client::region memory;
  client::registered_region page;
  std::unique_ptr<client::layer_ring> ring;
};

} // namespace terrace::e2e
