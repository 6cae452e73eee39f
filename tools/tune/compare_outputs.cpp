#include "tools/tune/compare_outputs.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <thread>

#include "codegen/compile/sha256.h"
#include "ir/base/check.h"
#include "ir/graph/print_values.h"
#include "ir/system/start_thread.h"
#include "ir/system/usable_cpus.h"

namespace heddle::tools {
namespace {

// Returns the tolerated error of values of the type, relative to the largest finite element. The
// tolerance allows several rounding errors, because a sum of many elements has several.
double toleranceOf(DType dtype) {
  switch (dtype) {
    case DType::F64:
      return 1e-9;
    case DType::F32:
      return 1e-3;
    case DType::F16:
      return 1e-2;
    case DType::BF16:
      return 6e-2;
    case DType::F8E4M3:
    case DType::F8E5M2:
      return 0.5;
    default:
      return 0;
  }
}

// Returns whether the result may depend on the order in which a candidate adds or multiplies.
bool dependsOnOrder(const Expression& expr) {
  switch (expr.op->kind) {
    case OpKind::Reduction:
      return expr.op->reduce_op != ReduceOp::Max && expr.op->reduce_op != ReduceOp::Min;
    case OpKind::Matmul:
    case OpKind::Scan:
    case OpKind::Scatter:
      return true;
    default:
      return false;
  }
}

// Outputs of tuned kernels have up to billions of elements, so all CPUs compare them. The elements
// are divided into parts of this size.
constexpr int64_t kPart = int64_t{1} << 20;
int64_t partsOf(int64_t count) { return (count + kPart - 1) / kPart; }

// Calls work(part, begin, end) for each part of `count` elements, on all CPUs that this process may
// use. The calls must not throw.
template <class Work>
void forEachPart(int64_t count, const Work& work) {
  const int64_t parts = partsOf(count);
  std::atomic<int64_t> next = 0;
  const auto take = [&] {
    for (int64_t part = next++; part < parts; part = next++) {
      work(part, part * kPart, std::min(count, (part + 1) * kPart));
    }
  };
  std::vector<std::thread> others;
  for (int64_t i = 1; i < std::min<int64_t>(parts, usableCpus()); ++i) {
    // If the system starts no more threads, the comparison only takes longer.
    try {
      others.push_back(startThread("comparing outputs", take));
    } catch (const UserError&) {
      break;
    }
  }
  take();
  for (std::thread& other : others) other.join();
}

// Calls use(read) for a float type. read(data, e) returns element e of the dense array `data`.
template <class Use>
void withFloats(DType dtype, const Use& use) {
  const auto of = [&]<class T>(T, auto convert) {
    use([convert](const std::byte* data, int64_t e) {
      return static_cast<double>(convert(reinterpret_cast<const T*>(data)[e]));
    });
  };
  switch (dtype) {
    case DType::F64:
      return of(double{}, [](double value) { return value; });
    case DType::F32:
      return of(float{}, [](float value) { return value; });
    case DType::F16:
      return of(uint16_t{}, [](uint16_t bits) { return floatFromF16(bits); });
    case DType::BF16:
      return of(uint16_t{}, [](uint16_t bits) { return floatFromBf16(bits); });
    case DType::F8E4M3:
      return of(uint8_t{}, [](uint8_t bits) { return floatFromF8e4m3(bits); });
    case DType::F8E5M2:
      return of(uint8_t{}, [](uint8_t bits) { return floatFromF8e5m2(bits); });
    default:
      HEDDLE_CHECK(false, "{} is no float type", name(dtype));
  }
}

// Returns the largest absolute value of the finite elements, but at least the smallest normal f32.
double largestOf(const HostTensor& wanted) {
  std::vector<double> largest(static_cast<size_t>(partsOf(wanted.numel())));
  withFloats(wanted.dtype, [&](const auto& read) {
    forEachPart(wanted.numel(), [&](int64_t part, int64_t begin, int64_t end) {
      double most = 0;
      for (int64_t e = begin; e < end; ++e) {
        const double value = std::abs(read(wanted.data.get(), e));
        if (value <= std::numeric_limits<double>::max()) most = std::max(most, value);
      }
      largest[static_cast<size_t>(part)] = most;
    });
  });
  double most = std::numeric_limits<float>::min();
  for (const double each : largest) most = std::max(most, each);
  return most;
}

// Returns whether two elements are equal, are both NaN, or differ by at most `bound`. If only one
// element is NaN or infinite, or if the elements are different infinities, the comparison with
// `bound` is false.
bool agree(double a, double b, double bound) {
  return a == b || (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= bound;
}

// The elements of two tensors that do not agree.
struct Differences {
  int64_t count = 0;  // number of these elements
  int64_t first = 0;  // index of the first one
};

// Counts the elements e for which differs(e) returns true. Skips short ranges whose bytes are
// equal.
template <class Differs>
Differences countDifferences(const HostTensor& got, const HostTensor& wanted,
                             const Differs& differs) {
  constexpr int64_t kRange = 256;
  const int64_t size = sizeOf(wanted.dtype);
  std::vector<Differences> found(static_cast<size_t>(partsOf(wanted.numel())));
  forEachPart(wanted.numel(), [&](int64_t part, int64_t begin, int64_t end) {
    Differences& here = found[static_cast<size_t>(part)];
    for (int64_t at = begin; at < end; at += kRange) {
      const int64_t stop = std::min(end, at + kRange);
      if (std::memcmp(got.data.get() + at * size, wanted.data.get() + at * size,
                      static_cast<size_t>((stop - at) * size)) == 0) {
        continue;
      }
      for (int64_t e = at; e < stop; ++e) {
        if (differs(e) && here.count++ == 0) here.first = e;
      }
    }
  });
  Differences all;
  for (const Differences& each : found) {
    if (all.count == 0) all.first = each.first;
    all.count += each.count;
  }
  return all;
}

// Finds the elements of `got` and `wanted` that do not agree. `tolerance` is relative to the
// largest finite element of `wanted`.
Differences differencesOf(const HostTensor& got, const HostTensor& wanted, double tolerance) {
  if (!isFloat(wanted.dtype)) {
    const int64_t size = sizeOf(wanted.dtype);
    return countDifferences(got, wanted, [&](int64_t e) {
      return std::memcmp(got.data.get() + e * size, wanted.data.get() + e * size,
                         static_cast<size_t>(size)) != 0;
    });
  }
  Differences found;
  const double bound = tolerance * largestOf(wanted);
  withFloats(wanted.dtype, [&](const auto& read) {
    found = countDifferences(got, wanted, [&](int64_t e) {
      return !agree(read(got.data.get(), e), read(wanted.data.get(), e), bound);
    });
  });
  return found;
}

// Returns the hash of a part of a tensor. Every NaN counts as the same bits.
std::string hashOfPart(const HostTensor& tensor, int64_t begin, int64_t end) {
  const int64_t size = sizeOf(tensor.dtype);
  const std::string_view bytes(tensor.as<const char>() + begin * size,
                               static_cast<size_t>((end - begin) * size));
  std::vector<int64_t> nans;
  if (isFloat(tensor.dtype)) {
    withFloats(tensor.dtype, [&](const auto& read) {
      for (int64_t e = begin; e < end; ++e) {
        if (std::isnan(read(tensor.data.get(), e))) nans.push_back(e - begin);
      }
    });
  }
  if (nans.empty()) return codegen::sha256(bytes);
  std::string changed(bytes);
  const Scalar nan = roundTo(tensor.dtype, std::numeric_limits<double>::quiet_NaN());
  for (const int64_t e : nans) storeElement(changed.data(), tensor.dtype, e, nan);
  return codegen::sha256(changed);
}

}  // namespace

std::vector<Tolerance> tolerancesOf(const Fusion& segment) {
  std::map<ValueId, Tolerance> computed;
  for (const Expression& expr : segment.exprs()) {
    Tolerance tolerance;
    for (ValueId input : expr.inputs) {
      const auto found = computed.find(input);
      if (found == computed.end()) continue;
      tolerance.of_float_sums = tolerance.of_float_sums || found->second.of_float_sums;
      tolerance.relative = std::max(tolerance.relative, found->second.relative);
    }
    for (ValueId output : expr.outputs) {
      const DType dtype = segment.tensor(output).dtype;
      Tolerance& own = computed[output] = tolerance;
      own.of_float_sums = own.of_float_sums || (dependsOnOrder(expr) && isFloat(dtype));
      own.relative = std::max(own.relative, toleranceOf(dtype));
    }
  }
  std::vector<Tolerance> tolerances;
  for (ValueId output : segment.outputs()) tolerances.push_back(computed[output]);
  return tolerances;
}

std::string differenceOf(const std::vector<HostTensor>& got, const std::vector<HostTensor>& wanted,
                         const std::vector<Tolerance>& tolerances) {
  for (size_t i = 0; i < wanted.size(); ++i) {
    const bool may_flip = !isFloat(wanted[i].dtype) && tolerances[i].of_float_sums;
    const Differences found = differencesOf(got[i], wanted[i], tolerances[i].relative);
    if (found.count <= (may_flip ? std::max<int64_t>(1, wanted[i].numel() / 100) : 0)) continue;
    return fmt::format("element {} in the memory of output {} is {}, but {} with another candidate",
                       found.first, i, printScalar(got[i].at(found.first)),
                       printScalar(wanted[i].at(found.first)));
  }
  return "";
}

std::string hashOfBits(const std::vector<HostTensor>& outputs) {
  std::string all;
  for (const HostTensor& output : outputs) {
    std::vector<std::string> hashes(static_cast<size_t>(partsOf(output.numel())));
    forEachPart(output.numel(), [&](int64_t part, int64_t begin, int64_t end) {
      hashes[static_cast<size_t>(part)] = hashOfPart(output, begin, end);
    });
    for (const std::string& hash : hashes) all += hash;
  }
  return codegen::sha256(all);
}

}  // namespace heddle::tools
