#pragma once

#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

namespace heddle {

// A set of size symbols in the order of their declaration: the type of Fusion::symbolic_sizes
// (ir/graph/fusion.h). FusionBuilder searches the set once per axis, and a fusion may declare
// thousands of symbols, so a search must take constant time.
class SymbolicSizes {
 public:
  // Returns false, and changes nothing, if the set already contains the symbol.
  bool add(std::string symbol) {
    if (!set_.insert(symbol).second) return false;
    list_.push_back(std::move(symbol));
    return true;
  }
  bool contains(const std::string& symbol) const { return set_.contains(symbol); }
  bool empty() const { return list_.empty(); }
  const std::string& front() const { return list_.front(); }  // the set must not be empty
  auto begin() const { return list_.begin(); }
  auto end() const { return list_.end(); }
  void clear() { *this = {}; }
  // Returns whether both sets have the same symbols in the same order.
  bool operator==(const SymbolicSizes& other) const { return list_ == other.list_; }

 private:
  std::vector<std::string> list_;
  std::unordered_set<std::string> set_;
};

}  // namespace heddle
