#include "host/unroll/count_steps.h"

#include <algorithm>
#include <limits>

#include "host/program/visit.h"
#include "host/unroll/compare.h"
#include "ir/base/error.h"

namespace heddle::host {
namespace {

constexpr int64_t kUncountable = std::numeric_limits<int64_t>::max();

bool names(const Size& size, const std::string& symbol) {
  std::vector<std::string> symbols;
  size.collectSymbols(symbols);
  return std::find(symbols.begin(), symbols.end(), symbol) != symbols.end();
}

// Returns whether the number of steps of a body may depend on the symbol.
bool dependsOn(const std::vector<Instruction>& body, const std::string& symbol) {
  bool found = false;
  forEachInstruction(body, [&](const Instruction& x, InstructionIndex) {
    // For and If are the only instructions with bodies. Every other instruction is one step.
    if (const auto* loop = std::get_if<For>(&x.op)) {
      found = found || names(loop->start, symbol) || names(loop->stop, symbol);
    }
    if (const auto* branch = std::get_if<If>(&x.op)) {
      const auto* left = std::get_if<Size>(&branch->predicate.lhs);
      found = found || names(branch->predicate.rhs, symbol) ||
              (left != nullptr && names(*left, symbol));
    }
  });
  return found;
}

class StepCounter {
 public:
  StepCounter(Scope& scope, int64_t most) : scope_(scope), most_(most) {}

  int64_t stepsOf(const Instruction& x) {
    if (x.on.valid() && !scope_.isIn(x.on)) return 0;
    try {
      // For and If are the only instructions with bodies.
      if (const auto* loop = std::get_if<For>(&x.op)) return sum(1, stepsOf(*loop));
      if (const auto* branch = std::get_if<If>(&x.op)) return sum(1, stepsOf(*branch));
    } catch (const UserError&) {
      // A size cannot be evaluated. unroll() reports the instruction.
    }
    return 1;
  }
  bool stopped() const { return stopped_; }
  int64_t sum(int64_t a, int64_t b) {
    int64_t result = 0;
    if (!__builtin_add_overflow(a, b, &result)) return result;
    stopped_ = true;
    return kUncountable;
  }

 private:
  int64_t stepsOf(const std::vector<Instruction>& body) {
    int64_t steps = 0;
    for (const Instruction& x : body) steps = sum(steps, stepsOf(x));
    return steps;
  }
  int64_t product(int64_t a, int64_t b) {
    int64_t result = 0;
    if (!__builtin_mul_overflow(a, b, &result)) return result;
    stopped_ = true;
    return kUncountable;
  }

  int64_t stepsOf(const If& branch) {
    const int64_t right = scope_.evaluate(branch.predicate.rhs);
    const auto* left = std::get_if<Size>(&branch.predicate.lhs);
    if (left == nullptr) return sum(stepsOf(branch.then_body), stepsOf(branch.else_body));
    const bool holds = compare(branch.predicate.compare, scope_.evaluate(*left), right);
    return stepsOf(holds ? branch.then_body : branch.else_body);
  }

  // Returns the steps of the trips and of the body. Each trip is one step, but the caller counts
  // the step of the first trip.
  int64_t stepsOf(const For& loop) {
    const int64_t start = scope_.evaluate(loop.start);
    const int64_t stop = scope_.evaluate(loop.stop);
    if (start >= stop || scope_.has(loop.index)) return 0;
    int64_t trips = 0;
    if (__builtin_sub_overflow(stop, start, &trips)) trips = kUncountable;
    scope_.set(loop.index, start);
    int64_t steps = trips - 1;
    if (!dependsOn(loop.body, loop.index)) {
      steps = sum(steps, product(trips, stepsOf(loop.body)));
    } else {
      for (int64_t at = start; at < stop && !stopped_; ++at) {
        scope_.set(loop.index, at);
        steps = sum(steps, stepsOf(loop.body));
        if (steps > most_ && at + 1 < stop) stopped_ = true;
      }
    }
    scope_.unset(loop.index);
    return steps;
  }

  Scope& scope_;
  int64_t most_;
  bool stopped_ = false;
};

}  // namespace

StepCount countSteps(const Program& program, Scope& scope, int64_t most) {
  StepCounter counter(scope, most);
  StepCount count;
  int64_t largest = -1;
  InstructionIndex index = 0;
  for (const Instruction& x : program.body) {
    const int64_t steps = counter.stepsOf(x);
    if (steps > largest) {
      count.largest = &x;
      count.largest_index = index;
      largest = steps;
    }
    count.steps = counter.sum(count.steps, steps);
    index += 1;
    forEachBody(x.op,
                [&](const std::vector<Instruction>& body) { index += countInstructions(body); });
  }
  count.at_least = counter.stopped();
  return count;
}

}  // namespace heddle::host
