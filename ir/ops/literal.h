#pragma once

#include "ir/base/dtype.h"
#include "ir/ops/op.h"

namespace heddle {

// Returns the attribute `value` of a constant as a scalar. The op table allows only the three types
// of a scalar for this attribute (AttrType::Literal).
inline Scalar literalValue(const Attr& value) {
  if (const bool* b = std::get_if<bool>(&value)) return *b;
  if (const int64_t* i = std::get_if<int64_t>(&value)) return *i;
  return std::get<double>(value);
}

}  // namespace heddle
