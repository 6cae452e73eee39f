// Tests which engine configuration of cuDNN an attention uses: a measured one, or a given one.
#include <cstdlib>

#include "host/compile_stages.h"
#include "host/device/kernel_choices.h"
#include "host/text/program_text.h"
#include "ir/text/fusion_text.h"
#include "tests/host/device/attention_cases.h"

namespace heddle::host::attention_choice_gpu_test {
namespace {

constexpr AttentionShape kShape{2, 3, 128, 128, 64, 64};

class AttentionChoiceGpu : public AttentionGpu {};

AttentionSpec specOf(const AttentionShape& x) {
  const TensorDesc q = denseDesc(DType::BF16, {x.batch, x.heads, x.queries, x.width});
  const TensorDesc v = denseDesc(DType::BF16, {x.batch, x.heads, x.keys, x.v_width});
  return {q, q, v, q, {}, true, 0.125F};
}

TEST_F(AttentionChoiceGpu, EngineIsChosenOnce) {
  std::string why;
  const CudnnModule& module = *findCudnnModule(why);
  const std::set<std::string> questions = module.questions(specOf(kShape));
  ASSERT_EQ(questions.size(), 1u);
  EXPECT_TRUE(isAttentionQuestion(*questions.begin()));
  const std::string choice = module.choose(*questions.begin(), 0, stream_, "");
  EXPECT_TRUE(choice.starts_with("engine=")) << choice;
  EXPECT_EQ(module.choose(*questions.begin(), 0, stream_, ""), choice);
  EXPECT_EQ(module.choose(*questions.begin(), 0, stream_, choice), choice);
  EXPECT_EQ(module.choose(*questions.begin(), 0, stream_, "engine=999 knobs="), choice);
  setenv("HEDDLE_LIBRARY_TIMING", "0", 1);
  EXPECT_TRUE(module.questions(specOf(kShape)).empty());
  unsetenv("HEDDLE_LIBRARY_TIMING");
}

TEST_F(AttentionChoiceGpu, BackwardWithoutTheForwardAsksAboutBothGraphs) {
  std::string why;
  const CudnnModule& module = *findCudnnModule(why);
  const AttentionSpec f = specOf(kShape);
  const AttentionBackwardSpec spec{f.o, f.q, f.k, f.v, {}, {}, f.q, f.k, f.v, true, 0.125F};
  const std::set<std::string> questions = module.backwardQuestions(spec);
  ASSERT_EQ(questions.size(), 2u);
  EXPECT_EQ(*questions.begin(), *module.questions(f).begin());
  AlgorithmChoices choices;
  for (const std::string& each : questions) {
    choices[each] = module.choose(each, 0, stream_, "");
    EXPECT_EQ(module.choose(each, 0, stream_, ""), choices[each]);
  }
  EXPECT_NE(module.prepareBackward(spec, 0, choices), nullptr);
}

// cuDNN has the engines 1 and 2 for attention. The knobs are those of one version of cuDNN. Another
// version may refuse them; heddle then measures.
TEST_F(AttentionChoiceGpu, GivenEnginesComputeTheAttention) {
  const Fusion fusion = parseFusion(
      "heddle 1\nfusion f(%q: bf16[b, h, t, e], %k: bf16[b, h, t, e], %v: bf16[b, h, t, e]) {\n"
      "  %y = scaled_dot_product_attention(%q, %k, %v, causal=true)\n  return %y\n}\n");
  const Program program =
      host::compile(fusion, 1, {}, attentionOptions(DeviceKind::Cuda, attentionSizes(kShape)));
  const std::vector<int64_t> sizes = {kShape.batch, kShape.heads, kShape.queries, kShape.width};
  const HostTensor q = attentionSample(DType::BF16, sizes, "q", false);
  const HostTensor k = attentionSample(DType::BF16, sizes, "k", false);
  const HostTensor v = attentionSample(DType::BF16, sizes, "v", false);
  const std::vector<Argument> inputs = {place(q, AttentionLies::Plain),
                                        place(k, AttentionLies::Plain),
                                        place(v, AttentionLies::Plain)};
  std::string why;
  const std::string question = *findCudnnModule(why)->questions(specOf(kShape)).begin();
  for (const char* plan :
       {"engine=1 knobs=24:3", "engine=2 knobs=24:7", "engine=999 knobs=", "no plan"}) {
    ExecutableOptions options;
    options.kernel_choices = {{algorithmKey(question, *device_), std::string(kAlgorithm) + plan}};
    options.choices_only = true;
    Executable executable(program, {device_.get()}, options);
    const Outputs outputs = executable.run(inputs);
    outputs.wait();
    expectAttention(kShape, true, q, k, v, fetch(std::get<Tensor>(outputs[0])), plan);
    const auto used = executable.algorithmChoices();
    ASSERT_EQ(used.size(), 1u);
    EXPECT_TRUE(used.begin()->second.starts_with("algorithm engine=")) << used.begin()->second;
  }
}

}  // namespace
}  // namespace heddle::host::attention_choice_gpu_test
