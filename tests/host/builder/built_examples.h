#pragma once

#include "host/builder/program_builder.h"

// Builds programs of examples/ with ProgramBuilder.
namespace heddle::host::testing {

inline Fusion kernelOf(const Program& program, size_t index) {
  return program.kernels[KernelId(index)].segment;
}

inline Program inPlaceLoop(const Program& example) {
  ProgramBuilder b;
  const KernelRef add = b.kernel("add", kernelOf(example, 0));
  const SlotRef x = b.input("x", {DType::F32, {"n"}});
  const SlotRef y = b.allocate(b.tensor("y", {DType::F32, {"n"}}));
  const SlotRef s = b.scalar("s", DType::F64);
  b.sizeDefault("n", 1000);
  b.copy(x, y);
  b.loop(3, [&](Index i) {
    b.evaluate(s, 2 * i + 1);
    b.launch(add, {y, s}, {y});
  });
  b.output(y);
  return std::move(b).build();
}

inline Program ringAllgather() {
  ProgramBuilder b;
  const MeshRef m = b.mesh({"m", {{MeshAxis::X, DeviceMesh::kFromJob}}, {}});
  const Size count = b.extent(m, MeshAxis::X);
  const StreamId stream(1);
  const SlotRef x = b.input("x", {DType::F32, {count, "c"}, b.shard(m, {{MeshAxis::X}})});
  const SlotRef y = b.tensor("y", {DType::F32, {count, "c"}});
  const SlotRef buf = b.tensor("buf", {DType::F32, {2, 1, "c"}});
  const SlotRef mine = b.tensor("mine", {DType::F32, {1, "c"}});
  const SlotRef current = b.tensor("current", {DType::F32, {1, "c"}});
  const SlotRef next = b.tensor("next", {DType::F32, {1, "c"}});
  const SlotRef row = b.tensor("row", {DType::F32, {1, "c"}});
  const TokenRef hop = b.token("hop");
  const EventRef ready = b.event("ready");
  b.output(y);
  b.sizeDefault("c", 64);
  const auto rowOf = [&](const Size& rank) {
    b.alias(row, y, Alias::Slice{{rank, 0}, {rank + 1, "c"}});
    b.copy(current, row);
  };
  b.allocate(y);
  b.allocate(buf);
  b.alias(mine, x, Alias::Reshape{});
  b.alias(current, buf, Alias::Index{0});
  b.copy(mine, current);
  b.loop(b.ranks() - 1, [&](const Index& i) {
    b.wait(hop);
    b.recordEvent(ready);
    b.alias(current, buf, Alias::Index{Size::mod(i, 2)});
    b.alias(next, buf, Alias::Index{Size::mod(i + 1, 2)});
    b.waitEvent(ready, stream);
    const TransferOptions transfer{.team = b.team(m, {MeshAxis::X}), .stream = stream};
    b.group(
        [&] {
          b.send(current, Size::mod(b.rank() + 1, b.ranks()), transfer);
          b.recv(next, Size::mod(b.rank() + b.ranks() - 1, b.ranks()), transfer);
        },
        hop);
    rowOf(Size::mod(b.rank() + b.ranks() - i, b.ranks()));
  });
  b.wait(hop);
  b.alias(current, buf, Alias::Index{Size::mod(b.ranks() - 1, 2)});
  rowOf(Size::mod(b.rank() + 1, b.ranks()));
  b.free(buf);
  return std::move(b).build();
}

inline Program unevenExchange(const Program& example) {
  ProgramBuilder b;
  const MeshRef m = b.mesh({"m", {{MeshAxis::X, DeviceMesh::kFromJob}}, {}});
  const KernelRef count = b.kernel("count", kernelOf(example, 0));
  const KernelRef twice = b.kernel("double", kernelOf(example, 1));
  const Size members = b.extent(m, MeshAxis::X);
  const TensorType rows{DType::F32, {members, "c"}, b.shard(m, {{MeshAxis::X}})};
  const SlotRef x = b.input("x", rows);
  const SlotRef me = b.scalar("me", DType::I64);
  const SlotRef s = b.tensor("s", {DType::I64, {members}});
  const SlotRef r = b.tensor("r", {DType::I64, {members}});
  const SlotRef sends = b.list("sends", members);
  const SlotRef receives = b.list("receives", members);
  const SlotRef there = b.tensor("there", {DType::F32, {1, "c"}});
  const SlotRef doubled = b.tensor("doubled", {DType::F32, {1, "c"}});
  const SlotRef y = b.tensor("y", rows);
  b.output(y);
  b.sizeDefault("c", 64);
  b.evaluate(me, b.rank());
  b.allocate(s);
  b.allocate(r);
  b.launch(count, {me}, {s, r});
  b.readBack(sends, s);
  b.readBack(receives, r);
  b.free(s);
  b.free(r);
  for (const SlotRef& slot : {y, there, doubled}) b.allocate(slot);
  b.copy(x, y);
  const auto exchange = [&](SlotRef from, SlotRef to, SlotRef sent, SlotRef received,
                            const char* token) {
    b.wait(b.communicate(comm::CollectiveKind::AllToAllV, from, to,
                         {.team = b.team(m, {MeshAxis::X}),
                          .send_counts = sent,
                          .recv_counts = received,
                          .token = b.token(token)}));
  };
  exchange(x, there, sends, receives, "out");
  b.launch(twice, {there}, {doubled});
  exchange(doubled, y, receives, sends, "back");
  b.free(there);
  b.free(doubled);
  return std::move(b).build();
}

}  // namespace heddle::host::testing
