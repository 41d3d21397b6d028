#include "daemon/settings_units.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <limits>

namespace terrace {
namespace {

constexpr std::string_view suggests = "; did you mean \"", suggested = "\"?";

std::string suggestion(const std::string& value) {
  return std::string(suggests) + value + std::string(suggested);
}

struct unit {
  std::string_view name;
  uint64_t factor;
};

constexpr unit byte_units[] = {
    {"TiB", 1ULL << 40}, {"GiB", 1ULL << 30}, {"MiB", 1ULL << 20}, {"KiB", 1ULL << 10}, {"B", 1}, {"", 1}};
constexpr unit time_units[] = {{"h", 3'600'000}, {"m", 60'000}, {"s", 1'000}, {"ms", 1}};

/// Suggests "4GiB" for "4GB", "4G" and "4gib", and nothing for units that resemble none.
std::string meant(uint64_t number, std::string_view name, std::span<const unit> units) {
  auto lower = [](std::string_view text) {
    std::string all(text);
    std::transform(all.begin(), all.end(), all.begin(), [](unsigned char c) { return std::tolower(c); });
    return all;
  };
  for (const unit& u : units)
    if (std::string known = lower(u.name), given = lower(name);
        known == given ||
        (known.ends_with("ib") && (given == known.substr(0, 1) || given == known.substr(0, 1) + "b")))
      return suggestion(std::to_string(number) + std::string(u.name));
  return {};
}

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
    return fail(errc::bad_request, name.empty() ? "has no unit"
                                                : "has the unknown unit '" + std::string(name) + "'" +
                                                      meant(number, name, units));
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

namespace {

struct rate_unit {
  std::string_view name;
  uint64_t write_rates::*bytes;
  uint64_t low, high;
};

constexpr rate_unit rate_units[] = {{"s", &write_rates::bytes_per_second, 4ULL << 10, 1ULL << 40},
                                    {"day", &write_rates::bytes_per_day, 1ULL << 20, 1024ULL << 40}};

/// Adds one rate to those that were read.
result<void> add_rate(std::string_view text, write_rates& to) {
  const auto slash = text.rfind('/');
  const auto name = slash == std::string_view::npos ? std::string_view() : text.substr(slash + 1);
  const auto* unit = std::ranges::find(rate_units, name, &rate_unit::name);
  if (unit == std::end(rate_units))
    return fail(errc::bad_request, "has neither \"/s\" nor \"/day\" behind a size");
  auto bytes = parse_bytes(text.substr(0, slash));
  if (!bytes) {
    std::string wrong = bytes.error().text;
    const std::string meant = take_suggestion(wrong);
    return fail(errc::bad_request, "has a size that " + wrong +
                                       (meant.empty() ? meant : suggestion(meant + "/" + std::string(name))));
  }
  if (*bytes < unit->low || *bytes > unit->high)
    return fail(errc::bad_request, "has " + format_bytes(*bytes) + " behind \"/" + std::string(name) +
                                       "\", which is not between " + format_bytes(unit->low) + " and " +
                                       format_bytes(unit->high));
  if (to.*unit->bytes != 0)
    return fail(errc::bad_request, "has two sizes with \"/" + std::string(name) + "\"");
  to.*unit->bytes = *bytes;
  return {};
}

/// What is suggested instead of one rate becomes what is suggested instead of all, if that is valid.
std::string in_all(std::string wrong, std::string_view all, std::string_view one) {
  const std::string meant = take_suggestion(wrong);
  if (meant.empty())
    return wrong;
  std::string whole(all);
  whole.replace(static_cast<size_t>(one.data() - all.data()), one.size(), meant);
  return parse_write_rates(whole) ? wrong + suggestion(whole) : wrong;
}

} // namespace

result<write_rates> parse_write_rates(std::string_view text) {
  write_rates rates;
  const std::string_view all = text;
  for (bool more = !text.empty(); more;) {
    const auto comma = text.find(',');
    const auto one = text.substr(0, comma);
    if (auto added = add_rate(one, rates); !added)
      return tl::unexpected(error{errc::bad_request, in_all(added.error().text, all, one)});
    more = comma != std::string_view::npos;
    text.remove_prefix(more ? comma + 1 : text.size());
    text.remove_prefix(more && text.starts_with(' ') ? 1 : 0);
  }
  return rates;
}

std::string take_suggestion(std::string& wrong) {
  const auto begin = wrong.find(suggests);
  const auto end = begin == std::string::npos ? begin : wrong.find(suggested, begin + suggests.size());
  if (end == std::string::npos)
    return {};
  std::string meant = wrong.substr(begin + suggests.size(), end - begin - suggests.size());
  wrong.erase(begin, end + suggested.size() - begin);
  return meant;
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

} // namespace terrace
