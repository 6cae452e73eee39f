#include "ir/sizes/cancel_terms.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

namespace heddle {
namespace {

// A size as a sum of terms. Each term is a constant factor times a base. A base is the constant 1,
// or a size that is neither a sum, a difference nor a constant.
class Terms {
 public:
  // Adds factor * size. Returns false if the size has too many operators, or if a factor overflows.
  bool add(const Size& size, int64_t factor) {
    if (--visits_ < 0) return false;
    const Size::Kind kind = size.kind();
    if (kind == Size::Kind::Add || kind == Size::Kind::Sub) {
      if (factor == std::numeric_limits<int64_t>::min()) return false;
      return add(size.lhs(), factor) && add(size.rhs(), kind == Size::Kind::Add ? factor : -factor);
    }
    int64_t scaled = 0;
    if (kind == Size::Kind::Mul && size.lhs().isConstant()) {
      return !__builtin_mul_overflow(factor, size.lhs().constant(), &scaled) &&
             add(size.rhs(), scaled);
    }
    if (!size.isConstant()) return addTo(size, factor);
    return !__builtin_mul_overflow(factor, size.constant(), &scaled) && addTo(Size(1), scaled);
  }

  // Returns the sum, or nullopt if no term has cancelled.
  std::optional<Size> sumIfCancelled() const {
    const auto is_zero = [](const auto& term) { return term.second == 0; };
    if (std::none_of(terms_.begin(), terms_.end(), is_zero)) return std::nullopt;
    Size sum;
    for (const bool positive :
         {true, false}) {  // positive terms first: the sum must not begin with a negated term
      for (const auto& [base, factor] : terms_) {
        if (factor == 0 || (factor > 0) != positive) continue;
        // The absolute value of the smallest int64_t overflows.
        const bool subtracts = !positive && factor != std::numeric_limits<int64_t>::min();
        sum = subtracts ? Size::sub(sum, Size::mul(-factor, base))
                        : Size::add(sum, Size::mul(factor, base));
      }
    }
    return sum;
  }

 private:
  bool addTo(const Size& base, int64_t factor) {
    if (factor == 0) return true;
    const auto is_same = [&](const auto& term) { return term.first == base; };
    const auto found = std::find_if(terms_.begin(), terms_.end(), is_same);
    if (found != terms_.end()) {
      return !__builtin_add_overflow(found->second, factor, &found->second);
    }
    terms_.emplace_back(base, factor);
    return true;
  }

  std::vector<std::pair<Size, int64_t>> terms_;  // base and factor; the base of constants is 1
  int visits_ = 128;
};

}  // namespace

Size cancelTerms(const Size& size) {
  if (!size.hasDifference()) return size;
  Terms terms;
  if (!terms.add(size, 1)) return size;
  return terms.sumIfCancelled().value_or(size);
}

}  // namespace heddle
