#include "actors/resp/redis_session.hpp"

#include <algorithm>
#include <charconv>

namespace terrace::resp {

namespace {

// Clients use this version to find out which commands a server has; the commands of this daemon behave as in this
// version.
constexpr std::string_view redis_version = "7.0.0";

/// Compares in a time that does not reveal how much is equal.
bool equal_secrets(std::string_view a, std::string_view b) {
  unsigned char different = a.size() == b.size() ? 0 : 1;
  for (size_t i = 0; i < a.size(); ++i)
    different = static_cast<unsigned char>(different | (a[i] ^ (b.empty() ? '\1' : b[i % b.size()])));
  return different == 0;
}

std::string quoted(std::string_view text) {
  return "'" + std::string(text.substr(0, 64)) + (text.size() > 64 ? "...'" : "'");
}

} // namespace

bool redis_session::may_call(const command_row* row, std::string_view called, size_t words_count,
                             std::string& to) {
  const bool leaves = row != nullptr && row->command == command::quit;
  if (admitted_ && !leaves && (in_transaction_ || same_word(called, "multi"))) {
    bool ends = in_transaction_ && (same_word(called, "exec") || same_word(called, "discard"));
    append_error(
        to, ends ? "EXECABORT" : "ERR",
        std::string(ends ? "Transaction discarded" : quoted(called) + " was not carried out") +
            ": this server has no transactions; clients can send commands together without them, redis-py by "
            "pipeline(transaction=False)");
    in_transaction_ = !ends;
    return false;
  }
  if (row == nullptr) {
    append_error(to, "ERR", "unknown command " + quoted(called) + "; COMMAND lists those of this server");
    return false;
  }
  bool opens =
      row->command == command::auth || row->command == command::hello || row->command == command::quit;
  if (!admitted_ && !opens) {
    append_error(to, "NOAUTH", "Authentication required.");
    return false;
  }
  if (!row->accepts(words_count) || (row->command == command::mset && words_count % 2 == 0)) {
    append_error(to, "ERR", "wrong number of arguments for '" + std::string(row->name) + "' command");
    return false;
  }
  return true;
}

void redis_session::serve(command what, words said, std::string& to,
                          const std::function<std::string()>& info) {
  switch (what) {
    case command::ping:
      if (said.size() > 2)
        return append_error(to, "ERR", "wrong number of arguments for 'ping' command");
      return said.size() == 2 ? append_value(to, said[1]) : append_simple(to, "PONG");
    case command::echo: return append_value(to, said[1]);
    case command::auth: return auth(said, to);
    case command::hello: return hello(said, to);
    case command::info: return append_value(to, info());
    case command::command: return list_commands(said, to);
    case command::config:
      if (same_word(said[1], "get"))
        return append_map_head(to, version_, 0);
      return append_error(to, "ERR", "the configuration is terraced's own file");
    case command::select:
      if (said[1] == "0")
        return append_simple(to, "OK");
      return append_error(to, "ERR", "DB index is out of range: there is database 0 alone");
    case command::client: return client(said, to);
    case command::quit: leaves_ = true; return append_simple(to, "OK");
    default: return append_error(to, "ERR", "not served here");
  }
}

bool redis_session::knows(std::string_view user, std::string_view password) {
  bool right = equal_secrets(password, password_);
  if (user == "default" && right && !password_.empty())
    return true;
  ++wrong_passwords_;
  return false;
}

void redis_session::auth(words said, std::string& to) {
  if (said.size() > 3)
    return append_error(to, "ERR", "wrong number of arguments for 'auth' command");
  if (password_.empty())
    return append_error(to, "ERR", "AUTH was called without any password configured for this socket");
  if (!knows(said.size() == 3 ? said[1] : "default", said.back()))
    return append_error(to, "WRONGPASS", "invalid username-password pair or user is disabled.");
  admitted_ = true;
  append_simple(to, "OK");
}

bool redis_session::set_name(std::string_view name, std::string& to) {
  if (name.size() > name_bytes_max ||
      !std::all_of(name.begin(), name.end(), [](char c) { return c > ' ' && c < 0x7f; })) {
    append_error(to, "ERR", "a client's name has at most 256 bytes, without spaces and special characters");
    return false;
  }
  name_ = name;
  return true;
}

void redis_session::hello(words said, std::string& to) {
  version wanted = version_;
  size_t at = 1;
  if (said.size() > 1) {
    if (said[1] != "2" && said[1] != "3")
      return append_error(to, "NOPROTO", "unsupported protocol version");
    wanted = said[1] == "3" ? version::resp3 : version::resp2;
    at = 2;
  }
  bool admits = admitted_;
  std::string_view name = name_;
  while (at < said.size()) {
    if (same_word(said[at], "auth") && at + 2 < said.size()) {
      if (!knows(said[at + 1], said[at + 2]))
        return append_error(to, "WRONGPASS", "invalid username-password pair or user is disabled.");
      admits = true;
      at += 3;
    } else if (same_word(said[at], "setname") && at + 1 < said.size()) {
      name = said[at + 1];
      at += 2;
    } else {
      return append_error(to, "ERR", "Syntax error in HELLO option " + quoted(said[at]));
    }
  }
  if (!admits)
    return append_error(to, "NOAUTH",
                        "HELLO must be called with the client already authenticated, otherwise "
                        "the HELLO <proto> AUTH <user> <pass> option can be used");
  if (!set_name(std::string(name), to))
    return;
  admitted_ = true;
  version_ = wanted;
  append_map_head(to, version_, 7);
  auto pair = [&to](std::string_view key, std::string_view value) {
    append_value(to, key);
    append_value(to, value);
  };
  pair("server", "redis");
  pair("version", redis_version);
  append_value(to, "proto");
  append_integer(to, static_cast<uint64_t>(version_));
  append_value(to, "id");
  append_integer(to, id_);
  pair("mode", "standalone");
  pair("role", "master");
  append_value(to, "modules");
  append_array_head(to, 0);
}

void redis_session::client(words said, std::string& to) {
  auto is = [&](std::string_view word, size_t count) {
    return same_word(said[1], word) && said.size() == count;
  };
  if (is("setname", 3)) {
    if (set_name(said[2], to))
      append_simple(to, "OK");
  } else if (is("setinfo", 4)) {
    append_simple(to, "OK"); // the name of the client's library, which is ignored
  } else if (is("getname", 2)) {
    if (name_.empty())
      append_null(to, version_);
    else
      append_value(to, name_);
  } else if (is("id", 2)) {
    append_integer(to, id_);
  } else {
    append_error(to, "ERR",
                 "unknown subcommand " + quoted(said[1]) + ": CLIENT has SETNAME, SETINFO, GETNAME and ID");
  }
}

void redis_session::list_commands(words said, std::string& to) const {
  auto table = command_table();
  if (said.size() > 1 && same_word(said[1], "count"))
    return append_integer(to, table.size());
  if (said.size() > 1 && same_word(said[1], "docs"))
    return append_map_head(to, version_, 0);
  if (said.size() > 1 && !same_word(said[1], "info"))
    return append_error(to, "ERR",
                        "unknown subcommand " + quoted(said[1]) + ": COMMAND has COUNT, INFO and DOCS");
  auto row = [&](const command_row& one) {
    append_array_head(to, 6);
    append_value(to, one.name);
    if (one.arity < 0) {
      to.append(":-");
      to.append(std::to_string(-one.arity));
      to.append("\r\n");
    } else {
      append_integer(to, static_cast<uint64_t>(one.arity));
    }
    append_array_head(to, 1);
    append_simple(to, one.writes ? "write" : "readonly");
    for (int key : {one.first_key, one.last_key, one.step})
      if (key < 0)
        to.append(":-1\r\n");
      else
        append_integer(to, static_cast<uint64_t>(key));
  };
  if (said.size() <= 2) {
    append_array_head(to, table.size());
    for (const command_row& one : table)
      row(one);
    return;
  }
  append_array_head(to, said.size() - 2);
  for (std::string_view name : said.subspan(2)) {
    if (const command_row* found = find_command(name))
      row(*found);
    else
      append_null(to, version_);
  }
}

} // namespace terrace::resp
