#include "host/job/agree_on_algorithms.h"

#include <sstream>
#include <vector>

#include "ir/base/error.h"

namespace heddle::host {
namespace {

AlgorithmChoices answersOf(const std::set<std::string>& questions,
                           const AlgorithmAgreement::Ask& ask) {
  AlgorithmChoices choices;
  for (const std::string& question : questions) {
    std::string choice = ask(question);
    if (!choice.empty()) choices.emplace(question, std::move(choice));
  }
  return choices;
}

// Keys and choices are single lines.
std::string joinLines(const std::set<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + '\n';
  return text;
}

std::set<std::string> allLines(const std::vector<std::string>& texts) {
  std::set<std::string> lines;
  for (const std::string& text : texts) {
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) lines.insert(line);
  }
  return lines;
}

}  // namespace

AlgorithmChoices AlgorithmAgreement::choose(const std::set<std::string>& questions,
                                            const SizeBindings& sizes, const Ask& ask) {
  if (world_ == nullptr || world_->size() == 1) return answersOf(questions, ask);
  std::lock_guard lock(mutex_);
  if (talks_ && agreed_.insert(sizes).second) exchange(questions, ask);
  return choices_;
}

void AlgorithmAgreement::exchange(const std::set<std::string>& questions, const Ask& ask) {
  const std::set<std::string> all = allLines(world_->exchange(joinLines(questions)));
  std::string mine;
  // A GPU loads a kernel at its first launch, and to do so waits for all that runs: in a run that
  // would be collectives that wait for peers, which may wait for the lock that the loading holds.
  // So ranks with a GPU each load theirs here, where all have posted their earlier runs.
  if (world_->rank() != 0 && world_->transport() == "nccl") answersOf(questions, ask);
  if (world_->rank() == 0) {
    for (const auto& [question, choice] : answersOf(all, ask)) {
      mine += question + '\t' + choice + '\n';
    }
  }
  const std::vector<std::string> told = world_->exchange(mine);
  for (const std::string& line : allLines({told.at(0)})) {
    const size_t tab = line.find('\t');
    HEDDLE_CHECK(tab != std::string::npos, "an algorithm without its key: {}", line);
    // What was agreed before is in use on some rank: it stays.
    choices_.emplace(line.substr(0, tab), line.substr(tab + 1));
  }
}

}  // namespace heddle::host
