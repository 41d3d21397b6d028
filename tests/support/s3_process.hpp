// An S3 store for tests, ended at the end of its scope: a program of ours that verifies signatures and fails as it is told
// (tests/support/s3_server), moto's server, or a Ceph of one node with its gateway (tests/support/radosgw).
#pragma once

#include "base/unique_fd.hpp"

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace terrace::test {

class s3_process {
 public:
  static constexpr const char *bucket = "kv-cache", *access_key = "AKTERRACE",
                              *secret_key = "secret/of+terrace:0123456789";

  /// Returns once it serves. Throws if it does not start.
  explicit s3_process(const std::vector<std::string>& options = {});
  static std::shared_ptr<s3_process> radosgw();
  ~s3_process();
  s3_process(const s3_process&) = delete;
  s3_process& operator=(const s3_process&) = delete;

  /// True if Python has moto.
  static bool has_moto();
  /// The Debian packages without which `radosgw` does not start; empty: all are installed.
  static std::string packages_for_radosgw();

  /// "127.0.0.1:PORT/BUCKET"
  std::string place() const;
  pid_t pid() const { return pid_; }
  /// Nobody listens at its port from now on.
  void kill();

  /// One of the commands of tests/support/s3_server, or of tests/support/radosgw; returns its answer.
  std::string tell(const std::string& command);
  /// The same in two steps, for whoever has something else to do until the answer can be read from this descriptor.
  int begin(const std::string& command);
  std::string answer() { return line(); }
  /// The next `count` requests with this method (or ANY) fail so.
  void fail(const std::string& how, const std::string& method, int count);

 private:
  s3_process(const std::string& server, const std::vector<std::string>& options);
  std::string line();

  unique_fd input_, output_;
  std::string read_;
  uint16_t port_ = 0;
  pid_t pid_ = -1;
};

} // namespace terrace::test
