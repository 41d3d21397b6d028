// How many messages actors exchange for one load whose object is on disk alone, from the frame of the request to the answer.
// A message more is a wake-up more for some worker; the bounds are what the paths take now (docs/paths.md).
#include "simulated_daemon.hpp"

#include "tests/support/raw_client.hpp"
#include "tests/support/temporary_folder.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <sys/mman.h>

#include <algorithm>
#include <string>
#include <vector>

namespace terrace::simulation {
namespace {

using builder = flatbuffers::FlatBufferBuilder;
using protocol::kind;

constexpr uint32_t chunk_tokens = 16;
constexpr uint64_t object_bytes = 4096;
constexpr uint32_t host_alone = 1U << static_cast<unsigned>(memory_tier);

/// A daemon, one client, and one object that is on disk alone.
class LoadMessages : public ::testing::Test {
 protected:
  LoadMessages() : events_(1), disk_(2, 64 << 20), calls_(events_, 3) {
    EXPECT_EQ(disk_.mkdir(simulated_calls::folder), 0);
    EXPECT_EQ(disk_.fsync(disk_.open("/", O_RDONLY | O_DIRECTORY)), 0);
    calls_.mount(disk_);
  }

  void SetUp() override {
    daemon_.emplace(events_, disk_,
                    daemon_life{.with = small_settings(folder_.path() + "/s"),
                                .seed = 4,
                                .trace = [this](std::chrono::nanoseconds, const std::string& line) {
                                  seen_.push_back(line);
                                }});
    for (int i = 0; i < 1000 && daemon_->step(); ++i) {
    }
    client_.emplace(folder_.path() + "/s");
    ASSERT_TRUE(client_->send(test::hello_frame(++last_)));
    (void) answer();
    space_ =
        ask<wire::OpenSpaceAnswer>(kind::open_space, [](builder& b) {
          std::vector<flatbuffers::Offset<wire::Pool>> pools{wire::CreatePoolDirect(b, "kv", object_bytes)};
          return wire::CreateOpenSpaceDirect(b, "m", nullptr, "bf16", "paged", chunk_tokens, chunk_tokens, 1,
                                             &pools);
        }).space();
    unique_fd memory(::memfd_create("region", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    ASSERT_EQ(::ftruncate(memory.get(), object_bytes), 0);
    ASSERT_EQ(::fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
    region_ =
        ask<wire::RegisterRegionAnswer>(
            kind::register_region,
            [](builder& b) { return wire::CreateRegisterRegion(b, wire::RegionKind::memfd, object_bytes); },
            memory.get())
            .region();
    move_to_disk();
  }

  void TearDown() override {
    client_->close();
    daemon_->drain();
    while (!daemon_->ended() && daemon_->step()) {
    }
    EXPECT_TRUE(daemon_->ended_well());
  }

  test::received answer() {
    simulated_sockets::touch();
    for (;;) {
      if (auto came = client_->next())
        return *came;
      if (!daemon_->step())
        throw std::runtime_error("the daemon does not answer");
    }
  }

  /// The answer is valid until the next one.
  template <class Answer, class Build>
  const Answer& ask(kind what, Build&& build, int descriptor = -1) {
    EXPECT_TRUE(client_->send(what, ++last_, std::forward<Build>(build), descriptor));
    answered_ = answer();
    EXPECT_FALSE(answered_.is_error()) << answered_.text();
    return answered_.as<Answer>();
  }

  static flatbuffers::Offset<wire::Prefix> prompt(builder& b) {
    std::vector<uint32_t> tokens(chunk_tokens, 7);
    return wire::CreatePrefixDirect(b, &tokens);
  }
  static flatbuffers::Offset<flatbuffers::Vector<const wire::Run*>> run(builder& b) {
    std::vector<wire::Run> runs{{0, object_bytes, 0, 1}};
    return b.CreateVectorOfStructs(runs);
  }

  void move_to_disk() {
    ask<wire::StoreAnswer>(kind::store, [&](builder& b) {
      auto prefix = prompt(b);
      auto runs = run(b);
      wire::StoreBuilder out(b);
      out.add_space(space_);
      out.add_prefix(prefix);
      out.add_region(region_);
      out.add_runs(runs);
      return out.Finish();
    });
    while (objects_on_disk() == 0) {
    }
    ask<wire::EvictAnswer>(kind::evict, [&](builder& b) {
      auto prefix = prompt(b);
      return wire::CreateEvict(b, space_, prefix, host_alone);
    });
  }
  uint64_t objects_on_disk() {
    const auto& status =
        ask<wire::StatusAnswer>(kind::status, [](builder& b) { return wire::CreateStatus(b); });
    return status.groups()->Get(0)->tiers()->Get(1)->objects();
  }

  /// The messages of a load, one line each. Completions of operations in the ring, and starts, come from no actor.
  std::vector<std::string> messages_of_load(const std::vector<uint8_t>& lease) {
    while (daemon_->process().actors().waiting() != 0 && daemon_->step()) {
    }
    seen_.clear();
    const auto& loaded = ask<wire::LoadAnswer>(kind::load, [&](builder& b) {
      auto prefix = lease.empty() ? prompt(b) : flatbuffers::Offset<wire::Prefix>();
      auto held = lease.empty() ? flatbuffers::Offset<flatbuffers::Vector<uint8_t>>() : b.CreateVector(lease);
      auto runs = run(b);
      wire::LoadBuilder out(b);
      out.add_space(space_);
      if (lease.empty())
        out.add_prefix(prefix);
      else
        out.add_lease(held);
      out.add_region(region_);
      out.add_runs(runs);
      return out.Finish();
    });
    EXPECT_EQ(loaded.delivered_chunks(), 1U);
    EXPECT_EQ(loaded.bytes_by_tier()->Get(static_cast<unsigned>(tier_kind::disk)), object_bytes);
    return seen_;
  }

  /// Without the notes for the policy: nobody waits for them, so they come before the answer or after it.
  static size_t sent_by_actors(const std::vector<std::string>& lines) {
    return static_cast<size_t>(std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
      return line.find(": starts") == line.npos && line.find("io_done") == line.npos &&
             line.find("policy_notes") == line.npos;
    }));
  }
  static std::string listed(const std::vector<std::string>& lines) {
    std::string all;
    for (const auto& line : lines)
      all += "  " + line + "\n";
    return all;
  }

  std::vector<std::string> seen_; ///< until the last actor of the daemon has ended
  scheduler events_;
  simulated_disk disk_;
  simulated_calls calls_;
  test::temporary_folder folder_;
  std::optional<simulated_daemon> daemon_;
  std::optional<test::raw_client> client_;
  test::received answered_;
  uint64_t last_ = 0;
  uint32_t space_ = 0, region_ = 0;
};

/// The tiers below host memory are asked for the object, and told when it has been read: a lease holds it already.
TEST_F(LoadMessages, OfAPromptOnDiskAreFew) {
  auto lines = messages_of_load({});
  EXPECT_LE(sent_by_actors(lines), 21U) << listed(lines);
}

TEST_F(LoadMessages, UnderALeaseAreFew) {
  const auto& found = ask<wire::LookupAnswer>(kind::lookup, [&](builder& b) {
    auto prefix = prompt(b);
    wire::LookupBuilder out(b);
    out.add_space(space_);
    out.add_prefix(prefix);
    out.add_lease(true);
    return out.Finish();
  });
  ASSERT_NE(found.lease(), nullptr);
  auto lines = messages_of_load({found.lease()->begin(), found.lease()->end()});
  EXPECT_LE(sent_by_actors(lines), 18U) << listed(lines);
}

} // namespace
} // namespace terrace::simulation
