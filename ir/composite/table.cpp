#include "ir/composite/table.h"

#include "ir/base/check.h"
#include "ir/composite/rows.h"

namespace heddle {

const std::vector<CompositeDef>& compositeTable() {
  static const std::vector<CompositeDef> table = [] {
    std::vector<CompositeDef> rows;
    for (std::span<const CompositeDef> family :
         {composite_rows::reductions(), composite_rows::shapes(), composite_rows::places(),
          composite_rows::randoms(), composite_rows::activations(), composite_rows::norms(),
          composite_rows::losses(), composite_rows::attentions()}) {
      rows.insert(rows.end(), family.begin(), family.end());
    }
    return rows;
  }();
  return table;
}

const CompositeDef* findComposite(std::string_view name) {
  for (const CompositeDef& composite : compositeTable()) {
    if (composite.name == name) return &composite;
  }
  return nullptr;
}

Operands buildComposite(FusionBuilder& builder, const CompositeDef& composite,
                        const Operands& operands, const Attrs& attrs) {
  const size_t least = composite.operands;
  const bool any = composite.optional == CompositeDef::kAny;
  const size_t most = any ? operands.size() : least + composite.optional;
  HEDDLE_USER_CHECK(operands.size() >= least && operands.size() <= most,
                    "{} takes {} operand(s), got {}", composite.name,
                    any            ? fmt::format("{} or more", least)
                    : most > least ? fmt::format("{} to {}", least, most)
                                   : fmt::format("{}", least),
                    operands.size());
  for (const AttrSpec& spec : composite.attrs) {
    bool given = !spec.required;
    for (const auto& attr : attrs) given = given || attr.first == spec.name;
    HEDDLE_USER_CHECK(given, "{}: attribute '{}' is missing", composite.name, spec.name);
  }
  return composite.build(builder, operands, attrs);
}

}  // namespace heddle
