// A disk tier that is opened while one of its paths cannot be: it serves without, and the path comes back with a later start.
#include "disk_fixture.hpp"

using namespace terrace;
using namespace terrace::actors;
using namespace terrace::actors::test;

namespace {

struct MissingPath : disk_fixture {
  MissingPath() { start({.host_objects = 32, .disk_objects = 85, .disk_paths = 3}); }

  void restart_without_path_1() {
    restart(false, [this] { std::filesystem::rename(file(), folder / "elsewhere"); });
  }
  void restart_with_all() {
    restart(false, [this] { std::filesystem::rename(folder / "elsewhere", file()); });
  }
  std::filesystem::path file() const { return folder / "store1"; }

  /// What the probes of the configured path say.
  double metric(size_t path, std::string_view name) {
    struct one_value : metrics::sample_sink {
      std::string_view wanted;
      double sum = 0;
      void counter(std::string_view of, std::string_view, const metrics::labels&, double value) override {
        sum += of == wanted ? value : 0;
      }
      void gauge(std::string_view of, std::string_view, const metrics::labels&, double value) override {
        sum += of == wanted ? value : 0;
      }
      void histogram(std::string_view, std::string_view, const metrics::labels&,
                     const metrics::latency_histogram::snapshot&) override {}
    } sink;
    sink.wanted = name;
    probes.paths[path].disk->collect({}, sink);
    probes.disk_tier->collect({}, sink);
    return sink.sum;
  }
};

} // namespace

TEST_F(MissingPath, TakesItsOwnObjectsAndRoomAlongAndNoOthers) {
  on_disk(0, 9);
  uint64_t bytes = report(disk_tier()).usage.capacity_bytes;
  restart_without_path_1();
  EXPECT_EQ(paths->size(), 2u);
  EXPECT_EQ(report(disk_tier()).usage.capacity_bytes, bytes / 3 * 2);
  for (uint64_t n = 0; n < 9; ++n)
    EXPECT_EQ(present(disk_tier(), n, 1), n % 3 == 1 ? 0u : 1u) << n;
  EXPECT_EQ(load(0, 1).chunks, 1u);
  EXPECT_EQ(load(2, 1).chunks, 1u);
  EXPECT_TRUE(delivered(2));
  on_disk(20, 6);
  EXPECT_EQ(load(20, 6).chunks, 6u);
  EXPECT_TRUE(delivered(25));
}

TEST_F(MissingPath, IsNamedForAsLongAsItIsOut) {
  restart_without_path_1();
  EXPECT_NE(service->reason().find(file().string() + ": there is no file"), std::string::npos)
      << service->reason();
  EXPECT_EQ(metric(1, "terrace_disk_missing"), 1);
  EXPECT_EQ(metric(2, "terrace_disk_missing"), 0);
  EXPECT_EQ(metric(0, "terrace_tier_degraded"), 1);
  ring.fail_next(runtime::io_code::write, ENOSPC); // another path is out and back meanwhile
  store(0, 2);
  advance(std::chrono::seconds(1));
  store(10, 4);
  EXPECT_EQ(service->reason().find("store2"), std::string::npos) << service->reason();
  EXPECT_EQ(metric(0, "terrace_tier_degraded"), 1);
  EXPECT_FALSE(std::filesystem::exists(file()));
}

TEST_F(MissingPath, CountsWhatTheOthersDoAsTheirs) {
  restart_without_path_1();
  double before = metric(2, "terrace_disk_transferred_bytes_total");
  on_disk(0, 4);
  EXPECT_GT(metric(2, "terrace_disk_transferred_bytes_total"), before);
}

TEST_F(MissingPath, ComesBackWithItsObjects) {
  on_disk(0, 9);
  restart_without_path_1();
  on_disk(20, 4);
  restart_with_all();
  EXPECT_TRUE(service->reason().empty()) << service->reason();
  EXPECT_EQ(load(0, 9).chunks, 9u);
  EXPECT_TRUE(delivered(1));
  EXPECT_EQ(load(20, 4).chunks, 4u);
}

TEST_F(MissingPath, WhatWasStoredAnewMeanwhileCounts) {
  on_disk(0, 9);
  restart_without_path_1();
  on_disk(0, 9);
  restart_with_all();
  EXPECT_EQ(report(disk_tier()).objects, 9u);
  EXPECT_EQ(load(0, 9).chunks, 9u);
  for (uint64_t n = 0; n < 9; ++n)
    EXPECT_TRUE(delivered(n)) << n;
}

TEST_F(MissingPath, BringsNothingBackThatWasClearedMeanwhile) {
  on_disk(0, 9);
  restart_without_path_1();
  auto cleared = clear(disk_tier());
  EXPECT_EQ(cleared.failure.code, errc::ok);
  ASSERT_TRUE(cleared.missed) << "its path may be used alone";
  EXPECT_EQ(cleared.missed->volume, paths->volume());
  on_disk(20, 4);
  restart_with_all();
  EXPECT_EQ(present(disk_tier(), 0, 9), 0u);
  EXPECT_EQ(present(disk_tier(), 20, 4), 4u);
  restart_without_path_1();
  EXPECT_GT(clear(disk_tier(), in->id).objects, 0u);
  restart_with_all();
  EXPECT_EQ(present(disk_tier(), 20, 4), 0u);
}

TEST_F(MissingPath, NothingComesBackWherePathsWereUsedWithoutEachOther) {
  on_disk(0, 9);
  auto away = [this](const char* name) {
    std::filesystem::rename(folder / name, folder / ("no" + std::string(name)));
  };
  auto back = [this](const char* name) {
    std::filesystem::rename(folder / ("no" + std::string(name)), folder / name);
  };
  restart(false, [&] { away("store1"), away("store2"); });
  for (int i = 0; i < 3; ++i)
    restart(false); // its epochs count on
  on_disk(0, 3);
  restart(false, [&] { back("store1"), away("store"); });
  clear(disk_tier()); // of whatever there is, for all that its client knows
  restart(false, [&] { back("store"), back("store2"); });
  EXPECT_EQ(present(disk_tier(), 0, 9), 0u);
  on_disk(0, 9);
  restart(false);
  EXPECT_EQ(present(disk_tier(), 0, 9), 9u);
}
