#include "run_bounds.hpp"

#include <algorithm>
#include <charconv>
#include <sstream>

namespace terrace::simulation {

namespace {

constexpr uint32_t clients_max = 9; ///< the last ones are Redis clients

bool is_known(const std::string& name) {
  auto is = [&](const char* each) { return name == each; };
  return std::any_of(deed_names.begin(), deed_names.end(), is) ||
         std::any_of(run_bounds::hardships.begin(), run_bounds::hardships.end(), is);
}

template <class Number>
bool read(const std::string& text, Number& into) {
  auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), into);
  return failed == std::errc{} && end == text.data() + text.size();
}

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> all;
  std::istringstream from(list);
  for (std::string one; std::getline(from, one, ',');)
    all.push_back(one);
  return all;
}

template <class List>
std::string joined(const List& list) {
  std::ostringstream text;
  for (const auto& one : list)
    text << (text.tellp() == 0 ? "" : ",") << one;
  return text.str();
}

bool apply(run_bounds& to, const std::string& name, const std::string& value) {
  if (name == "seed")
    return read(value, to.seed);
  if (name == "lives")
    return read(value, to.lives);
  if (name == "deeds")
    return read(value, to.deeds);
  if (name == "events")
    return read(value, to.events);
  auto list = split(value);
  if (name == "without") {
    to.without = {list.begin(), list.end()};
    return std::all_of(list.begin(), list.end(), is_known);
  }
  if (name != "clients")
    return false;
  to.clients.emplace();
  return std::all_of(list.begin(), list.end(), [&](const std::string& one) {
    uint32_t client = 0;
    return read(one, client) && to.clients->insert(client).second;
  });
}

} // namespace

std::string run_bounds::text() const {
  const run_bounds all;
  std::string text = "seed=" + std::to_string(seed);
  if (lives != all.lives)
    text += " lives=" + std::to_string(lives);
  if (clients)
    text += " clients=" + joined(*clients);
  if (deeds != all.deeds)
    text += " deeds=" + std::to_string(deeds);
  if (events != all.events)
    text += " events=" + std::to_string(events);
  if (!without.empty())
    text += " without=" + joined(without);
  return text;
}

std::optional<run_bounds> run_bounds::parse(const std::string& text) {
  run_bounds read;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    auto equals = word.find('=');
    if (equals == std::string::npos || !apply(read, word.substr(0, equals), word.substr(equals + 1)))
      return std::nullopt;
  }
  return read;
}

namespace {

class reducer {
 public:
  reducer(const run_bounds& all, const std::function<bool(const run_bounds&)>& fails)
      : least_(all), fails_(fails) {
    if (!least_.clients) {
      least_.clients.emplace();
      for (uint32_t client = 0; client < clients_max; ++client)
        least_.clients->insert(client);
    }
  }

  run_bounds run() {
    for (bool smaller = true; smaller;) {
      run_bounds before = least_;
      lower(&run_bounds::lives);
      drop_clients();
      lower(&run_bounds::deeds);
      lower(&run_bounds::events);
      leave_out();
      smaller = least_ != before;
    }
    return least_;
  }

 private:
  bool take_if_it_fails(const run_bounds& tried) {
    if (!fails_(tried))
      return false;
    least_ = tried;
    return true;
  }

  /// Steps down, shorter ones after each that goes too far.
  void lower(uint32_t run_bounds::*value) {
    for (uint32_t step = least_.*value; step != 0;) {
      run_bounds tried = least_;
      tried.*value -= std::min(step, tried.*value);
      if (least_.*value == 0)
        return;
      if (!take_if_it_fails(tried))
        step /= 2;
    }
  }

  void drop_clients() {
    for (uint32_t client : std::set(*least_.clients)) {
      run_bounds tried = least_;
      tried.clients->erase(client);
      take_if_it_fails(tried);
    }
  }

  void leave_out() {
    auto each = [this](const char* name) {
      run_bounds tried = least_;
      if (tried.without.insert(name).second)
        take_if_it_fails(tried);
    };
    std::for_each(run_bounds::hardships.begin(), run_bounds::hardships.end(), each);
    std::for_each(deed_names.begin(), deed_names.end(), each);
  }

  run_bounds least_;
  const std::function<bool(const run_bounds&)>& fails_;
};

} // namespace

run_bounds reduce(const run_bounds& all, const std::function<bool(const run_bounds&)>& fails) {
  return reducer(all, fails).run();
}

} // namespace terrace::simulation
