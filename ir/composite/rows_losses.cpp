#include "ir/composite/rows.h"

namespace heddle::composite_rows {
namespace {

constexpr AttrSpec kEntropy[] = {{"reduction", AttrType::Name, false},
                                 {"ignore_index", AttrType::Int, false},
                                 {"label_smoothing", AttrType::Float, false}};
constexpr AttrSpec kReduction[] = {{"reduction", AttrType::Name, false}};
constexpr AttrSpec kEmbedding[] = {{"num_embeddings", AttrType::Int},
                                   {"padding_idx", AttrType::Int, false}};

CrossEntropyOptions entropyOptions(std::string_view op_name, A a, ValueId weight) {
  return {lossReduction(op_name, a), get<int64_t>(a, "ignore_index", -100),
          get(a, "label_smoothing", 0.0), weight};
}

Operands embeddingBackwardRow(B b, V v, A a) {
  return {embeddingBackward(b, v[0], v[1], Size(need<int64_t>(a, "num_embeddings")),
                            maybe<int64_t>(a, "padding_idx"))};
}

const CompositeDef kLosses[] = {
    {"cross_entropy",
     "(x, target[, weight]): logits x[n, c, ...]; target holds class indices, or probabilities in "
     "the shape of x; weight[c] weights the classes. A class that is out of range "
     "gives NaN, unless it equals `ignore_index`; PyTorch raises an error",
     2, 1, kEntropy,
     [](B b, V v, A a) {
       return Operands{crossEntropy(b, v[0], v[1], entropyOptions("cross_entropy", a, at(v, 2)))};
     }},
    {"cross_entropy_backward", "gradient of x: (dloss, x, target[, weight])", 3, 1, kEntropy,
     [](B b, V v, A a) {
       return Operands{crossEntropyBackward(b, v[0], v[1], v[2],
                                            entropyOptions("cross_entropy_backward", a, at(v, 3)))};
     }},
    {"mse_loss", "mean squared difference; the operands are broadcast", 2, 0, kReduction,
     [](B b, V v, A a) { return Operands{mseLoss(b, v[0], v[1], lossReduction("mse_loss", a))}; }},
    {"embedding_backward",
     "gradient of weight: (dy, index), added in the order of the indices. The row padding_idx gets "
     "no gradient; a negative padding_idx counts from the end",
     2, 0, kEmbedding, embeddingBackwardRow},
};

}  // namespace

std::span<const CompositeDef> losses() { return kLosses; }

}  // namespace heddle::composite_rows
