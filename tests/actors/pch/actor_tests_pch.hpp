// Headers that every test of this room includes, precompiled because they are long.
#ifndef TERRACE_ACTOR_TESTS_PCH_HPP
#define TERRACE_ACTOR_TESTS_PCH_HPP

#include "actors/interfaces.hpp"

#include <caf/all.hpp>
#include <caf/scheduler/test_coordinator.hpp>

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#endif
