#include "codegen/families/loops.h"

#include <algorithm>
#include <utility>

namespace heddle::codegen {
namespace {

class LoopWriter {
 public:
  LoopWriter(const Fusion& segment, const LoopRequest& request)
      : segment_(segment), request_(request) {
    program_.target = request.schedule.target;
    program_.items = request.schedule;
  }

  TileProgram write() {
    const Computation& computation = request_.computation;
    program_.frame = buildFrame({request_.entry,
                                 request_.schedule,
                                 request_.space,
                                 {&computation.loop, &computation.finish},
                                 computation.accumulators,
                                 request_.reduced_count});
    if (request_.schedule.kind == ScheduleKind::Pointwise) {
      add(MapTiles{computation.loop, {}, false, {}});
      return std::move(program_);
    }
    const std::vector<AccumulatorId> with_state = withState(computation.accumulators);
    add(ReduceTiles{computation.loop, with_state, {}});
    program_.statements.emplace_back(CombineParts{with_state});
    if (request_.partials.empty()) {
      add(MapTiles{computation.finish, {}, true, {}});
    } else {
      program_.statements.emplace_back(StoreStates{request_.partials});
    }
    return std::move(program_);
  }

 private:
  const std::string& nameOf(const SpaceTensor& tensor) const {
    static const std::string partial = "partial";
    if (tensor.isInWorkspace()) return partial;
    return segment_.value(segment_.inputs().at(static_cast<size_t>(tensor.operand))).name;
  }

  // Adds a statement that loads its own tiles: one tile per tensor that the body reads. The nodes
  // of the body then refer to tiles instead of tensors.
  void add(MapTiles map) {
    map.loads = loadsOf(map.body, map.per_row);
    program_.statements.emplace_back(std::move(map));
  }
  void add(ReduceTiles reduce) {
    reduce.loads = loadsOf(reduce.body, false);
    program_.statements.emplace_back(std::move(reduce));
  }

  std::vector<LoadTile> loadsOf(Body& body, bool per_row) {
    std::vector<LoadTile> loads;
    for (Node& node : body.nodes) {
      if (node.kind != Node::Kind::Load) continue;
      const SpaceTensor& tensor = request_.space.tensors.at(static_cast<size_t>(node.index));
      auto load = std::ranges::find(loads, node.index, &LoadTile::tensor);
      if (load == loads.end()) {
        const TileId tile = program_.tiles.push_back({nameOf(tensor), tensor.dtype, per_row});
        load = loads.insert(loads.end(), LoadTile{node.index, tile});
      }
      node.index = load->tile.number();
    }
    return loads;
  }

  const Fusion& segment_;
  const LoopRequest& request_;
  TileProgram program_;
};

}  // namespace

TileProgram buildLoops(const Fusion& segment, const LoopRequest& request) {
  TileProgram program = LoopWriter(segment, request).write();
  verify(program);
  return program;
}

}  // namespace heddle::codegen
