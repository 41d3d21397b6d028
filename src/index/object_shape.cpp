#include "index/object_shape.hpp"

#include <algorithm>
#include <utility>

namespace terrace {

namespace {

using text = std::string;

tl::unexpected<error> wrong(const text& field, const text& came, const text& expected) {
  return fail(errc::bad_request, "tensor: " + field + " is " + came + ": expected " + expected);
}

constexpr std::pair<std::string_view, uint32_t> dtypes[] = {
    {"float64", 64},         {"float32", 32},        {"float16", 16},    {"bfloat16", 16}, {"float8_e4m3", 8},
    {"float8_e4m3fn", 8},    {"fp8_e4m3", 8},        {"float8_e5m2", 8}, {"fp8_e5m2", 8},  {"fp8", 8},
    {"int64", 64},           {"int32", 32},          {"int8", 8},        {"uint8", 8},     {"int4", 4},
    {"float4_e2m1fn_x2", 8}, // two per byte
    {"float8_e4m3fnuz", 8},  {"float8_e5m2fnuz", 8},
};

} // namespace

std::string_view to_string(tensor_format format) {
  switch (format) {
    case tensor_format::binary: return "BINARY";
    case tensor_format::kv_2ltd: return "KV_2LTD";
    case tensor_format::kv_t2d: return "KV_T2D";
    case tensor_format::kv_2td: return "KV_2TD";
    case tensor_format::kv_mla: return "KV_MLA";
  }
  return "unknown";
}

std::optional<uint32_t> bits_of_dtype(std::string_view dtype) {
  auto known = std::find_if(std::begin(dtypes), std::end(dtypes), [&](auto& d) { return d.first == dtype; });
  return known == std::end(dtypes) ? std::nullopt : std::optional(known->second);
}

result<void> tensor_shape::validate() const {
  if (format > tensor_format::kv_mla)
    return wrong("format", std::to_string(static_cast<int>(format)), "0 (BINARY) to 4 (KV_MLA)");
  if (!bits_of_dtype(dtype)) {
    text known;
    for (auto& [name, bits] : dtypes)
      known.append(known.empty() ? "" : ", ").append(name);
    return wrong("dtype", "'" + dtype + "'", "one of " + known);
  }
  bool single = format == tensor_format::binary || format == tensor_format::kv_mla;
  if (kv_size == 0 || kv_size > (single ? 1 : 2))
    return wrong("kv_size", std::to_string(kv_size), single ? "1 for " + text(to_string(format)) : "1 or 2");
  if (layers == 0 || layers > layers_max)
    return wrong("layers", std::to_string(layers), "1 to " + std::to_string(layers_max));
  if (hidden == 0 || hidden > hidden_max)
    return wrong("hidden", std::to_string(hidden), "1 to " + std::to_string(hidden_max));
  if (first_layer > layers_max - layers)
    return wrong("first_layer", std::to_string(first_layer),
                 "at most " + std::to_string(layers_max - layers) + " with " + std::to_string(layers) +
                     " layers");
  return {};
}

uint64_t tensor_shape::elements(uint32_t tokens) const {
  uint64_t product = 1; // below 2^(1 + 12 + 16 + 24) within the bounds
  for (uint64_t dimension : dimensions(tokens))
    product *= dimension;
  return product;
}

std::vector<uint64_t> tensor_shape::dimensions(uint32_t tokens) const {
  switch (format) {
    case tensor_format::binary: return {layers, hidden};
    case tensor_format::kv_2ltd: return {kv_size, layers, tokens, hidden};
    case tensor_format::kv_t2d: return {layers, tokens, kv_size, hidden};
    case tensor_format::kv_2td: return {layers, kv_size, tokens, hidden};
    case tensor_format::kv_mla: return {layers, tokens, hidden};
  }
  return {};
}

result<object_shape> object_shape::make(std::vector<tensor_shape> tensors, uint32_t tokens) {
  if (tensors.empty() || tensors.size() > tensors_max)
    return wrong("the number of them in an object", std::to_string(tensors.size()),
                 "1 to " + std::to_string(tensors_max));
  object_shape made;
  made.offsets_.push_back(0);
  for (const tensor_shape& tensor : tensors) {
    if (auto valid = tensor.validate(); !valid)
      return tl::unexpected(valid.error());
    uint64_t bits = tensor.bits(tokens);
    if (bits % 8 != 0)
      return wrong("its size", std::to_string(bits) + " bits", "whole bytes");
    made.offsets_.push_back(made.offsets_.back() + bits / 8);
  }
  made.tensors_ = std::move(tensors);
  return made;
}

result<std::vector<std::vector<tensor_shape>>> divide_layers(std::span<const tensor_shape> tensors,
                                                             uint32_t groups) {
  std::vector<std::vector<tensor_shape>> divided(groups);
  for (const tensor_shape& whole : tensors) {
    if (groups == 0 || whole.layers < groups)
      return wrong("layers", std::to_string(whole.layers),
                   "at least as many as layer groups, of which there are " + std::to_string(groups));
    for (uint64_t group = 0; group < groups; ++group) {
      auto begin = static_cast<uint32_t>(group * whole.layers / groups);
      auto end = static_cast<uint32_t>((group + 1) * whole.layers / groups);
      tensor_shape part = whole;
      part.first_layer += begin;
      part.layers = end - begin;
      divided[group].push_back(std::move(part));
    }
  }
  return divided;
}

} // namespace terrace
