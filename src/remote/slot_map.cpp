#include "remote/slot_map.hpp"

#include "remote/store_commands.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <charconv>

namespace terrace::remote {

namespace {

constexpr std::array<uint16_t, 256> make_crc_table() {
  constexpr uint32_t polynomial = 0x1021;
  std::array<uint16_t, 256> table{};
  for (uint32_t byte = 0; byte < table.size(); ++byte) {
    uint32_t rest = byte << 8;
    for (int bit = 0; bit < 8; ++bit)
      rest = (rest & 0x8000) != 0 ? rest << 1 ^ polynomial : rest << 1;
    table[byte] = static_cast<uint16_t>(rest);
  }
  return table;
}

constexpr auto crc_table = make_crc_table();

uint16_t crc16(std::string_view text) {
  uint32_t rest = 0;
  for (const char c : text)
    rest = (rest << 8 ^ crc_table[(rest >> 8 ^ static_cast<uint8_t>(c)) & 0xff]) & 0xffff;
  return static_cast<uint16_t>(rest);
}

} // namespace

uint16_t slot_of(std::string_view key) {
  if (const auto open = key.find('{'); open != std::string_view::npos)
    if (const auto close = key.find('}', open); close != std::string_view::npos && close != open + 1)
      key = key.substr(open + 1, close - open - 1);
  return crc16(key) % cluster_slots;
}

std::string address_text(std::string_view host, uint64_t port) {
  const bool bare_ipv6 = host.find(':') != std::string_view::npos && !host.starts_with('[');
  const std::string name(host);
  return (bare_ipv6 ? "[" + name + "]" : name) + ":" + std::to_string(port);
}

std::string completed_address(std::string_view told, std::string_view asked) {
  if (!told.starts_with(':'))
    return std::string(told);
  return std::string(asked.substr(0, asked.rfind(':'))) + std::string(told);
}

slot_map::slot_map(std::span<const slot_range> ranges) {
  for (const slot_range& range : ranges) {
    assert(range.last < cluster_slots);
    auto known = std::find(primaries_.begin(), primaries_.end(), range.primary);
    const auto owner = static_cast<uint16_t>(known - primaries_.begin());
    if (known == primaries_.end())
      primaries_.push_back(range.primary);
    for (uint32_t slot = range.first; slot <= range.last; ++slot)
      owners_[slot] = owner;
  }
  take_replicas(ranges);
}

void slot_map::take_replicas(std::span<const slot_range> ranges) {
  replicas_.resize(primaries_.size());
  size_t all = 0;
  for (const slot_range& range : ranges) {
    auto& known =
        replicas_[static_cast<size_t>(std::ranges::find(primaries_, range.primary) - primaries_.begin())];
    for (const std::string& replica : range.replicas)
      if (all < replicas_max && std::ranges::find(known, replica) == known.end() &&
          std::ranges::find(primaries_, replica) == primaries_.end()) {
        known.push_back(replica);
        ++all;
      }
  }
}

std::optional<size_t> slot_map::owner(uint16_t slot) const {
  const uint16_t owner = owners_[slot % cluster_slots];
  return owner == nobody ? std::nullopt : std::optional<size_t>(owner);
}

uint32_t slot_map::count(uint16_t owner) const {
  return static_cast<uint32_t>(std::count(owners_.begin(), owners_.end(), owner));
}

uint32_t slot_map::slots_of(size_t primary) const { return count(static_cast<uint16_t>(primary)); }
uint32_t slot_map::uncovered() const { return count(nobody); }

std::optional<redirection> parse_redirection(std::string_view said) {
  redirection to;
  to.once = said.starts_with("ASK ");
  if (!to.once && !said.starts_with("MOVED "))
    return std::nullopt;
  const auto colon = said.rfind(':'), space = said.rfind(' ');
  if (colon == std::string_view::npos || colon < space)
    return std::nullopt;
  uint16_t port = 0;
  const auto digits = said.substr(colon + 1);
  auto [end, wrong] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (wrong != std::errc() || end != digits.data() + digits.size() || port == 0)
    return std::nullopt;
  to.address = address_text(said.substr(space + 1, colon - space - 1), port);
  return to;
}

namespace {

result<guidance> read_slots(std::vector<slot_range> ranges, const std::string& guide) {
  for (slot_range& range : ranges) {
    range.primary = completed_address(range.primary, guide);
    for (std::string& replica : range.replicas)
      replica = completed_address(replica, guide);
  }
  if (ranges.empty())
    return fail(errc::unsupported, "it knows no node that has slots");
  if (std::ranges::none_of(
          ranges, [](const slot_range& range) { return parse_store_address(range.primary).has_value(); }))
    return fail(errc::unsupported, "it names no node by a host and a port: set "
                                   "cluster-preferred-endpoint-type to ip or hostname");
  return guidance{.slots = slot_map(ranges)};
}

} // namespace

result<guidance> read_guidance(const store_address& of, const std::string& guide,
                               const finished_command& told) {
  if (told.result == command_result::refused) {
    const bool unknown = told.why.code == errc::unsupported || told.why.code == errc::internal;
    return fail(told.why.code,
                unknown ? scheme_of_no_guide(of, guide) + " (" + told.why.text + ")" : told.why.text);
  }
  if (of.at == store_address::kind::cluster)
    return read_slots(told.slots, guide);
  if (told.result == command_result::absent)
    return fail(errc::unsupported, "it watches no primary of the name " + of.primary +
                                       ": check the name behind the last '/' of address");
  auto server = parse_store_address(told.text);
  if (!server || server->at_path())
    return fail(errc::unsupported, "it names no address and port");
  if (!of.name.empty())
    server->name = of.name;
  server->text = told.text + " (" + of.text + ")";
  return guidance{.server = std::move(*server)};
}

} // namespace terrace::remote
