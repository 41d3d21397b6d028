// What every test includes; precompiled, since these headers take a second of each file.
#ifndef TERRACE_GTEST_PCH_HPP
#define TERRACE_GTEST_PCH_HPP

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#endif
