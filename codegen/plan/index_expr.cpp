#include "codegen/plan/index_expr.h"

#include <limits>
#include <utility>

#include "ir/base/check.h"

namespace heddle::codegen {

struct IndexExpr::Node {
  Kind kind = Kind::Constant;
  int64_t lo = 0;
  int64_t hi = 0;
  std::string name;
  IndexExpr lhs{std::shared_ptr<const Node>()};
  IndexExpr rhs{std::shared_ptr<const Node>()};
};

namespace {

constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();

int64_t addSaturating(int64_t a, int64_t b) {
  int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? kLargest : sum;
}

int64_t mulSaturating(int64_t a, int64_t b) {
  int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? kLargest : product;
}

bool isConstant(const IndexExpr& e, int64_t value) {
  return e.kind() == IndexExpr::Kind::Constant && e.value() == value;
}

}  // namespace

IndexExpr IndexExpr::constant(int64_t value) {
  auto node = std::make_shared<Node>();
  node->lo = node->hi = value;
  return IndexExpr(std::move(node));
}

IndexExpr IndexExpr::variable(std::string name, int64_t lo, int64_t hi) {
  auto node = std::make_shared<Node>();
  node->kind = Kind::Variable;
  node->name = std::move(name);
  node->lo = lo;
  node->hi = hi;
  return IndexExpr(std::move(node));
}

IndexExpr IndexExpr::parameter(std::string name, int64_t value) {
  auto node = std::make_shared<Node>();
  node->kind = Kind::Parameter;
  node->name = std::move(name);
  node->lo = node->hi = value;
  return IndexExpr(std::move(node));
}

IndexExpr IndexExpr::add(const IndexExpr& a, const IndexExpr& b) {
  if (isConstant(a, 0)) return b;
  if (isConstant(b, 0)) return a;
  auto node = std::make_shared<Node>();
  node->kind = Kind::Add;
  node->lo = addSaturating(a.lo(), b.lo());
  node->hi = addSaturating(a.hi(), b.hi());
  node->lhs = a;
  node->rhs = b;
  return IndexExpr(std::move(node));
}

IndexExpr IndexExpr::mul(const IndexExpr& a, const IndexExpr& b) {
  if (isConstant(a, 0) || isConstant(b, 0)) return constant(0);
  if (isConstant(a, 1)) return b;
  if (isConstant(b, 1)) return a;
  auto node = std::make_shared<Node>();
  node->kind = Kind::Mul;
  node->lo = mulSaturating(a.lo(), b.lo());
  node->hi = mulSaturating(a.hi(), b.hi());
  node->lhs = a;
  node->rhs = b;
  return IndexExpr(std::move(node));
}

IndexExpr IndexExpr::div(const IndexExpr& a, const IndexExpr& b) {
  if (isConstant(b, 1)) return a;
  auto node = std::make_shared<Node>();
  node->kind = Kind::Div;
  // A divisor of zero belongs to an empty axis, whose loop never runs.
  node->lo = a.lo() / std::max<int64_t>(b.hi(), 1);
  node->hi = a.hi() / std::max<int64_t>(b.lo(), 1);
  node->lhs = a;
  node->rhs = b;
  return IndexExpr(std::move(node));
}

IndexExpr IndexExpr::mod(const IndexExpr& a, const IndexExpr& b) {
  if (isConstant(b, 1)) return constant(0);
  auto node = std::make_shared<Node>();
  node->kind = Kind::Mod;
  node->lo = 0;
  node->hi = std::min(a.hi(), std::max<int64_t>(b.hi() - 1, 0));
  node->lhs = a;
  node->rhs = b;
  return IndexExpr(std::move(node));
}

IndexExpr::Kind IndexExpr::kind() const { return node_->kind; }
int64_t IndexExpr::lo() const { return node_->lo; }
int64_t IndexExpr::hi() const { return node_->hi; }
const IndexExpr& IndexExpr::lhs() const { return node_->lhs; }
const IndexExpr& IndexExpr::rhs() const { return node_->rhs; }

int64_t IndexExpr::value() const {
  HEDDLE_CHECK(kind() == Kind::Constant,
               "value() is called for the index '{}', which is no constant", str());
  return node_->lo;
}

const std::string& IndexExpr::name() const {
  HEDDLE_CHECK(kind() == Kind::Variable || kind() == Kind::Parameter,
               "name() is called for the index '{}', which has no name", str());
  return node_->name;
}

std::string IndexExpr::str() const {
  auto operand = [](const IndexExpr& e) {
    bool leaf = e.kind() <= Kind::Parameter;
    return leaf ? e.str() : "(" + e.str() + ")";
  };
  switch (kind()) {
    case Kind::Constant:
      return std::to_string(node_->lo);
    case Kind::Variable:
    case Kind::Parameter:
      return node_->name;
    case Kind::Add:
      return lhs().str() + " + " + rhs().str();
    case Kind::Mul:
      return operand(lhs()) + " * " + operand(rhs());
    case Kind::Div:
      return operand(lhs()) + " / " + operand(rhs());
    case Kind::Mod:
      return operand(lhs()) + " % " + operand(rhs());
  }
  return {};
}

}  // namespace heddle::codegen
