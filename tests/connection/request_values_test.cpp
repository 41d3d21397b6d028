#include "connection/request_values.hpp"

#include <gtest/gtest.h>

using namespace terrace;

namespace {

flatbuffers::Offset<wire::Pool> pool(flatbuffers::FlatBufferBuilder& body, const char* name, uint64_t bytes) {
  auto text = body.CreateString(name);
  wire::PoolBuilder out(body);
  out.add_name(text);
  out.add_object_bytes(bytes);
  return out.Finish();
}

const wire::OpenSpace* space(flatbuffers::FlatBufferBuilder& body, uint32_t rank) {
  auto model = body.CreateString("llama");
  auto dtype = body.CreateString("bfloat16");
  auto layout = body.CreateString("nhd");
  std::vector<flatbuffers::Offset<wire::Pool>> list = {pool(body, "kv", 4096), pool(body, "state", 512)};
  auto pools = body.CreateVector(list);
  wire::OpenSpaceBuilder out(body);
  out.add_model(model);
  out.add_dtype(dtype);
  out.add_layout(layout);
  out.add_chunk_tokens(64);
  out.add_world_size(2);
  out.add_rank(rank);
  out.add_pools(pools);
  body.Finish(out.Finish());
  return flatbuffers::GetRoot<wire::OpenSpace>(body.GetBufferPointer());
}

} // namespace

TEST(RequestValues, ASpaceHasTheFieldsAndPoolsOfItsRequest) {
  flatbuffers::FlatBufferBuilder body;
  auto spec = spec_of(*space(body, 1));
  ASSERT_TRUE(spec) << spec.error().text;
  EXPECT_EQ(spec->model, "llama");
  EXPECT_EQ(spec->revision, "");
  EXPECT_EQ(spec->chunk_tokens, 64u);
  EXPECT_EQ(spec->world_size, 2u);
  ASSERT_EQ(spec->pools.size(), 2u);
  EXPECT_EQ(spec->pools[1].name, "state");
  EXPECT_EQ(spec->pools[1].object_bytes, 512u);
}

TEST(RequestValues, ARankIsWithinTheWorld) {
  flatbuffers::FlatBufferBuilder body;
  auto spec = spec_of(*space(body, 2));
  ASSERT_FALSE(spec);
  EXPECT_EQ(spec.error().code, errc::bad_request);
  EXPECT_EQ(spec.error().text, "rank is 2; expected less than world_size, 2");
}

TEST(RequestValues, APrefixOfTokensHasNoDigests) {
  flatbuffers::FlatBufferBuilder body;
  std::vector<uint32_t> list = {1, 2, 3};
  auto tokens = body.CreateVector(list);
  auto lora = body.CreateString("adapter");
  wire::PrefixBuilder out(body);
  out.add_tokens(tokens);
  out.add_lora(lora);
  body.Finish(out.Finish());
  auto input = input_of(*flatbuffers::GetRoot<wire::Prefix>(body.GetBufferPointer()));
  ASSERT_EQ(input.tokens.size(), 3u);
  EXPECT_EQ(input.tokens[2], 3u);
  EXPECT_TRUE(input.digests.empty());
  EXPECT_EQ(input.extra.lora, "adapter");
  EXPECT_TRUE(input.extra.items.empty());
}

TEST(RequestValues, AHigherPriorityOnTheWireIsALowerNumberOfTheHints) {
  for (auto [told, hint] : {std::pair<uint8_t, int>{0, 7}, {31, 7}, {255, 0}}) {
    flatbuffers::FlatBufferBuilder body;
    wire::OptionsBuilder out(body);
    out.add_session(5);
    out.add_turn(2);
    out.add_priority(told);
    body.Finish(out.Finish());
    const auto& options = *flatbuffers::GetRoot<wire::Options>(body.GetBufferPointer());
    EXPECT_EQ(hints_of(options, priority_of(&options, {})).retention, hint);
    EXPECT_EQ(hints_of(options, 128).session, 5u);
    EXPECT_EQ(hints_of(options, 128).turn, 2u);
    EXPECT_FALSE(time_of(options));
  }
}

TEST(RequestValues, TheTimeIsThatOfTheClient) {
  flatbuffers::FlatBufferBuilder body;
  wire::OptionsBuilder out(body);
  out.add_time_ns(17);
  body.Finish(out.Finish());
  EXPECT_EQ(time_of(*flatbuffers::GetRoot<wire::Options>(body.GetBufferPointer())), 17u);
}

TEST(RequestValues, APolicyIsSetForATierThatHasOne) {
  flatbuffers::FlatBufferBuilder body;
  body.Finish(wire::CreateSetPolicyDirect(body, "disk", "lru"));
  auto wanted = policy_of(*flatbuffers::GetRoot<wire::SetPolicy>(body.GetBufferPointer()));
  ASSERT_TRUE(wanted);
  EXPECT_EQ(wanted->tier, tier_kind::disk);
  EXPECT_EQ(wanted->policy, "lru");
  body.Clear();
  body.Finish(wire::CreateSetPolicyDirect(body, "gpu", "lru"));
  auto refused = policy_of(*flatbuffers::GetRoot<wire::SetPolicy>(body.GetBufferPointer()));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::not_found);
  EXPECT_EQ(refused.error().text, "expected a tier named host or disk, got 'gpu'");
}

TEST(RequestValues, TheEndOfAnInferenceHasWhatWasTold) {
  flatbuffers::FlatBufferBuilder body;
  wire::EndInferenceBuilder out(body);
  out.add_inference(8);
  out.add_output_tokens(100);
  out.add_session_closed(true);
  out.add_think_time_ms(3);
  body.Finish(out.Finish());
  auto end = end_of(*flatbuffers::GetRoot<wire::EndInference>(body.GetBufferPointer()));
  EXPECT_EQ(end.inference, 8u);
  EXPECT_EQ(end.outcome.output_tokens, 100u);
  EXPECT_TRUE(end.outcome.session_closed);
  EXPECT_EQ(end.outcome.think_time_ns, 3'000'000u);
  EXPECT_FALSE(end.told);
}

TEST(RequestValues, ShadowsAreToldTheTimeOfAnInference) {
  flatbuffers::FlatBufferBuilder body;
  wire::OptionsBuilder out(body);
  out.add_session(5);
  out.add_time_ns(17);
  body.Finish(out.Finish());
  const auto& options = *flatbuffers::GetRoot<wire::Options>(body.GetBufferPointer());
  request_context none, third;
  third.inference = 3;
  auto use = shadow_use_of(third, &options, nullptr, nullptr, uint16_t{1});
  EXPECT_EQ(use.inference, 3u);
  EXPECT_EQ(use.rank, 1);
  EXPECT_EQ(use.hints.session, 5u);
  EXPECT_EQ(use.told, 17u);
  EXPECT_FALSE(shadow_use_of(none, &options, nullptr, nullptr, {}).told) << "of no inference";
  EXPECT_EQ(shadow_use_of(none, nullptr, nullptr, nullptr, {}).hints.session, 0u);
  auto begin = begin_of(third, options, {});
  EXPECT_EQ(begin.inference, 3u);
  EXPECT_EQ(begin.hints.session, 5u);
  EXPECT_EQ(begin.told, 17u);
}

namespace {
/// Fields common to requests that select objects.
struct selection {
  uint32_t first = 0, count = 0;
  const flatbuffers::Vector<uint8_t>* named = nullptr;
  uint32_t first_chunk() const { return first; }
  uint32_t chunks() const { return count; }
  const flatbuffers::Vector<uint8_t>* pools() const { return named; }
};
} // namespace

TEST(RequestValues, AScopeIsWithinTheChunksAndThePools) {
  flatbuffers::FlatBufferBuilder body;
  auto spec = spec_of(*space(body, 1));
  ASSERT_TRUE(spec);
  auto all = scope_of(selection{1, 0}, *spec, 4);
  ASSERT_TRUE(all);
  EXPECT_EQ(all->range.first, 1u);
  EXPECT_EQ(all->range.count, 3u);
  EXPECT_EQ(all->pools, (pool_list{0, 1}));
  EXPECT_EQ(scope_of(selection{5, 0}, *spec, 4).error().code, errc::bad_request);
  flatbuffers::FlatBufferBuilder named;
  named.Finish(named.CreateVector(std::vector<uint8_t>{2}));
  const auto* unknown = flatbuffers::GetRoot<flatbuffers::Vector<uint8_t>>(named.GetBufferPointer());
  EXPECT_EQ(scope_of(selection{0, 1, unknown}, *spec, 4).error().code, errc::bad_request);
}

TEST(RequestValues, ARequestMayDeclareAnotherPrefillSpeedThanItsSpace) {
  auto options = [](flatbuffers::FlatBufferBuilder& body, std::optional<uint32_t> speed) {
    wire::OptionsBuilder out(body);
    if (speed)
      out.add_prefill_tokens_per_s(*speed);
    body.Finish(out.Finish());
    return flatbuffers::GetRoot<wire::Options>(body.GetBufferPointer());
  };
  flatbuffers::FlatBufferBuilder none, other, zero;
  request_defaults space;
  space.prefill_tokens_per_s = 7;
  EXPECT_EQ(prefill_speed_of(nullptr, space), 7u);
  EXPECT_EQ(prefill_speed_of(options(none, std::nullopt), space), 7u);
  EXPECT_EQ(prefill_speed_of(options(other, 9), space), 9u);
  EXPECT_EQ(prefill_speed_of(options(zero, 0), space), 0u);
}

TEST(RequestValues, WhatARequestDoesNotSayItsSpaceDoes) {
  request_defaults space{.tiers = 6, .priority = 9, .no_load = true, .no_store = true};
  EXPECT_EQ(priority_of(nullptr, space), 9);
  EXPECT_TRUE(no_load_of(nullptr, space));
  EXPECT_TRUE(no_store_of(nullptr, space));
  flatbuffers::FlatBufferBuilder body, silent;
  silent.Finish(wire::OptionsBuilder(silent).Finish());
  const auto& says_nothing = *flatbuffers::GetRoot<wire::Options>(silent.GetBufferPointer());
  EXPECT_EQ(priority_of(&says_nothing, space), 9);
  EXPECT_TRUE(no_load_of(&says_nothing, space));
  EXPECT_EQ(priority_of(&says_nothing, {}), 128);
  EXPECT_FALSE(no_store_of(&says_nothing, {}));
  wire::OptionsBuilder out(body);
  out.add_priority(0);
  out.add_no_load(false);
  out.add_no_store(false);
  body.Finish(out.Finish());
  const auto& says = *flatbuffers::GetRoot<wire::Options>(body.GetBufferPointer());
  EXPECT_EQ(priority_of(&says, space), 0);
  EXPECT_FALSE(no_load_of(&says, space));
  EXPECT_FALSE(no_store_of(&says, space));
}

namespace {
/// Fields common to requests that search.
struct searching {
  uint32_t named = 0;
  uint32_t tiers() const { return named; }
  static const wire::Options* options() { return nullptr; }
};
} // namespace

TEST(RequestValues, ARequestSearchesItsTiersOrThoseOfItsSpaceOrNone) {
  EXPECT_EQ(tiers_of(searching{}, {}), 0u) << "all";
  EXPECT_EQ(tiers_of(searching{}, {.tiers = 4}), 4u);
  EXPECT_EQ(tiers_of(searching{2}, {.tiers = 4}), 2u);
  EXPECT_EQ(tiers_of(searching{2}, {.tiers = 4, .no_load = true}), no_tier);
}

TEST(RequestValues, DefaultsAreThoseOfTheOpenedSpace) {
  flatbuffers::FlatBufferBuilder body;
  auto name = body.CreateString("m");
  auto pools = body.CreateVector(std::vector{wire::CreatePool(body, name, 1)});
  auto told = wire::CreateRequestDefaults(body, 2, 3, 4, true, false);
  body.Finish(wire::CreateOpenSpace(body, name, 0, name, name, 256, 16, 1, pools, 0,
                                    wire::HashAlgorithm::sha256_cbor, 0, 0, 5, told));
  auto of = defaults_of(*flatbuffers::GetRoot<wire::OpenSpace>(body.GetBufferPointer()));
  EXPECT_EQ(of.tiers, 2u);
  EXPECT_EQ(of.priority, 3);
  EXPECT_EQ(of.deadline_ms, 4u);
  EXPECT_TRUE(of.no_load);
  EXPECT_FALSE(of.no_store);
  EXPECT_EQ(of.prefill_tokens_per_s, 5u);
}

namespace {

const wire::Store* store(flatbuffers::FlatBufferBuilder& body, bool in_session, uint32_t parent_tokens,
                         uint32_t first_chunk, uint32_t chunks) {
  auto tokens = body.CreateVector(std::vector<uint32_t>(64));
  auto session = body.CreateVector(std::vector<uint8_t>(16));
  wire::PrefixBuilder prefix(body);
  prefix.add_tokens(tokens);
  prefix.add_parent_tokens(parent_tokens);
  if (in_session)
    prefix.add_session(session);
  auto what = prefix.Finish();
  auto runs = body.CreateVectorOfStructs(std::vector<wire::Run>(1));
  wire::StoreBuilder out(body);
  out.add_prefix(what);
  out.add_first_chunk(first_chunk);
  out.add_chunks(chunks);
  out.add_runs(runs);
  body.Finish(out.Finish());
  return flatbuffers::GetRoot<wire::Store>(body.GetBufferPointer());
}

result<transfer_scope> stored(bool in_session, uint32_t parent_tokens, size_t total, uint32_t first,
                              uint32_t count) {
  flatbuffers::FlatBufferBuilder body;
  space_spec spec{.chunk_tokens = 16, .pools = {{.name = "kv", .object_bytes = 4096}}};
  return prefix_scope_of(*store(body, in_session, parent_tokens, first, count), spec, total);
}

} // namespace

TEST(RequestValues, ARangeInASessionIsInTheTokensThatWereSent) {
  EXPECT_EQ(stored(true, 0, 4, 0, 0)->range.count, 4U);
  EXPECT_EQ(stored(true, 32, 4, 2, 0)->range.count, 2U);
  EXPECT_EQ(stored(true, 35, 4, 2, 1)->range.first, 2U) << "of a chunk whose tokens are known in part";
  EXPECT_EQ(stored(true, 64, 4, 4, 0)->range.count, 0U) << "nothing is new";
  for (auto [first, count] : {std::pair{0U, 0U}, {0U, 2U}, {1U, 3U}}) {
    auto refused = stored(true, 35, 4, first, count);
    ASSERT_FALSE(refused) << first;
    EXPECT_EQ(refused.error().code, errc::bad_request);
    EXPECT_NE(refused.error().text.find("a first_chunk of 2 or more"), std::string::npos)
        << refused.error().text;
  }
  EXPECT_EQ(stored(true, 35, 4, 5, 0).error().code, errc::bad_request) << "there are 4";
}

TEST(RequestValues, ARangeBehindAParentCountsFromIt) {
  EXPECT_EQ(stored(false, 32, 2, 0, 2)->range.count, 2U);
  auto refused = stored(false, 32, 2, 2, 2);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::bad_request);
  EXPECT_NE(refused.error().text.find("count from token 32 (parent_tokens)"), std::string::npos)
      << refused.error().text;
}
