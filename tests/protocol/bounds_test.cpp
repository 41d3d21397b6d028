#include "protocol/bounds.hpp"

#include "frames.hpp"
#include "protocol/verify.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <random>

using namespace terrace;
using namespace terrace::protocol;
using namespace terrace::protocol::test;

namespace {

using body_builder = flatbuffers::FlatBufferBuilder;

/// Returns what `parse` says about the table that `build` makes.
template <class T>
result<void> outcome_of(const std::function<flatbuffers::Offset<T>(body_builder&)>& build) {
  body_builder body;
  body.Finish(build(body));
  auto table = parse<T>({body.GetBufferPointer(), body.GetSize()});
  if (!table)
    return tl::unexpected<error>(table.error());
  return {};
}

template <class T>
void expect_fine(const std::function<flatbuffers::Offset<T>(body_builder&)>& build) {
  auto outcome = outcome_of<T>(build);
  EXPECT_TRUE(outcome) << outcome.error().text;
}

template <class T>
void expect_refused(const std::string& because,
                    const std::function<flatbuffers::Offset<T>(body_builder&)>& build) {
  auto outcome = outcome_of<T>(build);
  ASSERT_FALSE(outcome) << "expected a refusal: " << because;
  EXPECT_EQ(outcome.error().code, errc::bad_request);
  EXPECT_NE(outcome.error().text.find(because), std::string::npos) << outcome.error().text;
}

/// The parts of a prefix; absent parts stay absent.
struct prefix_parts {
  std::optional<std::vector<uint32_t>> tokens;
  std::optional<std::vector<uint8_t>> parent;
  uint32_t parent_tokens = 0;
  std::optional<std::vector<uint8_t>> digests;
  uint8_t width = 32;
  wire::DigestUnit unit = wire::DigestUnit::chunk;
  std::optional<std::vector<uint32_t>> end_offsets;
  std::optional<std::string> lora, salt;
  std::vector<std::tuple<std::string, uint32_t, uint32_t>> items;
  std::vector<std::string> tags;
  std::optional<std::vector<uint8_t>> session;
};

auto lookup_of(const prefix_parts& parts, uint32_t tiers = 0) {
  return [=](body_builder& b) {
    std::vector<flatbuffers::Offset<wire::Item>> items;
    for (const auto& [name, first, tokens] : parts.items)
      items.push_back(wire::CreateItem(b, b.CreateString(name), first, tokens));
    auto tokens = parts.tokens ? b.CreateVector(*parts.tokens) : 0;
    auto parent = parts.parent ? b.CreateVector(*parts.parent) : 0;
    auto digests = parts.digests ? b.CreateVector(*parts.digests) : 0;
    auto ends = parts.end_offsets ? b.CreateVector(*parts.end_offsets) : 0;
    auto lora = parts.lora ? b.CreateString(*parts.lora) : 0;
    auto salt = parts.salt ? b.CreateString(*parts.salt) : 0;
    auto item_list = items.empty() ? 0 : b.CreateVector(items);
    auto tags = parts.tags.empty() ? 0 : b.CreateVectorOfStrings(parts.tags);
    auto session = parts.session ? b.CreateVector(*parts.session) : 0;
    auto prefix = wire::CreatePrefix(b, tokens, parent, parts.parent_tokens, digests, parts.width, parts.unit,
                                     ends, lora, salt, item_list, tags, session);
    return wire::CreateLookup(b, 1, prefix, false, tiers);
  };
}

std::vector<uint32_t> some_tokens(size_t count) { return std::vector<uint32_t>(count, 5); }
std::vector<uint8_t> some_bytes(size_t count) { return std::vector<uint8_t>(count, 6); }

auto store_of(const std::vector<wire::Run>& runs, std::optional<std::vector<uint32_t>> per_object = {}) {
  return [=](body_builder& b) {
    auto prefix = wire::CreatePrefix(b, b.CreateVector(some_tokens(256)));
    auto run_list = b.CreateVectorOfStructs(runs);
    auto counts = per_object ? b.CreateVector(*per_object) : 0;
    return wire::CreateStore(b, 1, prefix, 0, 0, 1, run_list, counts);
  };
}

struct space_parts {
  std::string model = "m", dtype = "bf16", layout = "l";
  uint32_t chunk = 256, block = 16, world = 1, rank = 0;
  std::vector<std::pair<std::string, uint64_t>> pools = {{"kv", 4096}};
  uint8_t algorithm = 0, rule = 0;
  uint32_t trailing = 1;
  std::optional<size_t> tensors;
  uint8_t format = 0;
  std::string tensor_dtype = "int8";
  uint32_t layer_groups = 1;
};

auto space_of(const space_parts& parts) {
  return [=](body_builder& b) {
    std::vector<flatbuffers::Offset<wire::Pool>> pools;
    for (const auto& [name, bytes] : parts.pools) {
      std::vector<flatbuffers::Offset<wire::Tensor>> tensors;
      for (size_t i = 0; i < parts.tensors.value_or(0); ++i)
        tensors.push_back(wire::CreateTensor(b, static_cast<wire::TensorFormat>(parts.format),
                                             b.CreateString(parts.tensor_dtype), 1, 1, 1));
      auto tensor_list = parts.tensors ? b.CreateVector(tensors) : 0;
      pools.push_back(wire::CreatePool(b, b.CreateString(name), bytes, static_cast<wire::HitRule>(parts.rule),
                                       parts.trailing, false, tensor_list, parts.layer_groups));
    }
    auto model = b.CreateString(parts.model), dtype = b.CreateString(parts.dtype),
         layout = b.CreateString(parts.layout);
    auto pool_list = b.CreateVector(pools);
    return wire::CreateOpenSpace(b, model, 0, dtype, layout, parts.chunk, parts.block, parts.world, pool_list,
                                 0, static_cast<wire::HashAlgorithm>(parts.algorithm), 0, parts.rank);
  };
}

} // namespace

TEST(PrefixBounds, TokensOrDigestsButNotBothOrNeither) {
  expect_fine<wire::Lookup>(lookup_of({.tokens = some_tokens(1000)}));
  expect_fine<wire::Lookup>(lookup_of({.digests = some_bytes(128 * 32)}));
  expect_refused<wire::Lookup>("got neither", lookup_of({}));
  expect_refused<wire::Lookup>("got both", lookup_of({.tokens = some_tokens(1), .digests = some_bytes(32)}));
}

TEST(PrefixBounds, CountsOfTokens) {
  expect_fine<wire::Lookup>(lookup_of({.tokens = some_tokens(0)})); // an empty prompt
  expect_refused<wire::Lookup>(
      "number of tokens",
      lookup_of({.tokens = some_tokens(0), .parent = some_bytes(32), .parent_tokens = 0}));
  expect_fine<wire::Lookup>(lookup_of({.tokens = some_tokens(tokens_max)}));
  expect_refused<wire::Lookup>("number of tokens", lookup_of({.tokens = some_tokens(tokens_max + 1)}));
  expect_refused<wire::Lookup>(
      "number of tokens",
      lookup_of({.tokens = some_tokens(tokens_max), .parent = some_bytes(32), .parent_tokens = 256}));
}

TEST(PrefixBounds, ParentsComeWithTheirTokens) {
  expect_fine<wire::Lookup>(
      lookup_of({.tokens = some_tokens(9), .parent = some_bytes(16), .parent_tokens = 256}));
  expect_fine<wire::Lookup>(
      lookup_of({.tokens = some_tokens(9), .parent = some_bytes(32)})); // instead of the seed
  expect_refused<wire::Lookup>("parent_tokens 0",
                               lookup_of({.tokens = some_tokens(9), .parent_tokens = 256}));
  expect_refused<wire::Lookup>(
      "size of parent",
      lookup_of({.tokens = some_tokens(9), .parent = some_bytes(33), .parent_tokens = 256}));
}

TEST(PrefixBounds, WidthsAndCountsOfDigests) {
  for (uint8_t width = 8; width <= 32; ++width)
    expect_fine<wire::Lookup>(lookup_of({.digests = some_bytes(width * 3U), .width = width}));
  for (uint8_t width : {0, 7, 33, 255})
    expect_refused<wire::Lookup>("digest_width", lookup_of({.digests = some_bytes(32), .width = width}));
  expect_refused<wire::Lookup>("no multiple", lookup_of({.digests = some_bytes(33)}));
  expect_refused<wire::Lookup>("number of digests", lookup_of({.digests = some_bytes(0)}));
  expect_fine<wire::Lookup>(lookup_of({.digests = some_bytes(chunks_max * 8UL), .width = 8}));
  expect_refused<wire::Lookup>("number of digests",
                               lookup_of({.digests = some_bytes((chunks_max + 1) * 8UL), .width = 8}));
  expect_fine<wire::Lookup>(lookup_of(
      {.digests = some_bytes((chunks_max + 1) * 8UL), .width = 8, .unit = wire::DigestUnit::hash_block}));
  expect_refused<wire::Lookup>(
      "digest_unit", lookup_of({.digests = some_bytes(32), .unit = static_cast<wire::DigestUnit>(2)}));
}

TEST(PrefixBounds, EndOffsetsRiseAndMatchTheDigests) {
  expect_fine<wire::Lookup>(
      lookup_of({.digests = some_bytes(64), .end_offsets = std::vector<uint32_t>{100, 300}}));
  expect_refused<wire::Lookup>(
      "that rise", lookup_of({.digests = some_bytes(64), .end_offsets = std::vector<uint32_t>{100, 100}}));
  expect_refused<wire::Lookup>(
      "that rise", lookup_of({.digests = some_bytes(32), .end_offsets = std::vector<uint32_t>{0}}));
  expect_refused<wire::Lookup>(
      "one end offset a digest",
      lookup_of({.digests = some_bytes(64), .end_offsets = std::vector<uint32_t>{100}}));
  expect_refused<wire::Lookup>(
      "beside tokens", lookup_of({.tokens = some_tokens(1), .end_offsets = std::vector<uint32_t>{1}}));
}

TEST(PrefixBounds, DigestsContainTheirExtraKeys) {
  expect_fine<wire::Lookup>(lookup_of({.tokens = some_tokens(9), .lora = "adapter", .salt = "pepper"}));
  expect_fine<wire::Lookup>(lookup_of({.digests = some_bytes(32), .lora = "adapter", .salt = "pepper"}));
  expect_refused<wire::Lookup>("lora", lookup_of({.digests = some_bytes(32), .lora = std::string(257, 'x')}));
  expect_refused<wire::Lookup>("salt", lookup_of({.digests = some_bytes(32), .salt = std::string(257, 'x')}));
  expect_refused<wire::Lookup>("contain them already",
                               lookup_of({.digests = some_bytes(32), .items = {{"image", 0, 5}}}));
}

TEST(PrefixBounds, ItemsStringsAndTags) {
  expect_fine<wire::Lookup>(
      lookup_of({.tokens = some_tokens(9), .items = {{"image", 2, 5}}, .tags = {"a", "b"}}));
  expect_refused<wire::Lookup>("tokens of an item",
                               lookup_of({.tokens = some_tokens(9), .items = {{"image", 2, 0}}}));
  expect_refused<wire::Lookup>("end of an item",
                               lookup_of({.tokens = some_tokens(9), .items = {{"image", UINT32_MAX, 5}}}));
  expect_refused<wire::Lookup>("identifier of an item",
                               lookup_of({.tokens = some_tokens(9), .items = {{"", 2, 5}}}));
  expect_refused<wire::Lookup>("lora", lookup_of({.tokens = some_tokens(9), .lora = std::string(257, 'x')}));
  expect_refused<wire::Lookup>(
      "number of tags", lookup_of({.tokens = some_tokens(9), .tags = std::vector<std::string>(17, "t")}));
  expect_refused<wire::Lookup>("tiers", lookup_of({.tokens = some_tokens(9)}, 64));
}

TEST(PrefixBounds, ASessionContinuesTokens) {
  auto session = some_bytes(16);
  expect_fine<wire::Lookup>(lookup_of({.tokens = some_tokens(9), .session = session}));
  expect_fine<wire::Lookup>(lookup_of({.tokens = some_tokens(0),
                                       .parent = some_bytes(32),
                                       .parent_tokens = 9,
                                       .session = session})); // adds nothing new
  expect_refused<wire::Lookup>("number of tokens", lookup_of({.tokens = some_tokens(0), .session = session}));
  expect_refused<wire::Lookup>("session of 16 bytes",
                               lookup_of({.tokens = some_tokens(9), .session = some_bytes(15)}));
  expect_refused<wire::Lookup>("expected tokens", lookup_of({.digests = some_bytes(32), .session = session}));
  expect_refused<wire::Lookup>("no lora, salt or tags",
                               lookup_of({.tokens = some_tokens(9), .salt = "s", .session = session}));
  expect_refused<wire::Lookup>("no lora, salt or tags",
                               lookup_of({.tokens = some_tokens(9), .tags = {"t"}, .session = session}));
}

TEST(SessionBounds, EveryFieldHasItsRange) {
  auto open_of = [](uint8_t mode, size_t parent, size_t lora) {
    return [=](body_builder& b) {
      auto seed = b.CreateVector(some_bytes(parent));
      return wire::CreateOpenSession(b, 1, static_cast<wire::SessionMode>(mode), true, seed,
                                     b.CreateString(std::string(lora, 'l')));
    };
  };
  expect_fine<wire::OpenSession>(open_of(1, 32, name_bytes_max));
  expect_refused<wire::OpenSession>("mode of a session", open_of(2, 32, 1));
  expect_refused<wire::OpenSession>("size of parent", open_of(0, 7, 1));
  expect_refused<wire::OpenSession>("lora", open_of(0, 32, name_bytes_max + 1));
  auto fork_of = [](size_t digest) {
    return [=](body_builder& b) {
      auto last = b.CreateVector(some_bytes(digest));
      return wire::CreateForkSessionAnswer(b, b.CreateVector(some_bytes(16)), 9, last);
    };
  };
  expect_fine<wire::ForkSessionAnswer>(fork_of(32));
  expect_refused<wire::ForkSessionAnswer>("digest", fork_of(33));
}

TEST(PrefixBounds, DigestsAreReadWithTheirWidth) {
  body_builder b;
  std::vector<uint8_t> raw{1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2};
  b.Finish(wire::CreatePrefix(b, 0, 0, 0, b.CreateVector(raw), 8));
  const auto& prefix = *flatbuffers::GetRoot<wire::Prefix>(b.GetBufferPointer());
  ASSERT_EQ(digest_count(prefix), 2U);
  EXPECT_EQ(to_hex(digest_at(prefix, 1), 10), "02020202020202020000");
}

TEST(RunBounds, PiecesStayInsideTheRegionWithoutOverflow) {
  auto inside = [](std::vector<wire::Run> runs, uint64_t region) {
    body_builder b;
    b.Finish(store_of(runs)(b));
    return check_runs(*flatbuffers::GetRoot<wire::Store>(b.GetBufferPointer())->runs(), region);
  };
  auto totals = inside({{0, 100, 0, 1}, {100, 50, 300, 3}}, 750);
  ASSERT_TRUE(totals) << totals.error().text;
  EXPECT_EQ(totals->pieces, 4U);
  EXPECT_EQ(totals->bytes, 250U);
  EXPECT_FALSE(inside({{100, 50, 300, 3}}, 749));
  EXPECT_FALSE(inside({{750, 1, 0, 1}}, 750));
  EXPECT_TRUE(inside({{749, 1, 0, 1}}, 750));
  EXPECT_FALSE(inside({{UINT64_MAX - 1, 1, 0, 1}}, 750));
  EXPECT_FALSE(inside({{UINT64_MAX, 1, 0, 2}}, 750));
  EXPECT_TRUE(inside({{UINT64_MAX, 1, 0, 1}}, 750)) << "it is skipped";
  EXPECT_FALSE(inside({{UINT64_MAX - 10, 20, 0, 1}}, UINT64_MAX));
  EXPECT_FALSE(inside({{0, 1, UINT64_MAX / 2, 3}}, 750));
  EXPECT_FALSE(inside({{0, 1, UINT64_MAX / 2 + 1, 3}}, UINT64_MAX));
  EXPECT_FALSE(inside({{0, 1, 0, UINT64_MAX}}, 750));
}

TEST(RunBounds, PiecesAreCountedAndNeverEmpty) {
  expect_fine<wire::Store>(store_of({{0, 8, 8, runs_max}}));
  expect_refused<wire::Store>("pieces in all runs", store_of({{0, 8, 8, runs_max}, {0, 8, 0, 1}}));
  expect_refused<wire::Store>("at least one piece", store_of({{0, 8, 8, 0}}));
  expect_refused<wire::Store>("at least one piece", store_of({{0, 0, 8, 1}}));
  expect_refused<wire::Store>("at least one piece", store_of({{0, object_bytes_max + 1, 8, 1}}));
  expect_refused<wire::Store>("inside the region", store_of({{region_bytes_max, 8, 8, 1}}));
}

TEST(RunBounds, RunsPerObjectAddUp) {
  std::vector<wire::Run> three(3, {0, 8, 0, 1});
  expect_fine<wire::Store>(store_of(three, std::vector<uint32_t>{1, 2}));
  expect_refused<wire::Store>("sum of runs_per_object", store_of(three, std::vector<uint32_t>{1, 1}));
  expect_refused<wire::Store>("sum of runs_per_object", store_of(three, std::vector<uint32_t>{4}));
  expect_refused<wire::Store>("got 0 in runs_per_object", store_of(three, std::vector<uint32_t>{0, 3}));
}

TEST(SpaceBounds, EveryFieldHasItsRange) {
  expect_fine<wire::OpenSpace>(space_of({}));
  expect_refused<wire::OpenSpace>("model", space_of({.model = ""}));
  expect_refused<wire::OpenSpace>("dtype", space_of({.dtype = std::string(257, 'x')}));
  expect_refused<wire::OpenSpace>("chunk_tokens", space_of({.chunk = 0}));
  expect_refused<wire::OpenSpace>("hash_block_tokens", space_of({.block = 0}));
  expect_refused<wire::OpenSpace>("multiple of hash_block_tokens", space_of({.chunk = 100, .block = 16}));
  expect_refused<wire::OpenSpace>("world_size", space_of({.world = 0}));
  expect_refused<wire::OpenSpace>("rank", space_of({.world = 2, .rank = 2}));
  expect_refused<wire::OpenSpace>("number of pools", space_of({.pools = {}}));
  expect_refused<wire::OpenSpace>("different names", space_of({.pools = {{"kv", 1}, {"kv", 2}}}));
  expect_refused<wire::OpenSpace>("object_bytes", space_of({.pools = {{"kv", object_bytes_max + 1}}}));
  expect_refused<wire::OpenSpace>("algorithm", space_of({.algorithm = 3}));
  expect_refused<wire::OpenSpace>("hit_rule", space_of({.rule = 2}));
  expect_refused<wire::OpenSpace>("trailing", space_of({.trailing = 0}));
}

TEST(SpaceBounds, TensorsStandInPlaceOfBytes) {
  expect_refused<wire::OpenSpace>("object_bytes", space_of({.pools = {{"kv", 0}}}));
  expect_fine<wire::OpenSpace>(space_of({.pools = {{"kv", 0}}, .tensors = 1}));
  expect_fine<wire::OpenSpace>(space_of({.tensors = 16, .layer_groups = 128}));
  expect_refused<wire::OpenSpace>("number of tensors", space_of({.tensors = 0}));
  expect_refused<wire::OpenSpace>("number of tensors", space_of({.tensors = 17}));
  expect_refused<wire::OpenSpace>("format of a tensor", space_of({.tensors = 1, .format = 5}));
  expect_refused<wire::OpenSpace>("dtype of a tensor",
                                  space_of({.tensors = 1, .tensor_dtype = std::string(257, 'x')}));
  expect_refused<wire::OpenSpace>("layer_groups", space_of({.tensors = 1, .layer_groups = 0}));
  expect_refused<wire::OpenSpace>("layer_groups", space_of({.tensors = 1, .layer_groups = 129}));
  expect_refused<wire::OpenSpace>("object_bytes",
                                  space_of({.pools = {{"kv", object_bytes_max + 1}}, .tensors = 1}));
}

TEST(RequestBounds, NumbersOfPoolsRise) {
  auto of = [](std::vector<uint8_t> pools) {
    return [=](body_builder& b) {
      auto lease = b.CreateVector(some_bytes(16));
      return wire::CreateReadLease(b, lease, 0, 0, 0, 0, b.CreateVector(pools));
    };
  };
  expect_fine<wire::ReadLease>(of({0, 3, 127}));
  expect_refused<wire::ReadLease>("number of pools", of({}));
  expect_refused<wire::ReadLease>("pools that rise", of({1, 1}));
  expect_refused<wire::ReadLease>("pools that rise", of({2, 1}));
  expect_refused<wire::ReadLease>("below 128", of({128}));
}

TEST(RequestBounds, LeasesHaveSixteenBytes) {
  auto release = [](size_t size) {
    return [=](body_builder& b) { return wire::CreateRelease(b, b.CreateVector(some_bytes(size))); };
  };
  expect_fine<wire::Release>(release(16));
  expect_refused<wire::Release>("lease of 16 bytes", release(15));
  expect_refused<wire::Release>("lease of 16 bytes", release(0));
}

TEST(RequestBounds, ASetPolicyNamesATierAndAPolicy) {
  auto set = [](const char* tier, const std::string& policy) {
    return [=](body_builder& b) { return wire::CreateSetPolicyDirect(b, tier, policy.c_str()); };
  };
  expect_fine<wire::SetPolicy>(set("host", "arc"));
  expect_refused<wire::SetPolicy>("tier of 1 to 256 bytes", set("", "arc"));
  expect_refused<wire::SetPolicy>("policy of 1 to 256 bytes", set("host", ""));
  expect_refused<wire::SetPolicy>("policy of 1 to 256 bytes", set("host", std::string(257, 'x')));
}

TEST(RequestBounds, ALoadNamesAPrefixOrALease) {
  auto load = [](bool prefix, bool lease) {
    return [=](body_builder& b) {
      auto p = prefix ? wire::CreatePrefix(b, b.CreateVector(some_tokens(256))) : 0;
      auto l = lease ? b.CreateVector(some_bytes(16)) : 0;
      auto runs = b.CreateVectorOfStructs(std::vector<wire::Run>{{0, 8, 0, 1}});
      return wire::CreateLoad(b, 1, p, l, 0, 0, 1, runs);
    };
  };
  expect_fine<wire::Load>(load(true, false));
  expect_fine<wire::Load>(load(false, true));
  expect_refused<wire::Load>("got both", load(true, true));
  expect_refused<wire::Load>("got neither", load(false, false));
}

TEST(RequestBounds, HelloNamesTheBootItResumes) {
  auto hello = [](size_t resumes, size_t boot, const char* name = "demo") {
    return [=](body_builder& b) {
      auto text = b.CreateString(name);
      auto ids = b.CreateVector(std::vector<uint64_t>(resumes, 7));
      return wire::CreateHello(b, version, text, ids, b.CreateVector(some_bytes(boot)));
    };
  };
  expect_fine<wire::Hello>(hello(0, 0));
  expect_fine<wire::Hello>(hello(3, 16));
  expect_refused<wire::Hello>("resumes_boot", hello(3, 0));
  expect_refused<wire::Hello>("number of resumes", hello(resumes_max + 1, 16));
  expect_refused<wire::Hello>("client_name", hello(0, 0, ""));
}

TEST(RequestBounds, RegionsAndRanges) {
  expect_fine<wire::RegisterRegion>(
      [](body_builder& b) { return wire::CreateRegisterRegion(b, wire::RegionKind::memfd, 4096); });
  expect_refused<wire::RegisterRegion>("bytes of a region", [](body_builder& b) {
    return wire::CreateRegisterRegion(b, wire::RegionKind::memfd, 0);
  });
  expect_refused<wire::RegisterRegion>("kind of a region", [](body_builder& b) {
    return wire::CreateRegisterRegion(b, static_cast<wire::RegionKind>(9), 4096);
  });
  expect_fine<wire::RegisterRegion>([](body_builder& b) {
    return wire::CreateRegisterRegionDirect(b, wire::RegionKind::generations, 4096, "host");
  });
  auto with_events = [](wire::RegionKind kind, uint64_t bytes, uint32_t events) {
    return [=](body_builder& b) {
      return wire::CreateRegisterRegionDirect(b, kind, bytes, "host", nullptr, events);
    };
  };
  expect_fine<wire::RegisterRegion>(with_events(wire::RegionKind::generations, 68, 1));
  expect_fine<wire::RegisterRegion>(with_events(wire::RegionKind::generations, 68 * 1024, 1024));
  for (const auto& wrong :
       {with_events(wire::RegionKind::generations, 67, 1), with_events(wire::RegionKind::memfd, 68, 1),
        with_events(wire::RegionKind::device_memory, 68, 1),
        with_events(wire::RegionKind::generations, 1 << 20, 1025)})
    expect_refused<wire::RegisterRegion>("events", wrong);
  expect_refused<wire::RegisterRegion>("device of a region", [](body_builder& b) {
    return wire::CreateRegisterRegion(b, wire::RegionKind::generations, 4096);
  });
  expect_refused<wire::ReadLease>("first_chunk", [](body_builder& b) {
    return wire::CreateReadLease(b, b.CreateVector(some_bytes(16)), UINT32_MAX, UINT32_MAX);
  });
}

TEST(AnswerBounds, ALookupAnswersOneTierAChunk) {
  auto answer = [](uint32_t requested, uint32_t found, size_t tiers) {
    return [=](body_builder& b) {
      return wire::CreateLookupAnswer(b, requested, found, 0, 0, b.CreateVector(some_bytes(tiers)));
    };
  };
  expect_fine<wire::LookupAnswer>(answer(4, 3, 3));
  expect_refused<wire::LookupAnswer>("one tier a found chunk", answer(4, 3, 2));
  expect_refused<wire::LookupAnswer>("found_chunks", answer(2, 3, 3));
}

TEST(AnswerBounds, ErrorsHaveACode) {
  auto answer = [](uint8_t code) {
    return [=](body_builder& b) { return wire::CreateError(b, code, b.CreateString("text")); };
  };
  expect_fine<wire::Error>(answer(10));
  expect_refused<wire::Error>("code of an error", answer(0));
  expect_refused<wire::Error>("code of an error", answer(11));
}

TEST(Verify, RefusesRequiredFieldsThatAreMissing) {
  expect_refused<wire::Hello>("required fields", [](body_builder& b) {
    auto start = b.StartTable();
    return flatbuffers::Offset<wire::Hello>(b.EndTable(start));
  });
}

TEST(Verify, RefusesElementsOffTheirBoundary) {
  // FlatBuffers' own verifier accepts this body, which our fuzzer found.
  body_builder b;
  b.Finish(store_of({{0, 8, 0, 1}})(b));
  std::vector<uint64_t> words(b.GetSize() / 8 + 2);
  auto* shifted = reinterpret_cast<uint8_t*>(words.data()) + 4;
  std::memcpy(shifted, b.GetBufferPointer(), b.GetSize());
  auto table = parse<wire::Store>({shifted, b.GetSize()});
  ASSERT_FALSE(table);
  EXPECT_NE(table.error().text.find("elements of runs on a boundary of 8"), std::string::npos)
      << table.error().text;
}

TEST(Verify, RefusesEveryCutOfABody) {
  body_builder b;
  b.Finish(lookup_of({.tokens = some_tokens(50)})(b));
  for (size_t size = 0; size + 8 < b.GetSize(); ++size)
    EXPECT_FALSE(parse<wire::Lookup>({b.GetBufferPointer(), size})) << size;
}

TEST(Verify, SurvivesRandomDamage) {
  auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  body_builder b;
  b.Finish(lookup_of({.tokens = some_tokens(20), .lora = "x", .items = {{"image", 2, 5}}, .tags = {"a"}})(b));
  std::vector<uint64_t> words((b.GetSize() + 7) / 8); // aligned, as the decoder's buffer is
  auto* data = reinterpret_cast<uint8_t*>(words.data());
  for (int round = 0; round < 20'000; ++round) {
    std::memcpy(data, b.GetBufferPointer(), b.GetSize());
    for (int i = 0; i < 3; ++i)
      data[random() % b.GetSize()] = static_cast<uint8_t>(random());
    (void) parse<wire::Lookup>({data, b.GetSize()}); // must neither crash nor read outside (sanitizers watch)
    (void) parse<wire::Store>({data, b.GetSize()});
    (void) parse<wire::StatusAnswer>({data, b.GetSize()});
  }
}
