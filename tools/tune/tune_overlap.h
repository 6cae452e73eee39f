#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "codegen/compile/image_cache.h"
#include "host/program/program.h"
#include "tools/heddle/job.h"
#include "tools/heddle/prepare.h"
#include "tools/tune/choices_file.h"
#include "tools/tune/measure_candidates.h"

namespace heddle::tools {

// Chooses by measurement how the collectives of a job overlap computation (--overlap). Each
// candidate is the program that the passes create from the fusion for one value of --overlap.

struct OverlapCandidate {
  std::string overlap;  // the value of --overlap
  host::Program program;
};

// Returns the candidates of a compiled fusion: the program of `prepared` first, then those of
// --overlap off, 1, 2, 4 and 8. Returns one candidate for a host program, because no pass changes
// it. Leaves out these programs:
// - a program that equals an earlier one, and a program that cannot be compiled
// - a program that needs more memory than the first one on some rank (host::peakOf())
// - the program of --overlap off, if the fusion asks for chunks (Sharding::stream)
std::vector<OverlapCandidate> overlapCandidates(const Prepared& prepared, const Options& options,
                                                int ranks);

struct OverlapChoice {
  size_t chosen = 0;  // index of the candidate
  // Identifies the candidates, the sizes, the transport, and the devices and machines of the ranks.
  // "" on all ranks except rank 0, and if there is only one candidate.
  std::string key;
  // Per candidate; empty if nothing was measured.
  std::vector<CandidateResult> results;
  // On rank 0, if nothing was measured: what decided. "given": OverlapOptions::given. "stored": the
  // folder of compiled kernels. "first candidate": nothing is given, and OverlapOptions::measures
  // is false.
  std::string origin;
};

struct OverlapOptions {
  // The choices of --choices. If they contain the key, they decide, and nothing is measured.
  Choices given = {};
  bool given_only = false;  // true: a missing entry in `given` is an error (--choices-only)
  bool measures = true;     // false: without a given choice, the first candidate is chosen
  bool again = false;       // true: measures even if a choice is stored
  // The measurement ends after this time. The round that is in progress ends first.
  double most_seconds = 20;
  // Calls `work`, which prepares or runs the program. Adds the source line of the program to
  // errors. Empty: only calls `work`.
  std::function<void(const host::Program& program, const std::function<void()>& work)> at_line = {};
  // Creates the timer of a rank. Only tests set this member. Empty: a timer that runs the programs.
  std::function<std::unique_ptr<CandidateTimer>()> makeTimer = {};
};

// Returns the candidate that all ranks of the job must use. OverlapOptions::given decides first,
// then given_only and measures. If the folder of compiled kernels has a choice for the key, returns
// this choice. Otherwise measures complete runs: the ranks begin each run together, and its time is
// that of the slowest rank. Rank 0 decides and stores the choice. All ranks must call this
// function, with equal candidates and options. It communicates, also if nothing is measured.
OverlapChoice chooseOverlap(const Rank& rank, const std::vector<OverlapCandidate>& candidates,
                            const Inputs& inputs, codegen::ImageCache& images,
                            const OverlapOptions& options);

// Returns whether `choices` contain an overlap, of any job.
bool hasOverlap(const Choices& choices);

// Returns one line, such as "4 (auto 0.912 ms, off 1.104 ms, 4 0.871 ms)".
std::string describe(const std::vector<OverlapCandidate>& candidates, const OverlapChoice& choice);

}  // namespace heddle::tools
