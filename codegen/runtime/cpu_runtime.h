// Runtime of generated C++ kernels: types, conversions, memory. It stands before every kernel text
// and includes no header, so that compiling a kernel costs little.

namespace hd {

typedef unsigned char Bool;
struct BFloat16 {
  unsigned short bits;
};

inline long long smaller(long long a, long long b) { return a < b ? a : b; }

inline float infF32() { return __builtin_inff(); }
inline double infF64() { return __builtin_inf(); }
inline float nanF32() { return __builtin_nanf(""); }
inline double nanF64() { return __builtin_nan(""); }

inline unsigned bitsOf(float x) {
  unsigned bits;
  __builtin_memcpy(&bits, &x, sizeof(bits));
  return bits;
}
inline float floatOf(unsigned bits) {
  float x;
  __builtin_memcpy(&x, &bits, sizeof(x));
  return x;
}

// To nearest even; a NaN stays a quiet NaN.
inline unsigned bf16Bits(float x) {
  const unsigned bits = bitsOf(x);
  const unsigned rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const unsigned quiet = (bits >> 16) | 0x40u;
  return x != x ? quiet : rounded;
}
inline float roundBf16(float x) { return floatOf(bf16Bits(x) << 16); }

inline bool get(Bool x) { return x != 0; }
inline long long get(long long x) { return x; }
inline float get(BFloat16 x) { return floatOf((unsigned)x.bits << 16); }
inline float get(float x) { return x; }
inline double get(double x) { return x; }

// A read at a computed place. One unsigned comparison covers both ends of an axis.
inline bool inside(long long place, long long extent) {
  return (unsigned long long)place < (unsigned long long)extent;
}
template <class T>
inline T fetch(const T* from) {
  return *from;
}

template <class T, class V>
inline T put(V x) {
  return (T)x;
}
template <>
inline BFloat16 put<BFloat16, float>(float x) {
  // The value is rounded already.
  return {(unsigned short)(bitsOf(x) >> 16)};
}

}  // namespace hd
