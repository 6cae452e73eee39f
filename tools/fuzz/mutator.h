#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace heddle::fuzz {

// Changes texts at random. Two objects with the same `seed` make the same changes to the same
// texts.
class Mutator {
 public:
  explicit Mutator(uint64_t seed) : random_(seed) {}
  // Returns one of the texts in `seeds` with one to six changes. Requires that `seeds` is not
  // empty.
  std::string mutate(const std::vector<std::string>& seeds);

 private:
  size_t below(size_t limit);  // returns a random number below `limit`, or 0
  const std::string& pick(const std::vector<std::string>& list);
  // Return the begin and the length of a random part of the text. A token is a sequence of letters
  // and digits, or one other byte. A line includes its end.
  std::pair<size_t, size_t> token(const std::string& text);
  std::pair<size_t, size_t> line(const std::string& text);
  void once(std::string& text, const std::vector<std::string>& seeds);  // makes one change

  std::mt19937_64 random_;
};

}  // namespace heddle::fuzz
