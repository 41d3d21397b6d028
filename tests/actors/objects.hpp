// Builders of keys, batches and requests, as the tests of the tier room have them.
#pragma once

#include "tests/tier/objects.hpp"

namespace terrace::actors::test {
using namespace terrace::test;
}
