#include "connection/waiting_requests.hpp"

#include "protocol/frame_builder.hpp"
#include "protocol/frame_decoder.hpp"
#include "protocol/verify.hpp"

#include <gtest/gtest.h>

#include <vector>

using namespace terrace;
using protocol::kind;

namespace {

struct WaitingRequests : ::testing::Test {
  waiting_requests line{{2, 100'000}};
  int held = 0;
  waiting_requests::time_point arrival{std::chrono::seconds(5)};

  static lease_id lease(uint8_t number) {
    lease_id id;
    id.bytes.fill(number);
    return id;
  }
  /// A frame with the bytes in `buffer`.
  template <class Build>
  protocol::frame frame_of(kind what, request_id id, Build&& build) {
    protocol::frame_builder builder;
    auto& body = builder.start();
    builder.finish(what, id, build(body), 0);
    auto all = builder.bytes().subspan(protocol::header_bytes);
    buffer.assign(all.begin(), all.end());
    return {what, id, buffer, {}};
  }
  protocol::frame load(request_id id, uint8_t number) {
    return frame_of(kind::load, id, [&](auto& body) {
      auto named = body.CreateVector(lease(number).bytes.data(), 16);
      auto runs = body.CreateVectorOfStructs(std::vector<wire::Run>{});
      return wire::CreateLoad(body, 0, 0, named, 0, 0, 1, runs);
    });
  }
  protocol::frame release(request_id id, uint8_t number) {
    return frame_of(kind::release, id, [&](auto& body) {
      return wire::CreateRelease(body, body.CreateVector(lease(number).bytes.data(), 16));
    });
  }
  protocol::frame of_bytes(kind what, request_id id, size_t bytes) {
    buffer.assign(bytes - protocol::header_bytes, static_cast<uint8_t>(id));
    return {what, id, buffer, {}};
  }
  void add(protocol::frame frame) {
    line.add(std::move(frame), false, arrival, [this] {
      ++held;
      return std::make_shared<const std::vector<uint8_t>>(buffer);
    });
  }
  bool has_place(kind what, uint32_t bytes, uint16_t descriptors = 0) {
    return line.has_place({bytes, what, descriptors, 1});
  }
  std::vector<uint8_t> buffer;
};

} // namespace

TEST_F(WaitingRequests, HaveABoundOfNumberBytesAndDescriptors) {
  EXPECT_TRUE(has_place(kind::store, 100'000));
  EXPECT_FALSE(has_place(kind::store, 100'008));
  EXPECT_TRUE(has_place(kind::register_region, 64, 8));
  EXPECT_FALSE(has_place(kind::register_region, 64, 9));
  add(of_bytes(kind::store, 1, 64));
  EXPECT_FALSE(has_place(kind::store, 100'000));
  add(of_bytes(kind::store, 2, 64));
  EXPECT_FALSE(has_place(kind::store, 64));
}

TEST_F(WaitingRequests, WhatGivesSomethingBackHasPlacesOfItsOwn) {
  add(of_bytes(kind::store, 1, 64));
  add(of_bytes(kind::store, 2, 64));
  for (request_id id = 3; id < 3 + protocol::giving_back_requests_max; ++id) {
    ASSERT_TRUE(has_place(kind::abort, 64));
    add(of_bytes(kind::abort, id, 64));
  }
  EXPECT_FALSE(has_place(kind::abort, 64));
  EXPECT_FALSE(has_place(kind::abort, protocol::giving_back_bytes_max + 8)) << "a long one is like any other";
}

TEST_F(WaitingRequests, KeepTheirOrderAndTheirBytes) {
  add(of_bytes(kind::store, 1, 64));
  add(of_bytes(kind::store, 2, 40'000));
  EXPECT_EQ(held, 1) << "a short one is copied";
  EXPECT_EQ(line.bytes(), 40'064u);
  buffer.assign(buffer.size(), 0);
  auto first = line.take_first();
  EXPECT_EQ(first.frame.request_id, 1u);
  EXPECT_EQ(first.frame.body[0], 1u);
  EXPECT_EQ(first.header().length, 64u);
  EXPECT_EQ(first.arrived, arrival);
  EXPECT_EQ(line.take_first().frame.request_id, 2u);
  EXPECT_TRUE(line.empty());
  EXPECT_EQ(line.bytes(), 0u);
}

TEST_F(WaitingRequests, ACancelPassesAllAndAReleaseThoseThatDoNotNeedItsLease) {
  EXPECT_TRUE(line.may_pass(of_bytes(kind::store, 9, 64)));
  add(load(1, 5));
  EXPECT_TRUE(line.may_pass(of_bytes(kind::cancel, 9, 64)));
  EXPECT_TRUE(line.may_pass(release(9, 6)));
  EXPECT_FALSE(line.may_pass(release(9, 5)));
  EXPECT_FALSE(line.may_pass(of_bytes(kind::store, 9, 64)));
  EXPECT_FALSE(line.may_pass(of_bytes(kind::abort, 9, 64)));
}

TEST_F(WaitingRequests, AreTakenByTheirIds) {
  add(of_bytes(kind::store, 1, 64));
  add(of_bytes(kind::lookup, 2, 64));
  EXPECT_FALSE(line.take(3));
  auto taken = line.take(2);
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->frame.kind, kind::lookup);
  EXPECT_EQ(line.size(), 1u);
  EXPECT_EQ(line.bytes(), 64u);
}
