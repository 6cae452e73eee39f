#pragma once

#include <fmt/format.h>

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "ir/base/check.h"

namespace heddle {

// A set of names. fresh() invents names that the set does not contain yet.
class UniqueNames {
 public:
  // `first` is the first number that fresh() appends to a name: x_1 if `first` is 1.
  explicit UniqueNames(int first) : first_(first) {}

  // Adds a name. Returns false if the set already contains it.
  bool add(std::string name) { return names_.insert(std::move(name)).second; }
  bool contains(const std::string& name) const { return names_.contains(name); }

  // Adds and returns a name that the set does not contain: `wanted`, or else `wanted_N` with the
  // lowest free number N that is not below the `first` of the constructor.
  std::string fresh(const std::string& wanted) {
    if (add(wanted)) return wanted;
    int& next = next_.try_emplace(wanted, first_).first->second;
    for (;;) {
      std::string name = fmt::format("{}_{}", wanted, next++);
      if (add(name)) return name;
    }
  }

 private:
  int first_;
  std::unordered_set<std::string> names_;
  std::unordered_map<std::string, int> next_;  // per name: the next number to try
};

}  // namespace heddle
