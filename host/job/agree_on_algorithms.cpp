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

// Joins single lines to one text. Questions and choices contain no line break.
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
  if (exchanges_ && agreed_.insert(sizes).second) exchange(questions, ask);
  return choices_;
}

void AlgorithmAgreement::exchange(const std::set<std::string>& questions, const Ask& ask) {
  const comm::World::Task task(world_, comm::RankTask::AgreeingOnAlgorithms);
  const std::set<std::string> all = allLines(world_->exchange(joinLines(questions)));
  std::string mine;
  // At its first launch, a kernel is loaded, and the load waits for all running work of the GPU.
  // During a run, this work could be a collective. The collective could wait for a rank that itself
  // waits for the lock of the loader. Every rank with a GPU therefore loads its kernels here, after
  // all ranks have posted their earlier runs.
  if (world_->rank() != 0 && world_->transport() == "nccl") answersOf(questions, ask);
  if (world_->rank() == 0) {
    for (const auto& [question, choice] : answersOf(all, ask)) {
      mine += question + '\t' + choice + '\n';
    }
  }
  const std::vector<std::string> answers = world_->exchange(mine);
  for (const std::string& line : allLines({answers.at(0)})) {
    const size_t tab = line.find('\t');
    HEDDLE_CHECK(tab != std::string::npos, "a choice of an algorithm without its question: {}",
                 line);
    // An earlier choice is kept, because some rank uses it already.
    choices_.emplace(line.substr(0, tab), line.substr(tab + 1));
  }
}

}  // namespace heddle::host
