#include "codegen/emit/named_text.h"

#include <fmt/format.h>

#include <cctype>
#include <string_view>
#include <vector>

#include "codegen/plan/body.h"
#include "ir/base/check.h"

namespace heddle::codegen {
namespace {

// Longer names are cut, so that lines stay readable.
constexpr size_t kLongestName = 32;

bool isWordCharacter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

// Returns the name with only such characters as an identifier of C++ may contain.
std::string identifierOf(std::string_view name) {
  std::string text;
  for (char c : name.substr(0, kLongestName)) {
    const bool repeats = !text.empty() && text.back() == '_';
    if (isWordCharacter(c)) {
      text += c;
    } else if (!repeats) {
      text += '_';
    }
  }
  return text;
}

// Returns the symbol that is the size of an axis of the analysis, or "" if the size is no symbol.
std::string symbolOf(const Fusion& segment, const Analysis& analysis, AxisId axis) {
  for (ValueId id : segment.values().ids()) {
    if (segment.value(id).is_scalar) continue;
    const std::vector<AxisId>& axes = analysis.axes[id];
    for (size_t i = 0; i < axes.size(); ++i) {
      if (axes[i] != axis) continue;
      const Size& size = segment.tensor(id).domain[i].extent;
      if (size.kind() == Size::Kind::Symbol) return identifierOf(size.str());
    }
  }
  return {};
}

}  // namespace

TextNames::TextNames(const Fusion& segment, const Analysis& analysis, const TileProgram& program) {
  addAccesses(segment, program.items && program.target == Target::Cuda, program.frame);
  addAxes(segment, analysis, program.frame);
  addAccumulators(segment, analysis);
  for (TileId tile : program.tiles.ids()) {
    add(fmt::format("tile{}", tile), program.tiles[tile].name);
  }
}

void TextNames::add(const std::string& word, const std::string& name) {
  if (!name.empty()) names_.try_emplace(word, word + "_" + identifierOf(name));
}

// Only in CUDA texts of programs of items does the number after `part` belong to a tensor. In all
// other texts, it belongs to an accumulator.
void TextNames::addAccesses(const Fusion& segment, bool parts_are_tensors,
                            const KernelFrame& frame) {
  const auto nameOf = [&](int operand) -> std::string {
    if (operand < 0) return "partial";
    const auto i = static_cast<size_t>(operand);
    const size_t inputs = segment.inputs().size();
    return segment.value(i < inputs ? segment.inputs()[i] : segment.outputs()[i - inputs]).name;
  };
  for (size_t t = 0; t < frame.accesses.size(); ++t) {
    const std::string name = nameOf(frame.accesses[t].operand);
    for (const char* word : {"t", "in", "fin", "out", "p", "f", "buffer", "to", "base", "row"}) {
      add(fmt::format("{}{}", word, t), name);
    }
    if (parts_are_tensors) add(fmt::format("part{}", t), name);
  }
  for (size_t p = 0; p < frame.indexed.size(); ++p) {
    add(fmt::format("p{}_data", p), nameOf(frame.indexed[p].operand));
  }
  for (size_t i = 0; i < segment.inputs().size(); ++i) {
    if (!segment.value(segment.inputs()[i]).is_scalar) continue;
    add(fmt::format("scalar{}", i), segment.value(segment.inputs()[i]).name);
  }
}

void TextNames::addAxes(const Fusion& segment, const Analysis& analysis, const KernelFrame& frame) {
  for (size_t axis = 0; axis < frame.merged.size(); ++axis) {
    std::string name;
    for (size_t i = 0; i < analysis.reduced.size() && i < 63; ++i) {
      if ((frame.merged[axis] >> i & 1) == 0) continue;
      const std::string symbol = symbolOf(segment, analysis, AxisId(i));
      if (!symbol.empty()) name += (name.empty() ? "" : "_") + symbol;
    }
    const size_t kept = frame.extents.size() - frame.reduced.size();
    const std::string word =
        axis < kept ? fmt::format("k{}", axis) : fmt::format("r{}", axis - kept);
    add(word, name);
    add("n_" + word, name);
    for (size_t t = 0; t < frame.accesses.size(); ++t) add(fmt::format("s{}_{}", t, word), name);
  }
}

void TextNames::addAccumulators(const Fusion& segment, const Analysis& analysis) {
  for (ExprId id : analysis.reductions) {
    const AccumulatorId a = accumulatorOf(analysis, id);
    const std::string& name = segment.value(segment.expr(id).outputs.at(0)).name;
    for (const char* word : {"acc", "total", "part"}) add(fmt::format("{}{}", word, a), name);
  }
}

std::string TextNames::addTo(const std::string& text) const {
  std::string named;
  named.reserve(text.size() + text.size() / 4);
  for (size_t i = 0; i < text.size();) {
    size_t end = i;
    while (end < text.size() && isWordCharacter(text[end])) ++end;
    if (end == i) {
      named += text[i++];
      continue;
    }
    const std::string word = text.substr(i, end - i);
    const auto found = names_.find(word);
    named += found == names_.end() ? word : found->second;
    i = end;
  }
  return named;
}

}  // namespace heddle::codegen
