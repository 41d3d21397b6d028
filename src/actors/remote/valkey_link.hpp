// VALKEY LINK: one connection to a Valkey or Redis server with its socket, part of the remote store's actor, which passes it
// the completions of its ring. A server that says nothing for `silence_max`, while something is asked of it, has
// failed. It has more time to let us in, because nobody waits for that: one that stood still is in use as soon as it goes on.
//
// With TLS, what is received is decrypted into the memory that a reply goes to, and what is sent is encrypted into memory of the link,
// some at a time, so that no turn is long.
//
// After a failure the memory that the kernel accesses is kept until `idle`.
#pragma once

#include "actors/remote/store_link.hpp"
#include "base/unique_fd.hpp"
#include "remote/endpoint_state.hpp"
#include "remote/tls_stream.hpp"
#include "remote/valkey_connection.hpp"

#include <sys/socket.h>

namespace terrace::actors {

class valkey_link final : public store_link {
 public:
  /// Moved at a time: a question of another connection waits no longer than the kernel copies so much.
  static constexpr uint64_t piece_bytes = 256 << 10;

  explicit valkey_link(callbacks call) : store_link(std::move(call)) {}
  ~valkey_link() override;

  void connect(const remote::store_address& address, const remote::store_credentials& with) override;
  bool ready() const override { return phase_ == phase::ready; }
  bool refused() const override { return refused_; }
  std::chrono::microseconds round_trip() override;
  bool reached() const override { return phase_ == phase::greeting || phase_ == phase::ready; }
  bool secured() const override { return reached() && (!tls_ || tls_->established()); }
  remote::valkey_connection* server() override { return server_.get(); }

  void pump(keep_alive into) override;
  void end() override;
  bool idle() const override { return !connecting_ && !receiving_ && !sending_; }
  void forget() override;
  void on_io_done(uint64_t tag, int32_t result) override;

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

  phase phase_ = phase::down;
  bool at_path_ = false, of_replica_ = false;
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
