// Headers that almost every actor includes, precompiled because they are long.
#ifndef TERRACE_ACTORS_PCH_HPP
#define TERRACE_ACTORS_PCH_HPP

#include "actors/interfaces.hpp"

#include <caf/actor.hpp>
#include <caf/actor_system.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#endif
