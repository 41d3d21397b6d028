#include "tests/support/certificates.hpp"

#include "tests/support/programs.hpp"

#include <sys/stat.h>

#include <stdexcept>
#include <vector>

namespace terrace::test {

namespace {

void openssl(std::vector<std::string> words) {
  words.insert(words.begin(), "openssl");
  if (auto done = run(words); done.exit_code != 0)
    throw std::runtime_error("openssl " + words[1] + " failed: " + done.err);
}

const std::vector<std::string> new_key = {"-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                                          "-nodes"};

std::vector<std::string> joined(std::vector<std::string> first, const std::vector<std::string>& more) {
  first.insert(first.end(), more.begin(), more.end());
  return first;
}

} // namespace

bool certificate_authority::installed() { return run({"openssl", "version"}).exit_code == 0; }

certificate_authority::certificate_authority(const std::string& folder, const std::string& name)
    : folder_(folder), path_(folder + "/" + name) {
  openssl(joined(
      {"req", "-x509", "-keyout", path_ + ".key", "-out", file(), "-days", "2", "-subj", "/CN=" + name},
      new_key));
}

certificate_authority::issued certificate_authority::issue(const std::string& subject,
                                                           const std::string& names, int days) const {
  const std::string path = folder_ + "/" + subject;
  issued made{path + ".pem", path + ".key", path + ".both"};
  openssl(joined({"req", "-keyout", made.key, "-out", path + ".csr", "-subj", "/CN=" + subject}, new_key));
  write_file(path + ".ext", "subjectAltName=" + names + "\nbasicConstraints=CA:FALSE\n");
  const std::vector<std::string> sign = {
      "x509",        "-req",   "-in",           path + ".csr",     "-CA",
      file(),        "-CAkey", path_ + ".key",  "-CAcreateserial", "-extfile",
      path + ".ext", "-out",   made.certificate};
  // OpenSSL from 3.4 on refuses a certificate that ends before it begins, and the versions before have no word for its begin.
  const std::vector<std::string> past = {"-not_before", "20200101000000Z", "-not_after", "20200102000000Z"};
  if (days > 0 || run(joined({"openssl"}, joined(sign, past))).exit_code != 0)
    openssl(joined(sign, {"-days", std::to_string(days)}));
  write_file(made.both, read_file(made.certificate) + read_file(made.key));
  ::chmod(made.both.c_str(), 0600);
  return made;
}

} // namespace terrace::test
