#pragma once

#include <cstddef>
#include <string_view>

namespace heddle {

// Returns how many inserted, deleted or replaced letters turn one text into the other (Levenshtein
// distance). Error messages use it to suggest names. Time: proportional to the product of the
// lengths.
size_t editDistance(std::string_view a, std::string_view b);

}  // namespace heddle
