#include "protocol/resp/reply_reader.hpp"

#include <algorithm>
#include <cassert>
#include <charconv>
#include <utility>

namespace terrace::resp {

namespace {

constexpr std::string_view line_end = "\r\n";

tl::unexpected<error> broken(std::string text) {
  return fail(errc::bad_request, "the server violates the protocol of Redis: " + std::move(text) +
                                     "; check that the address is that of a Valkey or Redis server");
}

template <class Number>
std::optional<Number> parse(std::string_view digits) {
  Number value = 0;
  auto [end, wrong] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (digits.empty() || wrong != std::errc() || end != digits.data() + digits.size())
    return std::nullopt;
  return value;
}

std::optional<reply_type> type_of(char mark) {
  constexpr std::string_view marks = "+-:$_#,(*~%|>";
  static_assert(marks.size() == static_cast<size_t>(reply_type::push) + 1);
  if (mark == '!')
    return reply_type::error; // as a text
  if (mark == '=')
    return reply_type::text; // with a format in front
  size_t at = marks.find(mark);
  if (at == std::string_view::npos)
    return std::nullopt;
  return static_cast<reply_type>(at);
}

} // namespace

reply_reader::reply_reader(const reply_limits& limits) : limits_(limits), buffer_(limits.buffer_bytes) {}

result<std::optional<std::string_view>> reply_reader::line() const {
  auto bytes = buffer_.bytes();
  size_t end = bytes.substr(0, limits_.text_bytes_max + line_end.size()).find('\n');
  if (end == std::string_view::npos) {
    if (bytes.size() >= limits_.text_bytes_max + line_end.size())
      return broken("a line of at most " + std::to_string(limits_.text_bytes_max) + " bytes was expected");
    return std::nullopt;
  }
  if (end == 0 || bytes[end - 1] != '\r')
    return broken("a carriage return was expected in front of the end of a line");
  return bytes.substr(0, end - 1);
}

result<reply_step> reply_reader::next() {
  assert(value_left_ == 0);
  buffer_.drop(std::exchange(parsed_, 0));
  if (in_value_) {
    auto end = buffer_.bytes().substr(0, line_end.size());
    if (end != line_end.substr(0, end.size()))
      return broken("the end of a line was expected behind a text");
    if (end.size() != line_end.size())
      return reply_step{};
    in_value_ = false;
    reply_step step{.what = reply_step::kind::value_end, .type = value_type_};
    return end_item(step, line_end.size());
  }
  if (buffer_.bytes().empty())
    return reply_step{};
  char mark = buffer_.bytes().front();
  auto type = type_of(mark);
  if (!type)
    return broken("a reply was expected, not the byte " + std::to_string(static_cast<unsigned char>(mark)));
  auto whole = line();
  if (!whole)
    return tl::unexpected(whole.error());
  if (!*whole)
    return reply_step{};
  auto rest = (*whole)->substr(1);
  if (*type == reply_type::text || mark == '!')
    return read_text(*type, rest);
  if (*type >= reply_type::array)
    return read_aggregate(*type, rest);
  return plain(*type, rest);
}

result<reply_step> reply_reader::plain(reply_type type, std::string_view line) {
  reply_step step{.what = reply_step::kind::item, .type = type, .text = line};
  if (type == reply_type::integer) {
    auto number = parse<int64_t>(line);
    if (!number)
      return broken("an integer of 64 bits was expected");
    step.number = *number;
  }
  if (type == reply_type::boolean) {
    if (line != "t" && line != "f")
      return broken("a boolean, t or f, was expected");
    step.number = line == "t" ? 1 : 0;
  }
  if (type == reply_type::null && !line.empty())
    return broken("nothing was expected behind a null");
  return end_item(step, 1 + line.size() + line_end.size());
}

result<reply_step> reply_reader::read_text(reply_type type, std::string_view line) {
  size_t head = 1 + line.size() + line_end.size();
  if (line == "-1" && buffer_.bytes().front() == '$')
    return end_item({.what = reply_step::kind::item, .type = reply_type::null}, head);
  auto length = parse<uint64_t>(line);
  if (!length || *length > limits_.value_bytes_max)
    return broken("the length of a text, 0 to " + std::to_string(limits_.value_bytes_max) + ", was expected");
  if (*length > limits_.text_bytes_max) {
    in_value_ = true; // it counts as an item at its end
    value_type_ = type;
    value_left_ = *length;
    buffer_.drop(head);
    return reply_step{
        .what = reply_step::kind::value, .type = type, .depth = open_.size(), .value_bytes = *length};
  }
  auto bytes = buffer_.bytes();
  auto size = static_cast<size_t>(*length);
  if (bytes.size() < head + size + line_end.size())
    return reply_step{};
  if (bytes.substr(head + size, line_end.size()) != line_end)
    return broken("the end of a line was expected behind a text of " + std::to_string(size) + " bytes");
  return end_item({.what = reply_step::kind::item, .type = type, .text = bytes.substr(head, size)},
                  head + size + line_end.size());
}

result<reply_step> reply_reader::read_aggregate(reply_type type, std::string_view line) {
  size_t head = 1 + line.size() + line_end.size();
  if (line == "-1" && type == reply_type::array)
    return end_item({.what = reply_step::kind::item, .type = reply_type::null}, head);
  auto count = parse<uint64_t>(line);
  if (!count || *count > limits_.items_max)
    return broken("a number of items, 0 to " + std::to_string(limits_.items_max) + ", was expected");
  bool is_attribute = type == reply_type::attribute;
  reply_step step{.what = reply_step::kind::item,
                  .type = type,
                  .depth = open_.size(),
                  .items = is_attribute || type == reply_type::map ? 2 * *count : *count};
  if (step.items == 0 && !is_attribute)
    return end_item(step, head);
  if (open_.size() == limits_.depth_max)
    return broken("at most " + std::to_string(limits_.depth_max) + " arrays in arrays were expected");
  if (++items_ > limits_.items_max)
    return broken("a reply of at most " + std::to_string(limits_.items_max) + " items was expected");
  if (step.items != 0)
    open_.push_back({step.items, is_attribute});
  parsed_ = head;
  return step;
}

result<reply_step> reply_reader::end_item(reply_step step, size_t bytes) {
  if (++items_ > limits_.items_max)
    return broken("a reply of at most " + std::to_string(limits_.items_max) + " items was expected");
  step.depth = open_.size();
  step.last = close_item();
  parsed_ = bytes;
  return step;
}

// An item ends, and with it the arrays whose last item it is. Returns whether the reply is complete.
bool reply_reader::close_item() {
  while (!open_.empty()) {
    if (--open_.back().left != 0)
      return false;
    bool is_attribute = open_.back().is_attribute;
    open_.pop_back();
    if (is_attribute)
      return false; // the item that it belongs to follows
  }
  items_ = 0;
  return true;
}

std::string_view reply_reader::take_value(uint64_t bytes_max) {
  auto part = buffer_.bytes().substr(0, static_cast<size_t>(std::min(bytes_max, value_left_)));
  buffer_.drop(part.size());
  value_left_ -= part.size();
  return part;
}

void reply_reader::value_received(uint64_t bytes) {
  assert(in_value_ && bytes <= value_left_ && buffer_.bytes().empty());
  value_left_ -= bytes;
}

} // namespace terrace::resp
