#pragma once

#include <cstdint>
#include <initializer_list>
#include <random>
#include <vector>

#include "ir/types/host_tensor.h"
#include "tools/random/random_fusion.h"

namespace heddle::random {

// Makes random choices. They depend only on the seed and on the earlier calls, and are the same on
// every machine.
class Choices {
 public:
  explicit Choices(uint64_t seed) : random_(seed) {}

  int64_t below(int64_t n) {
    return n <= 0 ? 0 : static_cast<int64_t>(random_() % static_cast<uint64_t>(n));
  }
  int64_t between(int64_t low, int64_t high) { return low + below(high - low + 1); }
  bool oneIn(int64_t n) { return below(n) == 0; }
  double real() { return static_cast<double>(random_() >> 11) * 0x1p-53; }
  template <class T>
  T pick(std::initializer_list<T> from) {
    return *(from.begin() + below(static_cast<int64_t>(from.size())));
  }
  template <class T>
  const T& pick(const std::vector<T>& from) {
    return from[below(static_cast<int64_t>(from.size()))];
  }
  template <class T>
  void shuffle(std::vector<T>& list) {
    for (size_t i = list.size(); i > 1; --i) {
      std::swap(list[i - 1], list[below(static_cast<int64_t>(i))]);
    }
  }

 private:
  std::mt19937_64 random_;
};

// Returns random bools, random integers from -8 to 8, or random floats from -4 to 4, some of which
// are integers. With `special`, some numbers are special: NaN, infinities, zeros of both signs,
// very small or large floats, or integers near the limits of integer types. randomScalar()
// sometimes returns a special float.
HostTensor randomValues(Choices& choices, DType dtype, const std::vector<int64_t>& sizes,
                        bool special);
Scalar randomScalar(Choices& choices, DType dtype);

// Returns a random layout for `values`. The layout may give an axis the stride 0. The function then
// makes all values along this axis equal.
InputLayout randomLayout(Choices& choices, HostTensor& values);

}  // namespace heddle::random
