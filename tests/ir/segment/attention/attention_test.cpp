// Tests which attentions of a fusion become a library call. Also tests the notes that say why the
// other attentions do not.
#include "ir/segment/attention/attention.h"

#include <gtest/gtest.h>

#include "ir/base/check.h"
#include "ir/composite/composite.h"
#include "ir/graph/remove_dead.h"
#include "ir/graph/rewrite.h"
#include "ir/segment/segment.h"
#include "ir/text/fusion_text.h"

namespace heddle::attention_test {
namespace {

using Names = std::vector<std::string>;

Names valueNames(const Fusion& fusion, const std::vector<ValueId>& ids) {
  Names result;
  for (ValueId id : ids) result.push_back(fusion.value(id).name);
  return result;
}

bool anyContains(const Names& texts, const std::string& part) {
  for (const std::string& text : texts) {
    if (text.find(part) != std::string::npos) return true;
  }
  return false;
}

// Segments a fusion for a library that accepts every attention. `call` is the text of the arguments
// of the attention. `more` is the text after the attention.
SegmentedFusion withLibrary(const std::string& call, const std::string& more = "",
                            const std::string& dtype = "bf16") {
  SegmentOptions options;
  options.attention = [](const Fusion&, const Attention&) { return std::string(); };
  const std::string text = fmt::format(
      "heddle 1\nfusion f(%q: {0}[h, t, e], %k: {0}[h, s, e], %v: {0}[h, s, d], "
      "%m: bool[t, s], %w: {0}[2*h, t, e]) {{\n  %y = scaled_dot_product_attention({1})\n{2}"
      "  return %y\n}}\n",
      dtype, call, more);
  return segment(removeDead(parseFusion(text)), options);
}

TEST(AttentionCalls, ForwardIsOneLibraryGroup) {
  for (const bool causal : {false, true}) {
    for (const char* scale : {"", ", scale=0.5"}) {
      const SegmentedFusion segmented =
          withLibrary(fmt::format("%q, %k, %v, causal={}{}", causal, scale));
      ASSERT_EQ(segmented.groups.size(), 1u) << dumpText(segmented);
      EXPECT_TRUE(segmented.notes.empty());
      const Group& group = segmented.groups[0];
      EXPECT_EQ(group.kind, GroupKind::Library);
      ASSERT_TRUE(group.attention.has_value());
      EXPECT_EQ(group.attention->causal, causal);
      EXPECT_EQ(group.attention->scale.value_or(0), scale[0] == 0 ? 0 : 0.5);
      EXPECT_EQ(valueNames(segmented.fusion,
                           {group.attention->q, group.attention->k, group.attention->v}),
                (Names{"q", "k", "v"}));
      EXPECT_EQ(valueNames(segmented.fusion, group.outputs), Names{"y"});
      EXPECT_NE(dumpText(segmented).find("g0: library, cudnn attention"), std::string::npos);
    }
  }
}

// Writes a causal attention as single ops. Returns why it is not a library call, or "" if it is
// one. k and v have 128 rows. `rows` is the number of rows of the causal mask, and `wide` is the
// dtype of the scores.
std::string byHand(int queries, int rows, const char* wide) {
  const std::string text = fmt::format(
      "heddle 1\nfusion f(%q: bf16[{0}, 16], %k: bf16[128, 16], %v: bf16[128, 16]) {{\n"
      "  %qw = cast(%q, dtype={2})\n  %kw = cast(%k, dtype={2})\n"
      "  %kt = permute(%kw, axes=[1, 0])\n  %raw = matmul(%qw, %kt)\n  %s0 = mul(%raw, 0.25)\n"
      "  %i0 = iota(sizes=[{1}], axis=0)\n  %row = broadcast(%i0, axes=[1])\n"
      "  %i1 = iota(sizes=[128], axis=0)\n  %col = broadcast(%i1, axes=[0])\n"
      "  %keep = le(%col, %row)\n  %s = where(%keep, %s0, -inf)\n"
      "  %t = max(%s, axes=[1], keepdim=true)\n  %e = eq(%t, -inf)\n  %z = where(%e, 0.0, %t)\n"
      "  %d = sub(%s, %z)\n  %x = exp(%d)\n  %u = sum(%x, axes=[1], keepdim=true)\n"
      "  %r = div(%x, %u)\n  %p = where(%e, 0.0, %r)\n  %vw = cast(%v, dtype=f32)\n"
      "  %o = matmul(%p, %vw)\n  %y = cast(%o, dtype=bf16)\n  return %y\n}}\n",
      queries, rows, wide);
  const std::vector<Attention> found = attentionsOf(parseFusion(text));
  return found.size() == 1 ? found[0].why_not : "not found";
}

TEST(AttentionCalls, SimilarOpsAreNotAttention) {
  EXPECT_EQ(byHand(128, 128, "f32"), "");
  EXPECT_EQ(byHand(128, 1, "f32"), "a mask other than the causal one");
  EXPECT_EQ(byHand(128, 128, "i32"), "its ops are not those of scaled_dot_product_attention");
  EXPECT_EQ(byHand(1, 128, "f32"), "axis 0 of %y is broadcast");
}

TEST(AttentionCalls, ForwardWithSharedHeadsIsOneLibraryGroup) {
  for (const char* rest : {"", ", causal=true, scale=0.5"}) {
    const SegmentedFusion segmented = withLibrary(fmt::format("%w, %k, %v, gqa=true{}", rest));
    ASSERT_EQ(segmented.groups.size(), 1u) << dumpText(segmented);
    ASSERT_TRUE(segmented.groups[0].attention.has_value());
    EXPECT_TRUE(segmented.groups[0].attention->gqa);
    EXPECT_EQ(valueNames(segmented.fusion, segmented.groups[0].attention->operands()),
              (Names{"w", "k", "v"}));
  }
  // Changes the text so that the reshape of the shared heads gives 6 groups of 4 heads instead of 4
  // groups of 6.
  std::string text = print(
      parseFusion("heddle 1\nfusion f(%q: f16[4, 6, 8], %k: f16[2, 5, 8], %v: f16[2, 5, 8]) {\n"
                  "  %y = scaled_dot_product_attention(%q, %k, %v, gqa=true)\n  return %y\n}\n"));
  for (const char* sizes : {"sizes=[4, 6, 5]", "sizes=[4, 6, 8]"}) {
    const size_t at = text.find(sizes);
    ASSERT_NE(at, std::string::npos) << text;
    text.replace(at, 12, "sizes=[6, 4,");
  }
  SegmentOptions options;
  options.attention = [](const Fusion&, const Attention&) { return std::string(); };
  const SegmentedFusion segmented = segment(parseFusion(text), options);
  EXPECT_TRUE(anyContains(segmented.notes, "its ops are not those")) << dumpText(segmented);
}

TEST(AttentionCalls, NotesSayWhyAForwardStaysOps) {
  const auto noted = [](const SegmentedFusion& segmented, const std::string& why) {
    EXPECT_TRUE(anyContains(segmented.notes, "is not one library call: " + why))
        << dumpText(segmented);
    for (const Group& group : segmented.groups) EXPECT_FALSE(group.attention.has_value());
    EXPECT_NE(dumpText(segmented).find(why), std::string::npos);
  };
  noted(withLibrary("%q, %k, %v, %m"), "a mask other than the causal one");
  noted(withLibrary("%q, %k, %v", "", "f32"), "its result is f32");
  const Fusion fusion = parseFusion(
      "heddle 1\nfusion f(%q: bf16[t, e], %k: bf16[t, e], %v: bf16[t, e]) {\n"
      "  %y = scaled_dot_product_attention(%q, %k, %v)\n  return %y\n}\n");
  SegmentOptions options;
  options.attention = [](const Fusion&, const Attention&) { return std::string("not today"); };
  noted(segment(fusion, options), "not today");
  EXPECT_TRUE(segment(fusion).notes.empty());  // there is no library that could refuse the
                                               // attention
}

// Segments the backward of an attention, which returns the values `returned`. The library accepts
// every attention, as in withLibrary().
SegmentedFusion backwardWithLibrary(const std::string& call, const std::string& returned,
                                    const std::string& dtype = "bf16") {
  SegmentOptions options;
  options.attention = [](const Fusion&, const Attention&) { return std::string(); };
  const std::string text = fmt::format(
      "heddle 1\nfusion f(%g: {0}[h, t, d], %q: {0}[h, t, e], %k: {0}[h, s, e], %v: {0}[h, s, d], "
      "%m: bool[t, s], %w: {0}[2*h, t, e], %u: {0}[2*h, t, d], %l: {0}[1, s, e]) {{\n"
      "  %dq, %dk, %dv = scaled_dot_product_attention_backward({1})\n  return {2}\n}}\n",
      dtype, call, returned);
  return segment(removeDead(parseFusion(print(parseFusion(text)))), options);
}

TEST(AttentionCalls, BackwardIsOneLibraryGroup) {
  for (const bool causal : {false, true}) {
    for (const char* scale : {"", ", scale=0.5"}) {
      const SegmentedFusion segmented = backwardWithLibrary(
          fmt::format("%g, %q, %k, %v, causal={}{}", causal, scale), "%dv, %dq, %dk");
      ASSERT_EQ(segmented.groups.size(), 1u) << dumpText(segmented);
      const Group& group = segmented.groups[0];
      ASSERT_TRUE(group.attention.has_value());
      EXPECT_TRUE(group.attention->backward);
      EXPECT_EQ(group.attention->causal, causal);
      EXPECT_EQ(group.attention->scale.value_or(0), scale[0] == 0 ? 0 : 0.5);
      EXPECT_EQ(valueNames(segmented.fusion, group.attention->operands()),
                (Names{"g", "q", "k", "v"}));
      EXPECT_EQ(valueNames(segmented.fusion, group.attention->results), (Names{"dq", "dk", "dv"}));
      EXPECT_EQ(group.outputs.size(), 3u);
      EXPECT_NE(dumpText(segmented).find("g0: library, cudnn attention backward"),
                std::string::npos);
    }
  }
}

TEST(AttentionCalls, NotesSayWhyABackwardStaysOps) {
  const auto noted = [](const SegmentedFusion& segmented, const std::string& why) {
    ASSERT_EQ(segmented.notes.size(), 1u) << why;
    EXPECT_NE(segmented.notes[0].find("attention backward of %"), std::string::npos);
    EXPECT_NE(segmented.notes[0].find(" is not one library call: " + why), std::string::npos)
        << segmented.notes[0];
    for (const Group& group : segmented.groups) EXPECT_FALSE(group.attention.has_value());
  };
  const std::string all = "%dq, %dk, %dv";
  noted(backwardWithLibrary("%g, %q, %k, %v, %m", all), "a mask other than the causal one");
  noted(backwardWithLibrary("%g, %q, %k, %v", all, "f32"), "its results are f32");
  noted(backwardWithLibrary("%u, %w, %k, %v, gqa=true", all), "heads of q share those of k");
  noted(backwardWithLibrary("%g, %q, %l, %v", all), "an operand is broadcast");
  noted(backwardWithLibrary("%g, %q, %k, %v", "%dq, %dk"), "the gradient of v is not read");
  noted(backwardWithLibrary("%g, %q, %k, %v", "%dv"), "the gradients of q and k are not read");
  noted(backwardWithLibrary("%g, %q, %k, %v", "%dv, %dk"), "the gradient of q is not read");
  noted(backwardWithLibrary("%g, %q, %k, %v", "%dv, %dq"), "the gradient of k is not read");
}

// Moves the ops so that v is computed from the gradient of v. The builder never creates such a
// fusion.
TEST(AttentionCalls, BackwardThatReadsItsOwnResultStaysOps) {
  const Fusion whole = parseFusion(
      "heddle 1\nfusion f(%g: f16[t, e], %q: f16[t, e], %k: f16[t, e], %v: f16[t, e]) {\n"
      "  %dq, %dk, %dv = scaled_dot_product_attention_backward(%g, %q, %k, %v, scale=0.5)\n"
      "  return %dq, %dk, %dv\n}\n");
  const ExprId dv = whole.value(whole.find("dv").value()).definition;
  std::string text = print(whole);
  const auto cutLine = [&](const std::string& part) {
    const size_t at = text.find(part);
    EXPECT_NE(at, std::string::npos) << part;
    const size_t begin = text.rfind('\n', at) + 1;
    const size_t end = text.find('\n', at) + 1;
    std::string line = text.substr(begin, end - begin);
    text.erase(begin, end - begin);
    return line;
  };
  const std::string product = "%" + whole.value(whole.expr(dv).inputs[0]).name + " = matmul";
  const std::string rounded = cutLine("%dv = cast(");
  std::string widened = cutLine(" = cast(%v, dtype=f32)");
  widened.replace(widened.find("%v"), 2, "%w");
  const size_t behind = text.find('\n', text.find(product)) + 1;
  text.insert(behind, rounded + "  %w = neg(%dv)\n" + widened);
  SegmentOptions options;
  options.attention = [](const Fusion&, const Attention&) { return std::string(); };
  const SegmentedFusion segmented = segment(parseFusion(text), options);
  EXPECT_TRUE(anyContains(segmented.notes, "its operands depend on its results"))
      << dumpText(segmented);
}

// Returns the result of the forward that the library call of the backward reads. The result of the
// forward is on the mesh `y`, and dq, dk and dv are on the mesh `gradients`. kNoMesh: the value has
// no sharding.
ValueId forwardOnMeshes(MeshId y, MeshId gradients) {
  Fusion fusion = parseFusion(
      "heddle 1\nmesh @a = [x=2] ranks=[0, 1]\n"
      "fusion f(%g: f16[t, e], %q: f16[t, e], %k: f16[t, e], %v: f16[t, e]) {\n"
      "  %y = scaled_dot_product_attention(%q, %k, %v)\n"
      "  %dq, %dk, %dv = scaled_dot_product_attention_backward(%g, %q, %k, %v)\n"
      "  return %y, %dq, %dk, %dv\n}\n");
  const auto place = [&](const char* name, MeshId mesh) {
    if (mesh == kNoMesh) return;
    fusion.setSharding(fusion.find(name).value(), Sharding{mesh, {{}, {}}, {}, {}});
  };
  place("y", y);
  for (const char* name : {"dq", "dk", "dv"}) place(name, gradients);
  SegmentOptions options;
  options.attention = [](const Fusion&, const Attention&) { return std::string(); };
  const SegmentedFusion segmented = segment(fusion, options);
  EXPECT_EQ(segmented.groups.size(), 2u) << dumpText(segmented);
  for (const Group& group : segmented.groups) {
    if (group.attention && group.attention->backward) return group.attention->forward;
  }
  ADD_FAILURE() << dumpText(segmented);
  return kNoValue;
}

TEST(AttentionCalls, BackwardReadsOnlyAForwardOnItsOwnRanks) {
  EXPECT_NE(forwardOnMeshes(kNoMesh, kNoMesh), kNoValue);
  EXPECT_NE(forwardOnMeshes(kNoMesh, MeshId(0)), kNoValue);
  EXPECT_NE(forwardOnMeshes(MeshId(0), MeshId(0)), kNoValue);
  EXPECT_EQ(forwardOnMeshes(MeshId(0), kNoMesh), kNoValue);
}

TEST(AttentionCalls, IntermediateWithOtherReadersIsComputed) {
  FusionBuilder b("f");
  TensorView type;
  type.dtype = DType::F16;
  type.domain = {{Size::symbol("t"), IterKind::Iteration}, {Size(64), IterKind::Iteration}};
  const ValueId q = b.input("q", type);
  b.output(attention(b, q, q, q));
  Fusion fusion = std::move(b).build();
  for (const Expression& expr : fusion.exprs()) {
    if (expr.op->name != "exp") continue;
    const std::vector<Attention> before = attentionsOf(fusion);
    ASSERT_EQ(before.size(), 1u);
    EXPECT_EQ(before[0].why_not, "");
    FusionRewriter rewriter(fusion);
    rewriter.inputs();
    for (ExprId id : fusion.exprs().ids()) rewriter.copy(id);
    rewriter.output(expr.outputs[0]);
    rewriter.output(fusion.outputs()[0]);
    const std::vector<Attention> after = attentionsOf(std::move(rewriter).finishPart());
    ASSERT_EQ(after.size(), 1u);
    EXPECT_NE(after[0].why_not.find("is an output of the fusion"), std::string::npos)
        << after[0].why_not;
  }
}

}  // namespace
}  // namespace heddle::attention_test
