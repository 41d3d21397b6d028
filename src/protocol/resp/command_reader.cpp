#include "protocol/resp/command_reader.hpp"

#include <algorithm>
#include <cassert>
#include <charconv>
#include <utility>

namespace terrace::resp {

namespace {

constexpr size_t number_bytes_max = 32; ///< longest line with a count or a length

tl::unexpected<error> violation(std::string text) {
  return fail(errc::bad_request, "Protocol error: " + std::move(text));
}

} // namespace

command_reader::command_reader(const reader_limits& limits) : limits_(limits), buffer_(limits.buffer_bytes) {}

result<std::optional<std::string_view>> command_reader::line() {
  auto rest = buffer_.bytes().substr(at_);
  size_t end = rest.find('\n');
  if (end == std::string_view::npos) {
    if (rest.size() > limits_.word_bytes_max)
      return violation("a line has more than " + std::to_string(limits_.word_bytes_max) + " bytes");
    return std::nullopt;
  }
  if (end > limits_.word_bytes_max)
    return violation("a line has more than " + std::to_string(limits_.word_bytes_max) + " bytes");
  at_ += end + 1;
  auto text = rest.substr(0, end);
  if (text.ends_with('\r'))
    text.remove_suffix(1);
  return text;
}

result<std::optional<uint64_t>> command_reader::number(char mark, const char* name, uint64_t most) {
  auto rest = buffer_.bytes().substr(at_);
  if (rest.empty())
    return std::nullopt;
  if (rest.front() != mark)
    return violation(std::string("expected '") + mark + "' in front of the " + name);
  if (rest.size() > number_bytes_max && rest.substr(0, number_bytes_max).find('\n') == std::string_view::npos)
    return violation(std::string("invalid ") + name);
  auto text = line();
  if (!text)
    return tl::unexpected(text.error());
  if (!*text)
    return std::nullopt;
  auto digits = (*text)->substr(1);
  uint64_t value = 0;
  auto [end, wrong] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (wrong != std::errc() || end != digits.data() + digits.size() || value > most)
    return violation(std::string("invalid ") + name + ": expected 0 to " + std::to_string(most));
  return value;
}

reader_step command_reader::take(reader_step::kind what) {
  words_.clear();
  for (const place& one : places_)
    words_.push_back(buffer_.bytes().substr(one.at, one.bytes));
  reader_step step{what, words_, continued_, 0, words_left_};
  buffer_.drop(std::exchange(at_, 0));
  places_.clear();
  return step;
}

result<reader_step> command_reader::read_inline() {
  auto text = line();
  if (!text)
    return tl::unexpected(text.error());
  if (!*text)
    return reader_step{};
  size_t begin = static_cast<size_t>((*text)->data() - buffer_.bytes().data());
  std::string_view rest = **text;
  for (size_t at = 0; at < rest.size();) {
    size_t end = std::min(rest.find_first_of(" \t", at), rest.size());
    if (end != at)
      places_.push_back({begin + at, end - at});
    at = end + 1;
  }
  if (places_.size() > limits_.words_max)
    return violation("too many words");
  return take(reader_step::kind::command);
}

result<reader_step> command_reader::read_words() {
  while (words_left_ != 0) {
    if (!length_) {
      auto length = number('$', "bulk length", limits_.value_bytes_max);
      if (!length)
        return tl::unexpected(length.error());
      if (!*length)
        return reader_step{};
      length_ = **length;
    }
    if (*length_ > limits_.word_bytes_max) {
      --words_left_;
      auto step = take(reader_step::kind::value);
      step.value_bytes = value_left_ = *length_;
      length_.reset();
      state_ = state::value;
      return step;
    }
    if (at_ + *length_ > limits_.command_bytes_max)
      return violation("a command has more than " + std::to_string(limits_.command_bytes_max) + " bytes");
    if (buffer_.bytes().size() - at_ < *length_ + 2)
      return reader_step{};
    if (buffer_.bytes().substr(at_ + *length_, 2) != "\r\n")
      return violation("expected the end of a line behind a word of " + std::to_string(*length_) + " bytes");
    places_.push_back({at_, static_cast<size_t>(*length_)});
    at_ += *length_ + 2;
    length_.reset();
    --words_left_;
  }
  auto step = take(reader_step::kind::command);
  state_ = state::idle;
  continued_ = false;
  return step;
}

result<reader_step> command_reader::next() {
  if (state_ == state::value) {
    assert(value_left_ == 0);
    state_ = state::value_end;
  }
  if (state_ == state::value_end) {
    auto end = buffer_.bytes().substr(0, 2);
    if (end != std::string_view("\r\n").substr(0, end.size()))
      return violation("expected the end of a line behind a value");
    if (end.size() != 2)
      return reader_step{};
    buffer_.drop(2);
    continued_ = true;
    state_ = state::words;
  }
  if (state_ == state::words)
    return read_words();
  while (!buffer_.bytes().empty()) {
    if (buffer_.bytes().front() != '*') {
      auto step = read_inline();
      if (!step || step->what == reader_step::kind::more || !step->words.empty())
        return step;
      continue; // an empty line is ignored
    }
    auto count = number('*', "multibulk length", limits_.words_max);
    if (!count)
      return tl::unexpected(count.error());
    if (!*count)
      break;
    if (**count != 0) {
      words_left_ = static_cast<size_t>(**count);
      state_ = state::words;
      return read_words();
    }
    buffer_.drop(std::exchange(at_, 0)); // so is an empty command
  }
  return reader_step{};
}

std::string_view command_reader::take_value(uint64_t bytes_max) {
  assert(state_ == state::value);
  auto part = buffer_.bytes().substr(0, static_cast<size_t>(std::min(bytes_max, value_left_)));
  buffer_.drop(part.size());
  value_left_ -= part.size();
  return part;
}

void command_reader::value_received(uint64_t bytes) {
  assert(state_ == state::value && bytes <= value_left_ && buffer_.bytes().empty());
  value_left_ -= bytes;
}

} // namespace terrace::resp
