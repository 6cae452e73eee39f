#pragma once

#include <cstddef>
#include <string_view>

namespace heddle {

// Letters put in, left out or replaced that turn one text into the other (Levenshtein), for "did
// you mean". Takes time in proportion to the product of the lengths.
size_t editDistance(std::string_view a, std::string_view b);

}  // namespace heddle
