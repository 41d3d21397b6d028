#include "cli/help_format.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>

namespace terrace::cli {

namespace {

/// CLI11's "UINT:1 to 4096" and "TEXT:{a,b}": the kind of value, and what is known about it.
struct value_type {
  std::string kind;
  std::string more;
};

value_type type_of(const CLI::Option& option) {
  std::string text = option.get_type_name();
  size_t colon = text.find(':');
  value_type type{text.substr(0, colon), colon == std::string::npos ? "" : text.substr(colon + 1)};
  if (type.kind == "UINT" || type.kind == "INT")
    type.kind = "N";
  else if (type.kind == "FLOAT")
    type.kind = "NUMBER";
  if (type.more.starts_with('{') && type.more.ends_with('}')) { // the values that there are
    std::replace(type.more.begin(), type.more.end(), ',', '|');
    return {type.more.substr(1, type.more.size() - 2), ""};
  }
  return type;
}

/// Breaks lines between words, so that the help fits into 80 columns.
std::string wrapped(const std::string& text) {
  constexpr size_t width_max = 49; // CLI11's first column has 30
  std::string lines;
  size_t width = 0;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = std::min(text.find(' ', begin), text.size());
    if (width != 0)
      lines += width + 1 + end - begin > width_max ? '\n' : ' ';
    width = !lines.empty() && lines.back() == '\n' ? 0 : width + (width != 0);
    lines.append(text, begin, end - begin);
    width += end - begin;
    begin = end + 1;
  }
  return lines;
}

std::string names_of(const std::set<CLI::Option*>& options) {
  std::string names;
  for (const CLI::Option* option : options)
    names += (names.empty() ? "" : ", ") + option->get_name();
  return names;
}

std::optional<double> number_in(const std::string& text) {
  double number = 0;
  auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (status != std::errc{} || end != text.data() + text.size() || !std::isfinite(number))
    return std::nullopt;
  return number;
}

std::string check_count(const std::string& text) {
  uint64_t count = 0;
  auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (status == std::errc::result_out_of_range)
    return fmt::format("expected a number of at most {}, found \"{}\"", std::numeric_limits<uint64_t>::max(),
                       text);
  if (status != std::errc{} || end != text.data() + text.size())
    return fmt::format("expected a whole number of at least 0, found \"{}\"", text);
  return {};
}

/// Gives CLI11's Range, whose description is "INT in [1 - 64]", words of ours.
void reword_range(CLI::Validator& range) {
  std::string text = range.get_description();
  std::string bounds = text == "NONNEGATIVE" ? "at least 0" : text == "POSITIVE" ? "above 0" : "";
  double least = text == "POSITIVE" ? std::numeric_limits<double>::min() : 0,
         most = std::numeric_limits<double>::max();
  if (size_t open = text.find(" in ["); bounds.empty() && open != std::string::npos && text.ends_with(']')) {
    std::string inside = text.substr(open + 5, text.size() - open - 6);
    size_t dash = inside.find(" - ");
    least = *number_in(inside.substr(0, dash));
    most = *number_in(inside.substr(dash + 3));
    bounds = inside.substr(0, dash) + " to " + inside.substr(dash + 3);
  }
  if (bounds.empty())
    return; // another kind of check
  bool whole = !text.starts_with("FLOAT") && bounds.find(" to ") != std::string::npos;
  range.description(bounds).operation([bounds, least, most, whole](std::string& given) -> std::string {
    auto number = number_in(given);
    if (number && *number >= least && *number <= most && (!whole || *number == std::floor(*number)))
      return {};
    return fmt::format("expected {}{}, found \"{}\"", number ? "" : "a number, ", bounds, given);
  });
}

void check_numbers(CLI::Option& option) {
  std::string kind = option.get_type_name().substr(0, option.get_type_name().find(':'));
  for (int i = 0;; ++i) {
    try {
      reword_range(*option.get_validator(i));
    } catch (const CLI::OptionNotFound&) { // there are no more
      break;
    }
  }
  if (kind == "UINT")
    option.check(check_count, "");
  else if (kind == "FLOAT")
    option.check(
        [](const std::string& text) {
          return number_in(text) ? std::string() : fmt::format("expected a number, found \"{}\"", text);
        },
        "");
}

} // namespace

std::string help_format::make_option_opts(const CLI::Option* option) const {
  if (option->get_type_size() == 0)
    return {}; // a flag
  return " " + type_of(*option).kind +
         (option->get_expected_max() == CLI::detail::expected_max_vector_size ? " ..." : "");
}

std::string help_format::make_option_desc(const CLI::Option* option) const {
  std::vector<std::string> facts;
  if (option->get_required())
    facts.emplace_back("required");
  if (option->get_type_size() != 0 && !type_of(*option).more.empty())
    facts.push_back(type_of(*option).more);
  if (std::string value = option->get_default_str(); option->get_type_size() != 0 && !value.empty())
    facts.push_back("default " + value);
  if (!option->get_envname().empty())
    facts.push_back("or set " + option->get_envname());
  if (!option->get_needs().empty())
    facts.push_back("needs " + names_of(option->get_needs()));
  if (!option->get_excludes().empty())
    facts.push_back("not with " + names_of(option->get_excludes()));
  std::string text = option->get_description();
  if (!facts.empty() && text.ends_with(')')) // one pair of parentheses
    return wrapped(fmt::format("{}; {})", text.substr(0, text.size() - 1), fmt::join(facts, "; ")));
  return wrapped(facts.empty() ? text : fmt::format("{} ({})", text, fmt::join(facts, "; ")));
}

void check_numbers(CLI::App& app) {
  for (CLI::Option* option : app.get_options({}))
    check_numbers(*option);
}

} // namespace terrace::cli
