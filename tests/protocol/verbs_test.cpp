// Tests what is made from the table of verbs (verbs.def).
#include "protocol/verify.hpp"

#include "tests/fuzz/sample_frames.hpp"

#include <gtest/gtest.h>

#include <map>

using namespace terrace;
using namespace terrace::protocol;
using namespace terrace::protocol::test;

namespace {

/// True if `parse` accepts the body as the table of this kind.
bool parses(kind what, std::span<const uint8_t> body) {
#define TERRACE_VERB(NAME, TABLE, NUMBER, ...)                                                               \
  if (what == kind::NAME)                                                                                    \
    return parse<request_table<kind::NAME>>(body).has_value();                                               \
  if (what == answer_to(kind::NAME))                                                                         \
    return parse<answer_table<kind::NAME>>(body).has_value();
#include "protocol/verbs.def"
  return what == kind::error && parse<wire::Error>(body).has_value();
}

} // namespace

TEST(Verbs, KeepTheirNumbers) {
  // A changed number breaks every client. New verbs take the next one.
  const char* names[] = {"hello",       "open_space",   "register_region", "unregister_region",
                         "map_segment", "lookup",       "read_lease",      "load",
                         "store",       "reserve",      "commit",          "abort",
                         "release",     "cancel",       "status",          "end_inference",
                         "clear",       "await_lookup", "policies",        "set_policy"};
  ASSERT_GE(last_request, std::size(names));
  for (size_t i = 0; i < std::size(names); ++i)
    EXPECT_EQ(to_string(static_cast<kind>(i + 1)), names[i]);
  EXPECT_EQ(static_cast<uint16_t>(kind::error), 0x7fff);
}

TEST(Verbs, DescriptorsComeWithARegionAndGoWithASegmentOrABell) {
  for (uint16_t number = 1; number <= last_request; ++number) {
    auto verb = static_cast<kind>(number);
    EXPECT_EQ(descriptors_allowed(verb), verb == kind::register_region ? 1 : 0) << to_string(verb);
    bool gives = verb == kind::map_segment || verb == kind::bell;
    EXPECT_EQ(descriptors_allowed(answer_to(verb)), gives ? 1 : 0) << to_string(verb);
  }
  EXPECT_EQ(descriptors_allowed(kind::error), 0);
}

TEST(Verbs, EachHasASampleFrameThatIsVerified) {
  std::map<kind, std::vector<uint8_t>> samples;
  for (auto& sample : sample_frames())
    samples[sample.kind] = std::move(sample.bytes);
  for (uint16_t number = 1; number <= last_request; ++number) {
    auto verb = static_cast<kind>(number);
    ASSERT_TRUE(samples.contains(verb)) << to_string(verb) << " has no seed in tests/fuzz/sample_frames.cpp";
    std::span<const uint8_t> body(samples[verb]);
    EXPECT_TRUE(parses(verb, body.subspan(header_bytes))) << to_string(verb);
    EXPECT_FALSE(parses(verb, body.subspan(header_bytes, 4))) << to_string(verb);
  }
}
