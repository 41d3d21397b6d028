#include "cli/digest_text.hpp"

#include "client/types.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>

namespace terrace::cli {

namespace {

std::vector<std::string_view> words_of(std::string_view text) {
  constexpr std::string_view separators = " ,;\t\r\n[]";
  std::vector<std::string_view> words;
  for (;;) {
    size_t begin = text.find_first_not_of(separators);
    if (begin == std::string_view::npos)
      return words;
    size_t end = std::min(text.find_first_of(separators, begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    text.remove_prefix(end);
  }
}

int value_of(char c) {
  if (c >= '0' && c <= '9')
    return c - '0';
  if (c >= 'a' && c <= 'f')
    return c - 'a' + 10;
  if (c >= 'A' && c <= 'F')
    return c - 'A' + 10;
  return -1;
}

} // namespace

outcome<std::vector<uint8_t>> parse_hex(std::string_view text) {
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i < text.size(); i += 2) {
    int high = value_of(text[i]);
    int low = i + 1 < text.size() ? value_of(text[i + 1]) : -1;
    if (high < 0 || low < 0)
      return bad_usage(fmt::format("expected pairs of hexadecimal digits, found \"{}\"", text));
    bytes.push_back(static_cast<uint8_t>(high << 4 | low));
  }
  return bytes;
}

std::string id_text(std::span<const uint8_t, 16> id) {
  std::string text;
  for (uint8_t byte : id)
    text += fmt::format("{:02x}", byte);
  return text;
}

outcome<std::array<uint8_t, 16>> parse_id(const char* name, std::string_view text) {
  auto bytes = parse_hex(text);
  if (!bytes)
    return tl::unexpected(bytes.error());
  std::array<uint8_t, 16> id{};
  if (bytes->size() != id.size())
    return bad_usage(fmt::format("expected {} of 32 hexadecimal digits, got '{}'", name, text));
  std::copy(bytes->begin(), bytes->end(), id.begin());
  return id;
}

size_t width_of(const digest& d) {
  for (size_t width : {8, 16, 20, 24})
    if (std::all_of(d.bytes.begin() + static_cast<ptrdiff_t>(width), d.bytes.end(),
                    [](uint8_t byte) { return byte == 0; }))
      return width;
  return digest::max_size;
}

std::string digest_text(const digest& d) { return to_hex(d, width_of(d)); }

outcome<digest_list> parse_digests(std::string_view text) {
  digest_list list;
  for (std::string_view word : words_of(text)) {
    auto bytes = parse_hex(word);
    if (!bytes)
      return tl::unexpected(bytes.error());
    if (bytes->size() < digest::min_size || bytes->size() > digest::max_size)
      return bad_usage(fmt::format("expected digests of {} to {} hexadecimal digits, found \"{}\"",
                                   2 * digest::min_size, 2 * digest::max_size, word));
    if (list.width != 0 && list.width != bytes->size())
      return bad_usage(
          fmt::format("expected digests of one length, found {} and {} digits", 2 * list.width, word.size()));
    list.width = static_cast<uint8_t>(bytes->size());
    list.bytes.insert(list.bytes.end(), bytes->begin(), bytes->end());
  }
  if (list.width == 0 || list.count() > client::prefix::chunks_max)
    return bad_usage(
        fmt::format("expected 1 to {} digests, found {}", client::prefix::chunks_max, list.count()));
  return list;
}

outcome<std::vector<uint32_t>> parse_tokens(std::string_view text) {
  std::vector<uint32_t> tokens;
  for (std::string_view word : words_of(text)) {
    uint32_t token = 0;
    auto [end, status] = std::from_chars(word.data(), word.data() + word.size(), token);
    if (status != std::errc{} || end != word.data() + word.size())
      return bad_usage(fmt::format("expected token ids from 0 to 4294967295, found \"{}\"", word));
    tokens.push_back(token);
  }
  if (tokens.empty() || tokens.size() > client::prefix::tokens_max)
    return bad_usage(
        fmt::format("expected 1 to {} tokens, found {}", client::prefix::tokens_max, tokens.size()));
  return tokens;
}

outcome<std::string> text_or_file(const std::string& argument) {
  if (!argument.starts_with('@'))
    return argument;
  std::string path = argument.substr(1);
  if (path == "-")
    return std::string(std::istreambuf_iterator<char>(std::cin), {});
  std::ifstream file(path, std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(file), {});
  if (!file.good() && !file.eof())
    return bad_usage(fmt::format("{}: expected a readable file: {}", path, std::strerror(errno)));
  return text;
}

} // namespace terrace::cli
