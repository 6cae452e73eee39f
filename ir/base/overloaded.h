#pragma once

namespace heddle {

// Joins lambdas to a visitor for std::visit, one lambda per alternative of a variant. The build
// fails if an alternative is missing.
template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

}  // namespace heddle
