// The bounds of named lookups.
#include "protocol/verify.hpp"

#include <gtest/gtest.h>

#include <functional>

using namespace terrace;
using namespace terrace::protocol;

namespace {

using body_builder = flatbuffers::FlatBufferBuilder;

/// Returns what `parse` refuses in the table that `build` makes; empty: nothing.
template <class T>
std::string refusal(const std::function<flatbuffers::Offset<T>(body_builder&)>& build) {
  body_builder body;
  body.Finish(build(body));
  auto table = parse<T>({body.GetBufferPointer(), body.GetSize()});
  return table ? std::string() : table.error().text;
}

flatbuffers::Offset<flatbuffers::Vector<uint8_t>> id(body_builder& body, size_t bytes) {
  return body.CreateVector(std::vector<uint8_t>(bytes, 7));
}

} // namespace

TEST(NamedLookupBounds, AnIdHasSixteenBytes) {
  auto await = [](size_t bytes) {
    return refusal<wire::AwaitLookup>(
        [=](body_builder& body) { return wire::CreateAwaitLookup(body, id(body, bytes)); });
  };
  EXPECT_EQ(await(16), "");
  EXPECT_NE(await(15).find("expected lookup_id of 16 bytes, got 15"), std::string::npos);
  EXPECT_NE(await(0).find("got 0"), std::string::npos);
  auto lookup = [](size_t bytes) {
    return refusal<wire::Lookup>([=](body_builder& body) {
      auto tokens = body.CreateVector(std::vector<uint32_t>(16, 1));
      auto prefix = wire::CreatePrefix(body, tokens);
      auto name = bytes == 0 ? flatbuffers::Offset<flatbuffers::Vector<uint8_t>>() : id(body, bytes);
      return wire::CreateLookup(body, 1, prefix, false, 0, 0, 0, name);
    });
  };
  EXPECT_EQ(lookup(0), "");
  EXPECT_EQ(lookup(16), "");
  EXPECT_NE(lookup(17).find("lookup_id of 16 bytes, got 17"), std::string::npos);
}

TEST(NamedLookupBounds, ACancelNamesEitherARequestOrALookup) {
  auto cancel = [](uint64_t request, size_t bytes) {
    return refusal<wire::Cancel>([=](body_builder& body) {
      auto name = bytes == 0 ? flatbuffers::Offset<flatbuffers::Vector<uint8_t>>() : id(body, bytes);
      return wire::CreateCancel(body, request, name);
    });
  };
  EXPECT_EQ(cancel(3, 0), "");
  EXPECT_EQ(cancel(0, 16), "");
  EXPECT_NE(cancel(3, 16).find("exactly one of request and lookup_id, got both"), std::string::npos);
  EXPECT_NE(cancel(0, 0).find("got neither"), std::string::npos);
  EXPECT_NE(cancel(0, 8).find("lookup_id of 16 bytes, got 8"), std::string::npos);
}

TEST(NamedLookupBounds, AnAnswerIsHeldToWhatALookupsAnswerIs) {
  auto answer = [](size_t tiers) {
    return refusal<wire::AwaitLookupAnswer>([=](body_builder& body) {
      auto listed = body.CreateVector(std::vector<uint8_t>(tiers, 1));
      return wire::CreateAwaitLookupAnswer(body, wire::CreateLookupAnswer(body, 4, 3, 0, 0, listed), 256);
    });
  };
  EXPECT_EQ(answer(3), "");
  EXPECT_NE(answer(2).find("one tier a found chunk"), std::string::npos);
}

TEST(PrefetchBounds, APrefetchHasOneSubjectAndARuleWithItsTime) {
  auto prefetch = [](size_t lease_bytes, size_t name_bytes, wire::StopRule rule, uint32_t deadline,
                     uint8_t to = 1) {
    return refusal<wire::Prefetch>([=](body_builder& body) {
      auto none = flatbuffers::Offset<flatbuffers::Vector<uint8_t>>();
      auto lease = lease_bytes == 0 ? none : id(body, lease_bytes);
      auto name = name_bytes == 0 ? none : id(body, name_bytes);
      return wire::CreatePrefetch(body, 1, 0, lease, name, to, rule, deadline);
    });
  };
  EXPECT_EQ(prefetch(16, 0, wire::StopRule::best_effort, 0), "");
  EXPECT_EQ(prefetch(0, 16, wire::StopRule::deadline, 5), "");
  EXPECT_NE(
      prefetch(16, 16, wire::StopRule::wait, 0).find("exactly one of prefix, lease and lookup_id, got 2"),
      std::string::npos);
  EXPECT_NE(prefetch(0, 0, wire::StopRule::wait, 0).find("got 0"), std::string::npos);
  EXPECT_NE(prefetch(15, 0, wire::StopRule::wait, 0).find("expected lease of 16 bytes, got 15"),
            std::string::npos);
  EXPECT_NE(prefetch(0, 17, wire::StopRule::wait, 0).find("lookup_id of 16 bytes, got 17"),
            std::string::npos);
  EXPECT_NE(prefetch(16, 0, wire::StopRule::deadline, 0).find("deadline_ms"), std::string::npos);
  EXPECT_NE(prefetch(16, 0, static_cast<wire::StopRule>(3), 5).find("rule"), std::string::npos);
  EXPECT_NE(prefetch(16, 0, wire::StopRule::wait, 0, 4).find("to"), std::string::npos);
}
