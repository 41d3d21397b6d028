#include "cli/capacity_option.hpp"

#include "cli/units.hpp"

#include <fmt/format.h>

#include <charconv>

namespace terrace::cli {

namespace {

outcome<capacity_option> parse_share(const std::string& option, const std::string& text) {
  double percent = 0;
  auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), percent);
  std::string rest(end, text.data() + text.size());
  if (status != std::errc{} || (rest != "%" && rest != " %") || !(percent > 0) || percent > 100)
    return bad_usage(fmt::format("{}: expected a share above 0 and up to 100%, found \"{}\"", option, text));
  return capacity_option{percent / 100, 0, fmt::format("{:g} %", percent)};
}

} // namespace

std::vector<std::string> split_list(const std::string& text) {
  std::vector<std::string> parts;
  for (size_t begin = 0;;) {
    size_t comma = text.find(',', begin);
    std::string part = text.substr(begin, comma == std::string::npos ? comma : comma - begin);
    part.erase(0, std::min(part.find_first_not_of(' '), part.size()));
    part.erase(part.find_last_not_of(' ') + 1);
    parts.push_back(part);
    if (comma == std::string::npos)
      return parts;
    begin = comma + 1;
  }
}

void add_trace_format(CLI::App& app, trace_format& format) {
  app.add_option("--block-tokens", format.block_tokens,
                 "Tokens per hash id of the trace: 512 in Mooncake's, 16 or 64 in others")
      ->check(CLI::Range(1, 65'536))
      ->capture_default_str();
  app.add_option_function<std::string>(
         "--timestamps",
         [&format](const std::string& unit) {
           format.clock = unit == "seconds" ? trace_clock::seconds : trace_clock::milliseconds;
         },
         "Unit of the trace's timestamps; by default whole milliseconds")
      ->check(CLI::IsMember({"milliseconds", "seconds"}));
}

outcome<std::vector<capacity_option>> parse_capacities(const std::string& option, const std::string& text) {
  std::vector<capacity_option> all;
  for (const std::string& part : split_list(text)) {
    if (part.ends_with('%')) {
      auto share = parse_share(option, part);
      if (!share)
        return tl::unexpected(share.error());
      all.push_back(std::move(*share));
      continue;
    }
    auto bytes = parse_bytes(part);
    if (!bytes && bytes.error().text.find("did you mean") != std::string::npos)
      return bad_usage(option + ": " + bytes.error().text);
    if (!bytes || *bytes == 0)
      return bad_usage(fmt::format(
          "{}: expected shares of the distinct chunks such as 5% or sizes such as 512MiB, found \"{}\"",
          option, part));
    all.push_back({0, *bytes, readable_bytes(*bytes)});
  }
  return all;
}

} // namespace terrace::cli
