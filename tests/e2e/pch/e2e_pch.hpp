// Precompiled headers that almost every test of this program includes.
#ifndef TERRACE_E2E_PCH_HPP
#define TERRACE_E2E_PCH_HPP

#include "tests/e2e/workload.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/raw_client.hpp"

#include <gtest/gtest.h>

#endif
