// A small transformer with random weights: RMSNorm, rotary positions, grouped-query attention over paged KV,
// SwiGLU. It is small, but complete: wrong KV gives other logits.
#pragma once

#include "bench/engine/model.hpp"

namespace terrace::bench {

/// Runs on one thread, in host memory.
class transformer final : public language_model {
 public:
  /// The weights depend on the shape alone.
  explicit transformer(const model_shape& shape);

  const model_shape& shape() const override { return shape_; }
  std::unique_ptr<paged_kv> make_kv(size_t blocks) override;
  std::span<const float> compute(std::span<const row> rows, paged_kv& kv) override;

 private:
  void attend(const model_weights::layer& with, size_t number, std::span<const row> rows, float* kv);
  void place(std::span<const row> rows, size_t number, float* kv);
  void feed_forward(const model_weights::layer& with, size_t rows);

  model_shape shape_;
  const kernels& kernels_;
  model_weights weights_;
  std::vector<float> hidden_, normed_, qkv_, mixed_, gate_, up_, scores_, last_, logits_;
  std::vector<const float*> blocks_;
};

} // namespace terrace::bench
