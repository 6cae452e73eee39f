#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace heddle {

// Returns the Levenshtein distance of two texts. This is the smallest number of insertions,
// deletions and replacements of characters that turns one text into the other.
size_t editDistance(std::string_view a, std::string_view b);

// Returns "; the nearest name is 'NAME'", which can end an error message. NAME is the candidate
// with the smallest edit distance to `name`. A candidate is not suggested if the distance is more
// than a third of the length of the longer name. Returns "" if no candidate remains.
std::string suggestionFor(std::string_view name, const std::vector<std::string_view>& candidates);

}  // namespace heddle
