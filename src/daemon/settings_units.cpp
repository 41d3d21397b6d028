#include "daemon/settings_units.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <numeric>
#include <vector>

namespace terrace {
namespace {

struct unit {
  std::string_view name;
  uint64_t factor;
};

constexpr unit byte_units[] = {
    {"TiB", 1ULL << 40}, {"GiB", 1ULL << 30}, {"MiB", 1ULL << 20}, {"KiB", 1ULL << 10}, {"B", 1}, {"", 1}};
constexpr unit time_units[] = {{"h", 3'600'000}, {"m", 60'000}, {"s", 1'000}, {"ms", 1}};

/// Parses a whole number, an optional space, and one of `units`. The error says what is wrong; the caller
/// adds what was expected.
result<uint64_t> parse_with_unit(std::string_view text, std::span<const unit> units) {
  uint64_t number = 0;
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (code == std::errc::result_out_of_range)
    return fail(errc::bad_request, "is too large");
  if (code != std::errc{})
    return fail(errc::bad_request, "does not begin with a whole number");
  auto name = text.substr(static_cast<size_t>(end - text.data()));
  if (name.size() > 1 && name.front() == ' ')
    name.remove_prefix(1);
  auto found = std::find_if(units.begin(), units.end(), [&](const unit& u) { return u.name == name; });
  if (found == units.end())
    return fail(errc::bad_request,
                name.empty() ? "has no unit" : "has the unknown unit '" + std::string(name) + "'");
  if (number > std::numeric_limits<uint64_t>::max() / found->factor)
    return fail(errc::bad_request, "is too large");
  return number * found->factor;
}

std::string format_with_unit(uint64_t value, std::span<const unit> units) {
  for (const auto& u : units)
    if (value % u.factor == 0)
      return std::to_string(value / u.factor) + std::string(u.name);
  return std::to_string(value);
}

/// Optimal string alignment: insertions, deletions, substitutions and transpositions cost 1 each.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before_last(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    before_last.swap(last);
    last.swap(row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
  }
  return row.back();
}

} // namespace

result<uint64_t> parse_bytes(std::string_view text) { return parse_with_unit(text, byte_units); }

result<std::chrono::milliseconds> parse_duration(std::string_view text) {
  auto parsed = parse_with_unit(text, time_units);
  if (!parsed)
    return tl::unexpected(parsed.error());
  if (*parsed > static_cast<uint64_t>(std::chrono::milliseconds::max().count()))
    return fail(errc::bad_request, "is too large");
  return std::chrono::milliseconds(static_cast<int64_t>(*parsed));
}

result<uint32_t> parse_permissions(std::string_view text) {
  uint32_t mode = 0;
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), mode, 8);
  if (code != std::errc{} || end != text.data() + text.size())
    return fail(errc::bad_request, "is not an octal number");
  if (mode > 0777)
    return fail(errc::bad_request, "is more than 0777");
  return mode;
}

result<allocator_choice> parse_allocator(std::string_view text) {
  auto colon = text.find(':');
  auto name = text.substr(0, colon);
  if (name != "paged" && colon != std::string_view::npos)
    return fail(errc::bad_request, "but only \"paged\" has slots");
  if (name != "paged")
    return allocator_choice{std::string(name)};
  if (colon == std::string_view::npos)
    return fail(errc::bad_request, "without the size of its slots");
  auto bytes = parse_bytes(text.substr(colon + 1));
  if (!bytes)
    return fail(errc::bad_request, "whose size " + bytes.error().text);
  if (*bytes == 0)
    return fail(errc::bad_request, "whose size is 0");
  return allocator_choice{std::string(name), *bytes};
}

std::string format_bytes(uint64_t bytes) { return bytes == 0 ? "0" : format_with_unit(bytes, byte_units); }

std::string format_duration(std::chrono::milliseconds duration) {
  auto count = static_cast<uint64_t>(duration.count());
  if (count == 0)
    return "0s";
  // Minutes are not used: "90s" and "60s" are easier to compare than "90s" and "1m".
  auto units = count % 3'600'000 == 0 ? std::span(time_units) : std::span(time_units).subspan(2);
  return format_with_unit(count, units);
}

std::string format_permissions(uint32_t mode) {
  std::string text = "0";
  for (int shift = 6; shift >= 0; shift -= 3)
    text.push_back(static_cast<char>('0' + ((mode >> shift) & 7)));
  return text;
}

std::string_view nearest_name(std::string_view word, std::span<const std::string_view> candidates) {
  constexpr size_t word_max = 128; // the distance takes quadratic time; longer words are no typing mistakes
  std::string_view best;
  size_t best_distance = std::numeric_limits<size_t>::max();
  for (auto candidate : candidates) {
    if (word.size() > word_max)
      break;
    auto distance = edit_distance(word, candidate);
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best_distance <= std::max(word.size(), best.size()) / 3 ? best : std::string_view{};
}

} // namespace terrace
