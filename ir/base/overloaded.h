#pragma once

namespace heddle {

// Joins lambdas into one visitor for std::visit. The build fails if no lambda accepts some
// alternative of the variant.
template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

}  // namespace heddle
