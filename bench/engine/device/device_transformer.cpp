#include "bench/engine/device/device_transformer.hpp"

#include "bench/engine/device/device_kv.hpp"
#include "bench/harness.hpp"

#include <algorithm>
#include <numeric>

namespace terrace::bench {

namespace {

constexpr unsigned threads_of_block = 128;
constexpr uint64_t grid_max = 1 << 16;

/// Places in one allocation, one after the other. Without memory it only adds up.
class places {
 public:
  explicit places(cuda::device_pointer begin = 0) : next_(begin), begin_(begin) {}
  template <class T>
  T* of(size_t count) {
    auto place = next_;
    next_ += (count * sizeof(T) + 255) / 256 * 256;
    return reinterpret_cast<T*>(place);
  }
  uint64_t bytes() const { return next_ - begin_; }

 private:
  cuda::device_pointer next_, begin_;
};

template <class T>
cuda::device_pointer address_of(const T* place) {
  return reinterpret_cast<cuda::device_pointer>(place);
}

} // namespace

// ---- the program ----

device_program::device_program(std::shared_ptr<device_link> link, std::span<const std::byte> code)
    : link_(std::move(link)) {
  const auto& context = link_->context();
  cuda::module_handle module = nullptr;
  must(context->call("cuModuleLoadData", context->api().ModuleLoadData, &module,
                     static_cast<const void*>(code.data())),
       "loading kernels");
  module_ = {context, module};
  for (const char* name : {
#define TERRACE_ENGINE_NAME(step) step##_step::name,
           TERRACE_ENGINE_STEPS(TERRACE_ENGINE_NAME)
#undef TERRACE_ENGINE_NAME
       })
    must(context->call("cuModuleGetFunction", context->api().ModuleGetFunction, &functions_[name], module,
                       name),
         name);
}

void device_program::launch(std::string_view name, uint64_t outputs, void** parameters) {
  const auto& context = link_->context();
  const auto blocks =
      static_cast<unsigned>(std::min(grid_max, (outputs + threads_of_block - 1) / threads_of_block));
  must(context->call(name, context->api().LaunchKernel, functions_.at(name), blocks, 1U, 1U, threads_of_block,
                     1U, 1U, 0U, link_->stream().get(), parameters, static_cast<void**>(nullptr)),
       "launching a kernel");
}

// ---- the model ----

device_transformer::device_transformer(std::shared_ptr<const cuda::context> on, std::string uuid,
                                       std::span<const std::byte> code, const model_shape& shape)
    : link_(std::make_shared<device_link>(std::move(on))), uuid_(std::move(uuid)), shape_(shape),
      program_(link_, code) {
  upload(model_weights(shape));
}

std::unique_ptr<paged_kv> device_transformer::make_kv(size_t blocks) {
  return std::make_unique<device_kv>(link_, uuid_, shape_, blocks);
}

void device_transformer::upload(const model_weights& weights) {
  // First to know how much there is, then to write it.
  auto lay_out = [&](places at, bool writes) {
    auto put = [&](const std::vector<float>& from) {
      auto* place = at.of<float>(from.size());
      if (writes)
        link_->write(address_of(place), std::as_bytes(std::span(from)));
      return place;
    };
    embedding_ = put(weights.embedding);
    head_ = put(weights.head);
    final_norm_ = put(weights.final_norm);
    cosine_ = put(weights.cosine);
    sine_ = put(weights.sine);
    layers_.clear();
    for (const auto& l : weights.layers)
      layers_.push_back({.attention_norm = put(l.attention_norm),
                         .qkv = put(l.qkv),
                         .output = put(l.output),
                         .inner_norm = put(l.inner_norm),
                         .gate = put(l.gate),
                         .up = put(l.up),
                         .down = put(l.down)});
    return at.bytes();
  };
  weights_ = link_->allocate(lay_out(places(), false));
  lay_out(places(weights_.get().address), true);
}

void device_transformer::make_room(size_t rows, size_t blocks) {
  if (rows <= rows_max_ && blocks <= blocks_max_)
    return;
  rows_max_ = std::max(rows, rows_max_);
  blocks_max_ = std::max(blocks, blocks_max_);
  auto lay_out = [&](places at) {
    const size_t hidden = shape_.hidden();
    at_ = {.hidden = at.of<float>(rows_max_ * hidden),
           .normed = at.of<float>(rows_max_ * hidden),
           .qkv = at.of<float>(rows_max_ * (hidden + 2 * shape_.kv_hidden())),
           .mixed = at.of<float>(rows_max_ * hidden),
           .gate = at.of<float>(rows_max_ * shape_.inner),
           .up = at.of<float>(rows_max_ * shape_.inner),
           .logits = at.of<float>(rows_max_ * shape_.vocabulary),
           .rows = at.of<device_row>(rows_max_),
           .tables = at.of<uint32_t>(blocks_max_),
           .every = at.of<uint32_t>(rows_max_),
           .wanted = at.of<uint32_t>(rows_max_)};
    return at.bytes();
  };
  room_.reset();
  room_ = link_->allocate(lay_out(places()));
  lay_out(places(room_.get().address));
}

void device_transformer::send(std::span<const row> rows) {
  std::vector<device_row> sent;
  std::vector<uint32_t> tables, every(rows.size()), wanted;
  std::iota(every.begin(), every.end(), 0);
  for (size_t r = 0; r < rows.size(); ++r) {
    // Rows of a request stand together and have the same table.
    if (r == 0 || rows[r].blocks.data() != rows[r - 1].blocks.data())
      tables.insert(tables.end(), rows[r].blocks.begin(), rows[r].blocks.end());
    sent.push_back({.token = rows[r].token,
                    .position = rows[r].position,
                    .table = static_cast<uint32_t>(tables.size() - rows[r].blocks.size())});
    if (rows[r].wants_logits)
      wanted.push_back(static_cast<uint32_t>(r));
  }
  make_room(rows.size(), tables.size());
  auto write = [&](auto* to, const auto& from) {
    link_->write(address_of(to), std::as_bytes(std::span(from)));
  };
  write(at_.rows, sent);
  write(at_.tables, tables);
  write(at_.every, every);
  write(at_.wanted, wanted);
  count_ = rows.size();
  wanted_ = wanted.size();
  table_entries_ = tables.size();
}

std::span<const float> device_transformer::compute(std::span<const row> rows, paged_kv& kv) {
  const size_t hidden = shape_.hidden();
  send(rows);
  program_.launch(embed_step{.hidden = at_.hidden,
                             .embedding = embedding_,
                             .rows = at_.rows,
                             .count = count_,
                             .width = hidden,
                             .vocabulary = shape_.vocabulary});
  device_kv_view view{.blocks = reinterpret_cast<float*>(kv.address()),
                      .tables = at_.tables,
                      .floats = kv.bytes() / sizeof(float),
                      .block_floats = shape_.block_floats(),
                      .layer_offset = 0,
                      .table_entries = table_entries_};
  for (size_t i = 0; i < layers_.size(); ++i) {
    view.layer_offset = i * layer_floats(shape_.kv_heads);
    attend(i, view);
    feed_forward(layers_[i]);
  }
  normalize(final_norm_, at_.wanted, wanted_);
  multiply(at_.logits, at_.normed, head_, wanted_, hidden, shape_.vocabulary);
  must(link_->stream().synchronize(), "computing");
  logits_.resize(wanted_ * shape_.vocabulary);
  link_->read(std::as_writable_bytes(std::span(logits_)), address_of(at_.logits));
  return logits_;
}

void device_transformer::attend(size_t number, const device_kv_view& kv) {
  const layer& with = layers_[number];
  const size_t hidden = shape_.hidden();
  normalize(with.attention_norm, at_.every, count_);
  multiply(at_.qkv, at_.normed, with.qkv, count_, hidden, hidden + 2 * shape_.kv_hidden());
  program_.launch(place_step{.qkv = at_.qkv,
                             .rows = at_.rows,
                             .cosine = cosine_,
                             .sine = sine_,
                             .kv = kv,
                             .count = count_,
                             .kv_heads = shape_.kv_heads,
                             .positions = shape_.positions});
  program_.launch(attend_step{.out = at_.normed,
                              .qkv = at_.qkv,
                              .rows = at_.rows,
                              .kv = kv,
                              .count = count_,
                              .kv_heads = shape_.kv_heads});
  multiply(at_.mixed, at_.normed, with.output, count_, hidden, hidden);
  program_.launch(add_step{.to = at_.hidden, .from = at_.mixed, .count = count_ * hidden});
}

void device_transformer::feed_forward(const layer& with) {
  const size_t hidden = shape_.hidden();
  normalize(with.inner_norm, at_.every, count_);
  multiply(at_.gate, at_.normed, with.gate, count_, hidden, shape_.inner);
  multiply(at_.up, at_.normed, with.up, count_, hidden, shape_.inner);
  program_.launch(gate_step{.gate = at_.gate, .up = at_.up, .count = count_ * shape_.inner});
  multiply(at_.mixed, at_.gate, with.down, count_, shape_.inner, hidden);
  program_.launch(add_step{.to = at_.hidden, .from = at_.mixed, .count = count_ * hidden});
}

void device_transformer::normalize(const float* weight, const uint32_t* chosen, size_t count) {
  program_.launch(normalize_step{.to = at_.normed,
                                 .from = at_.hidden,
                                 .weight = weight,
                                 .chosen = chosen,
                                 .count = count,
                                 .width = shape_.hidden(),
                                 .from_count = count_});
}

void device_transformer::multiply(float* out, const float* rows, const float* weights, size_t count,
                                  size_t inputs, size_t outputs) {
  program_.launch(multiply_step{
      .out = out, .rows = rows, .weights = weights, .count = count, .inputs = inputs, .columns = outputs});
}

} // namespace terrace::bench
