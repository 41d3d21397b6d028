// A connection of the remote store to one server: what the store asks over it, and what the ring does for it. There is a kind for each
// kind of store; `make_link` chooses it.
//
//   auto link = make_link(address, {...});
//   link->connect(address, {login, tls});
//   link->server()->exists(...);             // once it is ready
//   link->pump(memory);                      // sends and receives
#pragma once

#include "base/keep_alive.hpp"
#include "remote/store_address.hpp"
#include "remote/store_commands.hpp"
#include "remote/tls_stream.hpp"
#include "runtime/io_port.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace terrace::actors {

class store_link {
 public:
  static constexpr std::chrono::milliseconds connects_within{1'000}, greets_within{5'000};
  static constexpr uint64_t tags = 1 << 20; ///< of operations in the ring, from `first_tag` on
  /// A server's connection moves so much at a time: a question of another one waits no longer than the kernel copies it.
  static constexpr uint64_t piece_bytes = 256 << 10;

  struct callbacks {
    uint64_t first_tag = 0;
    std::chrono::nanoseconds silence_max{};
    std::function<runtime::operation_id(runtime::io_request, uint64_t tag)> submit;
    std::function<void(runtime::operation_id)> cancel;
    std::function<void()> ready;
    std::function<void(const remote::finished_command&)> finished;
    std::function<void(const std::string& why)> failed; ///< once; then `end` is called
    /// So many bytes of an answer came at this time, which may be past; not every piece is told. May be empty.
    std::function<void(uint64_t bytes, std::chrono::steady_clock::time_point at)> received;
    /// A request was sent a second time; `won`: and that one was answered first. May be empty.
    std::function<void(bool won)> hedged;
    /// A request whose connection was lost is sent once more; `writes`: it changes the store. May be empty.
    std::function<void(bool writes)> retried;
    std::function<void()> turned; ///< something has moved: more may be asked for, and `pump` is to be called
  };

  explicit store_link(callbacks call) : call_(std::move(call)) {}
  virtual ~store_link() = default;
  store_link(const store_link&) = delete;
  store_link& operator=(const store_link&) = delete;

  virtual void connect(const remote::store_address& address, const remote::store_credentials& with) = 0;
  virtual bool ready() const = 0;
  /// True if the server has answered that it does not want us.
  virtual bool refused() const = 0;
  /// True if it has failed because nothing came for too long.
  bool silent() const { return silent_; }
  /// The shortest round trip so far; 0: not known, or on this machine.
  virtual std::chrono::microseconds round_trip() = 0;
  /// The server has accepted the connection.
  virtual bool reached() const = 0;
  /// Nobody else reads what is sent from now on, or the address asks for no TLS.
  virtual bool secured() const = 0;
  virtual remote::store_commands* server() = 0; ///< null without a connection

  /// Sends and receives. `into`: owner of the memory that the next reply goes to.
  virtual void pump(keep_alive into) = 0;
  /// Asks the kernel to let go. Nothing is sent or received from now on.
  virtual void end() = 0;
  virtual bool idle() const = 0;
  /// Precondition: ended, and idle.
  virtual void forget() = 0;

  /// An operation with one of its tags has completed.
  virtual void on_io_done(uint64_t tag, int32_t result) = 0;

 protected:
  callbacks call_;
  bool silent_ = false; ///< until `forget`
};

/// The link to a Valkey or Redis server (valkey_link.cpp).
std::unique_ptr<store_link> make_valkey_link(store_link::callbacks call);
/// The link to a bucket (s3_link.cpp). Precondition: remote::knows_buckets().
std::unique_ptr<store_link> make_s3_link(store_link::callbacks call);
/// The link to a plugin, which is a process (plugin_link.cpp).
std::unique_ptr<store_link> make_plugin_link(store_link::callbacks call);

std::unique_ptr<store_link> make_link(const remote::store_address& address, store_link::callbacks call);

} // namespace terrace::actors
