#include <algorithm>
#include <cmath>
#include <type_traits>

#include "comm/communicator.h"
#include "ir/base/check.h"
#include "ir/base/small_floats.h"

namespace heddle::comm {
namespace {

// Elements are reduced in blocks of this size, so that the intermediate values stay in the L1
// cache and the compiler can vectorise the loops.
constexpr int64_t kBlock = 1024;

// Each of these structs describes an element type. Elements are stored as `Stored` and combined as
// `Value`.
struct BoolElement {
  using Stored = uint8_t;
  using Value = uint8_t;  // 0 or 1
  static Value load(Stored bits) { return bits != 0; }
  static Stored store(Value value) { return value; }
};
struct F16Element {
  using Stored = uint16_t;
  using Value = float;
  static Value load(Stored bits) { return kF16.toFloat(bits); }
  static Stored store(Value value) { return static_cast<Stored>(kF16.from(value)); }
};
struct Bf16Element {
  using Stored = uint16_t;
  using Value = float;
  static Value load(Stored bits) { return kBf16.toFloat(bits); }
  static Stored store(Value value) { return kBf16.from(value); }
};
template <class T>
struct PlainElement {
  using Stored = T;
  using Value = T;
  static Value load(Stored value) { return value; }
  static Stored store(Value value) { return value; }
};

// add() and multiply() use unsigned arithmetic for integers, because results must wrap around, and
// signed overflow is undefined in C++.
template <class T>
T add(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  } else {
    return a + b;
  }
}
template <class T>
T multiply(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  } else {
    return a * b;
  }
}
// lesser() and greater() return NaN if `a` or `b` is NaN.
template <class T>
T lesser(T a, T b) {
  return b < a || b != b ? b : a;
}
template <class T>
T greater(T a, T b) {
  return b > a || b != b ? b : a;
}

template <class Element, class Combine>
void reduceBlocks(void* dst, std::span<const void* const> srcs, int64_t count, bool average,
                  Combine combine) {
  using Stored = typename Element::Stored;
  using Value = typename Element::Value;
  Value running[kBlock];
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t extent = std::min(kBlock, count - begin);
    const Stored* first = static_cast<const Stored*>(srcs[0]) + begin;
    for (int64_t i = 0; i < extent; ++i) running[i] = Element::load(first[i]);
    for (const void* src : srcs.subspan(1)) {
      const Stored* next = static_cast<const Stored*>(src) + begin;
      for (int64_t i = 0; i < extent; ++i) {
        running[i] = combine(running[i], Element::load(next[i]));
      }
    }
    if constexpr (std::is_floating_point_v<Value>) {
      const Value ranks = average ? static_cast<Value>(srcs.size()) : Value{1};
      for (int64_t i = 0; average && i < extent; ++i) running[i] /= ranks;
    }
    Stored* out = static_cast<Stored*>(dst) + begin;
    for (int64_t i = 0; i < extent; ++i) out[i] = Element::store(running[i]);
  }
}

template <class Element>
void reduceElements(void* dst, std::span<const void* const> srcs, int64_t count, ReduceOp op) {
  using Value = typename Element::Value;
  const auto sum = [](Value a, Value b) { return add(a, b); };
  const auto product = [](Value a, Value b) { return multiply(a, b); };
  const auto least = [](Value a, Value b) { return lesser(a, b); };
  const auto most = [](Value a, Value b) { return greater(a, b); };
  switch (op) {
    case ReduceOp::Sum:
      return reduceBlocks<Element>(dst, srcs, count, false, sum);
    case ReduceOp::Avg:
      return reduceBlocks<Element>(dst, srcs, count, true, sum);
    case ReduceOp::Prod:
      return reduceBlocks<Element>(dst, srcs, count, false, product);
    case ReduceOp::Min:
      return reduceBlocks<Element>(dst, srcs, count, false, least);
    case ReduceOp::Max:
      return reduceBlocks<Element>(dst, srcs, count, false, most);
  }
}

}  // namespace

void reduceOnHost(void* dst, std::span<const void* const> srcs, int64_t count, DType dtype,
                  ReduceOp op) {
  HEDDLE_CHECK(!srcs.empty(), "a reduction of no sources");
  HEDDLE_USER_CHECK(op != ReduceOp::Avg || isFloat(dtype),
                    "average needs a float type, found {}; use sum instead", name(dtype));
  switch (dtype) {
    case DType::Bool:  // sum: the maximum of the bools; product: the minimum
      if (op == ReduceOp::Sum) op = ReduceOp::Max;
      if (op == ReduceOp::Prod) op = ReduceOp::Min;
      return reduceElements<BoolElement>(dst, srcs, count, op);
    case DType::U8:
      return reduceElements<PlainElement<uint8_t>>(dst, srcs, count, op);
    case DType::I8:
      return reduceElements<PlainElement<int8_t>>(dst, srcs, count, op);
    case DType::I32:
      return reduceElements<PlainElement<int32_t>>(dst, srcs, count, op);
    case DType::I64:
      return reduceElements<PlainElement<int64_t>>(dst, srcs, count, op);
    case DType::F8E4M3:
    case DType::F8E5M2:
      break;
    case DType::F16:
      return reduceElements<F16Element>(dst, srcs, count, op);
    case DType::BF16:
      return reduceElements<Bf16Element>(dst, srcs, count, op);
    case DType::F32:
      return reduceElements<PlainElement<float>>(dst, srcs, count, op);
    case DType::F64:
      return reduceElements<PlainElement<double>>(dst, srcs, count, op);
  }
  userError("{} cannot be reduced: f8 types take part in casts and moves only", name(dtype));
}

}  // namespace heddle::comm
