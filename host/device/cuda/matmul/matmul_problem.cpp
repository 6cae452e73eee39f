#include "host/device/cuda/matmul/matmul_problem.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include "ir/base/check.h"

namespace heddle::host {
namespace {

std::string sideText(const MatmulProblem::Side& side) {
  return fmt::format("{} {} {} {} {}", name(side.dtype), side.transposed ? 1 : 0, side.ld,
                     side.batch_stride, side.alignment);
}

void readSide(std::istream& in, MatmulProblem::Side& side) {
  std::string dtype;
  in >> dtype >> side.transposed >> side.ld >> side.batch_stride >> side.alignment;
  const std::optional<DType> known = dtypeFromName(dtype);
  HEDDLE_CHECK(known.has_value(), "unknown dtype '{}' in the key of a matrix product", dtype);
  side.dtype = *known;
}

}  // namespace

std::string MatmulProblem::text() const {
  return fmt::format("{} {} {} {} {} {} {} {} {} {} {}", m, n, k, batches, sideText(a), sideText(b),
                     sideText(c), tf32 ? 1 : 0, static_cast<int>(activation), bias_alignment,
                     spare_sms);
}

std::string MatmulProblem::sizes() const {
  return fmt::format("{}[{}, {}] x {}[{}, {}] -> {} in {} batches", name(a.dtype), m, k,
                     name(b.dtype), k, n, name(c.dtype), batches);
}

MatmulProblem parseProblem(const std::string& text) {
  MatmulProblem problem;
  std::istringstream in(text);
  in >> problem.m >> problem.n >> problem.k >> problem.batches;
  readSide(in, problem.a);
  readSide(in, problem.b);
  readSide(in, problem.c);
  int activation = 0;
  in >> problem.tf32 >> activation >> problem.bias_alignment >> problem.spare_sms;
  HEDDLE_CHECK(
      !in.fail() && activation >= 0 && activation <= static_cast<int>(Activation::GeluTanh),
      "'{}' is not the key of a matrix product", text);
  problem.activation = static_cast<Activation>(activation);
  return problem;
}

MatmulSpec specOf(const MatmulProblem& problem) {
  const auto matrix = [&](const MatmulProblem::Side& side, int64_t rows, int64_t columns) {
    TensorDesc desc = denseDesc(side.dtype, {problem.batches, rows, columns});
    desc.strides = {side.batch_stride, side.ld, 1};
    if (side.transposed) std::swap(desc.strides[1], desc.strides[2]);
    return desc;
  };
  MatmulSpec spec;
  spec.a = matrix(problem.a, problem.m, problem.k);
  spec.b = matrix(problem.b, problem.k, problem.n);
  spec.c = matrix(problem.c, problem.m, problem.n);
  if (problem.bias_alignment != 0) spec.bias = denseDesc(problem.c.dtype, {problem.n});
  spec.activation = problem.activation;
  spec.tf32 = problem.tf32;
  return spec;
}

MatmulProblem alignedTo(MatmulProblem problem, int64_t bytes) {
  for (MatmulProblem::Side* side : {&problem.a, &problem.b, &problem.c}) {
    side->alignment = std::min(side->alignment, std::max(bytes, sizeOf(side->dtype)));
  }
  if (problem.bias_alignment != 0) {
    problem.bias_alignment =
        std::min(problem.bias_alignment, std::max(bytes, sizeOf(problem.c.dtype)));
  }
  return problem;
}

}  // namespace heddle::host
