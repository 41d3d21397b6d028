#include "daemon/settings_toml.hpp"

#include "base/nearest_name.hpp"
#include "daemon/settings_table.hpp"
#include "daemon/settings_units.hpp"

#include <toml++/toml.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>
#include <map>

namespace terrace {
namespace {

uint32_t line_of(const toml::node& node) { return node.source().begin.line; }

std::string_view type_name(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::table: return "a table";
    case toml::node_type::array: return "an array";
    case toml::node_type::string: return "a string";
    case toml::node_type::integer: return "a whole number";
    case toml::node_type::floating_point: return "a number with a fraction";
    case toml::node_type::boolean: return "true or false";
    default: return "a date or time";
  }
}

/// Keys and strings can contain anything; messages are written to terminals and logs.
std::string printable(std::string_view text) {
  std::string out;
  for (unsigned char c : text.substr(0, 500))
    out += c < 0x20 || c == 0x7f ? '?' : static_cast<char>(c);
  return out;
}

class reader {
 public:
  reader(std::string_view file, const environment& env)
      : file_(file), env_(env), settings_(default_settings(env)) {}

  parsed_settings read(const toml::table& root) {
    for (auto&& [key, node] : root)
      read_section(key.str(), node);
    check_values();
    if (problems_.empty())
      return std::move(settings_);
    std::stable_sort(problems_.begin(), problems_.end(),
                     [](const auto& a, const auto& b) { return a.line < b.line; });
    return tl::unexpected(std::move(problems_));
  }

  /// After `read` has found mistakes.
  partial_settings rest() && { return {std::move(settings_), std::move(wrong_)}; }

 private:
  /// `wrong` begins with an option, or with a section in quotes.
  void say(uint32_t line, const std::string& wrong, const std::string& expected, const std::string& fix) {
    problems_.push_back({file_, line, printable(wrong), printable(expected), printable(fix)});
    std::string name = wrong.substr(0, wrong.find(' '));
    std::erase(name, '\'');
    if (const auto number = name.find('['); number != std::string::npos)
      name.erase(number, name.find(']') + 1 - number);
    wrong_.push_back(std::move(name));
  }

  void read_section(std::string_view name, const toml::node& node) {
    if (name == "quota")
      return read_quotas(node);
    if (name == "resp")
      return read_repeated("resp", "redis", settings_.resp, node);
    if (name == "remote")
      return read_repeated("remote", "group", settings_.remote, node);
    auto known = option_sections();
    if (std::none_of(known.begin(), known.end(), [&](const auto& one) { return one.name == name; }))
      return unknown_section(name, node);
    lines_[std::string(name)] = line_of(node);
    if (name == "listen")
      return read_sockets(node);
    if (const auto* table = node.as_table())
      return read_options(name, *table, 0);
    say(line_of(node), "'" + std::string(name) + "' is " + std::string(type_name(node)), "a section",
        "write [" + std::string(name) + "] on a line of its own, its options below it");
  }

  void read_sockets(const toml::node& node) {
    const auto* sockets = node.as_array();
    if (!sockets ||
        !std::all_of(sockets->begin(), sockets->end(), [](const auto& e) { return e.is_table(); })) {
      say(line_of(node), "'listen' is " + std::string(type_name(node)),
          "one [[listen]] section for each socket", "write [[listen]] with double brackets");
      return;
    }
    settings_.listen.clear();
    for (const auto& socket : *sockets) {
      auto index = settings_.listen.size();
      settings_.listen.emplace_back().path = env_.socket_path();
      lines_["listen[" + std::to_string(index) + "]"] = line_of(socket);
      read_options("listen", *socket.as_table(), index);
    }
  }

  /// Reads a section of which there may be any number, `what` each.
  template <class Options>
  void read_repeated(const std::string& name, const char* what, std::vector<Options>& into,
                     const toml::node& node) {
    lines_[name] = line_of(node);
    const auto* all = node.as_array();
    if (!all || !std::all_of(all->begin(), all->end(), [](const auto& e) { return e.is_table(); })) {
      say(line_of(node), "'" + name + "' is " + std::string(type_name(node)),
          "one [[" + name + "]] section for each " + what, "write [[" + name + "]] with double brackets");
      return;
    }
    for (const auto& one : *all) {
      auto index = into.size();
      into.emplace_back();
      lines_[name + "[" + std::to_string(index) + "]"] = line_of(one);
      read_options(name, *one.as_table(), index);
    }
  }

  void read_quotas(const toml::node& node) {
    lines_["quota"] = line_of(node);
    const auto* quotas = node.as_array();
    if (!quotas || !std::all_of(quotas->begin(), quotas->end(), [](const auto& e) { return e.is_table(); })) {
      say(line_of(node), "'quota' is " + std::string(type_name(node)), "one [[quota]] section for each quota",
          "write [[quota]] with double brackets");
      return;
    }
    for (const auto& quota : *quotas) {
      std::string name = "quota[" + std::to_string(settings_.quota.size()) + "]";
      lines_[name] = line_of(quota);
      settings_.quota.emplace_back();
      for (auto&& [key, value] : *quota.as_table())
        read_quota_option(name, key.str(), value, key.source().begin.line);
    }
  }

  /// What is said of a tenant does not contain its salt.
  void read_quota_option(const std::string& quota, std::string_view key, const toml::node& node,
                         uint32_t line) {
    const auto& keys = quota_options::keys();
    auto found = std::find_if(keys.begin(), keys.end(), [&](const auto& k) { return k.name == key; });
    if (found == keys.end()) {
      std::vector<std::string_view> names;
      for (const auto& one : keys)
        names.push_back(one.name);
      auto nearest = nearest_name(key, names);
      say(line, "unknown option '" + std::string(key) + "' in [[quota]]",
          "an option of this section: tiers are host and disk, see docs/configuration.md",
          nearest.empty() ? "remove it" : "did you mean '" + std::string(nearest) + "'?");
      return;
    }
    std::string name = quota + "." + std::string(key);
    lines_[name] = line;
    std::string& value = settings_.quota.back().*found->value;
    if (auto text = node.value_exact<std::string>())
      value = *text;
    else if (auto bytes = node.value_exact<int64_t>(); found->size && bytes && *bytes >= 0)
      value = std::to_string(*bytes);
    else
      say(line, name + " is " + std::string(type_name(node)),
          found->size ? "a size such as \"2GiB\", or a share such as \"25%\"" : "a string in quotes",
          "write it in quotes");
  }

  void read_options(std::string_view section, const toml::table& table, size_t socket) {
    for (auto&& [key, node] : table) {
      auto name = key.str();
      auto options = option_table();
      auto found = std::find_if(options.begin(), options.end(), [&](const auto& spec) {
        return spec.section == section && spec.key == name;
      });
      // The key's own line, because a value may be a table or an array that starts further below.
      auto line = key.source().begin.line;
      if (found == options.end()) {
        unknown_option(section, name, line);
        continue;
      }
      lines_[option_name(*found, socket)] = line;
      read_value(*found, node, socket, line);
    }
  }

  void unknown_section(std::string_view name, const toml::node& node) {
    for (const auto& spec : option_table())
      if (spec.key == name && !node.is_table())
        return say(line_of(node), "'" + std::string(name) + "' stands before any section",
                   "it below its section", "move it below [" + std::string(spec.section) + "]");
    std::vector<std::string_view> names;
    for (const auto& section : option_sections())
      names.push_back(section.name);
    auto nearest = nearest_name(name, names);
    say(line_of(node), "unknown section '" + std::string(name) + "'", "a section of docs/configuration.md",
        nearest.empty() ? "remove it" : "did you mean [" + std::string(nearest) + "]?");
  }

  void unknown_option(std::string_view section, std::string_view name, uint32_t line) {
    for (const auto& former : former_options())
      if (former.section == section && former.key == name)
        return say(line,
                   "option '" + std::string(name) + "' in [" + std::string(section) + "] exists no longer",
                   "an option of this section, see CHANGELOG.md", std::string(former.instead));
    std::vector<std::string_view> keys;
    std::string_view elsewhere;
    for (const auto& spec : option_table()) {
      if (spec.section == section)
        keys.push_back(spec.key);
      else if (spec.key == name && elsewhere.empty())
        elsewhere = spec.section;
    }
    auto nearest = nearest_name(name, keys);
    std::string fix = "remove it";
    if (!nearest.empty())
      fix = "did you mean '" + std::string(nearest) + "'?";
    else if (!elsewhere.empty())
      fix = "move it to [" + std::string(elsewhere) + "], which has such an option";
    say(line, "unknown option '" + std::string(name) + "' in [" + std::string(section) + "]",
        "an option of this section, see docs/configuration.md", fix);
  }

  void read_value(const option_spec& spec, const toml::node& node, size_t socket, uint32_t line) {
    auto stored = store(spec, node, spec.at(settings_, socket));
    if (stored)
      return;
    auto name = option_name(spec, socket);
    faulty_.push_back(name);
    std::string wrong = stored.error();
    const std::string meant = take_suggestion(wrong), written = format_default(spec);
    const std::string fix = is_valid(spec, meant, socket) ? "\"" + meant + "\"" : written;
    say(line, name + " " + wrong, std::string(describe(spec.kind)),
        fix == "\"\"" ? "write it in quotes" : "write " + std::string(spec.key) + " = " + fix);
  }

  using outcome = tl::expected<void, std::string>;

  /// The option may have this value by itself.
  bool is_valid(const option_spec& spec, const std::string& text, size_t socket) const {
    settings tried = settings_;
    return !text.empty() && store(spec, toml::value<std::string>(text), spec.at(tried, socket)) &&
           check_option(spec, tried, socket).empty();
  }

  static outcome refuse(std::string text) { return tl::unexpected(std::move(text)); }

  static outcome wrong_type(const toml::node& node) { return refuse("is " + std::string(type_name(node))); }

  template <class T>
  static outcome take(const toml::node& node, T& target, result<T> (*parse)(std::string_view)) {
    auto text = node.value_exact<std::string_view>();
    if (!text)
      return wrong_type(node);
    auto parsed = parse(*text);
    if (!parsed)
      return refuse("is \"" + std::string(*text) + "\", which " + parsed.error().text);
    target = *parsed;
    return {};
  }

  template <class T>
  static outcome take_number(const toml::node& node, T& target) {
    auto number = node.value_exact<int64_t>();
    if (!number)
      return wrong_type(node);
    if (*number < 0)
      return refuse("is " + std::to_string(*number));
    if (static_cast<uint64_t>(*number) > std::numeric_limits<T>::max())
      return refuse("is " + std::to_string(*number) + ", which is too large");
    target = static_cast<T>(*number);
    return {};
  }

  static outcome take_bytes(const toml::node& node, uint64_t& target) {
    return node.is_integer() ? take_number(node, target) : take<uint64_t>(node, target, parse_bytes);
  }

  static outcome take_ids(const toml::node& node, std::vector<uint32_t>& target) {
    const auto* array = node.as_array();
    if (!array)
      return wrong_type(node);
    std::vector<uint32_t> ids;
    for (const auto& element : *array) {
      if (auto taken = take_number(element, ids.emplace_back()); !taken)
        return refuse("contains an element that " + taken.error());
    }
    target = std::move(ids);
    return {};
  }

  static outcome take_names(const toml::node& node, std::vector<std::string>& target) {
    const auto* array = node.as_array();
    if (!array)
      return wrong_type(node);
    std::vector<std::string> names;
    for (const auto& element : *array) {
      auto name = element.value_exact<std::string>();
      if (!name)
        return refuse("contains an element that is not a string");
      names.push_back(std::move(*name));
    }
    target = std::move(names);
    return {};
  }

  outcome take_text(const option_spec& spec, const toml::node& node, std::string& target) const {
    auto text = node.value_exact<std::string>();
    if (!text)
      return wrong_type(node);
    if (spec.kind == option_kind::place && *text == "auto")
      target = env_.socket_path();
    else
      target = std::move(*text);
    return {};
  }

  outcome take_places(const toml::node& node, std::vector<std::string>& target) const {
    auto text = node.value_exact<std::string>();
    if (!text)
      return take_names(node, target);
    target = {*text == "auto" ? env_.state_path() : *text};
    return {};
  }

  outcome store(const option_spec& spec, const toml::node& node, option_ref target) const {
    switch (spec.kind) {
      case option_kind::flag: {
        auto flag = node.value_exact<bool>();
        if (!flag)
          return wrong_type(node);
        *std::get<bool*>(target) = *flag;
        return {};
      }
      case option_kind::count: return take_number(node, *std::get<uint32_t*>(target));
      case option_kind::text:
      case option_kind::allocator:
      case option_kind::place: return take_text(spec, node, *std::get<std::string*>(target));
      case option_kind::bytes: return take_bytes(node, *std::get<uint64_t*>(target));
      case option_kind::share: {
        auto& share = *std::get<std::optional<uint64_t>*>(target);
        if (node.value_exact<std::string_view>() == "auto") {
          share.reset();
          return {};
        }
        return take_bytes(node, share.emplace());
      }
      case option_kind::duration:
        return take<std::chrono::milliseconds>(node, *std::get<std::chrono::milliseconds*>(target),
                                               parse_duration);
      case option_kind::permissions:
        return take<uint32_t>(node, *std::get<uint32_t*>(target), parse_permissions);
      case option_kind::places: return take_places(node, *std::get<std::vector<std::string>*>(target));
      case option_kind::names: return take_names(node, *std::get<std::vector<std::string>*>(target));
      case option_kind::counts:
      case option_kind::ids: return take_ids(node, *std::get<std::vector<uint32_t>*>(target));
    }
    return {};
  }

  /// Bounds and inconsistencies, each at the line of its option, or of its section if the option is not
  /// written.
  void check_values() {
    for (auto& problem : settings_.validate()) {
      // The value is the default or incomplete; the mistake is already reported.
      if (std::find(faulty_.begin(), faulty_.end(), problem.option) != faulty_.end())
        continue;
      auto found = lines_.find(problem.option);
      if (found == lines_.end())
        found = lines_.find(problem.option.substr(0, problem.option.find('.')));
      say(found == lines_.end() ? 1 : found->second, problem.option + " " + problem.wrong, problem.expected,
          problem.fix);
    }
  }

  std::string file_;
  const environment& env_;
  settings settings_;
  std::vector<settings_problem> problems_;
  std::vector<std::string> wrong_;        // as in `partial_settings`
  std::vector<std::string> faulty_;       // options whose value could not be read
  std::map<std::string, uint32_t> lines_; // of sections and options
};

parsed_settings refuse_file(std::string_view file, uint32_t line, std::string wrong, std::string expected,
                            std::string fix) {
  return tl::unexpected(std::vector<settings_problem>{
      {std::string(file), line, std::move(wrong), std::move(expected), std::move(fix)}});
}

} // namespace

namespace {

parsed_settings parse(std::string_view text, std::string_view filename, const environment& env,
                      std::optional<partial_settings>* partial) {
  if (text.size() > settings_text_max)
    return refuse_file(filename, 1, "the file has " + std::to_string(text.size()) + " bytes",
                       "at most " + std::to_string(settings_text_max), "check that it is the right file");
  try {
    reader from(filename, env);
    auto parsed = from.read(toml::parse(text, filename));
    if (!parsed && partial != nullptr)
      *partial = std::move(from).rest();
    return parsed;
  } catch (const toml::parse_error& e) {
    return refuse_file(filename, e.source().begin.line, "this is not TOML: " + printable(e.description()),
                       "sections [name] and lines of the form option = value",
                       "correct this line; the lines after it were not checked");
  }
}

} // namespace

parsed_settings parse_settings(std::string_view text, std::string_view filename, const environment& env) {
  return parse(text, filename, env, nullptr);
}

namespace {

/// Up to one byte more than `settings_text_max`. Nothing, with errno, if the file cannot be read.
std::optional<std::string> read_text(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string text(settings_text_max + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file.eof() && file.fail())
    return std::nullopt;
  text.resize(static_cast<size_t>(file.gcount()));
  return text;
}

} // namespace

parsed_settings load_settings(const std::string& path, const environment& env,
                              std::optional<partial_settings>* partial) {
  auto text = read_text(path);
  if (!text)
    return refuse_file(path, 0, "the file cannot be read: " + std::string(std::strerror(errno)),
                       "a readable file", "check the path and its permissions");
  if (text->find_first_not_of(" \t\r\n") == std::string::npos)
    return refuse_file(path, 1, "the file is empty", "sections and options, or at least a comment",
                       "restore the file; to run with the defaults, start without --config");
  return parse(*text, path, env, partial);
}

bool asks_for_json_log(const std::string& path) {
  auto text = read_text(path);
  if (!text)
    return false;
  try {
    return toml::parse(*text)["daemon"]["log_json"].value_or(false);
  } catch (const toml::parse_error&) {
    return false;
  }
}

std::string render_problems(const std::vector<settings_problem>& problems) {
  std::string text;
  for (const auto& p : problems)
    text += p.file + ":" + (p.line ? std::to_string(p.line) + ": " : " ") + p.wrong + "; expected " +
            p.expected + "; fix: " + p.fix + "\n";
  return text;
}

} // namespace terrace
