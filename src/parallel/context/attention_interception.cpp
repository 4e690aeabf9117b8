#include "parallel/context/attention_interception.hpp"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/scaled_dot_product_attention_native.h>

#include <atomic>
#include <hortator/error.hpp>
#include <mutex>
#include <optional>

#include "interception/composite_kernel.hpp"
#include "parallel/context/context_attention.hpp"
#include "parallel/context/divided_sequence.hpp"
#include "runtime/sequence/divided_sequence.hpp"

namespace hortator::parallel {
namespace {

std::atomic<const DividedAttention*> divided = nullptr;
std::atomic<int> intercepted = 0;
std::atomic<int> forwards = 0;
thread_local bool is_inside = false;  // in context_attention, which attends to gathered keys

struct Inside {
  Inside() { is_inside = true; }
  ~Inside() { is_inside = false; }
};

at::Tensor attention(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                     const std::optional<at::Tensor>& mask, double dropout, bool is_causal, std::optional<double> scale,
                     bool groups_heads) {
  ++intercepted;
  const auto* scope = divided.load();
  if (scope == nullptr || is_inside) {
    return at::native::scaled_dot_product_attention(queries, keys, values, mask, dropout, is_causal, scale,
                                                    groups_heads);
  }
  const Inside here;
  const auto given = mask && mask->defined() ? mask : std::nullopt;
  return context_attention(queries, keys, values,
                           {.mask = given,
                            .dropout = dropout,
                            .is_causal = is_causal,
                            .scale = scale,
                            .groups_heads = groups_heads,
                            .form = scope->form()},
                           scope->layout(), scope->group());
}

void check() {
  const int before = intercepted;
  const auto part = at::ones({1, 1, 2, 2});
  at::scaled_dot_product_attention(part, part, part);
  at::scaled_dot_product_attention(part.clone().requires_grad_(), part, part);
  if (intercepted == before + 2) return;
  throw Error({.what = "scaled_dot_product_attention of this LibTorch cannot be intercepted",
               .why = "context parallelism computes it over the sequences of several ranks",
               .hint = "use a LibTorch with which Hortator was tested, or leave parallel.context out"});
}

void start_interception() {
  static std::once_flag once;
  std::call_once(once, [] {
    interception::compute_composite<&attention>("scaled_dot_product_attention");
    check();
  });
}

at::Tensor positions_of(const SequenceLayout& layout, int rank) {
  return part_of_sequence(at::arange(layout.length(), at::kLong), 0, layout, rank);
}

}  // namespace

DividedAttention::DividedAttention(const SequenceLayout& layout, const RankGroup& group, ContextAttention form)
    : layout_(layout), group_(group), form_(form) {
  start_interception();
  intercepted_before_ = intercepted;
  forwards_before_ = forwards;
  const DividedAttention* none = nullptr;
  if (!divided.compare_exchange_strong(none, this)) {
    throw UsageError({.what = "maybe_context_parallel was called within another one",
                      .why = "a sequence is divided once",
                      .hint = "end the first one before"});
  }
  runtime::set_divided_sequence(runtime::DividedSequence{
      .positions = positions_of(layout, group.index()),
      .length = layout.length(),
      .tokens_at =
          [layout, &group](const at::Tensor& states, const at::Tensor& positions) {
            return tokens_at(states, positions, layout, group.communicator_of(states));
          },
      .whole =
          [layout, &group](const at::Tensor& own) {
            return gather_sequence(own.detach(), 1, layout, group.communicator_of(own));
          },
      .max = [&group](const at::Tensor& own) { return max_over(own, group.communicator_of(own)); }});
}

DividedAttention::~DividedAttention() {
  runtime::set_divided_sequence(std::nullopt);
  divided = nullptr;
}

bool DividedAttention::saw_no_attention() const {
  return forwards != forwards_before_ && intercepted == intercepted_before_;
}

void count_forward() { ++forwards; }

}  // namespace hortator::parallel
