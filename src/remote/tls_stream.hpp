// TLS to a remote store, without a socket: bytes of the server become bytes of the connection, and the other way round. OpenSSL
// works on memory, so the ring stays the only one that touches the socket.
//
//   auto keys = tls_keys::make({.name = "10.0.0.7"}); // once for each store: certificates, and what is verified
//   tls_stream stream(*keys);                         // it greets by itself
//   ... send stream.take_outgoing()
//   ... receive, then stream.received(bytes)
//   while (auto count = stream.read(area); count && *count != 0) ...
//   stream.write(bytes);                              // once it is established
//
// The server's certificate is always verified: its chain, its time, and its name. An error ends the connection; its text says what to
// change. Pure, one thread; `tls_keys` may be used by several.
#pragma once

#include "base/error.hpp"
#include "remote/store_commands.hpp"

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

struct bio_st;
struct ssl_ctx_st;
struct ssl_st;

namespace terrace::remote {

struct tls_options {
  std::string ca_file;     ///< certificates of authorities, in PEM; empty: those of the system
  std::string client_file; ///< our certificate, those above it, and its private key, in PEM; empty: none
  std::string name;        ///< that the server's certificate has to have: of a host, or a numeric address
};

class tls_keys {
 public:
  /// Reads the files, which blocks. Errors (`bad_request`): which one is wrong, and how.
  static result<std::shared_ptr<const tls_keys>> make(const tls_options& options);

  tls_keys(ssl_ctx_st* context, std::string name);
  ~tls_keys();
  tls_keys(const tls_keys&) = delete;
  tls_keys& operator=(const tls_keys&) = delete;

  ssl_ctx_st* context() const { return context_; }
  /// Another library's connections verify and show the same certificates.
  void lend_to(ssl_ctx_st* other) const;
  const std::string& name() const { return name_; }

 private:
  ssl_ctx_st* context_;
  std::string name_;
};

using tls_keys_ptr = std::shared_ptr<const tls_keys>;

/// What a connection to a store needs beside its address.
struct store_credentials {
  store_login login;
  tls_keys_ptr tls;           ///< null: without TLS
  store_login of_sentinels{}; ///< who tell where the server is
};

class tls_stream {
 public:
  /// `name`: instead of that of the keys; empty: theirs.
  explicit tls_stream(tls_keys_ptr keys, const std::string& name = {});
  ~tls_stream();
  tls_stream(const tls_stream&) = delete;
  tls_stream& operator=(const tls_stream&) = delete;

  /// True once both sides have shown what they had to.
  bool established() const;

  /// Takes bytes that the server has sent. Errors: the server does not speak TLS, or is not who it should be.
  result<void> received(std::span<const std::byte> bytes);
  /// Returns how many bytes of the connection were put there; 0: there are none before more is received. Errors: as above, and
  /// `gone` if the server has ended the connection in order.
  result<size_t> read(std::span<std::byte> into);
  /// Precondition: it is established.
  void write(std::span<const std::byte> bytes);
  /// Returns all that is to be sent now, possibly nothing.
  std::vector<std::byte> take_outgoing();

 private:
  error failure() const;
  result<void> greet();

  tls_keys_ptr keys_;
  std::string name_;
  ssl_st* ssl_;
  bio_st* from_server_; ///< owned by `ssl_`, as is the other one
  bio_st* to_server_;
};

/// What to do if the connection ends, or nothing comes, before TLS is established.
inline constexpr const char* no_tls_there =
    "; if it does not speak TLS at this port, write the address without rediss:// or +tls";
/// The reverse.
inline constexpr const char* tls_there = "; if it speaks TLS at this port, write the address with rediss:// "
                                         "in front, or cluster+tls:// or sentinel+tls://";

} // namespace terrace::remote
