#include "host/matmul_agreement.h"

#include <sstream>

#include "ir/error.h"

namespace heddle::host {
namespace {

AlgorithmChoices answersOf(Device& device, const std::set<std::string>& questions, Stream stream) {
  AlgorithmChoices choices;
  for (const std::string& question : questions) {
    std::string choice = device.chooseAlgorithm(question, stream);
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

AlgorithmChoices MatmulAgreement::choose(Device& device, const std::set<std::string>& questions,
                                         const SizeBindings& sizes, Stream stream) {
  if (world_ == nullptr || world_->size() == 1) return answersOf(device, questions, stream);
  std::lock_guard lock(mutex_);
  if (talks_ && device.choosesAlgorithms() && agreed_.insert(sizes).second) {
    exchange(device, questions, stream);
  }
  return choices_;
}

void MatmulAgreement::exchange(Device& device, const std::set<std::string>& questions,
                               Stream stream) {
  const std::set<std::string> all = allLines(world_->exchange(joinLines(questions)));
  std::string mine;
  if (world_->rank() == 0) {
    for (const auto& [question, choice] : answersOf(device, all, stream)) {
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
