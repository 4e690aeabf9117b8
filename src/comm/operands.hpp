#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <string_view>
#include <vector>

#include "comm/communicator.hpp"

/// Checks of tensors that all back ends make, with the same messages.
namespace hortator::comm {

/// "float32 [3, 4]"
std::string describe(const at::Tensor& tensor);

/// Throws unless `tensor` is defined, dense, and on `device`.
void check_operand(const at::Tensor& tensor, c10::Device device, std::string_view operation, std::string_view backend);

/// The same for a tensor that the operation writes to. Also throws where autograd records it: its history would be
/// wrong.
void check_result(const at::Tensor& tensor, c10::Device device, std::string_view operation, std::string_view backend);

/// Throws unless `root` is one of `ranks` ranks.
void check_root(int root, int ranks);

/// Throws unless every peer is one of `ranks` ranks and every tensor can be sent or received.
void check_exchange(const std::vector<PeerTensor>& sent, const std::vector<PeerTensor>& received, c10::Device device,
                    int ranks, std::string_view backend);

/// Throws unless `whole` has `parts` times as many elements as `part` and the same type.
void check_parts(const at::Tensor& whole, const at::Tensor& part, int parts, std::string_view operation);

}  // namespace hortator::comm
