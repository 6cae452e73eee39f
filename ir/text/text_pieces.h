#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/base/lexer.h"
#include "ir/graph/fusion.h"
#include "ir/text/fusion_text.h"

namespace heddle {

// Parsers for the parts of the grammar that fusions and host programs share (docs/text_format.md).
// Each parse function consumes its tokens from the stream. If it finds an unexpected token, it
// throws UserError with the file, line and column.

// Throws UserError with the position of `at`, followed by `violation`, unless `violation` is empty.
// Functions of ir/text/declaration_rules.h return such texts.
void failIf(const TokenStream& in, const Token& at, const std::string& violation);

// Parses `heddle 1`.
void parseVersion(TokenStream& in);

// Parses an infix expression of integers and symbols, with + - * / %, unary minus, ceildiv(a, b),
// floordiv(a, b), min(a, b), max(a, b), given(a, b) and parentheses. `/` is floor division.
// ir/base/size.h explains given(). A symbol is a word, `@m.x`, `@m.x.index`, or `%n` for the value
// of an input.
Size parseSize(TokenStream& in);
std::vector<Size> parseSizes(TokenStream& in);    // `[t, 2*h]`
SizeGuard parseGuard(TokenStream& in);            // `a == b "text"` or `a <= b "text"`
std::vector<int64_t> parseInts(TokenStream& in);  // `[0, -1]`
std::vector<bool> parseBools(TokenStream& in);    // `[true, false]`

// Parses the symbol of a default size: a word, or `%n` for the value of an input.
std::string parseDefaultSymbol(TokenStream& in);

// atScalar() returns whether the next tokens are a scalar: 1.0, -3, true, inf, -inf or nan.
// parseScalar() parses a scalar.
bool atScalar(const TokenStream& in);
Scalar parseScalar(TokenStream& in);

// Parses the default value of a scalar input of `dtype`. The value must fit the type
// (whyNotScalar() in ir/types/exact_scalar.h).
Scalar parseDefault(TokenStream& in, DType dtype);

DType parseDType(TokenStream& in);

Attr parseAttr(TokenStream& in, AttrType type);

// Parses any number of meshes: `mesh @m = [y=2, x=4]`, `mesh @m = [x=ranks]` or
// `mesh @m = [x=2] ranks=[1, 3]`. Names must be unique.
Meshes parseMeshes(TokenStream& in);
// Parses `@m` and returns the id of this mesh in `meshes`.
MeshId parseMeshRef(TokenStream& in, const Meshes& meshes);

// atSharding() returns whether the next tokens are a sharding. parseSharding() parses a sharding,
// for example `shard(@m, 0: [z, y]) partial(sum: x) stream(0: 4)`. The parts must be in this order,
// and at least one part must be present. If the part `shard` is missing, `meshes` must contain
// exactly one mesh. The sharding then uses this mesh. `rank` is the number of axes of the tensor.
bool atSharding(const TokenStream& in);
Sharding parseSharding(TokenStream& in, const Meshes& meshes, size_t rank);

// The meaning of `order=`. Input: the order in which the caller passes the input. Value: the order
// that the user requires for the value.
enum class OrderOf : uint8_t { Input, Value };

// The text that may follow a type or a statement. It may contain a sharding and `order=`, and
// either `contiguous=` (only for inputs) or `needed order=` and `hinted order=` (never for inputs).
// They may be in any sequence, each at most once.
struct Suffix {
  std::optional<Sharding> sharding;
  bool inferred = false;  // `inferred shard(...)`: set by a pass, not by the user
  Layout layout;
};
Suffix parseSuffix(TokenStream& in, const Meshes& meshes, size_t rank, OrderOf of);

// A type: `f64` is a scalar, `f32[]` is a 0-d tensor, and `f32[t, 1] shard(@m, 0: x)` is a tensor
// with a suffix. The extent `broadcast(1)` denotes a broadcast axis, and `n?` a symbolic axis
// (IterKind in ir/types/tensor.h). The extent `1` denotes an ordinary axis of one element.
struct ParsedType {
  bool is_scalar = false;
  TensorView tensor;
  bool user_sharding = false;  // true: the text has a sharding without the word `inferred`
};
ParsedType parseType(TokenStream& in, const Meshes& meshes, OrderOf of);

// Returns whether the next tokens state a memory order: `order=`, `needed order=` or `hinted
// order=`.
bool atOrder(const TokenStream& in);

// Parses `fusion name(...) {...}`, which follows the meshes in the text. If FusionBuilder throws
// UserError, the parser prepends the file and the line to the message.
Fusion parseFusionBody(TokenStream& in, const Meshes& meshes);

// --- printing ------------------------------------------------------------------------------------

// Returns `%name`, or `%"any bytes"` if the name is not a word.
std::string printValueName(std::string_view name);
}  // namespace heddle
