#include "codegen/emit/plan_writer.h"

#include "codegen/emit/kernel_stages.h"
#include "codegen/emit/kernel_text.h"
#include "codegen/emit/named_text.h"

namespace heddle::codegen {

PlanWriter::PlanWriter(Target target, KernelTexts* texts) : texts_(texts) {
  plan.source.target = target;
}

void PlanWriter::addLaunch(TileProgram& program, const Fusion& segment, const Analysis& analysis,
                           const char* before) {
  describe(program, segment, analysis, before);
  const bool cuda = program.target == Target::Cuda;
  addText(cuda ? emitCuda(program) : emitCpp(program), program, segment, analysis);
  layouts.push_back({{{entriesOf(layouts), 0, program.frame.args.values()}}});
  plan.stages.push_back(makeStage(program));
}

void PlanWriter::addRanges(const std::string& entry, TileProgram& first, TileProgram& second,
                           const Fusion& segment, const Analysis& analysis) {
  describe(first, segment, analysis);
  describe(second, segment, analysis, "\nthen, in the same launch, ");
  for (const TileProgram* half : {&first, &second}) {
    addText(emitCudaHalf(*half), *half, segment, analysis);
  }
  addText(emitCudaRanges(entry, first, second), first, segment, analysis);
  const auto offset = static_cast<int32_t>(first.frame.args.bytes());
  layouts.push_back({{{entriesOf(layouts), 0, first.frame.args.values()}}});
  layouts.back().structs.push_back({entriesOf(layouts), offset, second.frame.args.values()});
  plan.stages.push_back(makeStage(entry, first, second));
}

void PlanWriter::describe(const TileProgram& program, const Fusion& segment,
                          const Analysis& analysis, const char* before) {
  if (texts_ == nullptr) return;
  const TextNames names(segment, analysis, program);
  texts_->schedule += before + names.addTo(printProgram(program));
}

void PlanWriter::say(const std::string& text) {
  if (texts_ != nullptr) texts_->schedule += text;
}

void PlanWriter::addUnnamed(const std::string& text) {
  plan.source.text += text;
  if (texts_ != nullptr) texts_->kernel += text;
}

void PlanWriter::addText(const std::string& text, const TileProgram& program, const Fusion& segment,
                         const Analysis& analysis) {
  plan.source.text += text;
  if (texts_ != nullptr) texts_->kernel += TextNames(segment, analysis, program).addTo(text);
}

}  // namespace heddle::codegen
