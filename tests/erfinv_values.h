#pragma once

#include <utility>

namespace heddle::testing {

// Pairs of an exponent e and erfinv(1 - 2^e). Computed with mpmath 1.3 (40 digits).
inline constexpr std::pair<int, double> kErfinvNearOne[] = {
    {-20, 3.465505025803331}, {-22, 3.6533224239902435}, {-24, 3.832506856900711},
    {-26, 4.004131885114475}, {-30, 4.328028275800946},  {-35, 4.702992219033993},
    {-40, 5.05125408524939},  {-44, 5.314017270169747},  {-48, 5.564773326996245},
    {-50, 5.686128441310391}, {-52, 5.805018683193453},  {-53, 5.8635847487551676}};

}  // namespace heddle::testing
