#include "codegen/emit/libm_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "ir/base/check.h"
#include "ir/base/dtype.h"

namespace heddle::codegen {
namespace {

struct LibmFunction {
  std::string_view name;
  int operands = 1;
  bool f32 = true;  // false: cpu_vector_math.h defines the function for f32
  // How a kernel for AVX-512 computes a vector of 64 bytes. true: with one call of libmvec's
  // function for 64 bytes. false: with two calls of the function for 32 bytes. Measured with glibc
  // 2.36 on Zen 4: two calls take 0.7 times as long as one call for the functions with `false`, and
  // 1.1 to 3 times as long for all others.
  bool wide = true;
};
constexpr LibmFunction kLibmFunctions[] = {
    {"exp", 1, false},
    {"exp2"},
    {"expm1", 1, false},
    {"log", 1, false},
    {"log2"},
    {"log10"},
    {"log1p", 1, false},
    {"sin"},
    {"cos"},
    {"tan"},
    {"asin"},
    {"acos"},
    {"atan"},
    {"sinh"},
    {"cosh"},
    {"tanh", 1, false},
    {"asinh"},
    {"acosh"},
    {"atanh"},
    {"erf", 1, false, false},
    {"erfc", 1, true, false},
    {"pow", 2},
    {"atan2", 2},
};

// A function of cpu_math.h that calls libm functions of f64. If `of_f32` is true, it calls these
// functions even if its operands are f32.
struct LibmCaller {
  std::string_view name;
  bool of_f32;
  std::vector<std::string_view> calls;
};
const LibmCaller kLibmCallers[] = {{"softplus", false, {"exp", "log1p"}},
                                   {"erfinv", true, {"exp", "log", "erf", "erfc"}}};

// A function of cpu_math.h that calls a function of libm with the type of its operands.
struct LibmWrapper {
  std::string_view name;
  std::string_view calls;
};
constexpr LibmWrapper kLibmWrappers[] = {
    {"powByNumber", "pow"}, {"nearSin", "sin"}, {"nearCos", "cos"}};

// Returns whether the text contains a call such as "hd::exp(".
bool callsHd(std::string_view text, std::string_view function) {
  constexpr std::string_view kNamespace = "hd::";
  for (size_t at = text.find(kNamespace); at != std::string_view::npos;
       at = text.find(kNamespace, at)) {
    at += kNamespace.size();
    const std::string_view rest = text.substr(at);
    if (rest.starts_with(function) && rest.substr(function.size()).starts_with('(')) return true;
  }
  return false;
}

// Returns whether the text calls a function of kLibmCallers that calls `function`. `f64` says
// whether the operands in the text are f64.
bool callsLibmByAnother(std::string_view text, std::string_view function, bool f64) {
  return std::any_of(
      std::begin(kLibmCallers), std::end(kLibmCallers), [&](const LibmCaller& caller) {
        return (f64 || caller.of_f32) && callsHd(text, caller.name) &&
               std::find(caller.calls.begin(), caller.calls.end(), function) != caller.calls.end();
      });
}

// Returns whether the node needs the version of the function for f64 (`f64` is true) or for f32.
bool needsLibm(const Node& node, const LibmFunction& function, bool f64) {
  if (node.kind != Node::Kind::Apply || !isFloat(node.compute)) return false;
  const bool wide = node.compute == DType::F64;
  if (f64 && callsLibmByAnother(node.text, function.name, wide)) return true;
  if (wide != f64 || (!f64 && !function.f32)) return false;
  return callsHd(node.text, function.name) ||
         std::any_of(std::begin(kLibmWrappers), std::end(kLibmWrappers),
                     [&](const LibmWrapper& wrapper) {
                       return wrapper.calls == function.name && callsHd(node.text, wrapper.name);
                     });
}

// Defines the versions of one libm function that loops call (codegen/runtime/cpu_math.h).
// {0}: the function of libm; {1}: its type; {2} to {4}: number of elements in 16, 32 and 64 bytes;
// {5}: one `v` per operand; {6}: 1 if the function for 64 bytes is used (LibmFunction::wide).
// GCC finds the versions for vectors of SSE, AVX2 and AVX-512 by their symbols.
constexpr std::string_view kLibmForms = R"(
#if defined(__AVX512F__) && {6}
#define HD_BASE_{0} _ZGVeN{4}{5}_{0}
HD_V64({1}) HD_BASE_{0}(HD_OPERANDS_{5}(HD_V64({1})));
#else
#define HD_BASE_{0} _ZGVdN{3}{5}_{0}
HD_V32({1}) HD_BASE_{0}(HD_OPERANDS_{5}(HD_V32({1})));
#endif
HD_FORM_{5}({1}, hd_one_{0}, "hd_{0}", HD_BASE_{0})
HD_FORM_{5}(HD_V16({1}), hd_16_{0}, "_ZGVbN{2}{5}_hd_{0}", HD_BASE_{0})
HD_FORM_{5}(HD_V32({1}), hd_32_{0}, "_ZGVdN{3}{5}_hd_{0}", HD_BASE_{0})
#ifdef __AVX512F__
HD_FORM_{5}(HD_V64({1}), hd_64_{0}, "_ZGVeN{4}{5}_hd_{0}", HD_BASE_{0})
#endif
)";

std::string libmDefinition(const LibmFunction& function, bool f64) {
  const std::string symbol = std::string(function.name) + (f64 ? "" : "f");
  const int lanes = f64 ? 2 : 4;
  const std::string forms =
      fmt::format(fmt::runtime(kLibmForms), symbol, f64 ? "double" : "float", lanes, 2 * lanes,
                  4 * lanes, function.operands == 2 ? "vv" : "v", function.wide ? 1 : 0);
  return fmt::format(
      "#if defined(HD_LIBMVEC) && !defined(HD_DEFINED_{0})\n#define HD_DEFINED_{0}\n"
      "extern \"C\" {{{1}}}\n#endif\n",
      symbol, forms);
}

}  // namespace

std::string libmText(const std::vector<const Body*>& bodies) {
  std::string text;
  for (const LibmFunction& function : kLibmFunctions) {
    for (bool f64 : {false, true}) {
      const bool needed = std::any_of(bodies.begin(), bodies.end(), [&](const Body* body) {
        return std::any_of(body->nodes.begin(), body->nodes.end(),
                           [&](const Node& node) { return needsLibm(node, function, f64); });
      });
      if (needed) text += libmDefinition(function, f64);
    }
  }
  return text;
}

}  // namespace heddle::codegen
