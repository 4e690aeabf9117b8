#include <ATen/ATen.h>
#include <torch/nn.h>

#include "module_case.hpp"

namespace hortator::testing {
namespace {

namespace nn = torch::nn;

at::Tensor ids() { return at::randint(20, {3, 5}, at::kLong); }

}  // namespace

TEST_CASE("Linear layers can be paged", "[modules]") {
  check_paged("2d", [] {
    nn::Linear m(6, 4);
    return subject(m, [m, x = input({3, 6})]() mutable { return m(x); });
  });
  check_paged("3d", [] {
    nn::Linear m(6, 4);
    return subject(m, [m, x = input({2, 3, 6})]() mutable { return m(x); });
  });
  check_paged("used twice", [] {
    nn::Linear m(6, 6);
    return subject(m, [m, x = input({3, 6})]() mutable { return m(m(x).relu()); });
  });
  check_paged("bilinear", [] {
    nn::Bilinear m(3, 4, 5);
    return subject(m, [m, a = input({2, 3}), b = input({2, 4})]() mutable { return m(a, b); });
  });
  check_paged("frozen", [] {
    nn::Linear a(6, 6);
    nn::Linear b(6, 6);
    a->weight.requires_grad_(false);
    nn::Sequential net(a, b);
    return subject(net, [net, x = input({3, 6})]() mutable { return net->forward(x); });
  });
  check_paged("tied", [] {
    nn::Embedding tokens(20, 8);
    nn::Linear head(nn::LinearOptions(8, 20).bias(false));
    head->weight = tokens->weight;
    return Subject{.tensors = {{.name = "tokens", .tensor = tokens->weight}, {.name = "head", .tensor = head->weight}},
                   .forward = [tokens, head, at = ids()]() mutable { return head(tokens(at)); }};
  });
}

TEST_CASE("Convolutions can be paged", "[modules]") {
  check_paged("Conv1d", [] {
    nn::Conv1d m(3, 4, 3);
    return subject(m, [m, x = input({2, 3, 9})]() mutable { return m(x); });
  });
  check_paged("Conv2d", [] {
    nn::Conv2d m(nn::Conv2dOptions(4, 6, 3).padding(1).groups(2));
    return subject(m, [m, x = input({2, 4, 7, 7})]() mutable { return m(x); });
  });
  check_paged("ConvTranspose2d", [] {
    nn::ConvTranspose2d m(3, 4, 3);
    return subject(m, [m, x = input({2, 3, 5, 5})]() mutable { return m(x); });
  });
}

TEST_CASE("Normalisations can be paged, with their buffers", "[modules]") {
  for (const bool training : {true, false}) {
    for (const bool buffers : {true, false}) {
      check_paged("BatchNorm2d", [=] {
        nn::BatchNorm2d m(4);
        m->train(training);
        return subject(
            m, [m, x = input({3, 4, 5, 5})]() mutable { return m(x); }, buffers);
      });
    }
  }
  check_paged("InstanceNorm1d with statistics", [] {
    nn::InstanceNorm1d m(nn::InstanceNorm1dOptions(4).affine(true).track_running_stats(true));
    return subject(
        m, [m, x = input({3, 4, 5})]() mutable { return m(x); }, true);
  });
  check_paged("LayerNorm", [] {
    nn::LayerNorm m(nn::LayerNormOptions({6}));
    return subject(m, [m, x = input({3, 6})]() mutable { return m(x); });
  });
  check_paged("GroupNorm", [] {
    nn::GroupNorm m(2, 6);
    return subject(m, [m, x = input({3, 6, 4})]() mutable { return m(x); });
  });
  check_paged("PReLU", [] {
    nn::PReLU m;
    return subject(m, [m, x = input({3, 6})]() mutable { return m(x); });
  });
}

TEST_CASE("Embeddings can be paged", "[modules]") {
  check_paged("Embedding", [] {
    nn::Embedding m(nn::EmbeddingOptions(20, 6).padding_idx(2));
    return subject(m, [m, at = ids()]() mutable { return m(at); });
  });
  check_paged("sparse gradients", [] {
    nn::Embedding m(nn::EmbeddingOptions(20, 6).sparse(true));
    return subject(m, [m, at = ids()]() mutable { return m(at); });
  });
  check_paged("max_norm changes the weight in forward", [] {
    nn::Embedding m(nn::EmbeddingOptions(20, 6).max_norm(0.5));
    return subject(m, [m, at = ids()]() mutable { return m(at); });
  });
  check_paged("EmbeddingBag", [] {
    nn::EmbeddingBag m(nn::EmbeddingBagOptions(20, 6).mode(torch::kSum));
    return subject(m, [m, at = ids()]() mutable { return m(at); });
  });
}

TEST_CASE("Recurrent layers can be paged", "[modules]") {
  check_paged("LSTM", [] {
    nn::LSTM m(nn::LSTMOptions(5, 4).num_layers(2).bidirectional(true));
    return subject(m, [m, x = input({6, 2, 5})]() mutable { return std::get<0>(m(x)); });
  });
  check_paged("LSTM without gradients", [] {
    nn::LSTM m(5, 4);
    return subject(m, [m, x = at::randn({6, 2, 5})]() mutable {
      const at::NoGradGuard no_grad;
      return std::get<0>(m(x));
    });
  });
  check_paged("GRU with dropout", [] {
    nn::GRU m(nn::GRUOptions(5, 4).num_layers(2).dropout(0.3));
    return subject(m, [m, x = input({6, 2, 5})]() mutable { return std::get<0>(m(x)); });
  });
  check_paged("LSTMCell", [] {
    nn::LSTMCell m(5, 4);
    return subject(m, [m, x = input({2, 5})]() mutable { return std::get<0>(m(x, m(x))); });
  });
}

TEST_CASE("Attention can be paged", "[modules]") {
  check_paged("self", [] {
    nn::MultiheadAttention m(8, 2);
    return subject(m, [m, x = input({5, 2, 8})]() mutable { return std::get<0>(m(x, x, x)); });
  });
  check_paged("cross, with widths of its own", [] {
    nn::MultiheadAttention m(nn::MultiheadAttentionOptions(8, 2).kdim(6).vdim(6));
    return subject(m, [m, q = input({5, 2, 8}), k = input({4, 2, 6}), v = input({4, 2, 6})]() mutable {
      return std::get<0>(m(q, k, v));
    });
  });
  check_paged("TransformerEncoder in training", [] {
    nn::TransformerEncoder m(
        nn::TransformerEncoderOptions(nn::TransformerEncoderLayerOptions(8, 2).dim_feedforward(16).dropout(0.2), 2));
    return subject(m, [m, x = input({5, 2, 8})]() mutable { return m(x); });
  });
  check_paged("TransformerEncoder in evaluation", [] {
    nn::TransformerEncoder m(
        nn::TransformerEncoderOptions(nn::TransformerEncoderLayerOptions(8, 2).dim_feedforward(16), 2));
    m->eval();
    return subject(m, [m, x = at::randn({5, 2, 8})]() mutable {
      const at::NoGradGuard no_grad;
      return m(x);
    });
  });
  check_paged("the encoder layer's fast path: one operator", [] {
    nn::TransformerEncoderLayer m(nn::TransformerEncoderLayerOptions(8, 2).dim_feedforward(16));
    m->eval();
    return subject(m, [m, x = at::randn({2, 5, 8})] {
      const at::NoGradGuard no_grad;
      const auto& attention = m->self_attn;
      return at::_transformer_encoder_layer_fwd(
          x, 8, 2, attention->in_proj_weight, attention->in_proj_bias, attention->out_proj->weight,
          attention->out_proj->bias, false, false, 1e-5, m->norm1->weight, m->norm1->bias, m->norm2->weight,
          m->norm2->bias, m->linear1->weight, m->linear1->bias, m->linear2->weight, m->linear2->bias, {}, {});
    });
  });
  check_paged("scaled_dot_product_attention of parameters", [] {
    const auto k = input({2, 4, 8});
    const auto v = input({2, 4, 8});
    return Subject{.tensors = {{.name = "k", .tensor = k}, {.name = "v", .tensor = v}},
                   .forward = [k, v, q = input({2, 5, 8})] { return at::scaled_dot_product_attention(q, k, v); }};
  });
}

}  // namespace hortator::testing
