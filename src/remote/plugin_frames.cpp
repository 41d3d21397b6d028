#include "remote/plugin_frames.hpp"

#include "base/printable.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstring>

namespace terrace::remote {

namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::string_view frame_begin = "TPL1";
constexpr size_t request_head_bytes = 16, answer_head_bytes = 24, item_head_bytes = 12;

template <class Number>
void append(std::string& to, Number number) {
  std::array<char, sizeof number> bytes;
  std::memcpy(bytes.data(), &number, sizeof number);
  to.append(bytes.data(), bytes.size());
}

template <class Number>
Number number_at(std::span<const std::byte> frame, size_t offset) {
  Number number;
  std::memcpy(&number, frame.data() + offset, sizeof number);
  return number;
}

bool fits(plugin_verb verb, int64_t number) {
  if (number == plugin_failed || number == plugin_no_room)
    return true;
  switch (verb) {
    case plugin_verb::exists:
    case plugin_verb::make: return number == 0 || number == 1;
    case plugin_verb::get: return number >= plugin_absent;
    default: return number == 1;
  }
}

/// The parts of any answer, whose numbers are not looked at.
struct parsed_frame {
  plugin_verb verb{};
  uint64_t number = 0;
  plugin_answer answer;
};

result<parsed_frame> parse(std::span<const std::byte> frame) {
  const auto wrong = [](const char* what) { return fail(errc::bad_request, what); };
  if (frame.size() < answer_head_bytes || frame.size() > plugin_frame_bytes_max)
    return wrong("a message of another length");
  if (std::memcmp(frame.data(), frame_begin.data(), frame_begin.size()) != 0)
    return wrong("something else than the frames of this version");
  parsed_frame made{
      .verb = static_cast<plugin_verb>(frame[4]), .number = number_at<uint64_t>(frame, 8), .answer = {}};
  const size_t items = number_at<uint16_t>(frame, 6), text = number_at<uint16_t>(frame, 16);
  if (frame[5] > std::byte{1} ||
      std::ranges::any_of(frame.subspan(18, 6), [](std::byte b) { return b != std::byte{}; }))
    return wrong("a frame with fields that are not known");
  if (items > plugin_items_max || text > plugin_text_bytes_max ||
      frame.size() != answer_head_bytes + items * sizeof(int64_t) + text)
    return wrong("a frame of another length than it says");
  made.answer.failed = frame[5] != std::byte{};
  for (size_t i = 0; i < items; ++i)
    made.answer.numbers.push_back(number_at<int64_t>(frame, answer_head_bytes + i * sizeof(int64_t)));
  made.answer.text = printable({reinterpret_cast<const char*>(frame.data() + frame.size() - text), text});
  return made;
}

} // namespace

plugin_request::plugin_request(plugin_verb verb, uint64_t number) : verb_(verb), number_(number) {
  frame_ = frame_begin;
  append<uint16_t>(frame_, static_cast<uint16_t>(verb));
  append<uint16_t>(frame_, 0);
  append(frame_, number);
  assert(frame_.size() == request_head_bytes);
}

bool plugin_request::add(std::string_view key, uint64_t bytes) {
  assert(!key.empty() && key.size() <= plugin_key_bytes_max && bytes <= plugin_buffer_bytes);
  if (offsets_.size() == plugin_items_max || bytes > plugin_buffer_bytes - used_ ||
      frame_.size() + item_head_bytes + key.size() > plugin_frame_bytes_max)
    return false;
  offsets_.push_back(used_);
  append(frame_, static_cast<uint16_t>(key.size()));
  append<uint16_t>(frame_, 0);
  append(frame_, static_cast<uint32_t>(used_));
  append(frame_, static_cast<uint32_t>(bytes));
  frame_ += key;
  used_ += (bytes + plugin_value_alignment - 1) / plugin_value_alignment * plugin_value_alignment;
  const auto items = static_cast<uint16_t>(offsets_.size());
  std::memcpy(frame_.data() + 6, &items, sizeof items);
  return true;
}

result<plugin_greeting> parse_plugin_greeting(std::span<const std::byte> frame) {
  auto parsed = parse(frame);
  if (!parsed)
    return tl::unexpected(parsed.error());
  if (parsed->verb != plugin_verb::hello || parsed->number != 0 || !parsed->answer.numbers.empty())
    return fail(errc::bad_request, "something else than a greeting");
  plugin_greeting made{
      .refuses = parsed->answer.failed, .text = std::move(parsed->answer.text), .name = {}, .version = {}};
  const auto space = std::min(made.text.find(' '), made.text.size());
  made.name = made.text.substr(0, space);
  made.version = made.text.substr(std::min(space + 1, made.text.size()));
  return made;
}

result<plugin_answer> parse_plugin_answer(std::span<const std::byte> frame, const plugin_request& to) {
  auto parsed = parse(frame);
  if (!parsed)
    return tl::unexpected(parsed.error());
  if (parsed->verb != to.verb() || parsed->number != to.number() ||
      parsed->answer.numbers.size() != to.items())
    return fail(errc::bad_request, "an answer to another request");
  for (const int64_t number : parsed->answer.numbers)
    if (!fits(to.verb(), number))
      return fail(errc::bad_request, "an answer with numbers that mean nothing");
  return std::move(parsed->answer);
}

} // namespace terrace::remote
