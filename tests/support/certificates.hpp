// Certificates of an authority of a test, made by the program openssl.
#pragma once

#include <string>

namespace terrace::test {

class certificate_authority {
 public:
  /// True if the program is installed.
  static bool installed();

  /// Its files begin with `name` and lie in the folder. Throws if the program fails.
  certificate_authority(const std::string& folder, const std::string& name = "authority");

  std::string file() const { return path_ + ".pem"; } ///< its own certificate

  struct issued {
    std::string certificate, key, both; ///< files; `both` has the key behind the certificate
  };
  /// `names`: as in subjectAltName, such as "IP:127.0.0.1,DNS:cache.test". `days`: -1: it has expired.
  issued issue(const std::string& subject, const std::string& names, int days = 2) const;

 private:
  std::string folder_, path_;
};

} // namespace terrace::test
