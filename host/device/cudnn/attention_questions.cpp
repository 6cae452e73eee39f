#include "host/device/cudnn/attention_questions.h"

#include <fmt/ranges.h>

#include <cmath>
#include <sstream>
#include <vector>

#include "ir/base/check.h"

namespace heddle::host::cudnn {
namespace {

// Returns a text such as "bf16 2 64 128 128 1": dtype, rank, sizes and strides.
std::string textOf(const TensorDesc& desc) {
  return fmt::format("{} {} {} {}", name(desc.dtype), desc.rank(), fmt::join(desc.sizes, " "),
                     fmt::join(desc.strides, " "));
}

std::string questionFor(std::string_view direction, bool causal,
                        const std::vector<TensorDesc>& tensors) {
  std::string text = fmt::format("{} {}", direction, causal ? "causal" : "full");
  for (const TensorDesc& each : tensors) text += " " + textOf(each);
  return text;
}

TensorDesc readDesc(std::istream& in) {
  std::string dtype;
  size_t rank = 0;
  in >> dtype >> rank;
  const std::optional<DType> known = dtypeFromName(dtype);
  HEDDLE_CHECK(known.has_value() && rank >= 2 && rank <= 4,
               "dtype '{}' and rank {} in a question about an attention", dtype, rank);
  std::vector<int64_t> sizes(rank);
  for (int64_t& each : sizes) in >> each;
  TensorDesc desc = denseDesc(*known, sizes);
  for (int64_t& each : desc.strides) in >> each;
  return desc;
}

}  // namespace

std::vector<TensorDesc> operandsOf(const AttentionSpec& spec) {
  return {spec.q, spec.k, spec.v, spec.o};
}

std::vector<TensorDesc> operandsOf(const AttentionBackwardSpec& spec) {
  return {spec.grad, spec.q, spec.k, spec.v, spec.o.value(), spec.dq, spec.dk, spec.dv};
}

std::string questionOf(const AttentionSpec& spec) {
  return questionFor("attention", spec.causal, operandsOf(spec));
}

std::string questionOf(const AttentionBackwardSpec& spec) {
  return questionFor("attention_backward", spec.causal, operandsOf(spec));
}

AttentionCallSpec parseQuestion(const std::string& question) {
  std::istringstream in(question);
  std::string direction, mask;
  in >> direction >> mask;
  const bool backward = direction == "attention_backward";
  std::vector<TensorDesc> tensors(backward ? 8 : 4);
  for (TensorDesc& each : tensors) each = readDesc(in);
  HEDDLE_CHECK(!in.fail(), "'{}' is not a question about an attention", question);
  const bool causal = mask == "causal";
  const auto width = static_cast<double>(tensors[backward ? 1 : 0].sizes.back());
  const auto scale = static_cast<float>(1 / std::sqrt(width));
  const auto& t = tensors;
  if (!backward) return AttentionSpec{t[0], t[1], t[2], t[3], {}, causal, scale};
  return AttentionBackwardSpec{t[0], t[1], t[2], t[3], t[4], {}, t[5], t[6], t[7], causal, scale};
}

}  // namespace heddle::host::cudnn
