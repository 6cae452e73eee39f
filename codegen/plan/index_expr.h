#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace heddle::codegen {

// An index expression of a generated kernel: integers, loop variables and kernel parameters,
// combined by add, mul, floor-div and mod. All values are non-negative. Every expression has a
// range [lo, hi] for the sizes of one KernelPlan (codegen/kernel.h). The range of a parameter
// contains only its value. The printed text does not depend on sizes, so that runs with different
// sizes can share a kernel. The functions below therefore apply only simplifications that are
// correct for every size (x+0, x*0, x*1, x/1, x%1). Objects are immutable.
class IndexExpr {
 public:
  enum class Kind : uint8_t { Constant, Variable, Parameter, Add, Mul, Div, Mod };

  IndexExpr() : IndexExpr(constant(0)) {}
  static IndexExpr constant(int64_t value);
  static IndexExpr variable(std::string name, int64_t lo, int64_t hi);
  static IndexExpr parameter(std::string name, int64_t value);  // its range is [value, value]

  static IndexExpr add(const IndexExpr& a, const IndexExpr& b);
  static IndexExpr mul(const IndexExpr& a, const IndexExpr& b);
  static IndexExpr div(const IndexExpr& a, const IndexExpr& b);
  static IndexExpr mod(const IndexExpr& a, const IndexExpr& b);

  Kind kind() const;
  int64_t value() const;            // requires a Constant
  const std::string& name() const;  // requires a Variable or Parameter
  const IndexExpr& lhs() const;
  const IndexExpr& rhs() const;
  int64_t lo() const;
  int64_t hi() const;  // lo() and hi() saturate at the largest int64

  std::string str() const;  // text that is valid in C++ and CUDA, such as `(k / n1) * s0 + r`

 private:
  struct Node;
  explicit IndexExpr(std::shared_ptr<const Node> node) : node_(std::move(node)) {}
  std::shared_ptr<const Node> node_;
};

inline IndexExpr operator+(const IndexExpr& a, const IndexExpr& b) { return IndexExpr::add(a, b); }
inline IndexExpr operator*(const IndexExpr& a, const IndexExpr& b) { return IndexExpr::mul(a, b); }

}  // namespace heddle::codegen
