#include "index/space_spec.hpp"

#include <gtest/gtest.h>

using namespace terrace;

namespace {

tensor_shape kv(uint32_t layers, uint32_t hidden, tensor_format format = tensor_format::kv_2ltd) {
  return {.format = format, .dtype = "bfloat16", .kv_size = 2, .layers = layers, .hidden = hidden};
}

std::string why_not(tensor_shape shape) {
  auto valid = shape.validate();
  return valid ? "" : valid.error().text;
}

} // namespace

TEST(ObjectShape, AttentionIsKvSizeByLayersByTokensByHiddenByDtype) {
  auto made = object_shape::make({kv(32, 1024)}, 256);
  ASSERT_TRUE(made);
  EXPECT_EQ(made->bytes(), 2ull * 32 * 256 * 1024 * 2);
}

TEST(ObjectShape, AnMlaObjectHasOneLatentInPlaceOfKAndV) {
  tensor_shape latent{
      .format = tensor_format::kv_mla, .dtype = "fp8", .kv_size = 1, .layers = 61, .hidden = 576};
  EXPECT_EQ(object_shape::make({latent}, 64)->bytes(), 61u * 64 * 576);
  EXPECT_EQ(latent.dimensions(64), (std::vector<uint64_t>{61, 64, 576}));
}

TEST(ObjectShape, AStateHasTheSameSizeWhateverTheChunk) {
  tensor_shape state{
      .format = tensor_format::binary, .dtype = "float32", .kv_size = 1, .layers = 24, .hidden = 1000};
  EXPECT_EQ(object_shape::make({state}, 16)->bytes(), 24u * 1000 * 4);
  EXPECT_EQ(object_shape::make({state}, 256)->bytes(), 24u * 1000 * 4);
}

TEST(ObjectShape, FormatsDifferInTheOrderOfTheirDimensions) {
  EXPECT_EQ(kv(3, 5, tensor_format::kv_2ltd).dimensions(7), (std::vector<uint64_t>{2, 3, 7, 5}));
  EXPECT_EQ(kv(3, 5, tensor_format::kv_t2d).dimensions(7), (std::vector<uint64_t>{3, 7, 2, 5}));
  EXPECT_EQ(kv(3, 5, tensor_format::kv_2td).dimensions(7), (std::vector<uint64_t>{3, 2, 7, 5}));
}

TEST(ObjectShape, TensorsOfDifferentShapesFollowEachOtherWithoutGaps) {
  tensor_shape wide = kv(2, 128);
  tensor_shape narrow = kv(3, 64);
  narrow.dtype = "fp8";
  auto made = object_shape::make({wide, narrow, wide}, 16);
  ASSERT_TRUE(made);
  uint64_t first = 2 * 2 * 16 * 128 * 2, second = 2 * 3 * 16 * 64;
  EXPECT_EQ(made->offset(0), 0u);
  EXPECT_EQ(made->offset(1), first);
  EXPECT_EQ(made->offset(2), first + second);
  EXPECT_EQ(made->bytes_of(1), second);
  EXPECT_EQ(made->bytes(), 2 * first + second);
}

TEST(ObjectShape, ElementsOfFourBitsMustMakeWholeBytes) {
  tensor_shape odd{.format = tensor_format::binary, .dtype = "int4", .kv_size = 1, .layers = 1, .hidden = 3};
  auto made = object_shape::make({odd}, 1);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().text, "tensor: its size is 12 bits: expected whole bytes");
  odd.layers = 2;
  EXPECT_EQ(object_shape::make({odd}, 1)->bytes(), 3u);
}

TEST(ObjectShape, SaysWhatIsOutOfRange) {
  tensor_shape shape = kv(1, 64);
  EXPECT_EQ(why_not(shape), "");
  shape.dtype = "bf15";
  EXPECT_NE(why_not(shape).find("tensor: dtype is 'bf15': expected one of float64, "), std::string::npos);
  shape = kv(1, 64);
  shape.kv_size = 3;
  EXPECT_EQ(why_not(shape), "tensor: kv_size is 3: expected 1 or 2");
  shape.format = tensor_format::kv_mla;
  shape.kv_size = 2;
  EXPECT_EQ(why_not(shape), "tensor: kv_size is 2: expected 1 for KV_MLA");
  EXPECT_EQ(why_not(kv(0, 64)), "tensor: layers is 0: expected 1 to 4096");
  EXPECT_EQ(why_not(kv(1, 0)), "tensor: hidden is 0: expected 1 to 16777216");
  EXPECT_EQ(why_not(kv(1, 1, static_cast<tensor_format>(9))),
            "tensor: format is 9: expected 0 (BINARY) to 4 (KV_MLA)");
  shape = kv(4096, 1);
  shape.first_layer = 1;
  EXPECT_EQ(why_not(shape), "tensor: first_layer is 1: expected at most 0 with 4096 layers");
}

TEST(ObjectShape, AnObjectHasAtLeastOneTensorAndAtMostSixteen) {
  EXPECT_FALSE(object_shape::make({}, 16));
  EXPECT_TRUE(object_shape::make(std::vector(16, kv(1, 1)), 16));
  EXPECT_FALSE(object_shape::make(std::vector(17, kv(1, 1)), 16));
}

TEST(ObjectShape, TheLargestShapeDoesNotOverflow) {
  tensor_shape largest{.dtype = "float64", .kv_size = 2, .layers = 4096, .hidden = 1U << 24};
  EXPECT_EQ(object_shape::make({largest}, 65'536)->bytes(), 1ULL << (1 + 12 + 24 + 16 + 3));
}

TEST(LayerGroups, DivideLayersAsEvenlyAsCanBe) {
  auto divided = divide_layers(std::vector{kv(10, 64)}, 4);
  ASSERT_TRUE(divided);
  std::vector<std::pair<uint32_t, uint32_t>> parts;
  for (auto& group : *divided)
    parts.emplace_back(group[0].first_layer, group[0].layers);
  EXPECT_EQ(parts, (std::vector<std::pair<uint32_t, uint32_t>>{{0, 2}, {2, 3}, {5, 2}, {7, 3}}));
}

TEST(LayerGroups, DivideEachTensorOfAnObject) {
  auto divided = divide_layers(std::vector{kv(4, 64), kv(2, 32)}, 2);
  ASSERT_TRUE(divided);
  ASSERT_EQ(divided->size(), 2u);
  EXPECT_EQ((*divided)[1][0].first_layer, 2u);
  EXPECT_EQ((*divided)[1][1].first_layer, 1u);
  EXPECT_EQ((*divided)[1][1].hidden, 32u);
}

TEST(LayerGroups, CannotBeMoreThanLayers) {
  auto divided = divide_layers(std::vector{kv(2, 64)}, 3);
  ASSERT_FALSE(divided);
  EXPECT_EQ(divided.error().text,
            "tensor: layers is 2: expected at least as many as layer groups, of which there are 3");
  EXPECT_FALSE(divide_layers(std::vector{kv(2, 64)}, 0));
}
