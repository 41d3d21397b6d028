// STORE LINK: one connection to a Valkey or Redis server with its socket, part of the remote store's actor, which passes it
// the completions of its ring. A server that says nothing for `silence_max`, while something is asked of it, has
// failed. It has more time to let us in, because nobody waits for that: one that stood still is in use as soon as it goes on.
//
//   store_link link({.first_tag = 16, .silence_max = ..., .submit = ..., .ready = ..., .finished = ..., .failed = ...});
//   link.connect(address, {login, tls});
//   link.server()->exists(...);             // once it is ready
//   link.pump(memory);                      // sends and receives
//
// With TLS, what is received is decrypted into the memory that a reply goes to, and what is sent is encrypted into memory of the link,
// some at a time, so that no turn is long.
//
// After a failure the memory that the kernel accesses is kept until `idle`.
#pragma once

#include "base/keep_alive.hpp"
#include "base/unique_fd.hpp"
#include "remote/endpoint_state.hpp"
#include "remote/store_address.hpp"
#include "remote/tls_stream.hpp"
#include "remote/valkey_connection.hpp"
#include "runtime/io_port.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <sys/socket.h>

namespace terrace::actors {

class store_link {
 public:
  static constexpr std::chrono::milliseconds connects_within{1'000}, greets_within{5'000};
  /// Moved at a time: a question of another connection waits no longer than the kernel copies so much.
  static constexpr uint64_t piece_bytes = 256 << 10;
  static constexpr uint64_t tags = 4; ///< of operations in the ring, from `first_tag` on

  struct callbacks {
    uint64_t first_tag = 0;
    std::chrono::nanoseconds silence_max{};
    std::function<runtime::operation_id(runtime::io_request, uint64_t tag)> submit;
    std::function<void(runtime::operation_id)> cancel;
    std::function<void()> ready;
    std::function<void(const remote::finished_command&)> finished;
    std::function<void(const std::string& why)> failed; ///< once; then `end` is called
    std::function<void()> turned; ///< something has moved: more may be asked for, and `pump` is to be called
  };

  explicit store_link(callbacks call) : call_(std::move(call)) {}
  ~store_link();

  void connect(const remote::store_address& address, const remote::store_credentials& with);
  bool ready() const { return phase_ == phase::ready; }
  /// True if the server has answered that it does not want us.
  bool refused() const { return refused_; }
  /// The shortest round trip so far; 0: not known, or on this machine.
  std::chrono::microseconds round_trip();
  bool reached() const { return phase_ == phase::greeting || phase_ == phase::ready; }
  /// Nobody else reads what is sent from now on, or the address asks for no TLS.
  bool secured() const { return reached() && (!tls_ || tls_->established()); }
  remote::valkey_connection* server() { return server_.get(); } ///< null without a connection

  /// Sends and receives. `into`: owner of the memory that the next reply goes to.
  void pump(keep_alive into);
  /// Asks the kernel to let go. Nothing is sent or received from now on.
  void end();
  bool idle() const { return !connecting_ && !receiving_ && !sending_; }
  /// Precondition: ended, and idle.
  void forget();

  /// An operation with one of its tags has completed.
  void on_io_done(uint64_t tag, int32_t result);

 private:
  enum class phase : uint8_t { down, connecting, greeting, ready, ending };
  enum tag : uint64_t { connected, received, sent, tick };

  struct incoming {
    std::shared_ptr<unique_fd> socket;
    msghdr message{};
    iovec area{};
    keep_alive owner;
    std::shared_ptr<remote::valkey_connection> server; ///< bytes may be received into its buffer
    std::vector<std::byte> encrypted;                  ///< with TLS: where they are received
  };
  struct outgoing {
    std::shared_ptr<unique_fd> socket;
    msghdr message{};
    resp::reply_queue::part part;
    std::vector<std::byte> encrypted; ///< with TLS, instead of the part
    size_t sent = 0;                  ///< of these
    iovec area{};
  };

  void fail(const std::string& why) { call_.failed(why); }
  void receive(keep_alive into);
  result<void> take(size_t bytes);
  result<void> decrypt(size_t bytes);
  std::string explained(const error& why) const;
  const char* hint() const;
  void send();
  bool encrypt();
  void on_connected(int32_t result);
  void on_received(int32_t bytes);
  void on_sent(int32_t bytes);
  void on_tick();
  bool waits() const;
  void watch();

  callbacks call_;
  phase phase_ = phase::down;
  bool at_path_ = false;
  remote::store_credentials with_;
  std::string name_;                        ///< that a certificate has to have
  std::unique_ptr<remote::tls_stream> tls_; ///< null: without
  std::shared_ptr<unique_fd> socket_;
  runtime::operation_id connect_id_{};
  bool connecting_ = false, receiving_ = false, sending_ = false, ticking_ = false;
  bool refused_ = false;
  bool suspects_ = false; ///< the silence was over when it was looked at last
  remote::silence silence_;
  std::chrono::microseconds round_trip_{0};
  std::shared_ptr<incoming> in_;
  std::shared_ptr<outgoing> out_;
  std::shared_ptr<remote::valkey_connection> server_;
};

} // namespace terrace::actors
