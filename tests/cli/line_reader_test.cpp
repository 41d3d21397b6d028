#include "cli/trace.hpp"
#include "temporary_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace terrace::cli {
namespace {

TEST(LineReader, GivesLinesWithTheirNumbers) {
  temporary_file file("one\n\nthree");
  auto reader = line_reader::open(file.path());
  ASSERT_TRUE(reader.has_value());
  EXPECT_EQ(reader->next()->value(), "one");
  EXPECT_EQ(reader->line_number(), 1U);
  EXPECT_EQ(reader->next()->value(), "");
  EXPECT_EQ(reader->next()->value(), "three");
  EXPECT_EQ(reader->line_number(), 3U);
  EXPECT_EQ(reader->next().value(), std::nullopt);
  EXPECT_EQ(reader->next().value(), std::nullopt);
}

TEST(LineReader, OfAnEmptyFileGivesNothing) {
  temporary_file file;
  EXPECT_EQ(line_reader::open(file.path())->next().value(), std::nullopt);
}

TEST(LineReader, RefusesEndlessLines) {
  temporary_file file(std::string(line_reader::line_bytes_max + 1, 'x'));
  auto line = line_reader::open(file.path())->next();
  ASSERT_FALSE(line.has_value());
  EXPECT_THAT(line.error().text, testing::HasSubstr(":1: expected a line of at most"));
}

} // namespace
} // namespace terrace::cli
