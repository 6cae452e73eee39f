#include "host/passes/chunk/overlap_model.h"

#include <algorithm>
#include <array>

namespace heddle::host {
namespace {

// The SMs of one GPU. Matrix products occupy all of them and run one after another.
class Sms {
 public:
  // Runs the matrix products of a chunk, at `earliest` or later. Returns the time at which they
  // end.
  double run(double earliest, double seconds, int stages) {
    double at = std::max(earliest, end());
    for (int stage = 0; stage < stages; ++stage) {
      runs_.push_back({at, at + seconds / stages});
      at = runs_.back().end;
    }
    return at;
  }
  double end() const { return runs_.empty() ? 0 : runs_.back().end; }

  // Returns the time at which a copy channel gets an SM if the channel requests the SM at `time`.
  double after(double time) const {
    for (const Run& run : runs_) {
      if (run.begin <= time && time < run.end) return run.end;
    }
    return time;
  }

 private:
  struct Run {
    double begin, end;
  };
  std::vector<Run> runs_;
};

// Returns the seconds until all reductions have completed. made[i] is the time at which the matrix
// products of chunk i end.
double reducedSeconds(const std::vector<ChunkSeconds>& chunks, const std::vector<double>& made,
                      const Sms& sms) {
  // All transfers share the links, so the result has two lower bounds. `wires`: the links move all
  // reductions one after another, from the end of the first matrix product on. `all`: the links
  // move all gathers and reductions one after another, from time 0 on.
  double wires = made.front() + chunks.back().alone;
  double pushed = 0, pulled = 0, end = made.back();  // ends of the last push and pull, and of all
  std::array<double, 2> copy_channels = {0, 0};      // times from which the copy channels are free
  for (size_t i = 0; i + 1 < chunks.size(); ++i) {
    const auto pieces = static_cast<double>(chunks[i].pieces);
    double& at = copy_channels[i % 2];
    at = std::max(at, made[i]);
    for (int64_t piece = 0; piece < chunks[i].pieces; ++piece) {
      pushed = std::max(at, pushed) + chunks[i].push / pieces;
      at = sms.after(pushed + chunks[i].meet);
      if (chunks[i].pull == 0) continue;
      pulled = std::max(at, pulled) + chunks[i].pull / pieces;
      at = pulled + chunks[i].meet;
    }
    end = std::max(end, at);
    wires += chunks[i].push + chunks[i].pull;
  }
  end += chunks.back().alone;
  double all = wires - made.front();
  for (const ChunkSeconds& chunk : chunks) all += chunk.come;
  return std::max({end, wires, all});
}

}  // namespace

double pipelineSeconds(const std::vector<ChunkSeconds>& chunks, bool reduces, int stages) {
  Sms sms;
  std::vector<double> made;
  double come = 0;
  for (const ChunkSeconds& chunk : chunks) {
    const bool is_copied = !made.empty() && chunk.come > 0;
    for (int64_t piece = 0; piece < (is_copied ? chunk.pieces : 1); ++piece) {
      // Each piece of a copy waits for an SM, with one exception: the first piece of the second
      // chunk. Its copy starts right after the first gather, before the first matrix product
      // occupies the SMs.
      if (is_copied && (made.size() > 1 || piece > 0)) come = sms.after(come);
      come += is_copied ? chunk.meet + chunk.come / static_cast<double>(chunk.pieces) : chunk.come;
    }
    made.push_back(sms.run(come, chunk.matmul, stages));
  }
  return reduces ? reducedSeconds(chunks, made, sms) : sms.end();
}

}  // namespace heddle::host
