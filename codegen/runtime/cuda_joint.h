// States of joint reductions (codegen/plan/joint.h): one state holds two reductions of the same
// elements. In a kernel source, this text follows cuda_math.h.
// - addSome() adds the elements first .. end - 1 of `values`, at least one. The other values may be
//   uninitialized. The function rescales the state at most once per call, not once per element.
// - add() also accepts zero elements, and is fast if all N values are elements.
// - joined(a, b) is the state of the elements of a and b.
// - joinedOver<kFirst, kLast>(state) is the state of the elements of some threads of the warp: of
//   this thread, and of those whose numbers differ from its number only in the bits kFirst,
//   kFirst / 2, ..., kLast. These are powers of two. If kFirst < kLast, there are no others. All
//   threads that are combined get the same bits. All 32 threads of the warp must call the function.

namespace hd {

// The maximum of the elements, and a sum of exponentials of the elements.
// - If `scale` is a number, `sum` is the sum of exp(element) / 2^scale, and no term of this sum
//   exceeds 2^4. The scale changes only when a term would exceed this limit.
// - If `scale` is NaN, `sum` is the sum of exp(element - maximum). joined() and joinedOver()
//   return this form. addSome() uses it if the product of the maximum and log2(e) is infinite or
//   has a large rounding error.
struct Exponentials {
  float maximum = -infF32();
  float sum = 0;
  float scale = nanF32();
};
constexpr float kLog2OfE = 0x1.715476p0f;
constexpr float kMostAboveScale = 4;

// Adds N values pairwise, so that few additions wait for each other. N is a power of two.
template <int N>
__device__ inline float sumOf(const float* values) {
  if constexpr (N == 1) {
    return values[0];
  } else {
    return sumOf<N / 2>(values) + sumOf<N / 2>(values + N / 2);
  }
}
template <int N>
__device__ inline float maximumOf(const float* values) {
  if constexpr (N == 1) {
    return values[0];
  } else {
    return maximum(maximumOf<N / 2>(values), maximumOf<N / 2>(values + N / 2));
  }
}

// Returns the number that addSome() subtracts from the elements of a state whose scale is NaN. If
// the maximum is -infinity, all elements are -infinity, and each exp(element - 0) is 0.
__device__ inline float baseOf(float maximum) { return maximum == -infF32() ? 0.0f : maximum; }

// Returns exp(x) for x <= 0, as a term of a sum. The relative error of the result grows with -x,
// but its absolute error stays small. This suffices, because the sum contains the term exp(0) = 1.
__device__ inline float expInSum(float x) { return nearPowerOfTwo(x * kLog2OfE); }

// Returns x * log2(e) - scale, with one rounding.
__device__ inline float aboveScale(float x, float scale) {
  return multiplyAdd(x, kLog2OfE, -scale);
}

// Returns the sum of exp(element - to) for the elements of `from`. `to` is at least the maximum.
__device__ inline float rescaled(Exponentials from, float to) {
  if (from.scale == from.scale) return from.sum * exp2(-aboveScale(to, from.scale));
  return from.maximum == to ? from.sum : from.sum * exp(from.maximum - to);
}

// Returns a state of the same elements, with the maximum `maximum`, which is at least
// from.maximum. The scale is maximum * log2(e), or NaN if this product is too large.
__device__ inline Exponentials scaledFor(Exponentials from, float maximum) {
  const float sum = rescaled(from, maximum);
  const float scale = maximum * kLog2OfE;
  if (!(abs(scale) < 0x1p16f)) return {maximum, sum, nanF32()};
  return {maximum, sum * exp2(aboveScale(maximum, scale)), scale};
}

// Replaces values outside of [first, end) by -infinity, which adds exp(-infinity) = 0 to the sum.
// This is faster than a branch per value.
template <int N>
__device__ inline void addSome(Exponentials& into, const float (&values)[N], int first, int end) {
  float elements[N];
#pragma unroll
  for (int i = 0; i < N; ++i) elements[i] = i >= first && i < end ? values[i] : -infF32();
  const float next = maximum(into.maximum, maximumOf<N>(elements));
  if (!(aboveScale(next, into.scale) <= kMostAboveScale)) {
    into = scaledFor(into, next);
    if (into.scale != into.scale) {
      const float base = baseOf(next);
#pragma unroll
      for (int i = 0; i < N; ++i) elements[i] = expInSum(elements[i] - base);
      into.sum += sumOf<N>(elements);
      return;
    }
  }
  into.maximum = next;
#pragma unroll
  for (int i = 0; i < N; ++i) elements[i] = nearPowerOfTwo(aboveScale(elements[i], into.scale));
  into.sum += sumOf<N>(elements);
}

__device__ inline Exponentials joined(Exponentials a, Exponentials b) {
  const float next = maximum(a.maximum, b.maximum);
  return {next, rescaled(a, next) + rescaled(b, next), nanF32()};
}
// One rescaling needs fewer operations than joined() for each bit.
template <int kFirst, int kLast>
__device__ inline Exponentials joinedOver(Exponentials x) {
  float most = x.maximum;
#pragma unroll
  for (int mask = kFirst; mask >= kLast; mask /= 2) most = maximum(most, fromPartner(most, mask));
  float sum = rescaled(x, most);
#pragma unroll
  for (int mask = kFirst; mask >= kLast; mask /= 2) sum += fromPartner(sum, mask);
  return {most, sum, nanF32()};
}
// Returns the sum of exp(element - maximum). If all elements are -infinity, each term is NaN, and
// so is the sum.
__device__ inline float sumOfExponentials(Exponentials x) {
  if (x.maximum == -infF32()) return nanF32();
  return x.scale == x.scale ? x.sum * exp2(-aboveScale(x.maximum, x.scale)) : x.sum;
}

// The number of elements, their sum, and the sum of (element - mean)^2, where mean is their mean.
struct Moments {
  float count = 0;
  float sum = 0;
  float squares = 0;
};

// Returns the state of the union of two non-empty sets of elements. By Chan's formula
// (codegen/plan/joint.h), the squares grow by the squared difference of the means, times a weight.
__device__ inline Moments joinedSets(Moments a, Moments b) {
  const float count = a.count + b.count;
  const float difference = nearQuotient(a.sum, a.count) - nearQuotient(b.sum, b.count);
  const float weight = nearQuotient(a.count * b.count, count);
  return {count, a.sum + b.sum, (a.squares + b.squares) + difference * difference * weight};
}
__device__ inline Moments joined(Moments a, Moments b) {
  return a.count == 0 ? b : b.count == 0 ? a : joinedSets(a, b);
}

template <int N>
__device__ inline void addSome(Moments& into, const float (&values)[N], int first, int end) {
  Moments own;
  own.count = (float)(end - first);
#pragma unroll
  for (int i = 0; i < N; ++i) {
    if (i >= first && i < end) own.sum += values[i];
  }
  const float mean = nearQuotient(own.sum, own.count);
#pragma unroll
  for (int i = 0; i < N; ++i) {
    if (i < first || i >= end) continue;
    const float difference = values[i] - mean;
    own.squares = multiplyAdd(difference, difference, own.squares);
  }
  into = joined(into, own);
}

// Returns the sum of (element - center)^2.
__device__ inline float squaresAround(Moments x, float center) {
  const float difference = x.count == 0 ? 0.0f : nearQuotient(x.sum, x.count) - center;
  return x.squares + x.count * (difference * difference);
}
template <int kFirst, int kLast>
__device__ inline Moments joinedOver(Moments x) {
  Moments all = x;
#pragma unroll
  for (int mask = kFirst; mask >= kLast; mask /= 2) {
    all.count += fromPartner(all.count, mask);
    all.sum += fromPartner(all.sum, mask);
  }
  all.squares = squaresAround(x, all.count == 0 ? 0.0f : nearQuotient(all.sum, all.count));
#pragma unroll
  for (int mask = kFirst; mask >= kLast; mask /= 2) {
    all.squares += fromPartner(all.squares, mask);
  }
  return all;
}

template <class State, int N>
__device__ inline void add(State& into, const float (&values)[N], int first, int end) {
  if (first == 0 && end == N) {
    addSome(into, values, 0, N);
  } else if (first < end) {
    addSome(into, values, first, end);
  }
}

}  // namespace hd
