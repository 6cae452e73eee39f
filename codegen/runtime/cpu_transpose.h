// Transposes blocks of a tensor for generated C++ kernels. A kernel source contains this text after
// cpu_runtime.h.

namespace hd {

// Range<n>::All is Indices<0, 1, ..., n - 1>.
template <int... i>
struct Indices {};
template <int n, int... i>
struct Range : Range<n - 1, n - 1, i...> {};
template <int... i>
struct Range<0, i...> {
  typedef Indices<i...> All;
};

// A block consists of `edge` rows of `edge` elements of `bytes` bytes. Each row is one vector of
// words. A row in memory may have any alignment, and its elements may have any type of this size.
template <int bytes>
struct Block;
template <>
struct Block<1> {
  static constexpr int edge = 16;
  typedef unsigned char Row __attribute__((vector_size(16)));
  typedef Row RowInMemory __attribute__((aligned(1), may_alias));
};
template <>
struct Block<2> {
  static constexpr int edge = 8;
  typedef unsigned short Row __attribute__((vector_size(16)));
  typedef Row RowInMemory __attribute__((aligned(1), may_alias));
};
template <>
struct Block<4> {
  static constexpr int edge = 8;
  typedef unsigned Row __attribute__((vector_size(32)));
  typedef Row RowInMemory __attribute__((aligned(1), may_alias));
};
template <>
struct Block<8> {
  static constexpr int edge = 4;
  typedef unsigned long long Row __attribute__((vector_size(32)));
  typedef Row RowInMemory __attribute__((aligned(1), may_alias));
};

#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define HD_HAS_SHUFFLE
#endif
#endif

#ifdef HD_HAS_SHUFFLE
// `a` and `b` are rows r and r + step of a block. Exchanges the elements of `a` whose index in the
// row has the bit `step` with the elements of `b` whose index does not have this bit.
template <int step, class Row, int... i>
HD_INLINE void exchange(Row& a, Row& b, Indices<i...>) {
  constexpr int n = (int)sizeof...(i);
  const Row first = __builtin_shufflevector(a, b, (i & step ? n + i - step : i)...);
  b = __builtin_shufflevector(a, b, (i & step ? n + i : i + step)...);
  a = first;
}

// Transposes a block. Requires that its sub-blocks of step * step elements are already transposed.
// Each level of the recursion doubles `step`.
template <int step, int edge, class Row>
HD_INLINE void exchangeAll(Row* rows) {
  if constexpr (step < edge) {
#pragma GCC unroll 16
    for (int r = 0; r < edge; ++r) {
      if ((r & step) == 0) exchange<step>(rows[r], rows[r + step], typename Range<edge>::All());
    }
    exchangeAll<step * 2, edge>(rows);
  }
}

// Transposes one block. Successive rows of `to` are `to_stride` elements apart, and successive rows
// of `from` are `from_stride` elements apart.
template <class T>
HD_INLINE void transposeBlock(T* to, long long to_stride, const T* from, long long from_stride) {
  typedef Block<(int)sizeof(T)> B;
  typename B::Row rows[B::edge];
  // The compiler keeps `rows` in registers only if it unrolls the loops.
#pragma GCC unroll 16
  for (int r = 0; r < B::edge; ++r) {
    rows[r] = *(const typename B::RowInMemory*)(from + r * from_stride);
  }
  exchangeAll<1, B::edge>(rows);
#pragma GCC unroll 16
  for (int r = 0; r < B::edge; ++r) {
    *(typename B::RowInMemory*)(to + r * to_stride) = rows[r];
  }
}
#else
template <class T>
HD_INLINE void transposeBlock(T* to, long long to_stride, const T* from, long long from_stride) {
  constexpr int edge = Block<(int)sizeof(T)>::edge;
  for (int c = 0; c < edge; ++c) {
    for (int r = 0; r < edge; ++r) to[r * to_stride + c] = from[c * from_stride + r];
  }
}
#endif

// Sets to[r * size + c] = from[r + c * stride] for 0 <= r < size and 0 <= c < size.
template <int size, class T>
inline void transposeSquare(T* to, const T* from, long long stride) {
  constexpr int edge = Block<(int)sizeof(T)>::edge;
  for (int c = 0; c < size; c += edge) {
    const T* const rows = from + c * stride;
    // The rows of the next blocks are far apart in memory, so the CPU would not prefetch them.
    for (int next = edge; next < 2 * edge && c + edge < size; ++next) {
      prefetch<size>(rows + next * stride);
    }
    for (int r = 0; r < size; r += edge) transposeBlock(to + r * size + c, size, rows + r, stride);
  }
}

// Sets to[r + c * stride] = from[r * size + c] for 0 <= r < rows <= size and
// 0 <= c < columns <= size.
template <int size, class T>
inline void transposeTo(T* to, long long stride, const T* from, long long rows, long long columns) {
  constexpr int edge = Block<(int)sizeof(T)>::edge;
  for (long long c = 0; c < columns; c += edge) {
    for (long long r = 0; r < rows; r += edge) {
      if (c + edge <= columns && r + edge <= rows) {
        transposeBlock(to + r + c * stride, stride, from + r * size + c, size);
        continue;
      }
      for (long long x = c; x < smaller(c + edge, columns); ++x) {
        for (long long y = r; y < smaller(r + edge, rows); ++y) {
          to[y + x * stride] = from[y * size + x];
        }
      }
    }
  }
}

// Sets to[r * size + c] = from[r + c * stride] for 0 <= r < rows <= size and
// 0 <= c < columns <= size.
template <int size, class T>
inline void transpose(T* to, const T* from, long long stride, long long rows, long long columns) {
  if (rows == size && columns == size) return transposeSquare<size>(to, from, stride);
  constexpr int edge = Block<(int)sizeof(T)>::edge;
  for (long long c = 0; c < columns; c += edge) {
    for (long long r = 0; r < rows; r += edge) {
      if (c + edge <= columns && r + edge <= rows) {
        transposeBlock(to + r * size + c, size, from + r + c * stride, stride);
        continue;
      }
      for (long long x = c; x < smaller(c + edge, columns); ++x) {
        for (long long y = r; y < smaller(r + edge, rows); ++y) {
          to[y * size + x] = from[y + x * stride];
        }
      }
    }
  }
}

}  // namespace hd
