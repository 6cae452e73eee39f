#include "ir/reference/indexed.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "ir/base/check.h"

namespace heddle {
namespace {

// Calls visit(linear, at) for every element of a row-major shape. `linear` is the linear index of
// the element, and `at` contains the coordinates of the element.
template <class Visit>
void forElements(const std::vector<int64_t>& sizes, Visit visit) {
  int64_t count = 1;
  for (int64_t size : sizes) count *= size;
  std::vector<int64_t> at(sizes.size(), 0);
  for (int64_t linear = 0; linear < count; ++linear) {
    visit(linear, at);
    for (size_t axis = sizes.size(); axis-- > 0;) {
      if (++at[axis] < sizes[axis]) break;
      at[axis] = 0;
    }
  }
}

// Returns the row-major index of the coordinates `at`, or -1 if a coordinate is out of range.
int64_t linearOf(const std::vector<int64_t>& sizes, const std::vector<int64_t>& at) {
  int64_t linear = 0;
  for (size_t axis = 0; axis < sizes.size(); ++axis) {
    if (at[axis] < 0 || at[axis] >= sizes[axis]) return -1;
    linear = linear * sizes[axis] + at[axis];
  }
  return linear;
}

Scalar nothing(DType dtype) {
  if (isFloat(dtype)) return std::numeric_limits<double>::quiet_NaN();
  return int64_t{0};
}

HostTensor full(const HostTensor& scalar, HostTensor out) {
  const Scalar value = scalar.at(0);
  for (int64_t i = 0; i < out.numel(); ++i) out.set(i, value);
  return out;
}

HostTensor iota(const Expression& expr, HostTensor out) {
  const size_t axis = expr.axis();
  forElements(out.sizes,
              [&](int64_t linear, const std::vector<int64_t>& at) { out.set(linear, at[axis]); });
  return out;
}

// Computes out[c] = value[place(c)] for all coordinates c, or `otherwise` if place(c) is out of
// range.
template <class Place>
HostTensor readAt(const HostTensor& value, const Scalar& otherwise, HostTensor out, Place place) {
  forElements(out.sizes, [&](int64_t linear, const std::vector<int64_t>& at) {
    const int64_t from = linearOf(value.sizes, place(at));
    out.set(linear, from < 0 ? otherwise : value.at(from));
  });
  return out;
}

HostTensor flip(const Expression& expr, const HostTensor& value, HostTensor out) {
  const auto& axes = expr.attr<std::vector<int64_t>>("axes");
  return readAt(value, nothing(value.dtype), std::move(out), [&](std::vector<int64_t> at) {
    for (int64_t axis : axes) {
      const size_t i = axis;
      at[i] = value.sizes[i] - 1 - at[i];
    }
    return at;
  });
}

HostTensor pad(const ReferenceContext& context, const Expression& expr, const HostTensor& value,
               const HostTensor& fill, HostTensor out) {
  std::vector<int64_t> lows;
  for (const Size& low : expr.attr<std::vector<Size>>("lows"))
    lows.push_back(context.evaluate(low));
  const Scalar otherwise = roundTo(value.dtype, fill.at(0));
  return readAt(value, otherwise, std::move(out), [&](std::vector<int64_t> at) {
    for (size_t i = 0; i < at.size(); ++i) at[i] -= lows[i];
    return at;
  });
}

HostTensor take(const Expression& expr, const HostTensor& value, const HostTensor& index,
                HostTensor out) {
  const int64_t axis = expr.attr<int64_t>("axis");
  const auto axes = static_cast<int64_t>(index.sizes.size());
  return readAt(value, nothing(value.dtype), std::move(out), [&](const std::vector<int64_t>& at) {
    const std::vector<int64_t> where(at.begin() + axis, at.begin() + axis + axes);
    std::vector<int64_t> from(at.begin(), at.begin() + axis);
    from.push_back(toInt(index.at(linearOf(index.sizes, where))));
    from.insert(from.end(), at.begin() + axis + axes, at.end());
    return from;
  });
}

HostTensor takeAlongAxis(const Expression& expr, const HostTensor& value, const HostTensor& index,
                         HostTensor out) {
  const size_t axis = expr.axis();
  return readAt(value, nothing(value.dtype), std::move(out), [&](std::vector<int64_t> at) {
    at[axis] = toInt(index.at(linearOf(index.sizes, at)));
    return at;
  });
}

// Calls visit(first, step) for every line of elements along `axis`. `first` is the linear index of
// the first element of the line. `step` is the distance between neighbouring elements of the line.
template <class Visit>
void forLines(const std::vector<int64_t>& sizes, size_t axis, Visit visit) {
  int64_t step = 1;
  for (size_t i = axis + 1; i < sizes.size(); ++i) step *= sizes[i];
  std::vector<int64_t> starts = sizes;
  starts[axis] = std::min<int64_t>(sizes[axis], 1);
  forElements(starts,
              [&](int64_t, const std::vector<int64_t>& at) { visit(linearOf(sizes, at), step); });
}

HostTensor cumsum(size_t axis, const HostTensor& value, HostTensor out) {
  forLines(value.sizes, axis, [&](int64_t first, int64_t step) {
    double floats = 0;
    uint64_t ints = 0;
    for (int64_t i = first, n = 0; n < value.sizes[axis]; ++n, i += step) {
      if (isFloat(value.dtype)) {
        floats += toDouble(value.at(i));
        out.set(i, floats);
      } else {
        ints += static_cast<uint64_t>(toInt(value.at(i)));
        out.set(i, static_cast<int64_t>(ints));
      }
    }
  });
  return out;
}

// Returns whether `a` sorts before `b`. Integers are not compared as doubles, because double cannot
// represent all large integers.
bool below(const Scalar& a, const Scalar& b) {
  if (!std::holds_alternative<double>(a)) return toInt(a) < toInt(b);
  const double x = std::get<double>(a);
  const double y = std::get<double>(b);
  return std::isnan(y) ? !std::isnan(x) : x < y;
}

HostTensor argsort(const Expression& expr, size_t axis, const HostTensor& value, HostTensor out) {
  const bool descending = expr.find("descending") != nullptr && expr.attr<bool>("descending");
  std::vector<int64_t> order(value.sizes[axis]);
  const int64_t wanted = out.sizes[axis];
  forLines(value.sizes, axis, [&](int64_t first, int64_t step) {
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      const Scalar x = value.at(first + a * step);
      const Scalar y = value.at(first + b * step);
      return descending ? below(y, x) : below(x, y);
    });
    const int64_t line = value.sizes[axis] * step;
    const int64_t to = first / line * wanted * step + first % line;
    for (int64_t i = 0; i < wanted; ++i) out.set(to + i * step, order[i]);
  });
  return out;
}

HostTensor scatter(const Expression& expr, const std::vector<HostTensor>& values, HostTensor out) {
  const size_t axis = expr.axis();
  const HostTensor& index = values[1];
  const HostTensor& source = values[2];
  const bool adds = expr.op->name == "scatter_add";
  // Accumulate in double or uint64, so that each sum is rounded to its dtype only once, at the end.
  std::vector<double> floats;
  std::vector<uint64_t> ints;
  for (int64_t i = 0; i < values[0].numel(); ++i) {
    floats.push_back(toDouble(values[0].at(i)));
    ints.push_back(static_cast<uint64_t>(toInt(values[0].at(i))));
  }
  forElements(source.sizes, [&](int64_t linear, std::vector<int64_t> at) {
    std::vector<int64_t> where = at;
    for (size_t i = 0; i < where.size(); ++i) where[i] = index.sizes[i] == 1 ? 0 : where[i];
    at[axis] = toInt(index.at(linearOf(index.sizes, where)));
    const int64_t to = linearOf(out.sizes, at);
    if (to < 0) return;
    const size_t i = to;
    const Scalar value = source.at(linear);
    floats[i] = adds ? floats[i] + toDouble(value) : toDouble(value);
    ints[i] = (adds ? ints[i] : 0) + static_cast<uint64_t>(toInt(value));
  });
  for (int64_t i = 0; i < out.numel(); ++i) {
    const size_t at = i;
    out.set(i, isFloat(out.dtype) ? Scalar(floats[at]) : Scalar(static_cast<int64_t>(ints[at])));
  }
  return out;
}

}  // namespace

HostTensor evaluateIndexed(const ReferenceContext& context, const Expression& expr,
                           const std::vector<HostTensor>& values) {
  const ValueId id = expr.outputs[0];
  HostTensor out(context.fusion.tensor(id).dtype, context.sizesOf(id));
  switch (expr.op->kind) {
    case OpKind::Full:
      return full(values[0], std::move(out));
    case OpKind::Iota:
      return iota(expr, std::move(out));
    case OpKind::Index:
      if (expr.op->name == "flip") return flip(expr, values[0], std::move(out));
      if (expr.op->name == "pad") return pad(context, expr, values[0], values[1], std::move(out));
      if (expr.op->name == "take") return take(expr, values[0], values[1], std::move(out));
      return takeAlongAxis(expr, values[0], values[1], std::move(out));
    case OpKind::Scan: {
      const size_t axis = expr.axis();
      if (expr.op->name == "cumsum") return cumsum(axis, values[0], std::move(out));
      return argsort(expr, axis, values[0], std::move(out));
    }
    case OpKind::Scatter:
      return scatter(expr, values, std::move(out));
    default:
      break;
  }
  HEDDLE_CHECK(false, "{} is not an indexed op", expr.op->name);
}

}  // namespace heddle
