// What `terrace doctor` reads of a daemon's configuration.
#include "cli/doctor.hpp"

#include "cli/units.hpp"

#include <toml++/toml.h>

#include <string>

namespace terrace::cli {

namespace {

/// A size that the file gives as a number or as "4GiB".
outcome<void> read_size(const toml::table& file, std::string_view section, const std::string& name,
                        uint64_t& to) {
  auto value = file[section]["bytes"];
  if (auto number = value.value_exact<int64_t>(); number && *number >= 0)
    to = static_cast<uint64_t>(*number);
  else if (auto text = value.value_exact<std::string>()) {
    auto bytes = parse_bytes(*text);
    if (!bytes)
      return bad_usage(name + ": [" + std::string(section) + "] bytes: " + bytes.error().text);
    to = *bytes;
  } else if (value)
    return bad_usage(name + ": [" + std::string(section) + "] bytes: expected a size such as \"4GiB\"");
  return {};
}

void read_paths(const toml::table& file, doctor_subject& subject) {
  if (const toml::array* listens = file["listen"].as_array()) {
    std::vector<std::string> sockets;
    for (const toml::node& each : *listens)
      if (const toml::table* listen = each.as_table())
        if (auto path = (*listen)["path"].value<std::string>())
          sockets.push_back(*path);
    if (!sockets.empty())
      subject.sockets = std::move(sockets);
  }
  auto path = file["disk"]["path"];
  if (auto one = path.value<std::string>(); one && *one != "auto")
    subject.disks = {*one};
  if (const toml::array* several = path.as_array()) {
    subject.disks.clear();
    for (const toml::node& each : *several)
      if (auto one = each.value<std::string>())
        subject.disks.push_back(*one);
  }
  subject.metrics = file["metrics"]["address"].value_or(subject.metrics);
}

} // namespace

outcome<doctor_subject> read_subject(std::string_view text, const std::string& file) {
  toml::table table;
  try {
    table = toml::parse(text);
  } catch (const toml::parse_error& problem) {
    return bad_usage(file + ": line " + std::to_string(problem.source().begin.line) + ": " +
                     std::string(problem.description()));
  }
  doctor_subject subject;
  read_paths(table, subject);
  if (auto read = read_size(table, "host", file, subject.host_bytes); !read)
    return tl::unexpected(read.error());
  if (auto read = read_size(table, "disk", file, subject.disk_bytes); !read)
    return tl::unexpected(read.error());
  if (subject.disk_bytes == 0)
    subject.disks.clear();
  return subject;
}

} // namespace terrace::cli
