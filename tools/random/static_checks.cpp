// Checks of a random fusion that run no kernel.
#include <cstring>
#include <map>

#include "host/compile.h"
#include "host/device/null/null_device.h"
#include "host/executable.h"
#include "host/text/program_text.h"
#include "host/verify/verify.h"
#include "ir/base/check.h"
#include "ir/graph/verify.h"
#include "ir/passes/pipeline.h"
#include "ir/reference/sparse.h"
#include "ir/segment/segment.h"
#include "ir/text/fusion_text.h"
#include "tools/random/rebuild.h"
#include "tools/random/run_case.h"

namespace heddle::random {
namespace {

bool sameBits(const HostTensor& a, const HostTensor& b) {
  if (a.dtype != b.dtype || a.sizes != b.sizes) return false;
  for (int64_t i = 0; i < a.numel(); ++i) {
    const Scalar x = a.at(i);
    const Scalar y = b.at(i);
    // Only floats can be NaN, or zeros of two signs.
    const double* u = std::get_if<double>(&x);
    const double* v = std::get_if<double>(&y);
    if (u != nullptr && v != nullptr && *u != *u && *v != *v) continue;  // any NaN
    if (u != nullptr && v != nullptr ? std::memcmp(u, v, sizeof(double)) != 0 : x != y)
      return false;
  }
  return true;
}

void expectSame(const Fusion& fusion, const std::vector<HostTensor>& a,
                const std::vector<HostTensor>& b, std::string_view what) {
  for (size_t i = 0; i < a.size(); ++i) {
    HEDDLE_CHECK(sameBits(a[i], b[i]), "%{}: {} differs", fusion.value(fusion.outputs()[i]).name,
                 what);
  }
}

// Returns the inputs of a case as inputs of another fusion, whose inputs have the same names.
ReferenceInputs inputsFor(const Fusion& fusion, const FusionCase& fusion_case) {
  ReferenceInputs inputs;
  for (ValueId id : fusion.inputs()) {
    const ValueId old = fusion_case.fusion.find(fusion.value(id).name).value();
    if (fusion.value(id).is_scalar) {
      inputs.scalars[id] = fusion_case.inputs.scalars.at(old);
    } else {
      inputs.tensors[id] = fusion_case.inputs.tensors.at(old);
    }
  }
  return inputs;
}

void checkText(const FusionCase& fusion_case, const std::vector<HostTensor>& expected) {
  const Fusion& fusion = fusion_case.fusion;
  const std::string text = print(fusion);
  const Fusion parsed = parseFusion(text, "printed");
  HEDDLE_CHECK(print(parsed) == text, "printing the parsed text differs:\n{}", print(parsed));
  HEDDLE_CHECK(sameGraph(fusion, parsed), "the parsed fusion differs");
  const ReferenceInputs inputs = inputsFor(parsed, fusion_case);
  expectSame(fusion, evaluateReference(parsed, inputs, fusion_case.sizes), expected,
             "the parsed fusion");
}

void checkSparse(const FusionCase& fusion_case, const std::vector<HostTensor>& expected) {
  WantedElements wanted;
  std::vector<HostTensor> want;
  for (const HostTensor& tensor : expected) {
    Selection some;
    for (int64_t extent : tensor.sizes) {
      std::vector<int64_t> indices;
      for (int64_t i = extent % 2; i < extent; i += 1 + extent / 5) indices.push_back(i);
      some.axes.push_back(IndexSet::of(indices));
    }
    wanted.emplace_back(some);
    want.push_back(elementsOf(tensor, Selection::all(tensor.sizes), some));
  }
  const std::vector<HostTensor> got =
      evaluateReferenceAt(fusion_case.fusion, fusion_case.inputs, fusion_case.sizes, wanted);
  expectSame(fusion_case.fusion, got, want, "sparse evaluation");
}

// Checks that each expression is in at most one group. Then evaluates the groups in order, each
// group with the inputs of the fusion and the values of earlier groups. Compares the outputs with
// `expected`.
void checkSegments(const FusionCase& fusion_case, const std::vector<HostTensor>& expected) {
  const SegmentedFusion segmented = segment(runPasses(fusion_case.fusion, 1));
  const Fusion& fusion = segmented.fusion;
  IdVector<ExprId, int> groups_of(fusion.exprs().size(), 0);
  for (size_t g = 0; g < segmented.groups.size(); ++g) {
    for (ExprId e : segmented.groups[g].exprs) {
      ++groups_of[e];
      HEDDLE_CHECK(segmented.group_of[e] == static_cast<int>(g),
                   "group_of names another group for expression {}", e);
    }
  }
  for (ExprId e : groups_of.ids()) {
    const bool host = fusion.value(fusion.expr(e).outputs[0]).is_scalar;
    // The host computes scalars without a group. An expression that nothing reads may be in no
    // group either.
    const int most = host ? 0 : 1;
    HEDDLE_CHECK(groups_of[e] <= most, "expression {} is in {} groups", e, groups_of[e]);
  }
  const ReferenceInputs inputs = inputsFor(fusion, fusion_case);
  const std::map<ValueId, Scalar> scalars = evaluateScalars(fusion, inputs, fusion_case.sizes);
  std::map<ValueId, HostTensor> known = inputs.tensors;
  for (const Group& group : segmented.groups) {
    const Fusion part = extract(segmented, group);
    ReferenceInputs part_inputs;
    for (ValueId id : part.inputs()) {
      const ValueId whole = fusion.find(part.value(id).name).value();
      if (part.value(id).is_scalar) {
        part_inputs.scalars[id] = scalars.at(whole);
        continue;
      }
      HEDDLE_CHECK(known.contains(whole), "%{} is read before it is computed", part.value(id).name);
      part_inputs.tensors[id] = known.at(whole);
    }
    const std::vector<HostTensor> made = evaluateReference(part, part_inputs, fusion_case.sizes);
    for (size_t i = 0; i < made.size(); ++i) {
      known[fusion.find(part.value(part.outputs()[i]).name).value()] = made[i];
    }
  }
  std::vector<HostTensor> got;
  for (ValueId id : fusion.outputs()) {
    if (fusion.value(id).is_scalar) {
      got.emplace_back(fusion.tensor(id).dtype, std::vector<int64_t>{});
      got.back().set(0, scalars.at(id));
    } else {
      got.push_back(known.at(id));
    }
  }
  expectSame(fusion_case.fusion, got, expected, "evaluation segment by segment");
}

void checkLowering(const FusionCase& fusion_case) {
  const host::Program program = host::compile(withScalarDefaults(fusion_case).fusion, 1);
  host::verify(program);
  const std::string text = host::print(program);
  const host::Program parsed = host::parseProgram(text, "printed");
  HEDDLE_CHECK(host::print(parsed) == text, "printing the parsed program differs");
  const std::unique_ptr<host::Device> device = host::makeNullDevice();
  runOn(*device, nullptr, fusion_case);
}

}  // namespace

std::string checkWithoutDevice(const FusionCase& fusion_case) {
  const std::vector<HostTensor> expected =
      evaluateReference(fusion_case.fusion, fusion_case.inputs, fusion_case.sizes);
  try {
    verify(fusion_case.fusion);
    checkText(fusion_case, expected);
    checkSparse(fusion_case, expected);
    checkSegments(fusion_case, expected);
    checkLowering(fusion_case);
    return "";
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace heddle::random
