// Suggestions for mistyped words.
#pragma once

#include <span>
#include <string_view>

namespace terrace {

/// The candidate with the smallest edit distance to `word` (with transpositions; Damerau 1964), or empty if
/// even that one differs in more than a third of its letters and so is no plausible typing mistake. The first
/// one wins a tie.
std::string_view nearest_name(std::string_view word, std::span<const std::string_view> candidates);

} // namespace terrace
