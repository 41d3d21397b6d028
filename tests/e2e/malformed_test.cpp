// Broken framing of any kind ends its connection with a stated reason, and nobody else's. A mistake inside
// one request only fails that request.
#include "tests/support/raw_client.hpp"
#include "workload.hpp"

#include <fcntl.h>

namespace terrace::e2e {
namespace {

using test::frame_bytes;
using test::frame_of;
using test::frame_with;
using test::hello_frame;
using test::raw_client;
using test::status_frame;

using protocol::kind;

/// A daemon, a correct client that must never notice anything, and one raw connection after the other.
class Malformed : public ::testing::Test {
 protected:
  void SetUp() override { witness_.store(chain_); }

  /// Sends `bytes` after the handshake; expects the reason, the end, and an undisturbed witness.
  void expect_end(const frame_bytes& bytes, const std::string& reason, std::span<const int> descriptors = {},
                  bool greet = true) {
    SCOPED_TRACE("expecting: " + reason);
    raw_client offender(daemon_.socket());
    ASSERT_TRUE(!greet || offender.greet());
    auto held = witness_->async().lookup(witness_.lookup_of(chain_, true), patiently());
    ASSERT_TRUE(held);
    offender.send(bytes, descriptors);
    auto said = offender.receive();
    ASSERT_TRUE(said) << "closed without a word";
    while (said && said->id != 0) // answers to the correct requests before the malformed one
      said = offender.receive();
    ASSERT_TRUE(said) << "closed without a reason";
    EXPECT_TRUE(said->is_error());
    EXPECT_EQ(said->code(), errc::bad_request);
    EXPECT_NE(said->text().find(reason), std::string::npos) << said->text();
    EXPECT_FALSE(offender.receive()) << "the connection should have ended";
    auto found = held->wait(patiently());
    ASSERT_TRUE(found) << found.error().text;
    EXPECT_EQ(found->found_chunks, chain_.size());
    EXPECT_EQ(witness_.load_and_check(chain_), chain_.size());
  }

  /// Sends `bytes`, request 2, after the handshake; expects the reason as its answer, and that the client is
  /// still served.
  void expect_refusal(const frame_bytes& bytes, const std::string& reason,
                      std::span<const int> descriptors = {}) {
    SCOPED_TRACE("expecting: " + reason);
    raw_client offender(daemon_.socket());
    ASSERT_TRUE(offender.greet());
    offender.send(bytes, descriptors);
    auto said = offender.receive();
    ASSERT_TRUE(said && said->is_error());
    EXPECT_EQ(said->id, 2U);
    EXPECT_EQ(said->code(), errc::bad_request);
    EXPECT_NE(said->text().find(reason), std::string::npos) << said->text();
    offender.send(status_frame(3));
    auto next = offender.receive();
    ASSERT_TRUE(next) << "the connection should have continued";
    EXPECT_FALSE(next->is_error());
  }

  int some_file() {
    if (!file_)
      file_.reset(::open("/dev/null", O_RDWR | O_CLOEXEC));
    return file_.get();
  }

  daemon_under_test daemon_;
  tester witness_{daemon_.socket(), "witness"};
  std::vector<digest> chain_ = chain_of(1, 2);
  unique_fd file_;
};

constexpr uint16_t status_kind = static_cast<uint16_t>(kind::status);

TEST_F(Malformed, LengthsThatNoFrameHas) {
  expect_end(frame_of(status_kind, 2, {}, 8), "length"); // less than a header has
  expect_end(frame_of(status_kind, 2, {}, 0), "length");
  expect_end(frame_of(status_kind, 2, {}, 20), "multiple of 8");
  expect_end(frame_of(status_kind, 2, {}, protocol::frame_bytes_max + 8), "length");
  expect_end(frame_of(1, 1, {}, protocol::hello_bytes_max + 8), "length", {}, false);
}

TEST_F(Malformed, KindsThatAClientDoesNotSend) {
  for (uint16_t unknown : {0, protocol::last_request + 1, 1000, 0xffff})
    expect_end(frame_of(unknown, 2), "kind");
  expect_end(frame_of(0x8006, 2), "kind");
  expect_end(frame_of(static_cast<uint16_t>(kind::error), 2), "kind");
}

TEST_F(Malformed, RequestIdsThatAreNotFree) {
  expect_end(status_frame(0), "request id 0");
  auto twice = status_frame(7);
  auto again = status_frame(7);
  twice.insert(twice.end(), again.begin(),
               again.end()); // one message, so the first cannot be answered before
  expect_end(twice, "request id 7 is in flight already");
}

TEST_F(Malformed, DescriptorsThatAreTooManyOrMissing) {
  int file = some_file();
  expect_end(frame_of(status_kind, 2, {}, {}, 1), "descriptors", {&file, 1});
  expect_end(status_frame(2), "descriptors", {&file, 1}); // its header announces none
  expect_end(frame_of(static_cast<uint16_t>(kind::register_region), 2, {}, {}, 1), "descriptors");
  std::vector<int> many(16, file);
  expect_end(status_frame(2), "descriptors", many);
  expect_end(frame_of(static_cast<uint16_t>(kind::register_region), 2, {}, {}, 9), "descriptors");
  expect_refusal(
      frame_with(kind::register_region, 2,
                 [](auto& body) { return wire::CreateRegisterRegion(body, wire::RegionKind::memfd, 4096); }),
      "descriptors");
}

TEST_F(Malformed, GarbageAndNothingInTheBodyOfEveryRequest) {
  std::vector<uint8_t> garbage(64, 0xa5);
  int file = some_file();
  for (uint16_t number = 2; number <= protocol::last_request; ++number) {
    bool takes_one = protocol::descriptors_allowed(static_cast<kind>(number)) == 1;
    auto with = takes_one ? std::span<const int>(&file, 1) : std::span<const int>();
    expect_refusal(frame_of(number, 2, garbage, {}, takes_one ? 1 : 0), "", with);
    expect_refusal(frame_of(number, 2, {}, {}, takes_one ? 1 : 0), "", with);
  }
  expect_end(frame_of(1, 1, garbage), "", {}, false);
}

TEST_F(Malformed, UnknownVersionIsToldWhichIsSpoken) {
  raw_client client(daemon_.socket());
  client.send(hello_frame(1, 999));
  auto said = client.receive();
  ASSERT_TRUE(said && said->is_error());
  EXPECT_EQ(said->code(), errc::unsupported);
  EXPECT_NE(said->text().find("expected 1"), std::string::npos) << said->text();
  client.send(status_frame(2)); // this request is not served
  auto next = client.receive();
  EXPECT_TRUE(!next || next->id == 0);
  EXPECT_FALSE(client.receive());
}

TEST_F(Malformed, FrameCutOffByTheEndOfTheConnectionHurtsNobody) {
  raw_client client(daemon_.socket());
  ASSERT_TRUE(client.greet());
  auto whole = status_frame(2);
  client.send(std::span(whole).first(whole.size() - 3));
  client.close();
  EXPECT_EQ(witness_.load_and_check(chain_), chain_.size());
}

TEST_F(Malformed, ARegionOfNoDeviceIsRefusedAndTheConnectionGoesOn) {
  raw_client client(daemon_.socket());
  ASSERT_TRUE(client.greet());
  int file = some_file();
  client.send(
      frame_with(
          kind::register_region, 2,
          [](auto& body) { return wire::CreateRegisterRegion(body, wire::RegionKind::cuda_ipc, 4096); }, 1),
      {&file, 1});
  auto said = client.receive();
  ASSERT_TRUE(said && said->is_error());
  EXPECT_EQ(said->id, 2U);
  EXPECT_EQ(said->code(), errc::bad_request);
  client.send(status_frame(3));
  auto next = client.receive();
  ASSERT_TRUE(next);
  EXPECT_FALSE(next->is_error());
}

} // namespace
} // namespace terrace::e2e
