#pragma once

#include <stdexcept>

#include "support/forwarding_communicator.hpp"

namespace hortator::test {

/// A rank's communicator whose n-th all_gather fails before it begins, as if there were no memory; 0: none.
class FailingCommunicator final : public ForwardingCommunicator {
 public:
  FailingCommunicator(comm::Communicator& inner, int failing) : ForwardingCommunicator(inner), failing_(failing) {}

  comm::Work all_gather(at::Tensor output, const at::Tensor& input) override {
    if (++calls_ == failing_) throw std::runtime_error("no memory for the whole");
    return ForwardingCommunicator::all_gather(output, input);
  }

 private:
  int failing_, calls_ = 0;
};

}  // namespace hortator::test
