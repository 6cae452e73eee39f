#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/base/lexer.h"
#include "ir/graph/fusion.h"
#include "ir/text/fusion_text.h"

namespace heddle {

// Pieces of the grammar that fusions and host programs share (docs/text_format.md). Each takes its
// tokens from the stream and throws UserError with the place when they are not what it reads.

// `heddle 1`.
void parseVersion(TokenStream& in);

// Infix with + - * / %, unary minus, ceildiv(a, b), floordiv(a, b), min(a, b), max(a, b) and
// parentheses over integers and symbols. `/` is floor division. Symbols are words, `@m.x` and
// `@m.x.index`.
Size parseSize(TokenStream& in);
std::vector<Size> parseSizes(TokenStream& in);    // `[t, 2*h]`
std::vector<int64_t> parseInts(TokenStream& in);  // `[0, -1]`
std::vector<bool> parseBools(TokenStream& in);    // `[true, false]`

// 1.0, -3, true, inf, -inf, nan.
bool atScalar(const TokenStream& in);
Scalar parseScalar(TokenStream& in);

// The default of a scalar: any number for a float type, an integer that an integer type holds.
Scalar parseDefault(TokenStream& in, DType dtype);

DType parseDType(TokenStream& in);

// The value of an attribute of the given type.
Attr parseAttr(TokenStream& in, AttrType type);

// `mesh @m = [y=2, x=ranks] ranks=[1, 3]`, any number of lines; each must have a new name.
Meshes parseMeshes(TokenStream& in);
// Takes `@m`: its id in `meshes`.
MeshId parseMeshRef(TokenStream& in, const Meshes& meshes);

// `shard(@m, 0: [y, x], 1: x) partial(sum: x) stream(0: 4)`, in this order, each optional but one
// there. Without `shard` the only mesh is meant. `rank` is that of the tensor.
bool atSharding(const TokenStream& in);
Sharding parseSharding(TokenStream& in, const Meshes& meshes, size_t rank);

// What may follow a type or a statement: a sharding, `order=`, `contiguous=`, `stride_order=`,
// `hint_order=`, in any order, each once.
struct Suffix {
  std::optional<Sharding> sharding;
  bool inferred = false;  // `inferred shard(...)`: by a pass and not by the user
  Layout layout;
};
Suffix parseSuffix(TokenStream& in, const Meshes& meshes, size_t rank);

// `f64` is a scalar, `f32[]` a 0-d tensor, `f32[t, 1] shard(@m, 0: x)` a tensor with a suffix. The
// extent `broadcast(1)` is a broadcast axis; `1` an axis that merely has one element.
struct ParsedType {
  bool is_scalar = false;
  TensorView tensor;
  bool user_sharding = false;
};
ParsedType parseType(TokenStream& in, const Meshes& meshes);

// `fusion name(...) {...}`, over meshes that have been read. Errors of the builder come with the
// line in front.
Fusion parseFusionBody(TokenStream& in, const Meshes& meshes);

// --- printing ------------------------------------------------------------------------------------

// `%name`, or `%"any bytes"` when the name is no word.
std::string printValueName(std::string_view name);
}  // namespace heddle
