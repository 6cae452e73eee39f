#include "ir/text/text_pieces.h"

#include <limits>
#include <set>

#include "ir/base/check.h"
#include "ir/text/declaration_rules.h"
#include "ir/types/axis_limit.h"

namespace heddle {
namespace {

AxisOrder parseAxisOrder(TokenStream& in, size_t rank) {
  in.expectSymbol("=");
  Token at = in.peek();
  AxisOrder order = parseInts(in);
  failIf(in, at, orderViolation(order, rank));
  return order;
}

std::vector<bool> parseContiguous(TokenStream& in, size_t rank) {
  in.expectSymbol("=");
  Token at = in.peek();
  std::vector<bool> contiguous = parseBools(in);
  failIf(in, at, contiguousViolation(contiguous.size(), rank));
  return contiguous;
}

class SuffixParser {
 public:
  SuffixParser(TokenStream& in, const Meshes& meshes, size_t rank, OrderOf of)
      : in_(in), meshes_(meshes), rank_(rank), of_(of) {}

  Suffix run() {
    while (part()) {
    }
    if (suffix_.layout.observed && suffix_.layout.observed->order.empty()) {
      suffix_.layout.observed->order = rowMajor(rank_);
    }
    return std::move(suffix_);
  }

 private:
  // Parses one part of the suffix. Returns false if no further part follows.
  bool part() {
    Token at = in_.peek();
    if (at.kind != TokenKind::Word) return false;
    // No statement starts with one of the words below, so such a word belongs to the suffix.
    if (in_.atWord("inferred") || atSharding(in_)) {
      once(at, "sharding");
      suffix_.inferred = in_.acceptWord("inferred");
      if (!atSharding(in_)) in_.fail("shard, partial or stream");
      suffix_.sharding = parseSharding(in_, meshes_, rank_);
      return true;
    }
    return layoutPart(at);
  }

  bool layoutPart(const Token& at) {
    refuseOldNames();
    if (atOrder(in_)) {
      orderPart(at);
      return true;
    }
    if (!in_.acceptWord("contiguous")) return false;
    once(at, at.text);
    if (of_ != OrderOf::Input) in_.failAt(at, kContiguousOfValue);
    observed().contiguous = parseContiguous(in_, rank_);
    return true;
  }

  void orderPart(const Token& at) {
    const bool is_prefixed = !in_.atWord("order");
    if (is_prefixed) in_.next();
    in_.next();
    once(at, is_prefixed ? at.text + " order" : "order");
    if (is_prefixed && of_ == OrderOf::Input) in_.failAt(at, inputOrderViolation(at.text));
    AxisOrder order = parseAxisOrder(in_, rank_);
    if (at.text == "needed") {
      suffix_.layout.needed = std::move(order);
    } else if (at.text == "hinted") {
      suffix_.layout.hint = std::move(order);
    } else if (of_ == OrderOf::Input) {
      observed().order = std::move(order);
    } else {
      suffix_.layout.required = std::move(order);
    }
  }

  void refuseOldNames() const {
    if (in_.atWord("stride_order")) in_.failAt(in_.peek(), "stride_order= is now written order=");
    if (in_.atWord("hint_order"))
      in_.failAt(in_.peek(), "hint_order= is now written hinted order=");
  }

  Layout::Observed& observed() {
    if (!suffix_.layout.observed) {
      suffix_.layout.observed = Layout::Observed{{}, std::vector<bool>(rank_, true)};
    }
    return *suffix_.layout.observed;
  }

  void once(const Token& at, const std::string& what) {
    if (!seen_.insert(what).second) in_.failAt(at, fmt::format("{} is given twice", what));
  }

  TokenStream& in_;
  const Meshes& meshes_;
  size_t rank_;
  OrderOf of_;
  Suffix suffix_;
  std::set<std::string> seen_;
};

IterDomain parseExtent(TokenStream& in) {
  Token at = in.peek();
  if (in.atWord("broadcast") && in.atSymbol("(", 1)) {
    in.next();
    in.next();
    at = in.peek();
    IterDomain axis{parseSize(in), IterKind::Broadcast};
    failIf(in, at, extentViolation(axis));
    in.expectSymbol(")");
    return axis;
  }
  Size extent = parseSize(in);
  failIf(in, at, extentViolation({extent, IterKind::Iteration}));
  if (!in.atSymbol("?")) return {extent, IterKind::Iteration};
  if (extent.kind() != Size::Kind::Symbol)
    in.failAt(at, "only a size symbol can have a '?', as n?");
  in.next();
  return {extent, IterKind::Symbolic};
}

std::vector<IterDomain> parseDomain(TokenStream& in) {
  std::vector<IterDomain> domain;
  in.expectSymbol("[");
  if (in.acceptSymbol("]")) return domain;
  const Token first = in.peek();
  do {
    domain.push_back(parseExtent(in));
  } while (in.acceptSymbol(","));
  if (!in.acceptSymbol("]")) in.fail("',' or ']'");
  if (domain.size() > kMostAxes) {
    in.failAt(first, fmt::format("the type has {} axes, and at most {} are allowed", domain.size(),
                                 kMostAxes));
  }
  return domain;
}

// Returns whether a literal with a float type comes next: 0.5, -2.0, inf or nan.
bool atFloat(const TokenStream& in) {
  const size_t number = in.atSymbol("-") ? 1 : 0;
  return in.peek(number).kind == TokenKind::Float || in.atWord("inf", number) ||
         in.atWord("nan", number);
}

Attr toAttr(const Scalar& scalar) {
  return std::visit([](auto value) -> Attr { return value; }, scalar);
}

}  // namespace

void failIf(const TokenStream& in, const Token& at, const std::string& violation) {
  if (!violation.empty()) in.failAt(at, violation);
}

void parseVersion(TokenStream& in) {
  in.expectWord("heddle");
  Token at = in.peek();
  int64_t version = in.expectInt("the version of the text, 1");
  if (version != 1) {
    in.failAt(at, fmt::format("found version {}, expected version 1", version));
  }
}

bool atScalar(const TokenStream& in) {
  size_t number = in.atSymbol("-") ? 1 : 0;
  const Token& token = in.peek(number);
  if (token.kind == TokenKind::Int || token.kind == TokenKind::Float) return true;
  if (in.atWord("inf", number) || in.atWord("nan", number)) return true;
  return in.atWord("true") || in.atWord("false");
}

Scalar parseScalar(TokenStream& in) {
  if (!atScalar(in)) in.fail("a number, true or false");
  if (in.acceptWord("true")) return true;
  if (in.acceptWord("false")) return false;
  if (in.peek(in.atSymbol("-") ? 1 : 0).kind == TokenKind::Int) return in.expectInt("a number");
  bool negative = in.acceptSymbol("-");
  Token token = in.next();
  double value = token.text == "inf"   ? std::numeric_limits<double>::infinity()
                 : token.text == "nan" ? std::numeric_limits<double>::quiet_NaN()
                                       : token.number;
  return negative ? -value : value;
}

Scalar parseDefault(TokenStream& in, DType dtype) {
  const Token at = in.peek();
  const Scalar value = parseScalar(in);
  failIf(in, at, defaultViolation(dtype, value));
  return storedDefault(dtype, value);
}

DType parseDType(TokenStream& in) {
  std::optional<DType> dtype =
      in.at(TokenKind::Word) ? dtypeFromName(in.peek().text) : std::nullopt;
  if (!dtype) {
    std::vector<std::string_view> names;
    for (DType known : kAllDTypes) names.push_back(name(known));
    in.fail(fmt::format("a type: {}", fmt::join(names, ", ")));
  }
  in.next();
  return *dtype;
}

Attr parseAttr(TokenStream& in, AttrType type) {
  switch (type) {
    case AttrType::Bool:
      if (!in.atWord("true") && !in.atWord("false")) in.fail("true or false");
      return in.next().text == "true";
    case AttrType::Int:
      return in.expectInt("an integer");
    case AttrType::Float:
      if (!atScalar(in) || in.atWord("true") || in.atWord("false")) in.fail("a number");
      return toDouble(parseScalar(in));
    case AttrType::Name:
      if (in.at(TokenKind::String)) return in.next().text;
      return in.expectName(TokenKind::Word, "a name");
    case AttrType::DType:
      return parseDType(in);
    case AttrType::Ints:
      return parseInts(in);
    case AttrType::Sizes:
      return parseSizes(in);
    case AttrType::Size:
      return std::vector<Size>{parseSize(in)};
    case AttrType::Number:
      if (atFloat(in)) return toDouble(parseScalar(in));
      return std::vector<Size>{parseSize(in)};
    case AttrType::Literal:
      return toAttr(parseScalar(in));
  }
  HEDDLE_CHECK(false, "attribute type {}", static_cast<int>(type));
}

bool atOrder(const TokenStream& in) {
  const bool is_prefixed = in.atWord("needed") || in.atWord("hinted");
  return in.atWord("order", is_prefixed ? 1 : 0);
}

Suffix parseSuffix(TokenStream& in, const Meshes& meshes, size_t rank, OrderOf of) {
  return SuffixParser(in, meshes, rank, of).run();
}

ParsedType parseType(TokenStream& in, const Meshes& meshes, OrderOf of) {
  ParsedType type;
  type.tensor.dtype = parseDType(in);
  type.is_scalar = !in.atSymbol("[");
  if (type.is_scalar) return type;
  type.tensor.domain = parseDomain(in);
  Suffix suffix = parseSuffix(in, meshes, type.tensor.rank(), of);
  type.user_sharding = suffix.sharding && !suffix.inferred;
  type.tensor.sharding = std::move(suffix.sharding);
  type.tensor.layout = std::move(suffix.layout);
  return type;
}

}  // namespace heddle
