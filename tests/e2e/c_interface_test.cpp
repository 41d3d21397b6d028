// The C interface of libterrace, against a real daemon.
#include "client/terrace.h"
#include "workload.hpp"

#include <gmock/gmock.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace terrace::e2e {
namespace {

using testing::HasSubstr;

template <class T, void (*release)(T*)>
struct freed {
  void operator()(T* handle) const { release(handle); }
};
template <class T, void (*release)(T*)>
using owned = std::unique_ptr<T, freed<T, release>>;

struct CInterface : ::testing::Test {
  static constexpr int64_t limit_ms = test::patience_ms;

  void SetUp() override {
    terrace_connection* made = nullptr;
    ASSERT_EQ(terrace_connect(daemon.socket().c_str(), "c", limit_ms, &made, &error), TERRACE_OK)
        << error.text;
    connection.reset(made);
    space = open("llama");
    terrace_memory* memory_made = nullptr;
    ASSERT_EQ(terrace_memory_create("c", chunks * object_bytes, &memory_made, &error), TERRACE_OK)
        << error.text;
    memory.reset(memory_made);
    ASSERT_EQ(terrace_register(connection.get(), memory.get(), limit_ms, &region, &error), TERRACE_OK)
        << error.text;
    for (uint32_t i = 0; i < chunks; ++i)
      runs.push_back({.offset = i * object_bytes, .bytes = object_bytes, .stride = 0, .count = 0});
    for (uint32_t i = 0; i < chunks * space_chunk_tokens; ++i)
      tokens.push_back(i);
  }
  void TearDown() override {
    EXPECT_EQ(terrace_unregister(connection.get(), region, limit_ms, &error), TERRACE_OK);
  }

  terrace_space_spec spec_of(const char* model) const {
    terrace_space_spec spec{};
    spec.size = sizeof spec;
    spec.model = model;
    spec.dtype = "u8";
    spec.layout = "opaque";
    spec.chunk_tokens = space_chunk_tokens;
    spec.pools = &pool;
    spec.pool_count = 1;
    return spec;
  }
  owned<terrace_space, terrace_space_free> open(const char* model) {
    terrace_space_spec spec = spec_of(model);
    terrace_space* opened = nullptr;
    EXPECT_EQ(terrace_open_space(connection.get(), &spec, limit_ms, &opened, &error), TERRACE_OK)
        << error.text;
    return owned<terrace_space, terrace_space_free>(opened);
  }
  terrace_prefix prompt() const {
    terrace_prefix prefix{};
    prefix.size = sizeof prefix;
    prefix.tokens = tokens.data();
    prefix.token_count = tokens.size();
    return prefix;
  }
  uint8_t* bytes() const { return static_cast<uint8_t*>(terrace_memory_data(memory.get())); }
  void fill() const {
    for (uint32_t i = 0; i < chunks; ++i)
      std::memset(bytes() + i * object_bytes, static_cast<int>(i + 1), object_bytes);
  }
  terrace_moved store() {
    fill();
    terrace_prefix prefix = prompt();
    terrace_moved stored{};
    EXPECT_EQ(terrace_store(connection.get(), space.get(), &prefix, 0, 0, region, runs.data(), runs.size(),
                            limit_ms, &stored, &error),
              TERRACE_OK)
        << error.text;
    return stored;
  }
  terrace_found look_up(bool lease) {
    terrace_prefix prefix = prompt();
    terrace_found found{};
    EXPECT_EQ(terrace_lookup(connection.get(), space.get(), &prefix, lease, limit_ms, &found, &error),
              TERRACE_OK)
        << error.text;
    return found;
  }

  static constexpr uint32_t chunks = 3;
  daemon_under_test daemon;
  terrace_error error{};
  terrace_pool pool{.name = nullptr, .object_bytes = object_bytes, .trailing = 0, .replicated = 0};
  owned<terrace_connection, terrace_disconnect> connection;
  owned<terrace_space, terrace_space_free> space;
  owned<terrace_memory, terrace_memory_free> memory;
  terrace_region* region = nullptr;
  std::vector<terrace_run> runs;
  std::vector<uint32_t> tokens;
};

TEST_F(CInterface, StoresFindsReadsInPlaceAndLoads) {
  EXPECT_EQ(look_up(false).found_chunks, 0U);
  terrace_moved stored = store();
  EXPECT_EQ(stored.chunks, chunks);
  EXPECT_EQ(stored.bytes, chunks * object_bytes);
  EXPECT_EQ(store().present_chunks, chunks);

  terrace_found found = look_up(true);
  EXPECT_EQ(found.found_chunks, chunks);
  EXPECT_EQ(found.found_tokens, chunks * space_chunk_tokens);
  EXPECT_LT(found.usable_tokens, found.found_tokens);
  ASSERT_NE(found.lease, nullptr);
  terrace_objects* objects = nullptr;
  ASSERT_EQ(terrace_read_lease(connection.get(), found.lease, 1, 2, limit_ms, &objects, &error), TERRACE_OK)
      << error.text;
  ASSERT_EQ(terrace_objects_count(objects), 2U);
  size_t size = 0;
  const auto* data = static_cast<const uint8_t*>(terrace_objects_data(objects, 1, &size));
  EXPECT_EQ(size, object_bytes);
  EXPECT_EQ(data[0], 3);
  EXPECT_EQ(terrace_objects_data(objects, 2, &size), nullptr);
  EXPECT_EQ(size, 0U);
  terrace_objects_free(objects);

  std::memset(bytes(), 0, chunks * object_bytes);
  terrace_moved loaded{};
  ASSERT_EQ(terrace_load(connection.get(), nullptr, nullptr, found.lease, 0, 0, region, runs.data(),
                         runs.size(), limit_ms, &loaded, &error),
            TERRACE_OK)
      << error.text;
  EXPECT_EQ(loaded.chunks, chunks);
  EXPECT_EQ(bytes()[2 * object_bytes], 3);
  terrace_release(found.lease);

  std::memset(bytes(), 0, chunks * object_bytes);
  terrace_prefix prefix = prompt();
  ASSERT_EQ(terrace_load(connection.get(), space.get(), &prefix, nullptr, 2, 1, region, runs.data(), 1,
                         limit_ms, &loaded, &error),
            TERRACE_OK)
      << error.text;
  EXPECT_EQ(bytes()[0], 3);
}

TEST_F(CInterface, ClearsOneSpaceOrAll) {
  store();
  auto other = open("other");
  uint64_t cleared = 7;
  ASSERT_EQ(terrace_clear(connection.get(), other.get(), limit_ms, &cleared, &error), TERRACE_OK)
      << error.text;
  EXPECT_EQ(cleared, 0U);
  EXPECT_EQ(look_up(false).found_chunks, chunks);
  ASSERT_EQ(terrace_clear(connection.get(), nullptr, limit_ms, &cleared, &error), TERRACE_OK) << error.text;
  EXPECT_GE(cleared, uint64_t{chunks});
  EXPECT_EQ(look_up(false).found_chunks, 0U);
}

TEST_F(CInterface, AnOlderCallersStructsMayBeShorter) {
  store();
  terrace_prefix prefix = prompt();
  prefix.size = offsetof(terrace_prefix, digests); // what lies behind is not read
  prefix.digests = reinterpret_cast<const uint8_t*>(1);
  terrace_found found{};
  ASSERT_EQ(terrace_lookup(connection.get(), space.get(), &prefix, 0, limit_ms, &found, &error), TERRACE_OK)
      << error.text;
  EXPECT_EQ(found.found_chunks, chunks);
}

TEST_F(CInterface, WrongArgumentsAreErrorsWithAText) {
  terrace_prefix prefix = prompt(), neither{}, unsized = prompt();
  neither.size = sizeof neither;
  unsized.size = 0;
  terrace_found found{};
  auto lookup = [&](const terrace_prefix* what) {
    return terrace_lookup(connection.get(), space.get(), what, 0, limit_ms, &found, &error);
  };
  EXPECT_EQ(lookup(&neither), TERRACE_BAD_REQUEST);
  EXPECT_THAT(error.text, HasSubstr("either tokens or digests"));
  EXPECT_EQ(error.code, TERRACE_BAD_REQUEST);
  EXPECT_EQ(lookup(&unsized), TERRACE_BAD_REQUEST);
  EXPECT_THAT(error.text, HasSubstr("sizeof(terrace_prefix)"));
  EXPECT_EQ(lookup(nullptr), TERRACE_BAD_REQUEST);
  EXPECT_THAT(error.text, HasSubstr("null pointer"));
  uint8_t digest[64] = {};
  terrace_prefix wide{};
  wide.size = sizeof wide;
  wide.digests = digest;
  wide.digest_count = 1;
  wide.digest_bytes = sizeof digest;
  EXPECT_EQ(lookup(&wide), TERRACE_BAD_REQUEST);
  EXPECT_THAT(error.text, HasSubstr("at most 32 bytes"));
  EXPECT_EQ(lookup(&prefix), TERRACE_OK);
  EXPECT_STREQ(error.text, "");

  terrace_moved moved{};
  EXPECT_EQ(terrace_load(connection.get(), space.get(), nullptr, nullptr, 0, 0, region, runs.data(), 1,
                         limit_ms, &moved, &error),
            TERRACE_BAD_REQUEST);
  EXPECT_THAT(error.text, HasSubstr("either a prefix with its space, or a lease"));
  terrace_space_spec spec = spec_of("llama");
  pool.object_bytes = 0;
  terrace_space* opened = nullptr;
  EXPECT_EQ(terrace_open_space(connection.get(), &spec, limit_ms, &opened, &error), TERRACE_BAD_REQUEST);
  EXPECT_THAT(error.text, HasSubstr("object_bytes"));
  EXPECT_EQ(opened, nullptr);
  EXPECT_EQ(terrace_lookup(nullptr, nullptr, nullptr, 0, 0, nullptr, nullptr),
            TERRACE_BAD_REQUEST); // errors may be left out
  terrace_release(nullptr);
  terrace_objects_free(nullptr);
  EXPECT_EQ(terrace_objects_count(nullptr), 0U);
}

TEST_F(CInterface, ALostDaemonIsGoneUntilTheConnectionIsMadeAgain) {
  store();
  terrace_found held = look_up(true);
  daemon.kill();
  terrace_found found{};
  terrace_prefix prefix = prompt();
  EXPECT_EQ(terrace_lookup(connection.get(), space.get(), &prefix, 0, limit_ms, &found, &error),
            TERRACE_GONE);
  EXPECT_EQ(terrace_alive(connection.get()), 0);
  daemon.start();
  int same = 1;
  terrace_code back = TERRACE_GONE;
  while (back == TERRACE_GONE) // until the pause between two attempts is over
    back = terrace_reconnect(connection.get(), limit_ms, &same, &error);
  ASSERT_EQ(back, TERRACE_OK) << error.text;
  EXPECT_EQ(same, 0);
  terrace_release(held.lease); // of the daemon before
  EXPECT_EQ(look_up(false).requested_chunks, chunks);
}

TEST(CInterfaceAlone, ADaemonThatIsNotThereIsAnError) {
  terrace_connection* made = nullptr;
  terrace_error error{};
  EXPECT_EQ(terrace_connect("/nonexistent/terrace.sock", nullptr, 1000, &made, &error), TERRACE_GONE);
  EXPECT_EQ(made, nullptr);
  EXPECT_STRNE(error.text, "");
  EXPECT_STRNE(terrace_version(), "unknown");
}

} // namespace
} // namespace terrace::e2e
