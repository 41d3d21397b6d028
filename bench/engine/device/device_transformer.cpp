#include "bench/engine/device/device_transformer.hpp"

#include "bench/engine/device/device_kv.hpp"
#include "bench/harness.hpp"

#include <algorithm>
#include <numeric>

namespace terrace::bench {

namespace {

constexpr unsigned threads_of_block = 128;
constexpr uint64_t grid_max = 1 << 16;

/// Places things in one allocation, one after the other. Without memory it only adds sizes up.
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
                                       std::span<const std::byte> code, const model_shape& shape,
                                       uint64_t scores_bytes_max)
    : link_(std::make_shared<device_link>(std::move(on))), uuid_(std::move(uuid)), shape_(shape),
      program_(link_, code), scores_bytes_max_(scores_bytes_max) {
  upload(model_weights(shape));
}

std::unique_ptr<paged_kv> device_transformer::make_kv(size_t blocks) {
  return std::make_unique<device_kv>(link_, uuid_, shape_, blocks);
}

void device_transformer::upload(const model_weights& weights) {
  // The first call computes the size, the second writes.
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

void device_transformer::make_room() {
  const size_t hidden = shape_.hidden(), rows = count_.rows;
  auto lay_out = [&](places at) {
    const size_t parts = count_.together * shape_.kv_heads * (count_.tokens / part_tokens);
    at_ = {.rows = at.of<device_row>(rows),
           .tables = at.of<uint32_t>(count_.table_entries),
           .every = at.of<uint32_t>(rows),
           .wanted = at.of<uint32_t>(count_.wanted),
           .hidden = at.of<float>(rows * hidden),
           .normed = at.of<float>(rows * hidden),
           .squares = at.of<float>(rows * square_step::parts),
           .qkv = at.of<float>(rows * (hidden + 2 * shape_.kv_hidden())),
           .mixed = at.of<float>(rows * hidden),
           .gate = at.of<float>(rows * shape_.inner),
           .up = at.of<float>(rows * shape_.inner),
           .logits = at.of<float>(count_.wanted * shape_.vocabulary),
           .scores = at.of<group_floats>(parts * part_tokens),
           .taken = at.of<float>(parts * group_size * head_size),
           .shares = at.of<part_share>(parts * group_size)};
    return at.bytes();
  };
  const uint64_t needed = lay_out(places());
  if (!room_ || room_.get().bytes < needed) {
    const uint64_t bytes = room_ ? std::max(needed, room_.get().bytes * 3 / 2) : needed;
    room_.reset();
    room_ = link_->allocate(bytes);
  }
  lay_out(places(room_.get().address));
}

void device_transformer::send(std::span<const row> rows) {
  std::vector<device_row> sent;
  std::vector<uint32_t> tables, every(rows.size()), wanted;
  std::iota(every.begin(), every.end(), 0);
  uint32_t last = 0;
  for (size_t r = 0; r < rows.size(); ++r) {
    // Rows of a request are adjacent and have the same table.
    if (r == 0 || rows[r].blocks.data() != rows[r - 1].blocks.data())
      tables.insert(tables.end(), rows[r].blocks.begin(), rows[r].blocks.end());
    sent.push_back({.token = rows[r].token,
                    .position = rows[r].position,
                    .table = static_cast<uint32_t>(tables.size() - rows[r].blocks.size())});
    if (rows[r].wants_logits)
      wanted.push_back(static_cast<uint32_t>(r));
    last = std::max(last, rows[r].position);
  }
  const size_t tokens = (last / part_tokens + 1) * part_tokens;
  const uint64_t fit = scores_bytes_max_ / (tokens * shape_.kv_heads * sizeof(group_floats));
  count_ = {.rows = rows.size(),
            .wanted = wanted.size(),
            .table_entries = tables.size(),
            .tokens = tokens,
            .together = std::clamp<size_t>(fit, 1, rows.size())};
  make_room();
  // The arrays are contiguous, so one copy sends them.
  packed_.resize(address_of(at_.wanted + wanted.size()) - address_of(at_.rows));
  auto put = [&](auto* to, const auto& from) {
    std::ranges::copy(std::as_bytes(std::span(from)),
                      packed_.data() + (address_of(to) - address_of(at_.rows)));
  };
  put(at_.rows, sent);
  put(at_.tables, tables);
  put(at_.every, every);
  put(at_.wanted, wanted);
  link_->write(address_of(at_.rows), packed_);
}

std::span<const float> device_transformer::compute(std::span<const row> rows, paged_kv& kv) {
  const size_t hidden = shape_.hidden();
  send(rows);
  program_.launch(embed_step{.hidden = at_.hidden,
                             .embedding = embedding_,
                             .rows = at_.rows,
                             .count = count_.rows,
                             .width = hidden,
                             .vocabulary = shape_.vocabulary});
  device_kv_view view{.blocks = reinterpret_cast<float*>(kv.address()),
                      .tables = at_.tables,
                      .floats = kv.bytes() / sizeof(float),
                      .block_floats = shape_.block_floats(),
                      .layer_offset = 0,
                      .table_entries = count_.table_entries};
  for (size_t i = 0; i < layers_.size(); ++i) {
    view.layer_offset = i * layer_floats(shape_.kv_heads);
    attend(i, view);
    feed_forward(layers_[i]);
  }
  normalize(final_norm_, at_.wanted, count_.wanted);
  multiply(at_.logits, at_.normed, head_, count_.wanted, hidden, shape_.vocabulary);
  must(link_->stream().synchronize(), "computing");
  logits_.resize(count_.wanted * shape_.vocabulary);
  link_->read(std::as_writable_bytes(std::span(logits_)), address_of(at_.logits));
  return logits_;
}

void device_transformer::attend(size_t number, const device_kv_view& kv) {
  const layer& with = layers_[number];
  const size_t hidden = shape_.hidden();
  normalize(with.attention_norm, at_.every, count_.rows);
  multiply(at_.qkv, at_.normed, with.qkv, count_.rows, hidden, hidden + 2 * shape_.kv_hidden());
  program_.launch(place_step{.qkv = at_.qkv,
                             .rows = at_.rows,
                             .cosine = cosine_,
                             .sine = sine_,
                             .kv = kv,
                             .count = count_.rows,
                             .kv_heads = shape_.kv_heads,
                             .positions = shape_.positions});
  for (size_t begin = 0; begin < count_.rows; begin += count_.together)
    mix(begin, std::min(count_.together, count_.rows - begin), kv);
  multiply(at_.mixed, at_.normed, with.output, count_.rows, hidden, hidden);
  program_.launch(add_step{.to = at_.hidden, .from = at_.mixed, .count = count_.rows * hidden});
}

void device_transformer::mix(size_t begin, size_t count, const device_kv_view& kv) {
  const device_row* rows = at_.rows + begin;
  program_.launch(score_step{.scores = at_.scores,
                             .qkv = at_.qkv + begin * (shape_.hidden() + 2 * shape_.kv_hidden()),
                             .rows = rows,
                             .kv = kv,
                             .count = count,
                             .kv_heads = shape_.kv_heads,
                             .tokens = count_.tokens});
  program_.launch(mix_step{.taken = at_.taken,
                           .shares = at_.shares,
                           .scores = at_.scores,
                           .rows = rows,
                           .kv = kv,
                           .count = count,
                           .kv_heads = shape_.kv_heads,
                           .tokens = count_.tokens});
  program_.launch(combine_step{.out = at_.normed + begin * shape_.hidden(),
                               .taken = at_.taken,
                               .shares = at_.shares,
                               .rows = rows,
                               .count = count,
                               .kv_heads = shape_.kv_heads,
                               .tokens = count_.tokens});
}

void device_transformer::feed_forward(const layer& with) {
  const size_t hidden = shape_.hidden();
  normalize(with.inner_norm, at_.every, count_.rows);
  multiply(at_.gate, at_.normed, with.gate, count_.rows, hidden, shape_.inner);
  multiply(at_.up, at_.normed, with.up, count_.rows, hidden, shape_.inner);
  program_.launch(gate_step{.gate = at_.gate, .up = at_.up, .count = count_.rows * shape_.inner});
  multiply(at_.mixed, at_.gate, with.down, count_.rows, shape_.inner, hidden);
  program_.launch(add_step{.to = at_.hidden, .from = at_.mixed, .count = count_.rows * hidden});
}

void device_transformer::normalize(const float* weight, const uint32_t* chosen, size_t count) {
  program_.launch(square_step{.sums = at_.squares,
                              .from = at_.hidden,
                              .chosen = chosen,
                              .count = count,
                              .width = shape_.hidden(),
                              .from_count = count_.rows});
  program_.launch(normalize_step{.to = at_.normed,
                                 .from = at_.hidden,
                                 .weight = weight,
                                 .squares = at_.squares,
                                 .chosen = chosen,
                                 .count = count,
                                 .width = shape_.hidden(),
                                 .from_count = count_.rows});
}

void device_transformer::multiply(float* out, const float* rows, const float* weights, size_t count,
                                  size_t inputs, size_t outputs) {
  program_.launch(multiply_step{
      .out = out, .rows = rows, .weights = weights, .count = count, .inputs = inputs, .columns = outputs});
}

} // namespace terrace::bench
