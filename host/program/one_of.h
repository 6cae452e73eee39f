#pragma once

#include <type_traits>

namespace heddle::host {

// Lets one lambda of an Overloaded visitor (ir/base/overloaded.h) handle several alternatives:
// [](const OneOf<Send, Recv> auto& x) { ... }. The build still fails if an alternative is missing.
template <class T, class... Alternatives>
concept OneOf = (std::is_same_v<std::remove_cvref_t<T>, Alternatives> || ...);

}  // namespace heddle::host
