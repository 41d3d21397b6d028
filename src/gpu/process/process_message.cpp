#include "gpu/process/process_message.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace terrace::gpu {

namespace {

struct message_head {
  uint32_t verb = 0;
  uint32_t code = 0;
  uint64_t id = 0;
  uint64_t region = 0;
  uint64_t bytes = 0;
  uint32_t slot = 0;
  uint32_t value = 0;
  uint32_t copies = 0;
  uint32_t text_bytes = 0;
  std::array<std::byte, 64> handle = {};
  uint64_t arena = 0;
  uint64_t offset = 0;
  uint64_t page = 0;
  uint64_t signals = 0;
  uint64_t extents = 0;
};
static_assert(sizeof(message_head) == 152 && sizeof(strided_copy) == 48);
static_assert(std::is_trivially_copyable_v<disk_extent> &&
              disk_reader::extents_max * sizeof(disk_extent) <= 16 << 10);
static_assert(sizeof(message_head) + copies_per_message_max * sizeof(strided_copy) + process_text_max <=
              process_message_bytes_max);

template <class Item>
std::span<const uint8_t> bytes_of(const std::vector<Item>& items) {
  return {reinterpret_cast<const uint8_t*>(items.data()), items.size() * sizeof(Item)};
}

/// Reads the next `count` items of `bytes`, which has that many.
template <class Item>
std::vector<Item> take(std::span<const uint8_t>& bytes, size_t count) {
  std::vector<Item> items(count);
  if (count != 0)
    std::memcpy(items.data(), bytes.data(), count * sizeof(Item));
  bytes = bytes.subspan(count * sizeof(Item));
  return items;
}

} // namespace

std::vector<uint8_t> encode(const process_message& message) {
  message_head head;
  head.verb = static_cast<uint32_t>(message.verb);
  head.code = static_cast<uint32_t>(message.code);
  head.id = message.id;
  head.region = message.region;
  head.bytes = message.bytes;
  head.slot = message.signal.slot;
  head.value = message.signal.value;
  head.copies = static_cast<uint32_t>(message.copies.size());
  head.text_bytes = static_cast<uint32_t>(std::min(message.text.size(), process_text_max));
  head.handle = message.handle;
  head.arena = message.arena;
  head.page = message.page;
  head.signals = message.signals;
  head.offset = message.offset;
  head.extents = message.extents.size();
  std::vector<uint8_t> bytes(sizeof head);
  bytes.reserve(sizeof head + bytes_of(message.copies).size() + bytes_of(message.extents).size() +
                head.text_bytes);
  std::memcpy(bytes.data(), &head, sizeof head);
  for (auto part : {bytes_of(message.copies), bytes_of(message.extents)})
    bytes.insert(bytes.end(), part.begin(), part.end());
  bytes.insert(bytes.end(), message.text.begin(), message.text.begin() + head.text_bytes);
  return bytes;
}

result<process_message> decode_process_message(std::span<const uint8_t> bytes) {
  message_head head;
  if (bytes.size() < sizeof head)
    return fail(errc::bad_request, "a message of " + std::to_string(bytes.size()) + " bytes; expected " +
                                       std::to_string(sizeof head) + " or more");
  std::memcpy(&head, bytes.data(), sizeof head);
  const bool few = head.copies <= copies_per_message_max && head.extents <= disk_reader::extents_max;
  const size_t lists_bytes =
      few ? head.copies * sizeof(strided_copy) + head.extents * sizeof(disk_extent) : 0;
  if (!few || head.verb >= process_verbs || head.code > static_cast<uint32_t>(errc::internal) ||
      head.text_bytes > process_text_max || head.signals > signals_per_message_max ||
      bytes.size() != sizeof head + lists_bytes + head.text_bytes)
    return fail(errc::bad_request, "a message of " + std::to_string(bytes.size()) + " bytes with verb " +
                                       std::to_string(head.verb) + ", code " + std::to_string(head.code) +
                                       ", " + std::to_string(head.copies) + " copies, " +
                                       std::to_string(head.extents) + " extents and a text of " +
                                       std::to_string(head.text_bytes) + " bytes");
  process_message message;
  message.verb = static_cast<process_verb>(head.verb);
  message.code = static_cast<errc>(head.code);
  message.id = head.id;
  message.region = head.region;
  message.bytes = head.bytes;
  message.signal = {head.slot, head.value};
  message.handle = head.handle;
  message.arena = head.arena;
  message.page = head.page;
  message.signals = static_cast<uint32_t>(head.signals);
  message.offset = head.offset;
  auto rest = bytes.subspan(sizeof head);
  message.copies = take<strided_copy>(rest, head.copies);
  message.extents = take<disk_extent>(rest, head.extents);
  message.text.assign(reinterpret_cast<const char*>(rest.data()), rest.size());
  return message;
}

} // namespace terrace::gpu
