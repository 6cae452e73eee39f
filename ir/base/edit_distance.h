#pragma once

#include <cstddef>
#include <string_view>

namespace heddle {

// Returns the Levenshtein distance: the smallest number of letters to insert, delete or replace
// that turns one text into the other. Error messages use it to suggest names. Time: proportional to
// the product of the lengths.
size_t editDistance(std::string_view a, std::string_view b);

}  // namespace heddle
