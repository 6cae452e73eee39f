#pragma once

#include "tests/codegen/simt/grid.h"

// Definitions that let C++ code include the text of CUDA kernels. Include this header first, then
// the text. tests/codegen/simt/grid.h runs the kernels.

#define __device__
#define __global__
#define __grid_constant__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__ static
#define threadIdx \
  heddle::simt::Dim { heddle::simt::grid().thread() }
#define blockIdx \
  heddle::simt::Dim { heddle::simt::grid().block() }
#define blockDim \
  heddle::simt::Dim { heddle::simt::grid().threads() }
#define gridDim \
  heddle::simt::Dim { heddle::simt::grid().blocks() }

inline void __syncthreads() { heddle::simt::grid().barrier(); }
inline void __syncwarp() { heddle::simt::grid().barrier(); }
template <class T>
T __shfl_up_sync(unsigned, T value, int delta) {
  const int thread = static_cast<int>(heddle::simt::grid().thread());
  return heddle::simt::grid().exchange(value, thread % 32 < delta ? thread : thread - delta);
}
template <class T>
T __shfl_xor_sync(unsigned, T value, int mask) {
  const int thread = static_cast<int>(heddle::simt::grid().thread());
  return heddle::simt::grid().exchange(value, thread ^ mask);
}
inline unsigned __ballot_sync(unsigned, bool value) {
  const unsigned peers = heddle::simt::grid().match(value);
  return value ? peers : ~peers;
}
template <class T>
unsigned __match_any_sync(unsigned, T value) {
  return heddle::simt::grid().match(value);
}
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline unsigned atomicAdd(unsigned* to, unsigned value) {
  const unsigned before = *to;
  *to += value;
  return before;
}
inline float __uint_as_float(unsigned bits) {
  float x;
  std::memcpy(&x, &bits, sizeof(x));
  return x;
}
inline unsigned __float_as_uint(float x) {
  unsigned bits;
  std::memcpy(&bits, &x, sizeof(bits));
  return bits;
}
inline long long __double_as_longlong(double x) {
  long long bits;
  std::memcpy(&bits, &x, sizeof(bits));
  return bits;
}
