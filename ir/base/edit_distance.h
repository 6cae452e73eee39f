#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace heddle {

// Returns the Levenshtein distance of two texts. This is the smallest number of insertions,
// deletions and replacements of letters that turns one text into the other. Error messages use the
// distance to suggest names.
size_t editDistance(std::string_view a, std::string_view b);

// Returns "; the nearest name is 'NAME'", which can end an error message. Returns "" if `name`
// differs from every candidate in more than a third of the letters of the longer text.
std::string suggestionFor(std::string_view name, const std::vector<std::string_view>& candidates);

}  // namespace heddle
