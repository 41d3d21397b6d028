// Copies: one, a plane, a volume, and batches of both whose members are done in any order.
#include "driver/machine.hpp"

#include <algorithm>
#include <cstring>
#include <thread>

namespace terrace::cuda {

namespace {

struct piece {
  uint64_t destination = 0;
  uint64_t source = 0;
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  size_t bytes = 0;
};

/// The checked pieces of one call.
class copy_list {
 public:
  copy_list(sim::machine& m, const char* name) : m_(m), name_(name) {}

  bool add(uint64_t destination, uint64_t source, uint64_t bytes) {
    if (bytes == 0)
      return true;
    auto to = m_.find(destination, bytes, true, name_);
    auto from = to ? m_.find(source, bytes, false, name_) : nullptr;
    if (!from)
      return false;
    pieces_.push_back({destination, source, to->data + (destination - to->base),
                       from->data + (source - from->base), bytes});
    reads_ = reads_ || to->kind == sim::range::registered;
    for (auto& one : {to, from})
      if (std::find(pins_.begin(), pins_.end(), one) == pins_.end())
        pins_.push_back(one);
    return true;
  }

  bool add(uint64_t destination, uint64_t destination_pitch, uint64_t source, uint64_t source_pitch,
           uint64_t width, uint64_t height) {
    bool fits = true;
    for (uint64_t row = 0; row < height && fits; ++row)
      fits = add(destination + row * destination_pitch, source + row * source_pitch, width);
    return fits;
  }

  /// True if the members may be done in any order: no place is written twice, or written and read.
  bool independent() const {
    struct span {
      uint64_t begin, end;
      bool written;
    };
    std::vector<span> spans;
    for (const auto& one : pieces_) {
      spans.push_back({one.destination, one.destination + one.bytes, true});
      spans.push_back({one.source, one.source + one.bytes, false});
    }
    std::sort(spans.begin(), spans.end(), [](auto& a, auto& b) { return a.begin < b.begin; });
    uint64_t written = 0, read = 0;
    for (const auto& one : spans) {
      if (one.begin < written || (one.written && one.begin < read))
        return false;
      auto& end = one.written ? written : read;
      end = std::max(end, one.end);
    }
    return true;
  }

  status push(const std::shared_ptr<sim::stream>& stream, bool any_order) {
    if (!independent())
      m_.violation(std::string(name_) + ": members that depend on each other");
    if (any_order)
      std::shuffle(pieces_.begin(), pieces_.end(), m_.random);
    sim::operation copy;
    copy.copies = true;
    copy.reads = reads_;
    copy.pins = std::move(pins_);
    copy.run = [pieces = std::move(pieces_), salt = m_.random()]() mutable {
      for (const auto& one : pieces) {
        std::memmove(one.to, one.from, one.bytes);
        if ((salt = salt * 6364136223846793005u + 1) >> 62 == 0) // lets other streams in between
          std::this_thread::yield();
      }
      return status::success;
    };
    m_.push(stream, std::move(copy));
    return status::success;
  }

 private:
  sim::machine& m_;
  const char* name_;
  std::vector<piece> pieces_;
  bool reads_ = false; ///< some write to host memory
  std::vector<std::shared_ptr<sim::range>> pins_;
};

uint64_t address_of(memory_type type, const void* host, device_pointer device) {
  return type == memory_type::host ? reinterpret_cast<uint64_t>(host) : device;
}

bool is_order(source_order order) { return order >= source_order::stream && order <= source_order::any; }

} // namespace

SIM_EXPORT status cuMemcpyAsync(device_pointer destination, device_pointer source, size_t bytes,
                                stream_handle stream) {
  SIM_ENTER("cuMemcpyAsync", context);
  auto found = m.find(stream);
  if (!found)
    return status::invalid_handle;
  copy_list list(m, "cuMemcpyAsync");
  return list.add(destination, source, bytes) ? list.push(found, false) : status::invalid_value;
}

SIM_EXPORT status cuMemcpy2DAsync_v2(const copy_2d* copy, stream_handle stream) {
  SIM_ENTER("cuMemcpy2DAsync", context);
  auto found = m.find(stream);
  if (!found)
    return status::invalid_handle;
  if (copy->source_type == memory_type::array || copy->destination_type == memory_type::array ||
      copy->source_pitch < copy->width || copy->destination_pitch < copy->width)
    return status::invalid_value;
  auto source = address_of(copy->source_type, copy->source_host, copy->source) +
                copy->source_y * copy->source_pitch + copy->source_x;
  auto destination = address_of(copy->destination_type, copy->destination_host, copy->destination) +
                     copy->destination_y * copy->destination_pitch + copy->destination_x;
  copy_list list(m, "cuMemcpy2DAsync");
  bool fits =
      list.add(destination, copy->destination_pitch, source, copy->source_pitch, copy->width, copy->height);
  return fits ? list.push(found, true) : status::invalid_value;
}

SIM_EXPORT status cuMemcpy3DAsync_v2(const copy_3d* copy, stream_handle stream) {
  SIM_ENTER("cuMemcpy3DAsync", context);
  auto found = m.find(stream);
  if (!found)
    return status::invalid_handle;
  if (copy->source_type == memory_type::array || copy->destination_type == memory_type::array ||
      copy->reserved_0 || copy->reserved_1 || copy->source_pitch < copy->width ||
      copy->destination_pitch < copy->width ||
      (copy->depth > 1 && (copy->source_height < copy->height || copy->destination_height < copy->height)))
    return status::invalid_value;
  copy_list list(m, "cuMemcpy3DAsync");
  for (size_t layer = 0; layer < copy->depth; ++layer) {
    auto source = address_of(copy->source_type, copy->source_host, copy->source) +
                  ((copy->source_z + layer) * copy->source_height + copy->source_y) * copy->source_pitch +
                  copy->source_x;
    auto destination = address_of(copy->destination_type, copy->destination_host, copy->destination) +
                       ((copy->destination_z + layer) * copy->destination_height + copy->destination_y) *
                           copy->destination_pitch +
                       copy->destination_x;
    if (!list.add(destination, copy->destination_pitch, source, copy->source_pitch, copy->width,
                  copy->height))
      return status::invalid_value;
  }
  return list.push(found, true);
}

SIM_EXPORT status cuMemcpyBatchAsync_v2(device_pointer* destinations, device_pointer* sources, size_t* bytes,
                                        size_t count, copy_attributes* attributes, size_t* attribute_begins,
                                        size_t attribute_count, stream_handle stream) {
  SIM_ENTER("cuMemcpyBatchAsync", context);
  auto found = m.find(stream);
  if (!found)
    return status::invalid_handle;
  if (count == 0 || attribute_count == 0 || attribute_count > count || attribute_begins[0] != 0)
    return status::invalid_value;
  for (size_t i = 0; i < attribute_count; ++i)
    if (!is_order(attributes[i].order) || attribute_begins[i] >= count ||
        (i > 0 && attribute_begins[i] <= attribute_begins[i - 1]))
      return status::invalid_value;
  copy_list list(m, "cuMemcpyBatchAsync");
  for (size_t i = 0; i < count; ++i)
    if (bytes[i] == 0 || !list.add(destinations[i], sources[i], bytes[i]))
      return status::invalid_value;
  return list.push(found, true);
}

SIM_EXPORT status cuMemcpy3DBatchAsync_v2(size_t count, batch_copy* copies, unsigned long long flags,
                                          stream_handle stream) {
  SIM_ENTER("cuMemcpy3DBatchAsync", context);
  auto found = m.find(stream);
  if (!found)
    return status::invalid_handle;
  if (count == 0 || flags != 0)
    return status::invalid_value;
  copy_list list(m, "cuMemcpy3DBatchAsync");
  for (size_t i = 0; i < count; ++i) {
    const auto& one = copies[i];
    auto row = [&](const batch_operand& side) {
      return side.pointer.row_bytes ? side.pointer.row_bytes : one.width;
    };
    auto layer = [&](const batch_operand& side) {
      return side.pointer.layer_rows ? side.pointer.layer_rows : one.height;
    };
    if (one.source.type != operand_type::pointer || one.destination.type != operand_type::pointer ||
        !is_order(one.order) || one.width == 0 || one.height == 0 || one.depth == 0 ||
        row(one.source) < one.width || row(one.destination) < one.width || layer(one.source) < one.height ||
        layer(one.destination) < one.height)
      return status::invalid_value;
    for (size_t z = 0; z < one.depth; ++z)
      if (!list.add(one.destination.pointer.address + z * layer(one.destination) * row(one.destination),
                    row(one.destination),
                    one.source.pointer.address + z * layer(one.source) * row(one.source), row(one.source),
                    one.width, one.height))
        return status::invalid_value;
  }
  return list.push(found, true);
}

} // namespace terrace::cuda
