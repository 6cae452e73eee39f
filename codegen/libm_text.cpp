#include "codegen/libm_text.h"

#include <fmt/format.h>

#include <set>
#include <string_view>

#include "ir/dtype.h"

namespace heddle::codegen {
namespace {

// Functions whose f32 form is in cpu_vector_math.h are called in f64 alone.
constexpr std::string_view kBothTypes[] = {"exp2", "log2", "log10", "sin",  "cos",   "tan",
                                           "asin", "acos", "atan",  "sinh", "cosh",  "asinh",
                                           "acosh", "atanh", "erfc", "pow", "atan2"};
constexpr std::string_view kOnlyF64[] = {"exp", "expm1", "log", "log1p", "tanh", "erf"};

// Functions of cpu_math.h that call others of f64, for operands of f64 alone or of both types.
struct Caller {
  std::string_view name;
  bool of_f32;
  std::initializer_list<std::string_view> calls;
};
const Caller kCallers[] = {{"softplus", false, {"exp", "log1p"}},
                           {"erfinv", true, {"exp", "log", "erf", "erfc"}}};

struct Function {
  std::string_view name;
  bool f64;
  auto operator<=>(const Function&) const = default;
};

bool calls(std::string_view text, std::string_view function) {
  return text.find(fmt::format("hd::{}(", function)) != std::string_view::npos;
}

void collect(std::string_view text, bool f64, std::set<Function>& used) {
  for (std::string_view name : kBothTypes) {
    if (calls(text, name)) used.insert({name, f64});
  }
  for (std::string_view name : kOnlyF64) {
    if (f64 && calls(text, name)) used.insert({name, true});
  }
  for (const Caller& caller : kCallers) {
    if (!calls(text, caller.name) || !(f64 || caller.of_f32)) continue;
    for (std::string_view name : caller.calls) used.insert({name, true});
  }
  if (calls(text, "powByNumber")) used.insert({"pow", f64});
}

void collect(const Body& body, std::set<Function>& used) {
  for (const Node& node : body.nodes) {
    if (node.kind != Node::Kind::Apply || !isFloat(node.compute)) continue;
    collect(node.text, node.compute == DType::F64, used);
  }
}

// {0}: the function of libm, {1}: its type, {2} to {4}: elements of 16, 32 and 64 bytes. Symbols
// are those by which GCC finds a function's forms for vectors of SSE, AVX2 and AVX-512.
constexpr std::string_view kOfOne = R"(
HD_V32({1}) _ZGVdN{3}v_{0}(HD_V32({1}));
HD_FORM({1}, hd_one_{0}, "hd_{0}", ({1} x)) {{
  return _ZGVdN{3}v_{0}(hd::everywhere(x))[0];
}}
HD_FORM(HD_V16({1}), hd_16_{0}, "_ZGVbN{2}v_hd_{0}", (HD_V16({1}) x)) {{
  return hd::partOf<HD_V16({1})>(_ZGVdN{3}v_{0}(hd::joined<HD_V32({1})>(x, x)), 0);
}}
HD_FORM(HD_V32({1}), hd_32_{0}, "_ZGVdN{3}v_hd_{0}", (HD_V32({1}) x)) {{
  return _ZGVdN{3}v_{0}(x);
}}
#ifdef __AVX512F__
HD_FORM(HD_V64({1}), hd_64_{0}, "_ZGVeN{4}v_hd_{0}", (HD_V64({1}) x)) {{
  return hd::joined<HD_V64({1})>(_ZGVdN{3}v_{0}(hd::partOf<HD_V32({1})>(x, 0)),
                                 _ZGVdN{3}v_{0}(hd::partOf<HD_V32({1})>(x, 1)));
}}
#endif
)";
constexpr std::string_view kOfTwo = R"(
HD_V32({1}) _ZGVdN{3}vv_{0}(HD_V32({1}), HD_V32({1}));
HD_FORM({1}, hd_one_{0}, "hd_{0}", ({1} x, {1} y)) {{
  return _ZGVdN{3}vv_{0}(hd::everywhere(x), hd::everywhere(y))[0];
}}
HD_FORM(HD_V16({1}), hd_16_{0}, "_ZGVbN{2}vv_hd_{0}", (HD_V16({1}) x, HD_V16({1}) y)) {{
  return hd::partOf<HD_V16({1})>(
      _ZGVdN{3}vv_{0}(hd::joined<HD_V32({1})>(x, x), hd::joined<HD_V32({1})>(y, y)), 0);
}}
HD_FORM(HD_V32({1}), hd_32_{0}, "_ZGVdN{3}vv_hd_{0}", (HD_V32({1}) x, HD_V32({1}) y)) {{
  return _ZGVdN{3}vv_{0}(x, y);
}}
#ifdef __AVX512F__
HD_FORM(HD_V64({1}), hd_64_{0}, "_ZGVeN{4}vv_hd_{0}", (HD_V64({1}) x, HD_V64({1}) y)) {{
  return hd::joined<HD_V64({1})>(
      _ZGVdN{3}vv_{0}(hd::partOf<HD_V32({1})>(x, 0), hd::partOf<HD_V32({1})>(y, 0)),
      _ZGVdN{3}vv_{0}(hd::partOf<HD_V32({1})>(x, 1), hd::partOf<HD_V32({1})>(y, 1)));
}}
#endif
)";

std::string definition(const Function& function) {
  const std::string symbol = std::string(function.name) + (function.f64 ? "" : "f");
  const bool two = function.name == "pow" || function.name == "atan2";
  const int lanes = function.f64 ? 2 : 4;
  return fmt::format("#if defined(HD_LIBMVEC) && !defined(HD_DEFINED_{0})\n#define HD_DEFINED_{0}\n"
                     "extern \"C\" {{{1}}}\n#endif\n",
                     symbol,
                     fmt::format(fmt::runtime(two ? kOfTwo : kOfOne), symbol,
                                 function.f64 ? "double" : "float", lanes, 2 * lanes, 4 * lanes));
}

}  // namespace

std::string libmText(const Computation& computation) {
  std::set<Function> used;
  collect(computation.loop, used);
  collect(computation.finish, used);
  std::string text;
  for (const Function& function : used) text += definition(function);
  return text;
}

}  // namespace heddle::codegen
