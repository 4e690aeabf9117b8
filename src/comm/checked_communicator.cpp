#include "comm/checked_communicator.hpp"

#include "base/text.hpp"
#include "comm/operands.hpp"
#include "mpi/agree.hpp"

namespace hortator::comm {

void CheckedCommunicator::compare(const std::string& call) const { mpi::same_on_all(comm_, call, "the collective"); }

Work CheckedCommunicator::all_reduce(at::Tensor tensor, ReduceOp op) {
  compare(text::concat("all_reduce ", comm::name(op), " of ", describe(tensor)));
  return inner_->all_reduce(std::move(tensor), op);
}

Work CheckedCommunicator::reduce_scatter(at::Tensor output, const at::Tensor& input, ReduceOp op) {
  compare(text::concat("reduce_scatter ", comm::name(op), " of ", describe(input), " to ", describe(output)));
  return inner_->reduce_scatter(std::move(output), input, op);
}

Work CheckedCommunicator::all_gather(at::Tensor output, const at::Tensor& input) {
  compare(text::concat("all_gather of ", describe(input), " to ", describe(output)));
  return inner_->all_gather(std::move(output), input);
}

Work CheckedCommunicator::broadcast(at::Tensor tensor, int root) {
  compare(text::concat("broadcast from ", root, " of ", describe(tensor)));
  return inner_->broadcast(std::move(tensor), root);
}

Work CheckedCommunicator::broadcast_all(std::vector<at::Tensor> tensors, int root) {
  std::vector<std::string> shapes;
  for (const auto& tensor : tensors) shapes.push_back(describe(tensor));
  compare(text::concat("broadcast from ", root, " of ", text::join(shapes, "; ")));
  return inner_->broadcast_all(std::move(tensors), root);
}

void CheckedCommunicator::barrier() {
  compare("barrier");
  inner_->barrier();
}

std::unique_ptr<Communicator> CheckedCommunicator::split(int color, int key) const {
  compare("split");
  return std::make_unique<CheckedCommunicator>(inner_->split(color, key), comm_.split(color, key));
}

}  // namespace hortator::comm
