#pragma once

#include <cstddef>
#include <string_view>

namespace heddle {

// Returns the Levenshtein distance of two texts. This is the smallest number of insertions,
// deletions and replacements of letters that turns one text into the other. Error messages use the
// distance to suggest names. The time is proportional to the product of the lengths.
size_t editDistance(std::string_view a, std::string_view b);

}  // namespace heddle
