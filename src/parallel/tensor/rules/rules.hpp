#pragma once

#include <string>

#include "parallel/tensor/operator_call.hpp"

/// What operators do with divided tensors. Each rule runs under PartsOnly: operators that it calls see parts.
namespace hortator::parallel::rules {

/// An operand as it meets a result of `dims` dimensions that is divided by `division`: its part, or a whole tensor that
/// the dimension does not concern, whose gradient is then summed over the ranks.
at::Tensor beside(const Operand& operand, const Division& division, std::int64_t dims, const SharedRanks& ranks);

/// The division of an operand, counted in a result of `dims` dimensions to which it is broadcast.
std::optional<Division> aligned(const Operand& operand, std::int64_t dims);

/// A product of matrices; nothing if no rule applies. `a` and `b` as in at::matmul.
std::optional<Operand> product(const Operand& a, const Operand& b);

/// The sum over the ranks of addends that they have computed with their parts of `weight`: whole, or divided along the
/// sequence if the weight's plan says so and the addend is [.., tokens, width]. @collective
Operand sum_of_addends(const at::Tensor& addend, const Operand& weight);

/// The sum of two operands. Either may be divided.
Operand plus(const Operand& a, const Operand& b);

// By file.
bool elementwise(OperatorCall& call);
bool fill_parameter(OperatorCall& call);

bool view(OperatorCall& call);
bool reshape(OperatorCall& call);
bool transpose(OperatorCall& call);
bool transpose_matrix(OperatorCall& call);
bool permute(OperatorCall& call);
bool unsqueeze(OperatorCall& call);
bool squeeze_dim(OperatorCall& call);
bool expand(OperatorCall& call);

bool select(OperatorCall& call);
bool slice(OperatorCall& call);
bool index_select(OperatorCall& call);
bool split(OperatorCall& call);
bool split_with_sizes(OperatorCall& call);
bool unbind(OperatorCall& call);
bool cat(OperatorCall& call);
bool stack(OperatorCall& call);

bool matmul(OperatorCall& call);
bool linear(OperatorCall& call);
bool addmm(OperatorCall& call);

bool attention(OperatorCall& call);
bool layer_norm(OperatorCall& call);
bool rms_norm(OperatorCall& call);
bool softmax(OperatorCall& call);
bool log_softmax(OperatorCall& call);

bool sum(OperatorCall& call);
bool mean(OperatorCall& call);
bool along_dims(OperatorCall& call);

bool embedding(OperatorCall& call);
bool cross_entropy(OperatorCall& call);
bool nll_loss(OperatorCall& call);

}  // namespace hortator::parallel::rules
