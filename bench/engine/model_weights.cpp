#include "bench/engine/model.hpp"

#include <cmath>
#include <random>

namespace terrace::bench {

namespace {

// The numbers are equal with every standard library, because only its engines are specified, not its
// distributions.
std::vector<float> random_floats(std::mt19937& random, size_t count, double deviation) {
  std::vector<float> all(count);
  for (float& x : all)
    x = static_cast<float>((random() / 4294967296.0 - 0.5) * std::sqrt(12.0) * deviation);
  return all;
}

} // namespace

model_weights::model_weights(const model_shape& shape) {
  constexpr size_t half = head_size / 2;
  std::mt19937 random(static_cast<uint32_t>(shape.seed));
  const size_t hidden = shape.hidden();
  auto weights = [&](size_t inputs, size_t outputs) {
    return random_floats(random, inputs * outputs, 1.5 / std::sqrt(static_cast<double>(inputs)));
  };
  embedding = random_floats(random, shape.vocabulary * hidden, 1);
  layers.resize(shape.layers);
  for (layer& l : layers)
    l = {.attention_norm = std::vector<float>(hidden, 1),
         .qkv = weights(hidden, hidden + 2 * shape.kv_hidden()),
         .output = weights(hidden, hidden),
         .inner_norm = std::vector<float>(hidden, 1),
         .gate = weights(hidden, shape.inner),
         .up = weights(hidden, shape.inner),
         .down = weights(shape.inner, hidden)};
  final_norm.assign(hidden, 1);
  head = weights(hidden, shape.vocabulary);
  for (size_t position = 0; position < shape.positions; ++position)
    for (size_t i = 0; i < half; ++i) {
      double angle = static_cast<double>(position) *
                     std::pow(10'000.0, -static_cast<double>(i) / static_cast<double>(half));
      cosine.push_back(static_cast<float>(std::cos(angle)));
      sine.push_back(static_cast<float>(std::sin(angle)));
    }
}

} // namespace terrace::bench
