// Pools that contradict themselves or their space.
#include "pool_client.hpp"

namespace terrace::e2e {
namespace {

struct RefusedPools : ::testing::Test {
  daemon_under_test daemon;
  result<client::connection> connected = client::connection::connect({.path = daemon.socket()}, patiently());

  void refused(client::space_spec spec, const std::string& why) {
    ASSERT_TRUE(connected);
    auto opened = connected->open_space(spec, patiently());
    ASSERT_FALSE(opened) << why;
    EXPECT_EQ(opened.error().code, errc::bad_request) << opened.error().text;
    EXPECT_NE(opened.error().text.find(why), std::string::npos) << opened.error().text;
  }
  void refused_tensor(client::tensor_shape wrong, const std::string& why) {
    auto spec = layered_space();
    spec.pools[0].tensors[1] = std::move(wrong);
    refused(spec, why);
  }
};

TEST_F(RefusedPools, ShapesThatAreWrongAreNamed) {
  client::tensor_shape right{.layers = 6, .hidden = 512};
  auto wrong = right;
  wrong.dtype = "float7";
  refused_tensor(wrong, "pool 'kv': tensor: dtype is 'float7': expected one of");
  wrong = right;
  wrong.kv_size = 3;
  refused_tensor(wrong, "kv_size is 3: expected 1 or 2");
  wrong = right;
  wrong.format = client::tensor_format::kv_mla;
  refused_tensor(wrong, "kv_size is 2: expected 1 for KV_MLA");
  wrong = right;
  wrong.layers = 0;
  refused_tensor(wrong, "layers is 0: expected 1 to 4096");
  wrong.layers = 1;
  refused_tensor(wrong, "layers is 1: expected at least as many as layer groups, of which there are 2");
  wrong = right;
  wrong.hidden = 0;
  refused_tensor(wrong, "hidden is 0");
  wrong = right;
  wrong.first_layer = 4'091;
  refused_tensor(wrong, "first_layer is 4091: expected at most 4090");
  wrong = {.format = client::tensor_format::binary, .dtype = "int4", .kv_size = 1, .layers = 3, .hidden = 1};
  refused_tensor(wrong, "its size is 12 bits: expected whole bytes");
}

TEST_F(RefusedPools, SoAreSizesAndGroupsThatContradictThem) {
  auto spec = layered_space();
  spec.pools[0].object_bytes = 4096;
  refused(spec, "object_bytes is 4096: expected 0, or 245760, the size of its tensors");
  spec = test_space();
  spec.pools[0].layer_groups = 2;
  refused(spec, "pool 'kv' has 2 layer groups but no tensors");
  spec = layered_space();
  spec.pools[0].tensors[0].layers = 4'096;
  spec.pools[0].tensors[0].hidden = 1 << 20;
  refused(spec, "object_bytes");
  spec = layered_space();
  spec.pools.push_back({.name = "kv.1", .object_bytes = 4096});
  refused(spec, "kv.1");
  spec = layered_space();
  spec.pools[0].tensors[0].layers = spec.pools[0].tensors[1].layers = 100;
  spec.pools[0].layer_groups = 100;
  spec.pools.push_back(spec.pools[0]);
  spec.pools[1].name = "more";
  refused(spec, "128");
}

TEST_F(RefusedPools, NumbersThatTheSpaceDoesNotHave) {
  pool_client client(daemon.socket(), layered_space());
  auto chain = chain_of(1, 2);
  ASSERT_TRUE(client.store(chain, {0, 2}, {0, 1}));
  auto found = (*client).lookup(chain, true);
  std::vector<uint8_t> third{0, 2};
  const std::string why = "pool number 2 was asked for, the space has 2 pools";
  auto load = (*client).load_of(chain, {0, 2});
  load.pools = third;
  auto store = (*client).store_of(chain, {0, 2});
  store.pools = third;
  client::reserve_request reserve;
  reserve.in = (*client).space();
  reserve.what = client::prefix::of_digests(chain);
  reserve.pools = third;
  auto expect_refused = [&](const auto& answer) {
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, errc::bad_request);
    EXPECT_EQ(answer.error().text, why);
  };
  expect_refused(client->load(load, patiently()));
  expect_refused(client->store(store, patiently()));
  expect_refused(client->reserve(reserve, patiently()));
  expect_refused(client->read_lease(found.held.id(), {}, patiently(), third));
  auto leased = (*client).load_of(chain, {0, 2});
  leased.what = {};
  leased.lease = found.held.id();
  leased.pools = third;
  expect_refused(client->load(leased, patiently()));
}

} // namespace
} // namespace terrace::e2e
