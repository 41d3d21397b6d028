#include "remote/tls_stream.hpp"

#include "base/printable.hpp"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <arpa/inet.h>

#include <cassert>
#include <climits>
#include <cstdlib>
#include <sys/stat.h>

namespace terrace::remote {

namespace {

/// What OpenSSL says about its last failure on this thread.
std::string said_by_openssl() {
  const char* reason = ERR_reason_error_string(ERR_peek_last_error());
  return reason != nullptr ? printable(reason) : "no reason is given";
}

tl::unexpected<error> unusable(const std::string& file, const char* expected) {
  std::string said = said_by_openssl();
  ERR_clear_error();
  return fail(errc::bad_request, file + ": " + expected + " was expected (OpenSSL says: " + said + ")");
}

bool is_numeric(const std::string& name) {
  in6_addr address;
  return ::inet_pton(AF_INET, name.c_str(), &address) == 1 ||
         ::inet_pton(AF_INET6, name.c_str(), &address) == 1;
}

bool is_plain_file(const std::string& file) {
  struct stat status {};
  return ::stat(file.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

result<void> read_authorities(SSL_CTX* context, const std::string& file) {
  if (file.empty()) {
    SSL_CTX_set_default_verify_paths(context);
    ERR_clear_error();
    return {};
  }
  if (!is_plain_file(file) || SSL_CTX_load_verify_locations(context, file.c_str(), nullptr) != 1)
    return unusable(file, "a file with certificates of authorities in PEM");
  return {};
}

result<void> read_client(SSL_CTX* context, const std::string& file) {
  if (file.empty())
    return {};
  // OpenSSL would ask the terminal for a password, and wait.
  SSL_CTX_set_default_passwd_cb(context, [](char*, int, int, void*) { return -1; });
  if (!is_plain_file(file) || SSL_CTX_use_certificate_chain_file(context, file.c_str()) != 1)
    return unusable(file, "a file with a certificate in PEM");
  if (SSL_CTX_use_PrivateKey_file(context, file.c_str(), SSL_FILETYPE_PEM) != 1)
    return unusable(file, "the private key of its certificate in PEM, without a password, in the same file");
  return {};
}

/// Says what to do about a certificate that was not accepted.
std::string certificate_fault(long fault, const std::string& name) {
  const std::string said = X509_verify_cert_error_string(fault);
  switch (fault) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return "the server's certificate has expired: renew it, and check the clock of this machine";
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return "the server's certificate is not valid yet: check the clocks of both machines";
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return "the server's certificate is not for \"" + name +
             "\": write ?name=NAME behind the address, with a name that the certificate has, or issue one "
             "for this name or address";
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
      return "the server's certificate is of an authority that this machine does not know: set tls_ca_file "
             "to the "
             "authority's certificate (OpenSSL says: " +
             said + ")";
    default: return "the server's certificate is not accepted: " + said;
  }
}

/// Says what to do about a failure that is none of the server's certificate.
std::string protocol_fault(unsigned long code) {
  switch (ERR_GET_REASON(code)) {
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_PACKET_LENGTH_TOO_LONG:
    case SSL_R_HTTP_REQUEST:
    case SSL_R_RECORD_LENGTH_MISMATCH:
      return "the server does not speak TLS at this port: give the port with TLS, or write the address "
             "without rediss:// or +tls";
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
      return "the server asks for a certificate of ours: set tls_client_file, or tls-auth-clients of the "
             "server to no";
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
    case SSL_R_TLSV1_ALERT_DECRYPT_ERROR:
      return "the server does not accept the certificate in tls_client_file: check its authority and its "
             "time (it says: " +
             said_by_openssl() + ")";
    default: return "the connection with TLS failed: " + said_by_openssl();
  }
}

void require_tls(bool succeeded) {
  if (!succeeded)
    std::abort(); // no memory
}

} // namespace

// ---- what connections share ----

tls_keys::tls_keys(ssl_ctx_st* context, std::string name) : context_(context), name_(std::move(name)) {}
tls_keys::~tls_keys() { SSL_CTX_free(context_); }

result<std::shared_ptr<const tls_keys>> tls_keys::make(const tls_options& options) {
  ERR_clear_error();
  SSL_CTX* context = SSL_CTX_new(TLS_client_method());
  require_tls(context != nullptr);
  auto made = std::make_shared<const tls_keys>(context, options.name);
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  // A write takes all bytes, because its memory grows.
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
  if (auto read = read_authorities(context, options.ca_file); !read)
    return tl::unexpected(read.error());
  if (auto read = read_client(context, options.client_file); !read)
    return tl::unexpected(read.error());
  return made;
}

void tls_keys::lend_to(ssl_ctx_st* other) const {
  SSL_CTX_set_min_proto_version(other, TLS1_2_VERSION);
  SSL_CTX_set1_cert_store(other, SSL_CTX_get_cert_store(context_));
  if (X509* own = SSL_CTX_get0_certificate(context_); own != nullptr) {
    STACK_OF(X509)* chain = nullptr;
    SSL_CTX_get0_chain_certs(context_, &chain);
    require_tls(SSL_CTX_use_certificate(other, own) == 1 &&
                SSL_CTX_use_PrivateKey(other, SSL_CTX_get0_privatekey(context_)) == 1 &&
                (chain == nullptr || SSL_CTX_set1_chain(other, chain) == 1));
  }
}

// ---- one connection ----

tls_stream::tls_stream(tls_keys_ptr keys, const std::string& name)
    : keys_(std::move(keys)), name_(name.empty() ? keys_->name() : name), ssl_(SSL_new(keys_->context())),
      from_server_(BIO_new(BIO_s_mem())), to_server_(BIO_new(BIO_s_mem())) {
  require_tls(ssl_ != nullptr && from_server_ != nullptr && to_server_ != nullptr && !name_.empty());
  BIO_set_mem_eof_return(from_server_, -1); // empty: more will come
  SSL_set_bio(ssl_, from_server_, to_server_);
  SSL_set_connect_state(ssl_);
  bool set = is_numeric(name_) ? X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl_), name_.c_str()) == 1
                               : SSL_set1_host(ssl_, name_.c_str()) == 1 &&
                                     SSL_set_tlsext_host_name(ssl_, name_.c_str()) == 1;
  require_tls(set);
  (void) greet();
}

tls_stream::~tls_stream() { SSL_free(ssl_); }

bool tls_stream::established() const { return SSL_is_init_finished(ssl_) == 1; }

error tls_stream::failure() const {
  const long fault = SSL_get_verify_result(ssl_);
  const auto code = ERR_peek_last_error();
  const bool by_us = ERR_GET_REASON(code) == SSL_R_CERTIFICATE_VERIFY_FAILED;
  std::string text = by_us && fault != X509_V_OK ? certificate_fault(fault, name_) : protocol_fault(code);
  ERR_clear_error();
  return {errc::denied, std::move(text)};
}

result<void> tls_stream::greet() {
  ERR_clear_error();
  const int done = SSL_do_handshake(ssl_);
  if (done == 1 || SSL_get_error(ssl_, done) == SSL_ERROR_WANT_READ)
    return {};
  return tl::unexpected(failure());
}

result<void> tls_stream::received(std::span<const std::byte> bytes) {
  assert(bytes.size() <= INT_MAX);
  const int taken = BIO_write(from_server_, bytes.data(), static_cast<int>(bytes.size()));
  require_tls(taken == static_cast<int>(bytes.size()));
  return established() ? result<void>() : greet();
}

result<size_t> tls_stream::read(std::span<std::byte> into) {
  if (!established())
    return 0;
  ERR_clear_error();
  size_t count = 0;
  const int done = SSL_read_ex(ssl_, into.data(), into.size(), &count);
  if (done == 1)
    return count;
  switch (SSL_get_error(ssl_, done)) {
    case SSL_ERROR_WANT_READ: return 0;
    case SSL_ERROR_ZERO_RETURN: return fail(errc::gone, "it has closed the connection");
    default: return tl::unexpected(failure());
  }
}

void tls_stream::write(std::span<const std::byte> bytes) {
  assert(established());
  if (bytes.empty())
    return;
  size_t count = 0;
  ERR_clear_error();
  // After an alert of the server nothing is written any more: its next read tells why.
  if (SSL_write_ex(ssl_, bytes.data(), bytes.size(), &count) != 1)
    ERR_clear_error();
}

std::vector<std::byte> tls_stream::take_outgoing() {
  std::vector<std::byte> all(static_cast<size_t>(BIO_pending(to_server_)));
  if (!all.empty())
    BIO_read(to_server_, all.data(), static_cast<int>(all.size()));
  return all;
}

} // namespace terrace::remote
