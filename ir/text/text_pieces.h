#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/base/lexer.h"
#include "ir/graph/fusion.h"
#include "ir/text/fusion_text.h"

namespace heddle {

// Parsers for the parts of the grammar that fusions and host programs share (docs/text_format.md).
// Each one consumes its tokens from the stream. At an unexpected token it throws UserError with the
// file, line and column.

// `heddle 1`.
void parseVersion(TokenStream& in);

// An infix expression of integers and symbols, with + - * / %, unary minus, ceildiv(a, b),
// floordiv(a, b), min(a, b), max(a, b) and parentheses. `/` is floor division. Symbols are words,
// `@m.x` and `@m.x.index`.
Size parseSize(TokenStream& in);
std::vector<Size> parseSizes(TokenStream& in);    // `[t, 2*h]`
std::vector<int64_t> parseInts(TokenStream& in);  // `[0, -1]`
std::vector<bool> parseBools(TokenStream& in);    // `[true, false]`

// 1.0, -3, true, inf, -inf, nan.
bool atScalar(const TokenStream& in);
Scalar parseScalar(TokenStream& in);

// The default value of a scalar of `dtype`: any number for a float type, an integer in range for an
// integer type, true or false for bool.
Scalar parseDefault(TokenStream& in, DType dtype);

DType parseDType(TokenStream& in);

// The value of an attribute with the given type.
Attr parseAttr(TokenStream& in, AttrType type);

// Any number of lines `mesh @m = [y=2, x=4]`, `mesh @m = [x=ranks]` or `mesh @m = [x=2] ranks=[1,
// 3]`. Names must be unique.
Meshes parseMeshes(TokenStream& in);
// `@m`. Returns its index in `meshes`.
MeshId parseMeshRef(TokenStream& in, const Meshes& meshes);

// `shard(@m, 0: [z, y]) partial(sum: x) stream(0: 4)`, in this order. At least one of the three
// must be there. Without `shard` the sharding refers to the only mesh. `rank` is the rank of the
// tensor.
bool atSharding(const TokenStream& in);
Sharding parseSharding(TokenStream& in, const Meshes& meshes, size_t rank);

// The text after a type or a statement: a sharding, `order=`, `contiguous=`, `stride_order=` and
// `hint_order=`, in any order, each at most once.
struct Suffix {
  std::optional<Sharding> sharding;
  bool inferred = false;  // `inferred shard(...)`: set by a pass, not by the user
  Layout layout;
};
Suffix parseSuffix(TokenStream& in, const Meshes& meshes, size_t rank);

// A type: `f64` is a scalar, `f32[]` a 0-d tensor, `f32[t, 1] shard(@m, 0: x)` a tensor with a
// suffix. The extent `broadcast(1)` is a broadcast axis, `1` an axis that happens to have one
// element.
struct ParsedType {
  bool is_scalar = false;
  TensorView tensor;
  bool user_sharding = false;
};
ParsedType parseType(TokenStream& in, const Meshes& meshes);

// `fusion name(...) {...}`, after its meshes. Errors of the builder start with the file and the
// line.
Fusion parseFusionBody(TokenStream& in, const Meshes& meshes);

// --- printing ------------------------------------------------------------------------------------

// Returns `%name`, or `%"any bytes"` if the name is not a word.
std::string printValueName(std::string_view name);
}  // namespace heddle
