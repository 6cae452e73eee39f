#pragma once

#include <string>
#include <vector>

#include "ir/analysis/reshard_step.h"
#include "ir/base/error.h"
#include "ir/passes/pipeline.h"
#include "ir/text/fusion_text.h"

// What the passes make of a text, expression by expression.
namespace heddle {

inline Fusion lowered(const std::string& text, int64_t job_size) {
  return runPasses(parseFusion("heddle 1\n" + text), job_size);
}

// Every expression: "y = matmul(g, w)", a set with what it does: "y = allgather(x, 0 y x)".
inline std::vector<std::string> listing(const Fusion& fusion) {
  std::vector<std::string> lines;
  for (const Expression& expr : fusion.exprs()) {
    std::string op(expr.op->name);
    std::string detail;
    if (expr.op->kind == OpKind::Set) {
      ReshardStep step = reshardStepOf(fusion, expr);
      op = name(step.kind);
      if (step.joined >= 0) detail += ", " + std::to_string(step.joined) + " to";
      if (step.axis >= 0) detail += (step.joined >= 0 ? " " : ", ") + std::to_string(step.axis);
      for (MeshAxis axis : step.team) detail += " " + std::string(name(axis));
      if (step.root >= 0) detail += " in @" + step.mesh.name + " root " + std::to_string(step.root);
    }
    std::string operands;
    for (ValueId id : expr.inputs) {
      operands += (operands.empty() ? "" : ", ") + fusion.value(id).name;
    }
    lines.push_back(fusion.value(expr.outputs[0]).name + " = " + op + "(" + operands + detail +
                    ")");
  }
  return lines;
}

using Lines = std::vector<std::string>;

inline const Layout& layoutOf(const Fusion& fusion, const std::string& name) {
  return fusion.tensor(fusion.find(name).value()).layout;
}

}  // namespace heddle
