#include "ir/base/check.h"
#include "ir/composite/rows.h"

namespace heddle::composite_rows {
namespace {

constexpr AttrSpec kSqueeze[] = {{"axes", AttrType::Ints, false}};
constexpr AttrSpec kOneAxis[] = {{"axis", AttrType::Int}};
constexpr AttrSpec kTwoAxes[] = {{"axes", AttrType::Ints}};
constexpr AttrSpec kFlatten[] = {{"start_axis", AttrType::Int, false},
                                 {"end_axis", AttrType::Int, false}};
constexpr AttrSpec kSliceAxis[] = {{"axis", AttrType::Int},
                                   {"start", AttrType::Size, false},
                                   {"stop", AttrType::Size, false},
                                   {"step", AttrType::Int, false}};
constexpr AttrSpec kSelect[] = {{"axis", AttrType::Int}, {"index", AttrType::Size}};
constexpr AttrSpec kJoin[] = {{"axis", AttrType::Int, false}};
constexpr AttrSpec kChunk[] = {{"chunks", AttrType::Int}, {"axis", AttrType::Int, false}};
constexpr AttrSpec kRepeat[] = {{"repeats", AttrType::Sizes}};

Operands transposeRow(B b, V v, A a) {
  const Axes axes = need<Axes>(a, "axes");
  HEDDLE_USER_CHECK(axes.size() == 2, "{}: got {} axes, expected 2", b.where("transpose"),
                    axes.size());
  return {transpose(b, v[0], axes[0], axes[1])};
}

// As in PyTorch, a missing list of axes means all axes, and an empty list means no axes.
Operands squeezeRow(B b, V v, A a) {
  const std::optional<Axes> given = maybe<Axes>(a, "axes");
  if (given && given->empty()) return {b.set(v[0])};
  return {squeeze(b, v[0], given.value_or(Axes{}))};
}

const CompositeDef kShapes[] = {
    {"expand_as",
     "operand 0, expanded to the axes and extents of operand 1",
     2,
     0,
     {},
     [](B b, V v, A) { return Operands{expandAs(b, v[0], v[1])}; }},
    {"squeeze",
     "removes axes of extent 1: all, or those listed. An extent known only at run time stays", 1, 0,
     kSqueeze, squeezeRow},
    {"unsqueeze", "a new axis of extent 1 at `axis`", 1, 0, kOneAxis,
     [](B b, V v, A a) { return Operands{unsqueeze(b, v[0], need<int64_t>(a, "axis"))}; }},
    {"transpose", "exchanges two axes", 1, 0, kTwoAxes, transposeRow},
    {"flatten", "merges the axes start_axis (0) to end_axis (-1) into one", 1, 0, kFlatten,
     [](B b, V v, A a) {
       return Operands{
           flatten(b, v[0], get<int64_t>(a, "start_axis", 0), get<int64_t>(a, "end_axis", -1))};
     }},
    {"slice_axis",
     "start:stop:step of one axis, as in a Python slice. A bound that is a number may be negative "
     "and then counts from the end. A bound that contains a size or a scalar never counts from the "
     "end. If the resulting index is negative, it becomes 0. If it is above the extent, it becomes "
     "the extent. `start=-%k` therefore selects all elements, and `start=n - %k` selects the last "
     "%k elements of an axis of extent n",
     1, 0, kSliceAxis,
     [](B b, V v, A a) {
       return Operands{sliceAxis(b, v[0], need<int64_t>(a, "axis"), maybeSize(a, "start"),
                                 maybeSize(a, "stop"), get<int64_t>(a, "step", 1))};
     }},
    {"select",
     "element `index` of an axis; removes the axis. A negative number counts from the end; an "
     "index that contains a scalar, as in index=%i, must be 0 or more in every run",
     1, 0, kSelect,
     [](B b, V v, A a) {
       return Operands{select(b, v[0], need<int64_t>(a, "axis"), needSize(a, "index"))};
     }},
    {"cat",
     "joins tensors along an axis (0), in their common type. All must have the same number "
     "of axes, at least one (PyTorch also accepts an empty f32[0])",
     1, CompositeDef::kAny, kJoin,
     [](B b, V v, A a) { return Operands{cat(b, v, get<int64_t>(a, "axis", 0))}; }},
    {"stack", "joins tensors of one shape along a new axis (0)", 1, CompositeDef::kAny, kJoin,
     [](B b, V v, A a) { return Operands{stack(b, v, get<int64_t>(a, "axis", 0))}; }},
    {"chunk",
     "splits an axis (0) into pieces of ceil(n / chunks): one result per piece. An extent known "
     "only at run time gives exactly `chunks` pieces; the last ones may be empty",
     1, 0, kChunk,
     [](B b, V v, A a) {
       return chunk(b, v[0], need<int64_t>(a, "chunks"), get<int64_t>(a, "axis", 0));
     }},
    {"repeat",
     "the tensor repeated `repeats` times along each axis; additional entries give new axes in "
     "front",
     1, 0, kRepeat,
     [](B b, V v, A a) {
       return Operands{repeat(b, v[0], need<std::vector<Size>>(a, "repeats"))};
     }},
};

}  // namespace

std::span<const CompositeDef> shapes() { return kShapes; }

}  // namespace heddle::composite_rows
