// The commands of a Redis client that need no cache: who it is, which protocol version it speaks, and
// questions about the server.
//
// Pure; used by one thread at a time.
#pragma once

#include "protocol/resp/commands.hpp"
#include "protocol/resp/reply.hpp"

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace terrace::resp {

class redis_session {
 public:
  using words = std::span<const std::string_view>;
  static constexpr size_t name_bytes_max = 256; ///< bytes of the client's name for itself

  /// `password`: empty: none is needed. `id`: id of the connection, for CLIENT ID and HELLO.
  redis_session(std::string password, uint64_t id)
      : password_(std::move(password)), id_(id), admitted_(password_.empty()) {}

  version in() const { return version_; }
  const std::string& name() const { return name_; }
  bool admitted() const { return admitted_; } ///< the client needs no password, or has given it
  bool leaves() const { return leaves_; }     ///< the client said QUIT
  uint64_t wrong_passwords() const { return wrong_passwords_; }

  /// True if the client may call the command now, with this many words, its name included. Otherwise appends
  /// the reason. `row`: null if there is no such command. There are no transactions: from MULTI to EXEC it returns
  /// false, except for QUIT.
  bool may_call(const command_row* row, std::string_view called, size_t words_count, std::string& to);

  /// Serves a command without keys, except DBSIZE. Precondition: `may_call` returned true. `info`: returns
  /// the text of INFO.
  void serve(command what, words said, std::string& to, const std::function<std::string()>& info);

 private:
  void auth(words said, std::string& to);
  void hello(words said, std::string& to);
  void client(words said, std::string& to);
  void list_commands(words said, std::string& to) const;
  bool knows(std::string_view user, std::string_view password);
  bool set_name(std::string_view name, std::string& to);

  std::string password_;
  uint64_t id_;
  std::string name_;
  version version_ = version::resp2;
  bool admitted_;
  bool leaves_ = false;
  bool in_transaction_ = false;
  uint64_t wrong_passwords_ = 0;
};

} // namespace terrace::resp
