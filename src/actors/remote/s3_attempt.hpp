// A command to a bucket, and the HTTP requests that carry it out by libcurl: one, or a second one as well if the first is not answered as
// soon as others (remote/hedging.hpp). The link (s3_link.cpp) begins and ends them.
//
// A command has one memory for the value, and one of its attempts at a time writes there: the first of which a byte of the value
// arrives. The other one pauses if it has bytes as well, with those that its socket and libcurl have. It ends when the first one has the
// whole value, and goes on if that one fails. So no bytes are mixed, and few are received twice.
//
// libcurl copies: between its buffers and the memory that a command names, while it is called. So that memory is free once the
// attempts have ended.
#pragma once

#include "base/keep_alive.hpp"
#include "remote/hedging.hpp"
#include "remote/s3_request.hpp"
#include "remote/store_address.hpp"
#include "remote/store_commands.hpp"
#include "remote/tls_stream.hpp"

#include <curl/curl.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace terrace::actors {

class s3_attempt;

/// The attempts of a link share this.
struct s3_conversation {
  remote::store_address address;
  remote::store_credentials with;
  bool reached = false;
  uint64_t heard = 0; ///< times that the store has said or taken something
  std::string server_name, server_version;
};

/// A command.
struct s3_transfer {
  enum class kind : uint8_t { greet, exists, read, read_text, write, make, erase, length, scan };
  using time_point = remote::hedging::time_point;

  kind what{};
  remote::finished_command result{};
  remote::s3_request request{};
  std::array<std::span<std::byte>, 2> memory{}; ///< of header and payload
  std::string head;                             ///< what is sent, and behind it
  std::span<const std::byte> payload{};
  keep_alive owner{};
  bool over = false;
  time_point begun_at{};
  std::chrono::nanoseconds limit{}; ///< for all attempts together
  uint64_t heard_before = 0;
  std::optional<time_point> hedge_at{}; ///< unless its answer has begun by then
  size_t attempts = 0;                  ///< that may still answer
  uint32_t again = 0; ///< times that it is sent once more: all were lost, or it was refused for the moment
  s3_attempt* receiver = nullptr;                ///< writes to the memory
  std::array<std::span<std::byte>, 2> missing{}; ///< what is left of the memory

  bool sends() const { return what == kind::write || what == kind::make; }
  /// Commands that clients wait for, and that change nothing. nullopt: it is never sent a second time.
  std::optional<remote::hedging::kind> hedged_as() const;
  size_t body_max() const;
  uint64_t bytes() const { return memory[0].size() + memory[1].size() + head.size() + payload.size(); }
};
using s3_transfer_ptr = std::shared_ptr<s3_transfer>;

/// One HTTP request. libcurl has its address from the begin on. Not thread-safe.
class s3_attempt {
 public:
  using time_point = s3_transfer::time_point;

  /// libcurl ends it after `limit` at the latest. `second`: another attempt of the same command is under way.
  s3_attempt(s3_conversation& with, s3_transfer_ptr of, std::chrono::nanoseconds limit, bool second);
  /// Precondition: libcurl's multi handle no longer has it.
  ~s3_attempt();
  s3_attempt(const s3_attempt&) = delete;
  s3_attempt& operator=(const s3_attempt&) = delete;

  CURL* easy() const { return easy_; }
  const s3_transfer_ptr& of() const { return of_; }
  bool second() const { return second_; }
  bool too_long() const { return too_long_; }
  /// Returns when its answer began; nullopt: it has none.
  std::optional<time_point> first_byte_at() const { return first_byte_at_; }
  const std::string& body() const { return body_; }
  /// The answer asks not to be sent another one before (Retry-After); 0: it does not.
  std::chrono::seconds retry_after() const;
  /// libcurl's reason, for humans.
  std::string why(CURLcode how) const;

  /// The whole value has arrived in the command's memory, by this attempt: it has a header, and is not longer than the memory.
  bool has_received_value() const;
  /// The value did not arrive as it should; another attempt may write it.
  void leave_memory();
  /// Goes on if it has paused. Nobody else writes to the memory.
  void go_on();

 private:
  static size_t on_header(char* bytes, size_t one, size_t count, void* attempt) noexcept;
  static size_t on_body(char* bytes, size_t one, size_t count, void* attempt) noexcept;
  static size_t on_send(char* into, size_t one, size_t count, void* attempt) noexcept;
  static int on_seek(void* attempt, curl_off_t offset, int origin) noexcept;
  static CURLcode on_tls(CURL* easy, void* tls, void* attempt) noexcept;

  void hear(std::string_view header);
  bool take(std::string_view bytes);
  bool take_value(std::string_view bytes);
  bool has_to_pause() const;
  bool receives_value() const;
  size_t give(char* into, size_t room);

  s3_conversation& with_;
  s3_transfer_ptr of_;
  bool second_;
  bool too_long_ = false;
  std::optional<time_point> first_byte_at_;
  size_t sent_ = 0;
  std::string body_; ///< of a list, a text or an error
  CURL* easy_ = nullptr;
  curl_slist* lines_ = nullptr;
  std::array<char, CURL_ERROR_SIZE> why_{};
};

} // namespace terrace::actors
