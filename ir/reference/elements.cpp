#include "ir/reference/elements.h"

#include <algorithm>
#include <cmath>

#include "ir/base/check.h"
#include "ir/graph/compute_type.h"
#include "ir/ops/scalar_functions.h"

namespace heddle {
namespace {

template <class T, class Out, class Convert>
void convertRun(const ElementRun& run, int64_t count, Out* out, Convert convert) {
  const T* from = reinterpret_cast<const T*>(run.data);
  if (run.stride == 1) {
    for (int64_t i = 0; i < count; ++i) out[i] = convert(from[i]);
  } else {
    for (int64_t i = 0; i < count; ++i) out[i] = convert(from[i * run.stride]);
  }
}

// Converts elements of any dtype to the type Out, without rounding them to the compute type.
template <class Out>
void convertPlain(const ElementRun& run, int64_t count, Out* out) {
  auto plain = [](auto v) { return static_cast<Out>(v); };
  auto real = [](double v) -> Out {
    if constexpr (std::is_same_v<Out, int64_t>) {
      return intFrom(DType::I64, v);
    } else {
      return v;
    }
  };
  switch (run.dtype) {
    case DType::Bool:
      return convertRun<uint8_t>(run, count, out, [](uint8_t v) { return Out(v != 0); });
    case DType::U8:
      return convertRun<uint8_t>(run, count, out, plain);
    case DType::I8:
      return convertRun<int8_t>(run, count, out, plain);
    case DType::I32:
      return convertRun<int32_t>(run, count, out, plain);
    case DType::I64:
      return convertRun<int64_t>(run, count, out, plain);
    case DType::F8E4M3:
      return convertRun<uint8_t>(run, count, out,
                                 [&](uint8_t v) { return real(floatFromF8e4m3(v)); });
    case DType::F8E5M2:
      return convertRun<uint8_t>(run, count, out,
                                 [&](uint8_t v) { return real(floatFromF8e5m2(v)); });
    case DType::F16:
      return convertRun<uint16_t>(run, count, out,
                                  [&](uint16_t v) { return real(floatFromF16(v)); });
    case DType::BF16:
      return convertRun<uint16_t>(run, count, out,
                                  [&](uint16_t v) { return real(floatFromBf16(v)); });
    case DType::F32:
      return convertRun<float>(run, count, out, real);
    case DType::F64:
      return convertRun<double>(run, count, out, real);
  }
}

template <class T, class In, class Convert>
void storeRun(const In* values, int64_t count, std::byte* out, Convert convert) {
  T* to = reinterpret_cast<T*>(out);
  for (int64_t i = 0; i < count; ++i) to[i] = convert(values[i]);
}

template <class In>
void storeAs(const In* values, int64_t count, DType dtype, std::byte* out) {
  switch (dtype) {
    case DType::Bool:
      return storeRun<uint8_t>(values, count, out, [](In v) { return uint8_t(v != 0); });
    case DType::U8:
      return storeRun<uint8_t>(values, count, out,
                               [](In v) { return static_cast<uint8_t>(intFrom(DType::U8, v)); });
    case DType::I8:
      return storeRun<int8_t>(values, count, out,
                              [](In v) { return static_cast<int8_t>(intFrom(DType::I8, v)); });
    case DType::I32:
      return storeRun<int32_t>(values, count, out,
                               [](In v) { return static_cast<int32_t>(intFrom(DType::I32, v)); });
    case DType::I64:
      return storeRun<int64_t>(values, count, out, [](In v) { return intFrom(DType::I64, v); });
    case DType::F8E4M3:
      return storeRun<uint8_t>(values, count, out,
                               [](In v) { return f8e4m3FromFloat(static_cast<float>(v)); });
    case DType::F8E5M2:
      return storeRun<uint8_t>(values, count, out,
                               [](In v) { return f8e5m2FromFloat(static_cast<float>(v)); });
    case DType::F16:
      return storeRun<uint16_t>(values, count, out,
                                [](In v) { return f16FromFloat(static_cast<float>(v)); });
    case DType::BF16:
      return storeRun<uint16_t>(values, count, out,
                                [](In v) { return bf16FromFloat(static_cast<float>(v)); });
    case DType::F32:
      return storeRun<float>(values, count, out, [](In v) { return static_cast<float>(v); });
    case DType::F64:
      return storeRun<double>(values, count, out, [](In v) { return static_cast<double>(v); });
  }
}

template <class T>
void applyOp(T (*function)(const T*), int arity, const T* operands, int64_t count, T* out) {
  if (arity == 1) {
    for (int64_t i = 0; i < count; ++i) out[i] = function(operands + i);
  } else if (arity == 2) {
    for (int64_t i = 0; i < count; ++i) {
      const T pair[] = {operands[i], operands[kBlock + i]};
      out[i] = function(pair);
    }
  } else {
    for (int64_t i = 0; i < count; ++i) {
      T all[kMaxOperands];
      for (int k = 0; k < arity; ++k) all[k] = operands[k * kBlock + i];
      out[i] = function(all);
    }
  }
}

// Applies the f32 function of an op (OpDef::on_singles). The operands are doubles that f32
// represents exactly.
void applySingles(const OpDef& op, const double* operands, int64_t count, double* out) {
  for (int64_t i = 0; i < count; ++i) {
    float all[kMaxOperands];
    for (int k = 0; k < op.arity; ++k) all[k] = static_cast<float>(operands[k * kBlock + i]);
    out[i] = op.on_singles(all);
  }
}

}  // namespace

void loadFloats(const ElementRun& run, int64_t count, DType compute, double* out) {
  if (compute == DType::F32 &&
      run.dtype == DType::I64) {  // convert directly, so that the value is rounded only once
    return convertRun<int64_t>(
        run, count, out, [](int64_t v) { return static_cast<double>(static_cast<float>(v)); });
  }
  convertPlain(run, count, out);
  if (compute == DType::F32 && (run.dtype == DType::F64 || run.dtype == DType::I32)) {
    for (int64_t i = 0; i < count; ++i) out[i] = static_cast<double>(static_cast<float>(out[i]));
  }
}

void loadInts(const ElementRun& run, int64_t count, DType compute, int64_t* out) {
  if (compute == DType::Bool && isFloat(run.dtype)) {
    double values[kBlock];
    for (int64_t first = 0; first < count; first += kBlock) {
      const int64_t n = std::min(kBlock, count - first);
      ElementRun part = run;
      part.data += first * run.stride * sizeOf(run.dtype);
      convertPlain(part, n, values);
      for (int64_t i = 0; i < n; ++i) out[first + i] = values[i] != 0;
    }
    return;
  }
  convertPlain(run, count, out);
  if (compute == DType::Bool && run.dtype != DType::Bool) {
    for (int64_t i = 0; i < count; ++i) out[i] = out[i] != 0;
  }
}

void storeElements(const double* values, int64_t count, DType dtype, std::byte* out) {
  storeAs(values, count, dtype, out);
}

void storeElements(const int64_t* values, int64_t count, DType dtype, std::byte* out) {
  storeAs(values, count, dtype, out);
}

ElementCore::ElementCore(const Fusion& fusion, const Expression& expr)
    : op_(expr.op),
      on_floats_(isPowByNumber(fusion, expr) ? op_functions::powByNumber : expr.op->on_floats),
      compute_(computeTypeOf(fusion, expr)),
      result_(fusion.tensor(expr.outputs[0]).dtype) {
  HEDDLE_CHECK(op_->arity >= 1 && op_->arity <= kMaxOperands, "{} takes {} operands", op_->name,
               op_->arity);
  HEDDLE_CHECK(computesInts(compute_) ? op_->on_ints != nullptr : op_->on_floats != nullptr,
               "{} has no reference for {}", op_->name, name(compute_));
}

void ElementCore::run(std::span<const ElementRun> operands, int64_t count, std::byte* out) const {
  // The first op_->bool_operands operands are converted to bool, all others to the compute type.
  auto typeOf = [&](size_t i) {
    return static_cast<int>(i) < op_->bool_operands ? DType::Bool : compute_;
  };
  if (computesInts(compute_)) {
    int64_t in[kMaxOperands * kBlock];
    int64_t results[kBlock];
    for (size_t i = 0; i < operands.size(); ++i) {
      loadInts(operands[i], count, typeOf(i), in + static_cast<int64_t>(i) * kBlock);
    }
    const bool bools = compute_ == DType::Bool && op_->on_bools != nullptr;
    applyOp(bools ? op_->on_bools : op_->on_ints, op_->arity, in, count, results);
    return storeElements(results, count, result_, out);
  }
  double in[kMaxOperands * kBlock];
  double results[kBlock];
  for (size_t i = 0; i < operands.size(); ++i) {
    loadFloats(operands[i], count, typeOf(i), in + static_cast<int64_t>(i) * kBlock);
  }
  if (compute_ == DType::F32 && op_->on_singles != nullptr) {
    applySingles(*op_, in, count, results);
  } else {
    applyOp(on_floats_, op_->arity, in, count, results);
  }
  storeElements(results, count, result_, out);
}

double activated(double sum, DType, const Expression& expr) {
  if (expr.find("activation") == nullptr) return sum;
  if (expr.attr<std::string>("activation") == "relu") return sum < 0 ? 0 : sum;  // NaN remains
  // gelu_tanh: Hendrycks and Gimpel 2016.
  return 0.5 * sum * (1 + std::tanh(std::sqrt(2 / M_PI) * (sum + 0.044715 * sum * sum * sum)));
}

int64_t activated(int64_t sum, DType dtype, const Expression& expr) {
  if (expr.find("activation") == nullptr) return sum;
  return std::max<int64_t>(toInt(roundTo(dtype, Scalar(sum))), 0);
}

}  // namespace heddle
