// The transformer on a GPU: the same model, with KV, weights and arithmetic in the device's memory.
#pragma once

#include "bench/engine/device/device_memory.hpp"
#include "bench/engine/device/steps.hpp"
#include "bench/engine/model.hpp"

#include <map>
#include <string_view>

namespace terrace::bench {

/// Finds kernels by name. They end with the program; all launches must be over by then.
class device_program {
 public:
  device_program(std::shared_ptr<device_link> link, std::span<const std::byte> code);

  template <class Step>
  void launch(Step step) {
    uint64_t outputs = step.outputs();
    if (outputs == 0)
      return;
    void* parameters[] = {&step, &outputs};
    launch(Step::name, outputs, parameters);
  }

 private:
  struct module_kind {
    using type = cuda::module_handle;
    static cuda::status release(const cuda::functions& api, type handle) { return api.ModuleUnload(handle); }
  };
  void launch(std::string_view name, uint64_t outputs, void** parameters);

  std::shared_ptr<device_link> link_;
  cuda::owned<module_kind> module_;
  std::map<std::string_view, cuda::function_handle> functions_;
};

/// The program ends if the device refuses an operation.
class device_transformer final : public language_model {
 public:
  /// `code`: steps_image(), which must not be empty. `uuid`: that of the context's device. Attention
  /// processes as many rows at once as have their scores in `scores_bytes_max`, at least one; the results do
  /// not depend on it. 64 MiB stay in a large device's cache.
  device_transformer(std::shared_ptr<const cuda::context> on, std::string uuid,
                     std::span<const std::byte> code, const model_shape& shape,
                     uint64_t scores_bytes_max = 64 << 20);

  const model_shape& shape() const override { return shape_; }
  std::unique_ptr<paged_kv> make_kv(size_t blocks) override;
  std::span<const float> compute(std::span<const row> rows, paged_kv& kv) override;

 private:
  struct layer {
    const float *attention_norm, *qkv, *output, *inner_norm, *gate, *up, *down;
  };
  /// The memory that a step works in.
  struct scratch {
    device_row* rows;
    uint32_t *tables, *every, *wanted; ///< the blocks of requests; all rows; the rows that want logits
    float *hidden, *normed, *squares, *qkv, *mixed, *gate, *up, *logits;
    group_floats* scores; ///< scores of the rows that are processed together
    float* taken;
    part_share* shares;
  };
  /// The amounts that a step computes.
  struct counts {
    size_t rows = 0, wanted = 0, table_entries = 0;
    size_t tokens = 0;   ///< most tokens that a row sees, in whole parts
    size_t together = 0; ///< rows whose attention is computed at once
  };
  void upload(const model_weights& weights);
  void make_room();
  void send(std::span<const row> rows);
  void attend(size_t number, const device_kv_view& kv);
  void mix(size_t begin, size_t count, const device_kv_view& kv);
  void feed_forward(const layer& with);
  void normalize(const float* weight, const uint32_t* chosen, size_t count);
  void multiply(float* out, const float* rows, const float* weights, size_t count, size_t inputs,
                size_t outputs);

  std::shared_ptr<device_link> link_;
  std::string uuid_;
  model_shape shape_;
  device_program program_;
  cuda::allocation weights_, room_;
  std::vector<layer> layers_;
  const float *embedding_ = nullptr, *head_ = nullptr, *final_norm_ = nullptr, *cosine_ = nullptr,
              *sine_ = nullptr;
  uint64_t scores_bytes_max_;
  scratch at_{};
  counts count_;
  std::vector<std::byte> packed_; ///< the bytes that a step sends
  std::vector<float> logits_;
};

} // namespace terrace::bench
