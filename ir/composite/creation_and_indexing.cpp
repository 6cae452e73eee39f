// Constant tensors, arange, triangles of matrices, and ops that read elements at indices, such as
// gather, sort and topk.
#include <algorithm>
#include <array>
#include <cmath>

#include "ir/base/check.h"
#include "ir/composite/composite.h"
#include "ir/composite/terms.h"

namespace heddle {
namespace {

using composite::Result;
using composite::Term;

// Returns, for each element of a tensor of `sizes`, its index along the last axis minus its index
// along the second to last axis.
Term diagonalOf(FusionBuilder& b, const std::vector<Size>& sizes) {
  const auto rank = static_cast<int64_t>(sizes.size());
  const Term row = composite::positions(b, sizes, rank - 2);
  return composite::positions(b, sizes, rank - 1) - row;
}

ValueId triangle(FusionBuilder& b, const char* op_name, const char* keeps, ValueId x,
                 const Size& diagonal) {
  Result result(b);
  const std::vector<Size> sizes = b.tensorOf(op_name, x).sizes();
  HEDDLE_USER_CHECK(sizes.size() >= 2, "{}: {} needs two axes or more", b.where(op_name),
                    b.typeOf(x));
  const Term kept =
      composite::call(keeps, {diagonalOf(b, sizes), composite::scalarOf(b, diagonal)});
  return result(composite::where(kept, {&b, x}, composite::constant(b, false)));
}

ValueId filled(FusionBuilder& b, const char* op_name, Scalar value, std::vector<Size> sizes,
               DType dtype) {
  Result result(b);
  b.checkSizes(op_name, sizes);
  return result(b.full(b.constant(value), std::move(sizes), dtype));
}

bool isInteger(const Scalar& value) { return !std::holds_alternative<double>(value); }

// Returns how many of the numbers start, start + step, ... are before stop.
int64_t arangeCount(FusionBuilder& b, const Scalar& start, const Scalar& stop, const Scalar& step) {
  const double from = toDouble(start);
  const double to = toDouble(stop);
  const double by = toDouble(step);
  HEDDLE_USER_CHECK(by != 0 && std::isfinite(by) && std::isfinite(from) && std::isfinite(to),
                    "{}: from {} to {} in steps of {} never ends", b.where("arange"), from, to, by);
  HEDDLE_USER_CHECK((to - from) / by >= 0, "{}: steps of {} do not lead from {} to {}",
                    b.where("arange"), by, from, to);
  int64_t distance = 0;
  if (isInteger(start) && isInteger(stop) && isInteger(step) &&
      !__builtin_sub_overflow(toInt(stop), toInt(start), &distance)) {
    return Size::ceilDiv(distance, toInt(step)).constant();
  }
  const double count = std::ceil((to - from) / by);
  HEDDLE_USER_CHECK(count < 0x1p53, "{}: {} elements are too many", b.where("arange"), count);
  return static_cast<int64_t>(count);
}

// Returns the numbers start, start + step, ... before stop for integers that a run gives.
ValueId arangeOfRun(FusionBuilder& b, const Size& start, const Size& stop, const Size& step,
                    DType dtype) {
  Result result(b);
  HEDDLE_USER_CHECK(step.isConstant() && step.constant() != 0,
                    "{}: the step is {}, expected a number other than 0", b.where("arange"),
                    step.str());
  const bool rises = step.constant() > 0;
  const Size distance = rises ? stop - start : start - stop;
  const Size by = rises ? step : Size(0) - step;
  Term value{&b, b.iota({Size::max(Size(0), Size::ceilDiv(distance, by))}, 0)};
  if (!step.isConstant(1)) value = value * composite::constant(b, step.constant());
  if (!start.isConstant(0)) value = value + composite::scalarOf(b, start);
  return result(value, dtype);
}

// Returns an argument of arange as a number. All arguments must be numbers if one has a float type.
Scalar numberOf(FusionBuilder& b, const ArangeBound& bound) {
  if (const double* real = std::get_if<double>(&bound)) return *real;
  const Size& size = std::get<Size>(bound);
  HEDDLE_USER_CHECK(size.isConstant(),
                    "{}: the bound {} is no number, and another bound has a float type",
                    b.where("arange"), size.str());
  return size.constant();
}

// Adds guards: 0 <= k, k is at most the extent, and k <= most if `most` is given. guardAtMost()
// adds a guard only for sizes that contain the value of a scalar. If k has other symbols, each run
// checks the slice that topkOfRun() appends instead.
void guardCount(FusionBuilder& b, const Size& k, const Size& extent, std::optional<int64_t> most,
                const std::string& where) {
  b.guardAtMost(Size(0), k, fmt::format("k of {}", where));
  b.guardAtMost(k, extent, fmt::format("k and the extent of the axis of {}", where));
  if (most) b.guardAtMost(k, Size(*most), fmt::format("k and its bound `most` of {}", where));
}

}  // namespace

ValueId zeros(FusionBuilder& b, std::vector<Size> sizes, DType dtype) {
  return filled(b, "zeros", int64_t{0}, std::move(sizes), dtype);
}

ValueId ones(FusionBuilder& b, std::vector<Size> sizes, DType dtype) {
  return filled(b, "ones", int64_t{1}, std::move(sizes), dtype);
}

ValueId arange(FusionBuilder& b, const ArangeBound& first, const ArangeBound& last,
               const ArangeBound& by, std::optional<DType> dtype) {
  const std::array<const Size*, 3> sizes{std::get_if<Size>(&first), std::get_if<Size>(&last),
                                         std::get_if<Size>(&by)};
  const bool are_sizes = std::find(sizes.begin(), sizes.end(), nullptr) == sizes.end();
  if (are_sizes && !std::all_of(sizes.begin(), sizes.end(),
                                [](const Size* size) { return size->isConstant(); })) {
    return arangeOfRun(b, *sizes[0], *sizes[1], *sizes[2], dtype.value_or(DType::I64));
  }
  Result result(b);
  const Scalar start = numberOf(b, first), stop = numberOf(b, last), step = numberOf(b, by);
  const bool integers = isInteger(start) && isInteger(stop) && isInteger(step);
  const int64_t n = arangeCount(b, start, stop, step);
  // As in PyTorch, the number of elements follows from the unconverted arguments. If the numbers
  // are computed in i64, start and step are converted to integers before the multiplication.
  const bool in_integers = integers || (dtype && !isFloat(*dtype));
  const DType computed = in_integers ? DType::I64 : DType::F64;
  Term value = composite::cast({&b, b.iota({Size(n)}, 0)}, computed);
  auto scalar = [&](const Scalar& v) {
    return composite::constant(b, in_integers ? Scalar(toInt(v)) : Scalar(toDouble(v)));
  };
  if (toDouble(step) != 1) value = value * scalar(step);
  if (toDouble(start) != 0) value = value + scalar(start);
  return result(value, dtype.value_or(integers ? DType::I64 : DType::F32));
}

ValueId eye(FusionBuilder& b, const std::vector<Size>& sizes, DType dtype) {
  Result result(b);
  HEDDLE_USER_CHECK(sizes.size() == 1 || sizes.size() == 2, "{}: got {} sizes, expected 1 or 2",
                    b.where("eye"), sizes.size());
  b.checkSizes("eye", sizes);
  const Term diagonal = diagonalOf(b, {sizes.front(), sizes.back()});
  const Term hit = composite::call("eq", {diagonal, composite::constant(b, int64_t{0})});
  return result(hit, dtype);
}

ValueId tril(FusionBuilder& b, ValueId x, const Size& diagonal) {
  return triangle(b, "tril", "le", x, diagonal);
}

ValueId triu(FusionBuilder& b, ValueId x, const Size& diagonal) {
  return triangle(b, "triu", "ge", x, diagonal);
}

ValueId oneHot(FusionBuilder& b, ValueId x, int64_t num_classes) {
  Result result(b);
  const Term classes = composite::indexOperand(b, "one_hot", x);
  HEDDLE_USER_CHECK(num_classes > 0, "{}: num_classes is {}, expected 1 or more",
                    b.where("one_hot"), num_classes);
  std::vector<Size> sizes = classes.tensor().sizes();
  sizes.emplace_back(num_classes);
  const Term wide = composite::broadcast(classes, {-1});
  const Term position = composite::positions(b, sizes, static_cast<int64_t>(sizes.size()) - 1);
  return result(composite::call("eq", {wide, position}), DType::I64);
}

ValueId indexSelect(FusionBuilder& b, ValueId x, ValueId index, int64_t axis) {
  Result result(b);
  const size_t rank = b.tensorOf("index_select", x).rank();
  const Axes along = b.normalizeAxes("index_select", {axis}, rank);
  Term indices = composite::indexOperand(b, "index_select", index);
  HEDDLE_USER_CHECK(indices.rank() <= 1, "{}: the index {} must have one axis",
                    b.where("index_select"), b.typeOf(index));
  // An index without axes counts as a list of one index. If x has no axes, the result has no axes.
  if (along.empty()) {
    HEDDLE_USER_CHECK(indices.rank() == 0 || indices.extent(0).isConstant(1),
                      "{}: the index {} must have one element, as {} has no axes",
                      b.where("index_select"), b.typeOf(index), b.typeOf(x));
    if (indices.rank() > 0) indices.id = b.reshape(indices.id, {});
    return result(b.take(x, indices.id, 0));
  }
  if (indices.rank() == 0) indices.id = b.reshape(indices.id, {Size(1)});
  return result(b.take(x, indices.id, along[0]));
}

ValueId embedding(FusionBuilder& b, ValueId index, ValueId weight) {
  Result result(b);
  const Term indices = composite::indexOperand(b, "embedding", index);
  HEDDLE_USER_CHECK(b.tensorOf("embedding", weight).rank() == 2, "{}: the weight {} must be [v, d]",
                    b.where("embedding"), b.typeOf(weight));
  return result(b.take(weight, indices.id, 0));
}

ValueId gather(FusionBuilder& b, ValueId x, ValueId index, int64_t axis) {
  Result result(b);
  const std::vector<Size> sizes = b.tensorOf("gather", x).sizes();
  const Axes line = b.normalizeAxes("gather", {axis}, sizes.size());
  const Term indices = composite::indexOperand(b, "gather", index);
  if (std::max(sizes.size(), indices.rank()) <= 1) {
    return result(b.takeAlongAxis(x, indices.id, axis));
  }
  HEDDLE_USER_CHECK(indices.rank() == sizes.size(), "{}: {} and its index {} differ in rank",
                    b.where("gather"), b.typeOf(x), b.typeOf(index));
  const size_t along = line[0];
  std::vector<Size> stops = indices.tensor().sizes();
  stops[along] = sizes[along];
  for (size_t i = 0; i < sizes.size(); ++i) {
    const bool fits = !sizes[i].isConstant() || !stops[i].isConstant() ||
                      stops[i].constant() <= sizes[i].constant();
    HEDDLE_USER_CHECK(fits, "{}: the index {} is larger than {} along axis {}", b.where("gather"),
                      b.typeOf(index), b.typeOf(x), i);
  }
  const ValueId part =
      stops == sizes ? x : b.slice(x, std::vector<Size>(sizes.size(), Size(0)), stops);
  return result(b.takeAlongAxis(part, indices.id, static_cast<int64_t>(along)));
}

Sorted sort(FusionBuilder& b, ValueId x, int64_t axis, bool descending) {
  Result result(b);
  const size_t rank = b.tensorOf("sort", x).rank();
  const Axes along = b.normalizeAxes("sort", {axis}, rank);
  composite::refuseFloat8(b, "sort", x);
  const ValueId order = b.argsort(x, axis, descending);
  return {result(along.empty() ? b.set(x) : b.takeAlongAxis(x, order, along[0])), order};
}

namespace {

// Implements topk() for a k that a run gives.
Sorted topkOfRun(FusionBuilder& b, ValueId x, const Size& k, int64_t axis, bool largest,
                 std::optional<int64_t> most) {
  Result result(b);
  std::vector<Size> stops = b.tensorOf("topk", x).sizes();
  const int64_t along = b.normalizeAxis("topk", axis, stops.size());
  const size_t at = along;
  guardCount(b, k, stops[at], most, b.where("topk"));
  const ValueId order = b.argsort(x, along, largest, most);
  stops[at] = k;
  const ValueId first = b.slice(order, std::vector<Size>(stops.size(), Size(0)), stops);
  return {result(b.takeAlongAxis(x, first, along)), first};
}

}  // namespace

Sorted topk(FusionBuilder& b, ValueId x, const Size& count, int64_t axis, bool largest,
            std::optional<int64_t> most) {
  composite::refuseFloat8(b, "topk", x);
  HEDDLE_USER_CHECK(!most || *most >= 0, "{}: most={}, expected 0 or more", b.where("topk"), *most);
  if (!count.isConstant()) return topkOfRun(b, x, count, axis, largest, most);
  const int64_t k = count.constant();
  HEDDLE_USER_CHECK(!most || k <= *most, "{}: k={} is more than most={}", b.where("topk"), k,
                    *most);
  Result result(b);
  const std::vector<Size> sizes = b.tensorOf("topk", x).sizes();
  if (b.normalizeAxes("topk", {axis}, sizes.size()).empty()) {
    HEDDLE_USER_CHECK(k == 1, "{}: {} has one element, got k={}", b.where("topk"), b.typeOf(x), k);
    return {result(b.set(x)), b.argsort(x)};
  }
  const int64_t along = b.normalizeAxis("topk", axis, sizes.size());
  const Size extent = sizes[along];
  HEDDLE_USER_CHECK(k >= 0 && (!extent.isConstant() || k <= extent.constant()),
                    "{}: axis {} of {} does not have k={} elements", b.where("topk"), along,
                    b.typeOf(x), k);
  composite::guardSize(b, Size::min(extent, Size(k)), k,
                       fmt::format("{}: axis {} of {} must have k={} elements or more",
                                   b.where("topk"), along, b.typeOf(x), k));
  const ValueId order =
      b.apply("argsort", {x}, {{"axis", along}, {"descending", largest}, {"first", k}});
  // If the extent is a number, argsort has already returned exactly k indices, and no slice is
  // needed.
  const Term first{&b, extent.isConstant() ? order : sliceAxis(b, order, along, Size(0), Size(k))};
  return {result(b.takeAlongAxis(x, first.id, along)), first.id};
}

}  // namespace heddle
