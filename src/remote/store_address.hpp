// The address of a remote store.
#pragma once

#include "base/error.hpp"

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <vector>

namespace terrace::remote {

struct store_address {
  static constexpr size_t guides_max = 16;
  static constexpr size_t plugin_name_bytes_max = 128, plugin_options_bytes_max = 1'024;
  enum class kind : uint8_t { server, sentinels, cluster, bucket, plugin };

  std::string text; ///< as it was given
  sockaddr_storage bytes{};
  socklen_t length =
      0; ///< 0: the host has a name; or guides tell where the server is, or the servers are; or it is a bucket or a plugin
  std::string
      host_name{};   ///< of a server, to be resolved for each connection; empty: `bytes` are its address
  uint16_t port = 0; ///< behind `host_name`

  bool tls = false;
  std::string name{}; ///< with TLS: what the server's certificate is for, a host or the numeric address

  kind at = kind::server;
  std::vector<store_address> guides{}; ///< sentinels, or nodes of the cluster: any of them tells
  bool reads_replicas = false;         ///< of a cluster: payloads are read from replicas as well
  bool of_replica = false;             ///< of a single node: it is one of these
  std::string primary{};               ///< what sentinels call the server

  std::string host{};   ///< of a bucket, with the port unless it is that of the scheme, as in the header Host
  std::string bucket{}; ///< its name
  std::string region{}; ///< of a bucket

  std::string plugin{};         ///< its name, or that of its Python module
  std::string plugin_options{}; ///< what the plugin is given: what stands behind '?'

  /// Values are few and large there, and answers take milliseconds.
  bool is_bulk() const { return at == kind::bucket || at == kind::plugin; }
  bool at_path() const { return bytes.ss_family == AF_UNIX; }
  /// The address says where one server is.
  bool is_place() const { return length != 0 || !host_name.empty(); }
  bool same_place(const store_address& other) const {
    return length == other.length && std::memcmp(&bytes, &other.bytes, sizeof bytes) == 0 &&
           host_name == other.host_name && port == other.port;
  }
};

/// Why a text is no address.
struct wrong_address {
  std::string expected; ///< instead of it
  std::string fix;      ///< what to write, or to leave out
};

/// Accepts "/path/of/a/socket", "10.0.0.7:6379", "[fd00::7]:6379" and "cache.example:6379", and all but the first behind "rediss://", for
/// TLS.
/// "sentinel://10.0.0.7:26379,10.0.0.8:26379/NAME" names sentinels and the primary that they watch, and
/// "cluster://10.0.0.7:6379,10.0.0.8:6379" some nodes of a cluster; "sentinel+tls://" and "cluster+tls://" are with TLS for all.
/// Any of these hosts may have a name, which whoever connects resolves. "s3://HOST:PORT/BUCKET", or "s3+tls://HOST/BUCKET", names a bucket. "plugin://NAME?key=value&key=value" names a plugin (plugin_frames.hpp) and its own
/// options, which it checks itself.
///
/// Others have these options behind '?', with '&' between them, each once:
///   name=NAME       with TLS, but of no bucket: what the certificates are for, instead of the hosts
///   reads=replicas  of a cluster: payloads are read from its replicas as well
///   region=REGION   of a bucket: it is not in us-east-1
tl::expected<store_address, wrong_address> parse_store_address(std::string_view text);

enum class server_mode : uint8_t;

/// Which scheme fits if a sentinel, or a node of a cluster, was found at `place`, "10.0.0.7:6379"; empty: that of the address may.
/// `guide`: the server is to be asked where others are.
std::string mistaken_scheme(const store_address& address, const std::string& place, server_mode mode,
                            bool guide);
/// Which address fits if the server at `place` does not know the question where others are.
std::string scheme_of_no_guide(const store_address& address, const std::string& place);

/// False: this build has no libcurl, and buckets are no addresses.
bool knows_buckets();

} // namespace terrace::remote
