#include "protocol/resp/commands.hpp"

#include <algorithm>
#include <array>

namespace terrace::resp {

namespace {

constexpr std::array<command_row, commands - 1> rows{{
    {command::get, "get", 2, false, 1, 1, 1},
    {command::mget, "mget", -2, false, 1, -1, 1},
    {command::exists, "exists", -2, false, 1, -1, 1},
    {command::set, "set", -3, true, 1, 1, 1},
    {command::mset, "mset", -3, true, 1, -1, 2},
    {command::del, "del", -2, true, 1, -1, 1},
    {command::unlink, "unlink", -2, true, 1, -1, 1},
    {command::dbsize, "dbsize", 1, false, 0, 0, 0},
    {command::ping, "ping", -1, false, 0, 0, 0},
    {command::echo, "echo", 2, false, 0, 0, 0},
    {command::auth, "auth", -2, false, 0, 0, 0},
    {command::hello, "hello", -1, false, 0, 0, 0},
    {command::info, "info", -1, false, 0, 0, 0},
    {command::command, "command", -1, false, 0, 0, 0},
    {command::config, "config", -2, false, 0, 0, 0},
    {command::select, "select", 2, false, 0, 0, 0},
    {command::client, "client", -2, false, 0, 0, 0},
    {command::quit, "quit", -1, false, 0, 0, 0},
}};

constexpr char to_lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

} // namespace

std::span<const command_row> command_table() { return rows; }

bool same_word(std::string_view word, std::string_view lower) {
  return word.size() == lower.size() &&
         std::equal(word.begin(), word.end(), lower.begin(), [](char a, char b) { return to_lower(a) == b; });
}

const command_row* find_command(std::string_view name) {
  auto found =
      std::find_if(rows.begin(), rows.end(), [name](const auto& row) { return same_word(name, row.name); });
  return found == rows.end() ? nullptr : &*found;
}

std::string_view to_string(command what) {
  return what == command::unknown ? "other" : rows[static_cast<size_t>(what)].name;
}

} // namespace terrace::resp
