#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "codegen/frame/kernel_frame.h"
#include "codegen/kernel.h"
#include "codegen/plan/body.h"
#include "codegen/plan/schedule.h"
#include "codegen/tile/divided_rows.h"

namespace heddle::codegen {

// A kernel as a list of statements on tiles. The kernel computes a *space*: a grid of elements with
// kept and reduced axes (codegen/plan/space.h). A *family* (codegen/families) is the code that
// creates programs for one kind of kernel. Emitters (codegen/emit/tiles) translate a program
// statement by statement, and do not depend on families. A program has one of three layouts:
// - Items (Schedule). The kernel passes over the space once, item by item. A tile has one element
//   per lane of an item; or one element per result of a reduction (`per_row`), if only the kept
//   axes change it.
// - Rows (RowLayout). A *row* consists of all elements along the reduced axes of the space, for one
//   index along the kept axes. A *tile* has one element per element of the row (a tile *along the
//   row*), or one element per row (`per_row`). If the elements of a row are far apart in memory, a
//   layout may process *bundles* of neighbouring rows (RowLayout::bundled).
// - Squares (SquareLayout). A block of threads (Cuda) or one thread (Cpp) processes a square of the
//   two innermost axes of the space, at one index along each other axis. A tile has one element per
//   element of the square.
//
// In the bodies (codegen/plan/body.h) of a program, Node::index of a Load is a TileId, and
// Node::index of a Result is an AccumulatorId. Store::tensor is an index into
// KernelFrame::accesses.

using TileId = Id<struct TileTag>;  // index into TileProgram::tiles

struct Tile {
  std::string name;  // name of the value in the fusion
  DType dtype = DType::F32;
  bool per_row = false;
};

// Reads a tile from memory.
struct LoadTile {
  // When the statement reads the tile. Once and Ahead are for CUDA programs with column sums
  // (TileProgram::columns), whose blocks process one row after another.
  enum class When : uint8_t {
    Row,    // when the program reaches the statement
    Once,   // before the block begins its first row; the tile is the same for all rows
    Ahead,  // while the block processes the previous row, so that its threads need not wait
  };
  int tensor = 0;  // index into KernelFrame::accesses
  TileId tile;
  When when = When::Row;
};

// Reads a tile of a square from a tensor that is contiguous along the second innermost axis, not
// along the innermost one, and transposes the tile. Cuda: threads exchange the tile through shared
// memory, and the next MapTiles waits for this exchange. Cpp: the tile becomes an array.
struct ExchangeTile {
  int tensor = 0;
  TileId tile;
  // Cuda: all vectors along the second innermost axis begin at aligned addresses.
  bool aligned = false;
};

// Transposes a tile of a square that a map has computed, and stores the tile in a tensor that is
// contiguous along the second innermost axis. Cuda: threads exchange the tile through shared
// memory.
struct StoreExchanged {
  int tensor = 0;
  TileId tile;
  bool aligned = false;  // as in ExchangeTile
};

// Applies a body to each element of the row or square, or once per row (`per_row`). The statement
// also executes `loads`. No other statement reads the tiles of `loads`, and a thread holds only one
// vector of such a tile at a time.
struct MapTiles {
  struct Result {
    NodeId node;
    TileId tile;
  };
  Body body;
  std::vector<Result> results;  // nodes whose values become tiles; Body::stores writes to memory,
                                // or adds to ColumnSums
  bool per_row = false;
  std::vector<LoadTile> loads = {};
};

// Applies a body to each element of the row. For each listed accumulator, combines the values of
// the node Accumulator::element with the accumulator's state. Only a body of a program of items may
// have stores.
struct ReduceTiles {
  Body body;
  std::vector<AccumulatorId> accumulators;  // all have a state
  std::vector<LoadTile> loads = {};         // see MapTiles::loads
};

// Combines the states that lanes, threads and work items have for the same row and accumulator. The
// order is fixed: lanes of a thread, threads of a warp, warps, blocks of a cluster, and work items
// if rows are divided (DividedRows). Later bodies may read the results.
struct CombineParts {
  std::vector<AccumulatorId> accumulators;
};

// Items only: stores the states of all accumulators as partial results, one range of the reduced
// items (Schedule::splits) apart from the other. A second program combines them.
struct StoreStates {
  // Indices into KernelFrame::accesses, one per member of a state (memberTypes()), in the order of
  // the accumulators that have a state.
  std::vector<int> tensors;
};

struct LoopOverRow;
using Statement = std::variant<LoadTile, ExchangeTile, MapTiles, StoreExchanged, ReduceTiles,
                               CombineParts, StoreStates, LoopOverRow>;

// Cuda only: executes the statements for each part of the row, one part at a time. In such a part,
// each thread of the row has RowLayout::registers vectors. Tiles along the row that the statements
// of the loop compute hold one part. Without a loop, tiles hold the complete row. If rows are
// divided (RowLayout::divided), the loop runs only over the vectors of one work item.
struct LoopOverRow {
  std::vector<Statement> statements;
};

// How a block of threads processes rows.
// - Cuda: a row is divided into vectors of `vector` neighbouring elements along its innermost axis.
//   Vector v of the row belongs to thread v % `threads` of the row, and is vector v / `threads` of
//   this thread.
// - Cpp: one thread processes one row after another. `vector` is the number of accumulators of the
//   inner loop. Of the other members, only `bundled` and `capacity` are used.
//
// Bundles (`bundled`): the rows with neighbouring indices along the innermost kept axis are
// neighbours in memory. A bundle consists of `vector` such rows, and lane i of a vector belongs to
// row i of the bundle. Vector v consists of element v of each row of the bundle. In the comments of
// the other members, "row" then means bundle: a block processes `rows` bundles, and `threads`
// threads share each bundle. These threads are `rows` threads apart, because neighbouring threads
// process neighbouring bundles. Cpp: one thread processes one bundle after another, and loaded
// tiles are arrays.
struct RowLayout {
  int32_t vector = 1;     // neighbouring elements that a thread loads together
  int32_t registers = 1;  // vectors of a tile that one thread holds
  int32_t threads = 1;    // threads that share a row; a power of two
  int32_t rows = 1;       // rows of a block; rows * threads is a multiple of 32
  // Cuda: if above 1, a cluster of this many blocks shares each row or bundle. The blocks run at
  // the same time, and exchange states through their shared memory. Without `bundled`, `rows` is
  // then 1. Each block has threads / cluster of the threads of a row or bundle. Needs compute
  // capability 9.0.
  int32_t cluster = 1;
  bool exact = false;  // every vector is complete
  // Cuda: rows begin at addresses that are not aligned for vectors. Vector 0 of a row then begins
  // up to vector - 1 elements before the row, at an aligned address. The kernel ignores elements
  // before and after the row. Such a layout has one reduced axis.
  bool shifted = false;
  // Every thread holds `registers` complete vectors of each row. If `shifted`: every thread holds
  // registers - 1 vectors of each row, and none of them is the last vector of the row.
  bool full = false;
  // Lanes are neighbouring rows. There is no loop over parts of a row, and there are no column
  // sums.
  bool bundled = false;
  // Cuda, if the program reads each row once: after a load, the cache lines of elements that the
  // kernel loads once (Access::once) are the first to leave the L2 cache.
  bool streams = false;
  // Cuda: if above 0, the tiles along the row that LoadTile statements load are in dynamic shared
  // memory, not in registers. They take this many bytes per block. Each thread accesses only its
  // own vectors.
  int32_t shared_bytes = 0;
  int64_t capacity = 0;  // Cpp: elements of an array that holds a tile; 0: no array holds a tile
  // Cuda: the number of blocks, if the program has column sums or divided rows. With column sums, a
  // block may process several groups of `rows` rows, one after another. 0: each block processes one
  // group.
  int64_t blocks = 0;
  // Cuda: if above 1, this many blocks compute parts of each row, as rows of the grid. Only for
  // programs that reduce nothing and consist of a LoopOverRow. `rows` is then 1.
  int32_t row_blocks = 1;
  // Cuda, with column sums: the number of threads of the program that a multiprocessor runs at the
  // same time. The compiler limits the registers of a thread accordingly.
  int32_t column_threads = 0;
  // Cuda: blocks share each row (codegen/tile/divided_rows.h). Every statement along the row is in
  // a LoopOverRow.
  DividedRows divided = {};

  // Cuda: returns the number of threads of a block.
  int32_t blockThreads() const { return rows * threads / cluster; }
};

// How squares are processed.
// - Cuda: a block of kSquareThreads threads processes one square. A thread holds edge * edge /
//   kSquareThreads elements of each tile, as vectors along the innermost axis.
// - Cpp: one thread processes one row of a square after another. The edge is kSquareEdge. `vector`,
//   `exact`, `full` and `banded` are not used.
constexpr int32_t kSquareEdge = 64;
constexpr int32_t kSquareThreads = 256;
struct SquareLayout {
  int32_t edge = kSquareEdge;  // elements along each axis of a square; Cuda: 32 or 64
  int32_t vector = 1;          // neighbouring elements that a thread loads together: 1, 2, 4 or 8
  bool exact = false;          // every vector is complete
  bool full = false;           // every square is complete
  bool banded = false;         // Cuda: blocks are numbered by bands (SquareIndex in cuda_memory.h)
  int64_t columns = 1;         // squares along the innermost axis
  int64_t rows = 1;            // squares along the second innermost axis
  int64_t others = 1;          // product of the extents of all other axes
  IndexExpr row_extent;        // elements along the second innermost axis
};

// Returns the number of squares.
inline int64_t squaresOf(const SquareLayout& square) {
  return square.others * square.rows * square.columns;
}

// A reduction over the rows, with one state per element of a row (a column). If the body of a map
// has a store to `tensor`, the map does not store the element, but combines it with the state of
// its column. The rows are divided into parts:
// - Cuda: a part consists of the rows that the same group of RowLayout::threads threads processes.
// - Cpp: a part consists of the rows of one tile of the grid (LaunchStage).
//
// Each part has its own states. The kernel stores them in `tensor`, which is in the workspace.
struct ColumnSums {
  int tensor = 0;  // index into KernelFrame::accesses
  Accumulator accumulator;
};

struct TileProgram {
  Target target = Target::Cuda;
  RowLayout layout;
  std::vector<ColumnSums> columns = {};
  std::optional<SquareLayout> square = {};  // set: the tiles are squares; `layout` is not used
  std::optional<Schedule> items = {};       // set: the tiles are items; `layout` is not used
  IdVector<TileId, Tile> tiles;
  std::vector<Statement> statements;
  KernelFrame frame;
};

// These functions set the grid of a launch. Cuda: they also set the block, and the bytes of shared
// and cleared memory. `rows` is the number of rows or bundles. `items_per_tile` is
// Schedule::items_per_tile (Cpp). `kept_items` is the number of items along the kept axes.
void setGrid(const RowLayout& layout, Target target, int64_t rows, int64_t items_per_tile,
             LaunchStage& stage);
void setGrid(const SquareLayout& square, Target target, int64_t items_per_tile, LaunchStage& stage);
void setGrid(const Schedule& items, int64_t kept_items, LaunchStage& stage);

// Returns the launch of a program. Moves the arguments of the program into the launch.
LaunchStage makeStage(TileProgram& program);

// Checks a program. Throws InternalError in these cases:
// - A number of the layout is not positive, two members contradict each other, or a statement does
//   not suit the layout.
// - A statement reads a tile or an accumulator that no earlier statement has computed, or computes
//   a tile that later statements can already read.
// - A CombineParts names an accumulator that no earlier ReduceTiles names.
// - A statement outside of a loop reads a tile along the row that a statement of the loop computes.
// - A body that runs once per row reads a tile with more than one element per row.
// - A result of a MapTiles is a tile whose `per_row` differs from MapTiles::per_row.
// - A statement loads an output, or a StoreExchanged stores to an input.
// - A loop contains a loop or a CombineParts.
// - Rows are divided, but the layout or a statement does not suit this (RowLayout::divided).
// - A cluster shares rows, but the layout does not suit this, or no states are combined.
// - The tiles are items, and the program is neither one map nor a reduction: ReduceTiles,
//   CombineParts, and then either StoreStates or a map that runs once per row.
// - Blocks overlap or columns are shifted (Schedule), but the schedule or a statement does not suit
//   this.
void verify(const TileProgram& program);

// Returns how many bytes the tiles along the row take, per element of the row. Counts at the point
// of `statements` where the tiles in use take the most bytes. Does not count MapTiles::loads and
// ReduceTiles::loads.
int64_t liveBytes(const std::vector<Statement>& statements, const IdVector<TileId, Tile>& tiles);

// Returns the program as text, for `heddle dump --stage schedule`.
std::string printProgram(const TileProgram& program);

}  // namespace heddle::codegen
