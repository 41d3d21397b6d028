#include "gpu/process/process_message.hpp"

#include <algorithm>
#include <cstring>

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
};
static_assert(sizeof(message_head) == 144 && sizeof(strided_copy) == 48);
static_assert(sizeof(message_head) + copies_per_message_max * sizeof(strided_copy) + process_text_max <=
              process_message_bytes_max);

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
  size_t copies_bytes = message.copies.size() * sizeof(strided_copy);
  std::vector<uint8_t> bytes(sizeof head + copies_bytes + head.text_bytes);
  std::memcpy(bytes.data(), &head, sizeof head);
  if (copies_bytes != 0)
    std::memcpy(bytes.data() + sizeof head, message.copies.data(), copies_bytes);
  if (head.text_bytes != 0)
    std::memcpy(bytes.data() + sizeof head + copies_bytes, message.text.data(), head.text_bytes);
  return bytes;
}

result<process_message> decode_process_message(std::span<const uint8_t> bytes) {
  message_head head;
  if (bytes.size() < sizeof head)
    return fail(errc::bad_request, "a message of " + std::to_string(bytes.size()) + " bytes; expected " +
                                       std::to_string(sizeof head) + " or more");
  std::memcpy(&head, bytes.data(), sizeof head);
  size_t copies_bytes = static_cast<size_t>(head.copies) * sizeof(strided_copy);
  if (head.verb >= process_verbs || head.code > static_cast<uint32_t>(errc::internal) ||
      head.copies > copies_per_message_max || head.text_bytes > process_text_max ||
      head.signals > signals_per_message_max || bytes.size() != sizeof head + copies_bytes + head.text_bytes)
    return fail(errc::bad_request, "a message of " + std::to_string(bytes.size()) + " bytes with verb " +
                                       std::to_string(head.verb) + ", code " + std::to_string(head.code) +
                                       ", " + std::to_string(head.copies) + " copies and a text of " +
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
  message.copies.resize(head.copies);
  if (copies_bytes != 0)
    std::memcpy(message.copies.data(), bytes.data() + sizeof head, copies_bytes);
  message.text.assign(reinterpret_cast<const char*>(bytes.data() + sizeof head + copies_bytes),
                      head.text_bytes);
  return message;
}

} // namespace terrace::gpu
