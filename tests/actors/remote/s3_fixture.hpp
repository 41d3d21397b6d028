// A link to a bucket of a store that fails as it is told.
#pragma once

#include "link_fixture.hpp"
#include "tests/support/s3_process.hpp"

namespace terrace::test {

class s3_link_fixture : public link_fixture {
 protected:
  void SetUp() override { make(std::chrono::seconds(60)); }
  ~s3_link_fixture() override { end(); }

  void make(std::chrono::nanoseconds silence_max) { link_ = actors::make_s3_link(callbacks(silence_max)); }
  void connect(const std::string& password = s3_process::secret_key) {
    connect_to("s3://" + store_.place(), {.login = {.user = s3_process::access_key, .password = password}});
  }

  s3_process store_;
};

} // namespace terrace::test
