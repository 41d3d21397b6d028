// The options that identify a space: all its fields, as the engine opened it.
#pragma once

#include "cli/failure.hpp"
#include "client/types.hpp"

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace terrace::cli {

class space_options {
 public:
  /// `required`: the command needs a space.
  void declare(CLI::App& app, bool required);

  /// True if any of the options was given.
  bool given() const { return !spec_.model.empty() || !pools_.empty(); }

  outcome<client::space_spec> read() const;

 private:
  client::space_spec spec_;
  std::vector<std::string> pools_;
  std::string algorithm_ = "sha256_cbor";
};

} // namespace terrace::cli
