#include "ir/sizes/size_quotient.h"

#include <algorithm>

namespace heddle {

Size quotient(const Size& a, const Size& b) {
  std::vector<Size> left = {a};
  std::vector<Size> right = {b};
  for (std::vector<Size>* factors : {&left, &right}) {
    for (size_t i = 0; i < factors->size(); ++i) {
      while ((*factors)[i].kind() == Size::Kind::Mul) {
        const Size whole = (*factors)[i];
        (*factors)[i] = whole.lhs();
        factors->push_back(whole.rhs());
      }
    }
  }
  for (size_t i = right.size(); i-- > 0;) {
    const auto found = std::find(left.begin(), left.end(), right[i]);
    if (found == left.end()) continue;
    left.erase(found);
    right.erase(right.begin() + static_cast<int64_t>(i));
  }
  // Divide the remaining constant factors, so that 6*t divided by 2 is 3*t.
  auto number = [](const std::vector<Size>& factors) {
    return std::find_if(factors.begin(), factors.end(),
                        [](const Size& f) { return f.isConstant(); });
  };
  const auto above = number(left);
  const auto below = number(right);
  if (above != left.end() && below != right.end() && below->constant() != 0 &&
      above->constant() % below->constant() == 0) {
    left[above - left.begin()] = above->constant() / below->constant();
    right.erase(below);
  }
  return Size::floorDiv(product(left), product(right));
}

Size remainder(const Size& a, int64_t n) {
  const bool divides =
      n == 1 || (!a.isConstant() && quotient(a, Size(n)).kind() != Size::Kind::FloorDiv);
  return divides ? Size(0) : Size::mod(a, Size(n));
}

}  // namespace heddle
