#include "bench/daemon_configuration.hpp"

#include <gtest/gtest.h>

namespace terrace::bench {
namespace {

constexpr const char* places_only = "[[listen]]\npath = \"/a/socket\"\n[disk]\npath = \"/a/state\"\n"
                                    "[metrics]\naddress = \"127.0.0.1:0\"\n";
const daemon_places places{"/a/socket", "/a/second", "/a/state"};

TEST(DaemonConfiguration, SaysOnlyWhereThingsAreUnlessMoreIsAskedFor) {
  EXPECT_EQ(daemon_configuration({}, places), places_only);
}

TEST(DaemonConfiguration, HasWhatABenchmarkSets) {
  bench_daemon_options with{.workers = 4, .host_bytes = 4096, .disk_bytes = 8192, .isolated = true};
  with.second_group = true;
  with.metrics_port = 99;
  with.connection = "group_spaces_max = 64\n";
  with.more = "[[resp]]\n";
  EXPECT_EQ(daemon_configuration(with, places),
            "[daemon]\nworkers = 4\n[[listen]]\npath = \"/a/socket\"\nisolated = true\n"
            "[[listen]]\npath = \"/a/second\"\ngroup = \"second\"\n[connection]\ngroup_spaces_max = 64\n"
            "[host]\nbytes = 4096\n[disk]\npath = \"/a/state\"\nbytes = 8192\n"
            "[metrics]\naddress = \"127.0.0.1:99\"\n[[resp]]\n");
}

TEST(DaemonConfiguration, TurnsTheDiskOff) {
  EXPECT_EQ(daemon_configuration({.disk_bytes = 8192, .disk = false}, places),
            "[[listen]]\npath = \"/a/socket\"\n[disk]\nbytes = 0\n[metrics]\naddress = \"127.0.0.1:0\"\n");
}

} // namespace
} // namespace terrace::bench
