// The members of InstructionParser for instructions in which other ranks take part.
#include <fmt/format.h>

#include "host/text/parse_instruction.h"
#include "host/text/text_names.h"
#include "ir/base/check.h"
#include "ir/text/text_pieces.h"

namespace heddle::host {

Op InstructionParser::communicate(TokenId token) {
  Communicate out;
  out.token = token;
  out.kind = parseOneOf(in_, kCollectives,
                        "allreduce, reduce, broadcast, allgather, gather, scatter, reduce_scatter, "
                        "all_to_all, all_to_all_v, send or barrier");
  out.in = out.out = kNoSlot;
  if (out.kind != comm::CollectiveKind::Barrier) {
    out.in = slot();
    arrow();
    out.out = slot();
    while (in_.acceptSymbol(",")) {
      const SlotId in = slot();
      arrow();
      out.also.push_back({in, slot()});
    }
  }
  out.team = team();
  if (acceptKey("op")) {
    out.reduce = in_.at(TokenKind::Word) ? reduceOpFromName(in_.peek().text) : std::nullopt;
    if (!out.reduce) in_.fail("a reduction: sum, prod, min, max or avg");
    in_.next();
  }
  if (acceptKey("root")) out.root = parseSize(in_);
  if (acceptKey("send_counts")) out.send_counts = slot();
  if (acceptKey("recv_counts")) out.recv_counts = slot();
  out.carrier.ctas = countOf("ctas", kMostCtas);
  out.carrier.copy_channel = countOf("lane", kMostCopyChannels);
  out.stream = stream();
  return out;
}

// If `KEY=` comes next in the text, consumes it and returns true. Otherwise returns false.
bool InstructionParser::acceptKey(std::string_view key) {
  if (!in_.acceptWord(key)) return false;
  in_.expectSymbol("=");
  return true;
}

template <class Transfer>
Op InstructionParser::transfer(std::optional<TokenId> token, std::string_view peer_key) {
  Transfer out;
  out.token = token;
  out.slot = slot();
  in_.expectWord(peer_key);
  in_.expectSymbol("=");
  out.peer = parseSize(in_);
  out.team = team();
  out.stream = stream();
  return out;
}

Op InstructionParser::send(std::optional<TokenId> token) { return transfer<Send>(token, "to"); }

Op InstructionParser::recv(std::optional<TokenId> token) { return transfer<Recv>(token, "from"); }

Team InstructionParser::team() {
  Team out;
  if (!in_.acceptWord("team")) return out;
  in_.expectSymbol("=");
  out.mesh = parseMeshRef(in_, program_.meshes);
  if (!in_.acceptSymbol("[")) return out;
  do {
    const Token at = in_.peek();
    const std::string axis = in_.expectName(TokenKind::Word, "a mesh axis: x, y or z");
    const DeviceMesh& mesh = program_.meshes[out.mesh];
    for (MeshAxis candidate : {MeshAxis::X, MeshAxis::Y, MeshAxis::Z}) {
      if (name(candidate) == axis && mesh.has(candidate)) out.axes.push_back(candidate);
    }
    if (out.axes.empty() || name(out.axes.back()) != axis) {
      in_.failAt(at, fmt::format("mesh @{} has no axis {}", mesh.name, axis));
    }
  } while (in_.acceptSymbol(","));
  if (!in_.acceptSymbol("]")) in_.fail("',' or ']'");
  return out;
}

}  // namespace heddle::host
