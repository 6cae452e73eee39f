#include "host/prepared_run.h"

#include "host/executable_impl.h"
#include "ir/base/check.h"

namespace heddle::host {
namespace {

int64_t alignmentOf(const void* address) {
  return codegen::alignmentOf(reinterpret_cast<uintptr_t>(address));
}

// Replaces the address of a tensor. Throws UserError if `data` is missing, or is aligned to fewer
// than `least` bytes, on which the plan relies.
void replace(Tensor& tensor, void* data, int64_t least, const char* kind, size_t i) {
  HEDDLE_USER_CHECK(data != nullptr || tensor.desc.numel() == 0, "{} {} has no data", kind, i);
  HEDDLE_USER_CHECK(
      tensor.in_host_memory || data == nullptr || alignmentOf(data) >= least,
      "{} {} has an address with an alignment of {} bytes, the run was prepared for {} bytes", kind,
      i, alignmentOf(data), least);
  tensor.data = data;
}

}  // namespace

PreparedRun::Impl::Impl(Executable::Impl& t, std::shared_ptr<Executable> k,
                        std::shared_ptr<const Plan> p, std::vector<Argument> i, RunOptions o)
    : target(t),
      keep(std::move(k)),
      plan(std::move(p)),
      inputs(std::move(i)),
      options(std::move(o)),
      sizes(target.inlined),
      ranges(sizes.ranges(inputs, plan->late)) {
  for (Argument& input : inputs) {
    auto* tensor = std::get_if<Tensor>(&input);
    if (tensor != nullptr) tensor->owner.reset();
    input_alignments.push_back(tensor == nullptr ? 0 : alignmentOf(tensor->data));
  }
  for (Tensor& tensor : options.preallocated) {
    tensor.owner.reset();
    output_alignments.push_back(alignmentOf(tensor.data));
  }
}

PreparedRun::PreparedRun(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
PreparedRun::~PreparedRun() = default;
PreparedRun::PreparedRun(PreparedRun&&) noexcept = default;

void PreparedRun::setInput(size_t i, void* data) {
  HEDDLE_USER_CHECK(i < impl_->inputs.size(), "there is no input {}: the run has {}", i,
                    impl_->inputs.size());
  auto* tensor = std::get_if<Tensor>(&impl_->inputs[i]);
  HEDDLE_USER_CHECK_CODE(Type, tensor != nullptr, "input {} is a scalar, not a tensor", i);
  replace(*tensor, data, impl_->input_alignments[i], "input", i);
}

void PreparedRun::setScalar(size_t i, Scalar value) {
  HEDDLE_USER_CHECK(i < impl_->inputs.size(), "there is no input {}: the run has {}", i,
                    impl_->inputs.size());
  auto* scalar = std::get_if<Scalar>(&impl_->inputs[i]);
  HEDDLE_USER_CHECK_CODE(Type, scalar != nullptr, "input {} is a tensor, not a scalar", i);
  impl_->sizes.checkWithin(impl_->ranges, i, value);  // throws before anything changes
  *scalar = value;
}

void PreparedRun::setOutput(size_t i, void* data) {
  std::vector<Tensor>& preallocated = impl_->options.preallocated;
  HEDDLE_USER_CHECK(i < preallocated.size() && preallocated[i].data != nullptr,
                    "output {} was not preallocated when the run was prepared", i);
  HEDDLE_USER_CHECK(data != nullptr, "output {} has no data", i);
  replace(preallocated[i], data, impl_->output_alignments[i], "output", i);
}

Outputs PreparedRun::run() {
  // The caller may have changed an element in host memory that decides a size or an offset.
  impl_->sizes.checkWithin(impl_->ranges, impl_->inputs);
  return impl_->target.run(impl_->inputs, impl_->options, impl_->plan);
}

PreparedRun Executable::prepareRun(const std::vector<Argument>& inputs, const RunOptions& options) {
  return PreparedRun(std::make_unique<PreparedRun::Impl>(
      *impl_, nullptr, impl_->prepare(inputs, options), inputs, options));
}

}  // namespace heddle::host
