#include "daemon/settings_table.hpp"

#include "actors/supervision/group_plan.hpp"
#include "base/nearest_name.hpp"
#include "daemon/settings_units.hpp"

#include <algorithm>
#include <utility>

namespace terrace {

namespace {

using namespace std::chrono_literals;

constexpr bool run_time = true; // SIGHUP applies it
constexpr bool restart = false; // it determines memory, files or threads that exist from the start

constexpr option_bounds any() { return {}; }

constexpr option_bounds between(uint64_t low, uint64_t high) { return {.low = low, .high = high}; }

constexpr option_bounds between(std::chrono::milliseconds low, std::chrono::milliseconds high) {
  return between(static_cast<uint64_t>(low.count()), static_cast<uint64_t>(high.count()));
}

constexpr option_bounds elements(size_t low, size_t high) {
  return {.elements_low = low, .elements_high = high};
}

constexpr option_bounds among(std::span<const std::string_view> (*names)()) { return {.names = names}; }

template <auto& Names>
constexpr option_bounds among() {
  return among([]() -> std::span<const std::string_view> { return Names; });
}

constexpr option_bounds described(std::string_view text) { return {.text = text}; }

template <class Section>
Section& section_at(Section& section, size_t) {
  return section;
}

template <class Section>
Section& section_at(std::vector<Section>& sections, size_t number) {
  return sections.at(number);
}

#define TERRACE_OPTION_ROW(section, key, kind, value, unit, bounds, reload, help, more)                      \
  {#section,                                                                                                 \
   #key,                                                                                                     \
   option_kind::kind,                                                                                        \
   [](settings& of, size_t socket) -> option_ref { return &section_at(of.section, socket).key; },            \
   unit,                                                                                                     \
   bounds,                                                                                                   \
   reload,                                                                                                   \
   help,                                                                                                     \
   more},

constexpr option_spec option_specs[] = {
#define DAEMON_OPTION(...) TERRACE_OPTION_ROW(daemon, __VA_ARGS__)
#define LISTEN_OPTION(...) TERRACE_OPTION_ROW(listen, __VA_ARGS__)
#define CONNECTION_OPTION(...) TERRACE_OPTION_ROW(connection, __VA_ARGS__)
#define HOST_OPTION(...) TERRACE_OPTION_ROW(host, __VA_ARGS__)
#define DISK_OPTION(...) TERRACE_OPTION_ROW(disk, __VA_ARGS__)
#define POLICY_OPTION(...) TERRACE_OPTION_ROW(policy, __VA_ARGS__)
#define SHADOW_OPTION(...) TERRACE_OPTION_ROW(shadow, __VA_ARGS__)
#define COPIER_OPTION(...) TERRACE_OPTION_ROW(copier, __VA_ARGS__)
#define GPU_OPTION(...) TERRACE_OPTION_ROW(gpu, __VA_ARGS__)
#define LEASE_OPTION(...) TERRACE_OPTION_ROW(lease, __VA_ARGS__)
#define METRICS_OPTION(...) TERRACE_OPTION_ROW(metrics, __VA_ARGS__)
#define RESP_OPTION(...) TERRACE_OPTION_ROW(resp, __VA_ARGS__)
#define REMOTE_OPTION(...) TERRACE_OPTION_ROW(remote, __VA_ARGS__)
#include "daemon/options.def"
};

constexpr former_option former_specs[] = {
#define FORMER_OPTION(section, key, instead) {#section, #key, instead},
#include "daemon/options.def"
};

constexpr option_section sections[] = {
    {.name = "daemon"},
    {.name = "listen",
     .repeated = true,
     .help = "One section per listening socket. Sockets of the same group share chunks and memory; groups "
             "share nothing."},
    {.name = "connection"},
    {.name = "host"},
    {.name = "disk"},
    {.name = "policy"},
    {.name = "shadow"},
    {.name = "copier"},
    {.name = "gpu"},
    {.name = "lease"},
    {.name = "metrics"},
    {.name = "resp",
     .repeated = true,
     .absent = true,
     .help = "A socket for Redis clients; one section each. There is none by default."},
    {.name = "remote",
     .repeated = true,
     .absent = true,
     .help = "A tier below the disk, or below host memory without one, on a Valkey or Redis server that "
             "several machines may share; at most three sections per group, in the order in which lookups "
             "ask them. There is none by default."},
};

std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\')
      out.push_back('\\');
    out.push_back(c);
  }
  return out + "\"";
}

struct formatter {
  option_kind kind;

  std::string operator()(const bool* value) const { return *value ? "true" : "false"; }
  std::string operator()(const uint32_t* value) const {
    return kind == option_kind::permissions ? in_quotes(format_permissions(*value)) : std::to_string(*value);
  }
  std::string operator()(const uint64_t* value) const {
    return *value == 0 ? "0" : in_quotes(format_bytes(*value));
  }
  std::string operator()(const std::string* value) const { return in_quotes(*value); }
  std::string operator()(const std::chrono::milliseconds* value) const {
    return in_quotes(format_duration(*value));
  }
  std::string operator()(const std::vector<uint32_t>* value) const {
    std::string text = "[";
    for (auto id : *value)
      text += (text.size() > 1 ? ", " : "") + std::to_string(id);
    return text + "]";
  }
  std::string operator()(const std::vector<std::string>* value) const {
    std::string text = "[";
    for (const auto& name : *value)
      text += (text.size() > 1 ? ", " : "") + in_quotes(name);
    return text + "]";
  }
  std::string operator()(const std::optional<uint64_t>* value) const {
    return *value ? in_quotes(format_bytes(**value)) : "\"auto\"";
  }
};

std::string format_number(option_kind kind, uint64_t value) {
  switch (kind) {
    case option_kind::bytes:
    case option_kind::share: return format_bytes(value);
    case option_kind::duration: return format_duration(std::chrono::milliseconds(value));
    default: return std::to_string(value);
  }
}

std::string list_of(std::span<const std::string_view> names) {
  std::string list;
  for (auto name : names)
    list += (list.empty() ? "" : ", ") + std::string(name);
  return list;
}

std::string range_of(const option_spec& spec) {
  return (spec.bounds.zero ? "0, or " : "") + format_number(spec.kind, spec.bounds.low) + " to " +
         format_number(spec.kind, spec.bounds.high);
}

/// Checks one value; the overloads are those of `option_ref`.
struct checker {
  const option_spec& spec;
  std::string option;
  std::vector<option_problem> found;

  void number(uint64_t value) {
    const option_bounds& bounds = spec.bounds;
    if (bounds.zero && value == 0)
      return;
    if (value < bounds.low || value > bounds.high)
      found.push_back({option, "is " + format_number(spec.kind, value), range_of(spec),
                       value < bounds.low ? "raise it" : "lower it"});
    if (value % bounds.multiple != 0)
      found.push_back({option, "is " + format_bytes(value), "a multiple of " + format_bytes(bounds.multiple),
                       "round it to " + format_bytes(std::max(bounds.multiple,
                                                              value / bounds.multiple * bounds.multiple))});
  }

  void name(std::string_view value) {
    if (spec.bounds.names == nullptr)
      return;
    auto names = spec.bounds.names();
    if (std::find(names.begin(), names.end(), value) != names.end())
      return;
    auto nearest = nearest_name(value, names);
    found.push_back(
        {option, "is \"" + std::string(value) + "\"", "one of " + list_of(names),
         nearest.empty() ? "name one of them" : "did you mean \"" + std::string(nearest) + "\"?"});
  }

  void elements(size_t count) {
    if (count < spec.bounds.elements_low || count > spec.bounds.elements_high)
      found.push_back(
          {option, "has " + std::to_string(count) + " elements",
           std::to_string(spec.bounds.elements_low) + " to " + std::to_string(spec.bounds.elements_high),
           count < spec.bounds.elements_low ? "add some" : "remove some"});
  }

  void operator()(const bool*) {}
  void operator()(const uint32_t* value) {
    if (spec.kind != option_kind::permissions)
      number(*value);
    else if (*value > 0777)
      found.push_back(
          {option, "is " + format_permissions(*value), "at most 0777", "use the nine permission bits"});
  }
  void operator()(const uint64_t* value) { number(*value); }
  void operator()(const std::optional<uint64_t>* value) {
    if (*value)
      number(**value);
  }
  void operator()(const std::chrono::milliseconds* value) { number(static_cast<uint64_t>(value->count())); }
  void operator()(const std::string* value) {
    if (spec.kind == option_kind::allocator)
      name(std::string_view(*value).substr(0, value->find(':')));
    else
      name(*value);
  }
  void operator()(const std::vector<uint32_t>* values) {
    elements(values->size());
    for (uint32_t value : *values)
      number(value);
  }
  void operator()(const std::vector<std::string>* values) {
    elements(values->size());
    for (const std::string& value : *values)
      name(value);
  }
};

constexpr size_t columns = 120;

/// Comment lines of `text`, broken between words.
std::string comment(std::string_view text) {
  std::string lines, line = "#";
  for (size_t at = 0; at < text.size();) {
    auto word = text.substr(at, std::min(text.find(' ', at), text.size()) - at);
    if (line.size() + 1 + word.size() > columns) {
      lines += line + "\n";
      line = "#";
    }
    line += " " + std::string(word);
    at += word.size() + 1;
  }
  return lines + line + "\n";
}

std::string heading(const option_section& section) {
  return section.repeated ? "[[" + std::string(section.name) + "]]" : "[" + std::string(section.name) + "]";
}

std::string commented_section(const option_section& section) {
  const std::string mark = section.absent ? "# " : "";
  std::string text = section.help.empty() ? "" : comment(section.help);
  text += mark + heading(section) + "\n";
  for (const auto& spec : option_specs) {
    if (spec.section != section.name)
      continue;
    std::string help = (spec.at_run_time ? "(run time) " : "") + std::string(spec.help);
    if (spec.bounds.names != nullptr)
      help += " One of: " + list_of(spec.bounds.names()) + ".";
    text += comment(help) + mark + std::string(spec.key) + " = " + format_default(spec) + "\n";
  }
  return text;
}

constexpr std::string_view top_comment =
    R"(# Every option of terraced with its default; leaving a line out has the same effect as keeping it. Sizes are bytes, or
# strings in powers of 1024 ("64KiB", "32MiB", "1GiB", "2TiB"); durations are strings ("250ms", "60s", "5m", "1h").
# `terraced --check --config FILE` reports every mistake in a file. docs/configuration.md explains when to change what.
# SIGHUP applies options marked "run time"; all others need a restart. `terraced --print-config` prints this file.
)";

constexpr std::string_view quota_comment =
    R"(# Quotas of tenants, one section each (run time). A tenant is the salt of its spaces; the name is shown instead of it.
# [[quota]]
# name = "batch"
# rule = "batch-*"            # each salt that begins so is a tenant of its own; or tenant = "the salt"
# group = "default"           # without it: in every trust group
# host_max = "2GiB"           # or percent of the tier, "10%"
# host_guaranteed = "5%"      # eviction for others takes a tenant no further down
# disk_max = "10%"
# disk_guaranteed = "1GiB"
)";

} // namespace

std::span<const option_spec> option_table() { return option_specs; }

std::span<const option_section> option_sections() { return sections; }

std::span<const former_option> former_options() { return former_specs; }

size_t sections_of(const option_spec& spec, const settings& config) {
  if (spec.section == "listen")
    return config.listen.size();
  if (spec.section == "resp")
    return config.resp.size();
  return spec.section == "remote" ? config.remote.size() : 1;
}

std::string option_name(const option_spec& spec, size_t socket) {
  auto name = std::string(spec.section);
  if (spec.section == "listen" || spec.section == "resp" || spec.section == "remote")
    name += "[" + std::to_string(socket) + "]";
  return name + "." + std::string(spec.key);
}

std::string format_option(const option_spec& spec, const settings& from, size_t socket) {
  // The table returns mutable references; a formatter only reads them.
  return std::visit(formatter{spec.kind}, spec.at(const_cast<settings&>(from), socket));
}

std::string format_default(const option_spec& spec) {
  if (spec.kind == option_kind::place || spec.kind == option_kind::places)
    return "\"auto\"";
  settings defaults;
  defaults.listen.emplace_back();
  defaults.resp.emplace_back();
  defaults.remote.emplace_back();
  return format_option(spec, defaults, 0);
}

std::string format_bounds(const option_spec& spec) {
  const option_bounds& bounds = spec.bounds;
  if (!bounds.text.empty())
    return std::string(bounds.text);
  if (bounds.names != nullptr)
    return list_of(bounds.names());
  std::string text = bounds.high == UINT64_MAX ? "" : range_of(spec);
  if (bounds.multiple != 1)
    text += ", in " + format_bytes(bounds.multiple);
  if (bounds.elements_high != SIZE_MAX)
    text += (text.empty() ? "at most " : ", at most ") + std::to_string(bounds.elements_high);
  return text;
}

std::vector<option_problem> check_option(const option_spec& spec, const settings& from, size_t socket) {
  checker check{spec, option_name(spec, socket), {}};
  std::visit(check, spec.at(const_cast<settings&>(from), socket));
  return std::move(check.found);
}

std::string commented_configuration() {
  std::string text(top_comment);
  bool quotas = false; // they stand before the first section that is absent
  for (const option_section& section : sections) {
    if (section.absent && !std::exchange(quotas, true))
      text += "\n" + std::string(quota_comment);
    text += "\n" + commented_section(section);
  }
  return text;
}

std::string documented_options(std::string_view section) {
  std::string text = "| option | unit | default | bounds | run time | meaning, and when to change it |\n"
                     "|---|---|---|---|---|---|\n";
  for (const auto& spec : option_specs)
    if (spec.section == section)
      text += "| `" + std::string(spec.key) + "` | " + std::string(spec.unit) + " | `" +
              format_default(spec) + "` | " + format_bounds(spec) + " | " +
              (spec.at_run_time ? "yes" : "no") + " | " + std::string(spec.help) +
              (spec.more.empty() ? "" : " ") + std::string(spec.more) + " |\n";
  return text;
}

std::string documented_former_options() {
  std::string text = "| option | what to do |\n|---|---|\n";
  for (const auto& former : former_specs)
    text += "| `" + std::string(former.section) + "." + std::string(former.key) + "` | " +
            std::string(former.instead) + " |\n";
  return text;
}

std::string option_reference() {
  std::string text;
  for (const option_section& section : sections)
    text += "## " + heading(section) + "\n\n" + documented_options(section.name) + "\n";
  return text + "## Options that went\n\n" + documented_former_options();
}

std::string_view describe(option_kind kind) {
  switch (kind) {
    case option_kind::flag: return "true or false";
    case option_kind::count: return "a whole number that is not negative, without quotes";
    case option_kind::text: return "a string in quotes";
    case option_kind::place: return "an absolute path in quotes, or \"auto\"";
    case option_kind::places: return "an absolute path in quotes, an array of them, or \"auto\"";
    case option_kind::allocator: return "a name in quotes, such as \"size_class\" or \"paged:4MiB\"";
    case option_kind::bytes: return "a size: bytes as a number, or a string with a unit such as \"64MiB\"";
    case option_kind::share: return "a size such as \"64MiB\", or \"auto\"";
    case option_kind::duration: return "a duration with its unit, such as \"250ms\", \"60s\" or \"5m\"";
    case option_kind::permissions: return "an octal string of at most \"0777\", such as \"0660\"";
    case option_kind::counts: return "an array of whole numbers, such as [50, 100]";
    case option_kind::names: return "an array of strings, such as [\"lru\", \"arc\"]";
    case option_kind::ids: return "an array of user or group ids, such as [0, 1000]";
  }
  return "";
}

} // namespace terrace
