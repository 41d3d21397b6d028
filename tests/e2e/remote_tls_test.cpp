// A remote tier over TLS, on a real redis-server: what is right works, and what is wrong is told with its fix.
#include "command_line.hpp"
#include "remote_fixture.hpp"

#include "tests/support/certificates.hpp"

#include <csignal>
#include <thread>

namespace terrace::e2e {
namespace {

using test::certificate_authority;

class RemoteTls : public RemoteStores {
 protected:
  void SetUp() override {
    RemoteStores::SetUp();
    if (IsSkipped())
      return;
    if (!certificate_authority::installed())
      GTEST_SKIP() << "no openssl on this machine; install the package `openssl`";
    authority_.emplace(folder_.path());
    server_ = authority_->issue("server", "IP:127.0.0.1,DNS:cache.test");
  }

  /// `clients`: "no", or "yes": the server asks for certificates.
  void start_tls_store(const certificate_authority::issued& with, const std::string& clients = "no") {
    if (port_.empty())
      port_ = std::to_string(test::free_port());
    start_store({"--tls-port", port_, "--bind", "127.0.0.1", "--tls-cert-file", with.certificate,
                 "--tls-key-file", with.key, "--tls-ca-cert-file", authority_->file(), "--tls-auth-clients",
                 clients});
  }
  std::string tls_section(const std::string& more) const {
    return "[[remote]]\naddress = \"rediss://127.0.0.1:" + port_ + "\"\nrealm_key_file = \"" + key_file() +
           "\"\nlookup_budget = \"1s\"\ndemotion = \"write_through\"\n" + more;
  }
  std::string ca() const { return "tls_ca_file = \"" + authority_->file() + "\"\n"; }
  void start(const std::string& more) {
    machine_ = std::make_unique<remote_machine>(daemon_options{.more = more});
  }
  void works(uint64_t seed = 1) {
    machine_->await_store();
    auto chain = chain_of(seed, 4);
    EXPECT_EQ(machine_->client->store(chain), 4U);
    ASSERT_TRUE(machine_->finds_all(chain, on_remote));
    machine_->leave_host(chain);
    EXPECT_EQ(machine_->client->load_and_check(chain), 4U);
  }
  /// The daemon's log and the probe say it.
  void says(const std::string& what) {
    EXPECT_TRUE(machine_->daemon.await_log(what));
    EXPECT_EQ(machine_->client->tier("remote").state, "degraded");
    auto probed = terrace(machine_->daemon, {"remote", "probe"});
    EXPECT_EQ(probed.exit_code, 1);
    EXPECT_NE(probed.out.find(what), std::string::npos) << probed.out;
  }
  std::string checked(const std::string& more) {
    const std::string file = folder_ / "terraced.toml";
    write_file(file, "[[listen]]\npath = \"" + (folder_ / "socket").string() + "\"\n[disk]\npath = \"" +
                         folder_.path() + "\"\n" + more);
    return run({program("TERRACED"), "--check", "--config", file}).err;
  }

  std::optional<certificate_authority> authority_;
  certificate_authority::issued server_;
  std::string port_;
  std::unique_ptr<remote_machine> machine_;
};

TEST_F(RemoteTls, SentinelsAreAskedWithTlsAndTheirPassword) {
  start_tls_store(server_);
  const std::string of_server = "tls-cert-file " + server_.certificate + "\ntls-key-file " + server_.key +
                                "\ntls-ca-cert-file " + authority_->file() + "\ntls-auth-clients no\n";
  temporary_folder folder("/tmp");
  const uint16_t port = test::free_port();
  const std::string password = folder / "password";
  auto sentinel = test::redis_process::sentinel(
      folder.path(), 0, "kv", static_cast<uint16_t>(std::stoi(port_)),
      "tls-port " + std::to_string(port) + "\ntls-replication yes\nrequirepass hunter2\n" + of_server);
  auto section_with = [&](const std::string& secret) {
    write_file(password, secret + "\n");
    EXPECT_EQ(::chmod(password.c_str(), 0600), 0);
    return "[[remote]]\naddress = \"sentinel+tls://127.0.0.1:" + std::to_string(port) +
           "/kv\"\nrealm_key_file = \"" + key_file() +
           "\"\nlookup_budget = \"1s\"\ndemotion = \"write_through\"\nsentinel_password_file = \"" +
           password + "\"\n" + ca();
  };
  start(section_with("hunter2"));
  works();
  start(section_with("wrong"));
  EXPECT_TRUE(machine_->daemon.await_log("check user and"));
}

TEST_F(RemoteTls, AClusterIsUsedWithTls) {
  port_ = std::to_string(test::free_port());
  start_store({"--port",
               "0",
               "--tls-port",
               port_,
               "--bind",
               "127.0.0.1",
               "--tls-cert-file",
               server_.certificate,
               "--tls-key-file",
               server_.key,
               "--tls-ca-cert-file",
               authority_->file(),
               "--tls-auth-clients",
               "no",
               "--tls-cluster",
               "yes",
               "--cluster-enabled",
               "yes",
               "--cluster-port",
               std::to_string(test::free_port())});
  resp_client redis(store_->socket());
  ASSERT_EQ(redis.call({"CLUSTER", "ADDSLOTSRANGE", "0", "16383"}), "OK");
  ASSERT_TRUE(eventually([&] { return redis.call({"CLUSTER", "INFO"}).starts_with("cluster_state:ok"); }));
  start("[[remote]]\naddress = \"cluster+tls://127.0.0.1:" + port_ + "\"\nrealm_key_file = \"" + key_file() +
        "\"\nlookup_budget = \"1s\"\ndemotion = \"write_through\"\n" + ca());
  works();
}

TEST_F(RemoteTls, TheNameMayBeThatOfAHost) {
  start_tls_store(authority_->issue("named", "DNS:cache.test"));
  port_ += "?name=cache.test";
  start(tls_section(ca()));
  works();
}

TEST_F(RemoteTls, ShowsItsCertificateToAServerThatAsks) {
  auto ours = authority_->issue("client", "DNS:client.test");
  start_tls_store(server_, "yes");
  start(tls_section(ca() + "tls_client_file = \"" + ours.both + "\"\n"));
  works();
  EXPECT_EQ(answer_of(machine_->daemon, {"remote", "probe"})["steps"].at(1)["step"], "handshake");
}

TEST_F(RemoteTls, AKillInTheMiddleIsAMiss) {
  start_tls_store(server_);
  start(tls_section(ca()));
  for (int round = 0; round < 3; ++round) {
    works(10 + static_cast<uint64_t>(round));
    auto chain = chain_of(20 + static_cast<uint64_t>(round), 8);
    EXPECT_EQ(machine_->client->store(chain), 8U);
    ASSERT_TRUE(machine_->finds_all(chain, on_remote));
    machine_->leave_host(chain);
    auto loads = std::thread([&] { store_.reset(); });
    EXPECT_LE(machine_->client->load_and_check(chain), 8U) << "whatever comes is right";
    loads.join();
    ASSERT_TRUE(machine_->daemon.await_log("is out of service"));
    std::filesystem::remove(folder_ / "redis.sock");
    start_tls_store(server_);
    ASSERT_TRUE(machine_->daemon.await_log("is in service again"));
  }
}

// ---- what is wrong ----

TEST_F(RemoteTls, AnExpiredCertificateIsRefused) {
  start_tls_store(authority_->issue("expired", "IP:127.0.0.1", -1));
  start(tls_section(ca()));
  says("the server's certificate has expired: renew it");
}

TEST_F(RemoteTls, AnotherNameIsRefused) {
  start_tls_store(authority_->issue("other", "IP:127.0.0.9"));
  start(tls_section(ca()));
  says("the server's certificate is not for \"127.0.0.1\": write ?name=NAME");
}

TEST_F(RemoteTls, AnUnknownAuthorityIsRefused) {
  start_tls_store(server_);
  start(tls_section(""));
  says("of an authority that this machine does not know: set tls_ca_file");
}

TEST_F(RemoteTls, AServerThatAsksForACertificateIsTold) {
  start_tls_store(server_, "yes");
  start(tls_section(ca()));
  says("the server asks for a certificate of ours: set tls_client_file");
}

TEST_F(RemoteTls, APlainServerAtThePortIsTold) {
  port_ = std::to_string(test::free_port());
  start_store({"--port", port_, "--bind", "127.0.0.1"});
  start(tls_section(ca()));
  says("write the address without rediss://");
}

TEST_F(RemoteTls, ATlsServerAtAPlainPortIsTold) {
  start_tls_store(server_);
  start("[[remote]]\naddress = \"127.0.0.1:" + port_ + "\"\nrealm_key_file = \"" + key_file() + "\"\n");
  says("write the address with rediss:// in front");
}

TEST_F(RemoteTls, ACheckNamesFilesThatAreWrong) {
  port_ = "6380";
  write_file(folder_ / "text", "no certificate\n");
  auto ours = authority_->issue("client", "DNS:client.test");
  auto option = [](const char* name, const std::string& file) {
    return std::string(name) + " = \"" + file + "\"\n";
  };
  auto found = checked(tls_section(option("tls_ca_file", folder_ / "text")));
  EXPECT_NE(found.find("certificates of authorities in PEM was expected"), std::string::npos) << found;
  found = checked(tls_section(option("tls_ca_file", folder_ / "none")));
  EXPECT_NE(found.find("none: a file with certificates"), std::string::npos) << found;
  found = checked(tls_section(ca() + option("tls_client_file", folder_ / "none")));
  EXPECT_NE(found.find("cannot be read"), std::string::npos) << found;
  ASSERT_EQ(::chmod(ours.certificate.c_str(), 0600), 0);
  found = checked(tls_section(ca() + option("tls_client_file", ours.certificate)));
  EXPECT_NE(found.find("the private key of its certificate"), std::string::npos) << found;
  ASSERT_EQ(::chmod(ours.both.c_str(), 0644), 0);
  found = checked(tls_section(ca() + option("tls_client_file", ours.both)));
  EXPECT_NE(found.find("chmod o="), std::string::npos) << found;
  ASSERT_EQ(::chmod(ours.both.c_str(), 0600), 0);
  EXPECT_EQ(checked(tls_section(ca() + option("tls_client_file", ours.both))), "");
}

TEST_F(RemoteTls, ARenewedAuthorityNeedsNoRestart) {
  start_tls_store(server_);
  certificate_authority other(folder_.path(), "other");
  const std::string file = folder_ / "ca.pem";
  write_file(file, read_file(other.file()));
  start(tls_section("tls_ca_file = \"" + file + "\"\n"));
  says("set tls_ca_file");
  write_file(file, read_file(authority_->file()));
  machine_->daemon.signal(SIGHUP);
  ASSERT_TRUE(machine_->daemon.await_log("accepts the certificates as they are now"));
  works();
}

} // namespace
} // namespace terrace::e2e
