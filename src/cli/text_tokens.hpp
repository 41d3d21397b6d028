// The tokens of a text, from the tokenizer of a model.
#pragma once

#include "cli/failure.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace terrace::cli {

struct tokenized_text {
  std::string file;      ///< "-": standard input
  std::string tokenizer; ///< a model's folder, a tokenizer.json, or a name of Hugging Face
  bool special = true;   ///< with the tokens that the tokenizer adds to a text, as engines do for completions
};

/// Asks Python's package tokenizers, which engines use: `python3` must have it.
outcome<std::vector<uint32_t>> tokens_of_text(const tokenized_text& what);

} // namespace terrace::cli
