#pragma once

#include <boost/container/small_vector.hpp>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "host/program/program.h"
#include "host/unroll/late_scalars.h"

namespace heddle::host {

// Unrolling writes a host program (host/program/program.h) out for one rank and one set of sizes:
// - Each Call is replaced by the called program, and loops are expanded.
// - Instructions that only other ranks execute (Instruction::on) are left out.
// - Branches on sizes are decided. Branches on scalars become jumps.
// - Each view is resolved to a buffer, a byte offset and a descriptor.
// The result is called an unrolled program. verify() (host/verify/verify.h) checks it for races,
// and a Plan (host/plan/plan.h) binds it to a device. Races are therefore checked on the same steps
// that a run executes.

using BufferId = Id<struct BufferTag>;      // index into Unrolled::buffers
using RegisterId = Id<struct RegisterTag>;  // index into RunState::registers

// An allocation or an input. An Allocate in a loop creates one buffer per iteration, unless it
// reuses one (Allocate::reuse).
struct Buffer {
  enum class Origin : uint8_t { Input, Allocated };
  Origin origin = Origin::Allocated;
  int32_t input = -1;    // Origin::Input: index into Program::inputs
  int64_t bytes = 0;     // number of bytes allocated on this rank
  std::string name;      // name of the slot that the Allocate defines, or of the input
  bool donated = false;  // Origin::Input: the run may write the memory, because it is donated
};

// The memory that a tensor slot names at one point of the program.
struct View {
  // A run adds `bytes` times the value of a late input (host/unroll/late_scalars.h) to the address.
  struct LateTerm {
    int32_t input;  // index into Program::inputs
    int64_t bytes;
    bool operator==(const LateTerm&) const = default;
  };
  BufferId buffer;
  int64_t byte_offset = 0;
  TensorDesc desc;
  std::vector<LateTerm> late = {};
  // A buffer may contain several values, one after another: each Allocate that reuses the buffer
  // (Allocate::reuse) begins a new value. This is the number of the view's value, from 0.
  int32_t value = 0;

  // Returns a number from which alignments follow: a power of two that divides it also divides the
  // offset, for all values of the late inputs.
  int64_t offsetBits() const {
    int64_t bits = byte_offset;
    for (const LateTerm& term : late) bits |= term.bytes;
    return bits;
  }
};

using SharedView = std::shared_ptr<const View>;

// A list that allocates no memory for up to 3 elements, because most instructions have few
// operands.
template <class T>
using Operands = boost::container::small_vector<T, 3>;

// A list of views. It stores pointers, because many steps name the same view.
class ViewList {
 public:
  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = View;
    using difference_type = std::ptrdiff_t;
    using pointer = const View*;
    using reference = const View&;
    Iterator() = default;
    explicit Iterator(const SharedView* at) : at_(at) {}
    reference operator*() const { return **at_; }
    pointer operator->() const { return at_->get(); }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    Iterator operator++(int) { return Iterator(at_++); }
    bool operator==(const Iterator&) const = default;

   private:
    const SharedView* at_ = nullptr;
  };

  void push_back(SharedView view) { views_.push_back(std::move(view)); }
  void appendEmpty();  // appends a view without a buffer
  void reserve(size_t size) { views_.reserve(size); }
  size_t size() const { return views_.size(); }
  bool empty() const { return views_.empty(); }
  const View& operator[](size_t i) const { return *views_[i]; }
  const View& at(size_t i) const { return *views_.at(i); }
  const View& front() const { return *views_.front(); }
  const View& back() const { return *views_.back(); }
  Iterator begin() const { return Iterator(views_.data()); }
  Iterator end() const { return Iterator(views_.data() + views_.size()); }

 private:
  Operands<SharedView> views_;
};

// An access of one step to one buffer.
struct UnrolledAccess {
  BufferId buffer;
  int64_t begin;  // the access is to the bytes [begin, end) of the buffer
  int64_t end;
  bool write;  // false: a read
};

// One step of an unrolled program. A step names scalars of the host by registers, which are
// numbered from 0. A list slot (host/program/program.h) has one register per element.
struct UnrolledStep {
  const Instruction* instruction = nullptr;  // in the Program, which must outlive the Unrolled
  InstructionIndex index = -1;
  StreamId stream;   // invalid: the host alone executes it
  ViewList inputs;   // in the order of the instruction's input slots. A view is empty if
                     // the slot is a scalar, or if this rank has no part on the input side
                     // of a Communicate
  ViewList outputs;  // in the order of the output slots. A view is empty if this rank has no part
                     // on the output side of a Communicate
  Operands<RegisterId> scalar_inputs;  // parallel to inputs: invalid for a tensor
  Operands<UnrolledAccess> accesses;
  int64_t peer = -1;            // rank in the team. Send, Recv: the peer; Communicate: the root.
                                // -1: none
  bool root_apart = false;      // true: the root is outside of the mesh whose ranks hold the parts.
                                // In a gather it sends no part, in a scatter it receives none
  std::optional<Scalar> known;  // Evaluate of a Size or literal: the value in the slot's dtype.
                                // An If that the run decides: the right side of its predicate, an
                                // i64
  RegisterId scalar_out;  // Evaluate, ReadBack: register that is written; for a list: the register
                          // of its first element
  // Index of the step to which the run jumps. The step of an If jumps if the predicate is false
  // during the run. A step without instruction always jumps: it ends the then_body and skips the
  // else_body. -1: no jump.
  int32_t jump = -1;
};

struct Unrolled {
  // If the program contains Call instructions: a copy of the program in which each Call is replaced
  // by the called program. All ids of the unrolled program then refer to this copy. nullptr: the
  // program contains no Call. A program from which a Plan is prepared contains none.
  std::shared_ptr<const Program> inlined;
  std::vector<UnrolledStep> steps;
  IdVector<BufferId, Buffer> buffers;
  // One view per program output. The view of a scalar is empty. If this rank is outside of the mesh
  // of the slot, the view may have no buffer.
  std::vector<View> outputs;
  std::vector<TensorDesc> input_descs;      // per program input; empty for a scalar
  std::vector<RegisterId> scalar_outputs;   // per program output: invalid for a tensor
  std::vector<RegisterId> input_registers;  // per program input: invalid for a tensor
  size_t registers = 0;                     // number of scalar registers
  // For each late input (by index into Program::inputs): the values for which these steps are
  // valid.
  std::map<int32_t, LateRange> late;
  int64_t rank = 0;
};

// How the values of a run share memory (Allocate::reuse).
struct MemoryReuse {
  bool enabled = true;               // false: every Allocate creates a buffer
  std::vector<size_t> donated = {};  // positions of the inputs whose memory may be reused
  // Per output: true if the caller gives the memory of the output. Such an output does not reuse a
  // donated input. Missing entries are false.
  std::vector<bool> preallocated = {};
};

// The rank and the sizes for which a program is unrolled.
struct UnrollRequest {
  // The values of the symbols of the program. Missing symbols take their defaults
  // (Program::size_defaults).
  SizeBindings sizes;
  // The local descriptors of the caller's tensors, one per input of the program. The descriptor of
  // a scalar is empty. If the list is empty, each input has the descriptor that describe() returns.
  // Exception: if the type of the input declares a memory order (Layout::observed), the strides
  // follow this order.
  std::vector<TensorDesc> inputs;
  int64_t rank = 0;
  int64_t ranks = 1;     // number of ranks of the job
  LateInputs late = {};  // the late inputs; `sizes` contains a value of each
  // The layouts of allocations that the caller's tensors replace
  // (host/unroll/preallocated_layouts.h). All other allocations have the layouts of their types.
  std::map<SlotId, TensorDesc> layouts = {};
  MemoryReuse reuse = {};
};

// Unrolls the program. Throws UserError that names the instruction if this instruction is not
// possible for this rank and these sizes. Examples:
// - The strides of an operand do not allow the view that an Alias asks for, or sizes do not fit.
// - An index or peer is out of range.
// - A slot is used before it is defined.
// - An instruction accesses a value after a later value has been written to its memory
//   (Allocate::reuse).
// Also throws UserError in these cases:
// - A mesh does not fit the number of ranks, or a guard of the program fails.
// - A descriptor in UnrollRequest::inputs does not fit its input (checkInput() in
//   host/unroll/check_operands.h), or the number of descriptors is wrong.
// - The program has more than a million steps. unroll() finds this out before it creates a step.
// - An output has no value at the end, or an output that is declared `in` an input is not this
//   complete input.
// - A donated input does not exist, is a scalar, or is donated twice.
// - The memory layout of a donated input differs from inputDesc() (host/tensor.h), for example
//   because it has gaps.
// - An output is a view of a donated input, or is declared `in` a donated input.
// - A later value has been written to the memory of an output (Allocate::reuse).
Unrolled unroll(const Program& program, const UnrollRequest& request);

// Returns the local descriptor of a slot on this rank for these sizes. The strides follow the
// memory order that its type gives (TensorView::allocationOrder()). On a rank outside of the slot's
// mesh, the axes that the sharding lists have the local size 0.
TensorDesc describe(const Slot& slot, const Meshes& meshes, const SizeBindings& sizes, int64_t rank,
                    int64_t ranks);

}  // namespace heddle::host
