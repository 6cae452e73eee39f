#include "host/job/agree_on_algorithms.h"

#include <sstream>
#include <vector>

#include "ir/base/check.h"

namespace heddle::host {
namespace {

// Calls `ask` for each question and returns the choices. Questions for which `ask` returns no
// choice are left out.
AlgorithmChoices answersOf(const std::set<std::string>& questions,
                           const AlgorithmAgreement::Ask& ask) {
  AlgorithmChoices choices;
  for (const std::string& question : questions) {
    std::string choice = ask(question);
    if (!choice.empty()) choices.emplace(question, std::move(choice));
  }
  return choices;
}

// Concatenates the lines, each followed by a line break. A line must not contain a line break.
// Questions and choices contain none.
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
  if (world_ == nullptr || world_->size() == 1) {
    AlgorithmChoices answers = answersOf(questions, ask);
    const std::lock_guard lock(mutex_);
    choices_.insert(answers.begin(), answers.end());
    return answers;
  }
  const std::lock_guard lock(mutex_);
  if (exchanges_ && agreed_.insert(sizes).second) exchange(questions, ask);
  return choices_;
}

AlgorithmChoices AlgorithmAgreement::all() const {
  const std::lock_guard lock(mutex_);
  return choices_;
}

void AlgorithmAgreement::exchange(const std::set<std::string>& questions, const Ask& ask) {
  const comm::World::Task task(world_, comm::RankTask::AgreeingOnAlgorithms);
  const std::set<std::string> all = allLines(world_->exchange(joinLines(questions)));
  std::string mine;
  // CUDA loads a kernel at its first launch, and the load waits for all running work of the GPU. In
  // the middle of a run, this could be a deadlock: the running work could be a collective that
  // waits for another rank, while the other rank waits to load a kernel. Therefore, in a job that
  // uses NCCL, every rank asks its own questions here: Device::chooseAlgorithm() launches the
  // chosen algorithm, so CUDA loads its kernel. (Rank 0 asks all questions below.) At this time,
  // all ranks have posted the collectives of their earlier runs, so these collectives can complete.
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
    // emplace() keeps an earlier choice, because some rank may already use it.
    choices_.emplace(line.substr(0, tab), line.substr(tab + 1));
  }
}

}  // namespace heddle::host
