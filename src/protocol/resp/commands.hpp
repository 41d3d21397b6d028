// The commands that Redis clients may send.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace terrace::resp {

enum class command : uint8_t {
  get,
  mget,
  exists,
  set,
  mset,
  del,
  unlink,
  dbsize,
  ping,
  echo,
  auth,
  hello,
  info,
  command,
  config,
  select,
  client,
  quit,
  unknown, ///< any other command
};
constexpr size_t commands = 19;

struct command_row {
  resp::command command = resp::command::unknown;
  std::string_view name; ///< lower case
  int arity = 0;         ///< number of words of a call, its name included; negative: at least that many
  bool writes = false;
  int first_key = 0; ///< 0: no keys
  int last_key = 0;  ///< negative: counted from the end
  int step = 0;

  bool accepts(size_t words) const {
    return arity >= 0 ? words == static_cast<size_t>(arity) : words >= static_cast<size_t>(-arity);
  }
};

/// All commands except `unknown`, in the order of the enumeration.
std::span<const command_row> command_table();

/// Finds a command by name, in any case. Null: there is no such command.
const command_row* find_command(std::string_view name);

std::string_view to_string(command what);

/// Compares without regard to case; `lower` is in lower case.
bool same_word(std::string_view word, std::string_view lower);

} // namespace terrace::resp
