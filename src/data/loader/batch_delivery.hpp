#pragma once

#include <functional>
#include <hortator/detail/batch_source.hpp>
#include <memory>

#include "data/loader/dispatcher.hpp"
#include "data/loader/step_reader.hpp"

/// How a rank gets its batches. Each call returns the batch of the next step; called by one thread at a time.
namespace hortator::data {

using Deliver = std::function<Delivery(std::int64_t step)>;

/// The rank reads its own batches.
Deliver read_alone(std::shared_ptr<StepReader> reader, int rank);

/// The rank reads the batches of all ranks of its node and sends the others theirs, or the error. `is_sized`: the other
/// ranks already know the number of steps.
Deliver read_for_node(std::shared_ptr<StepReader> reader, const BatchSource& source, Dispatcher& dispatcher,
                      std::uint64_t pass, bool is_sized);

/// The rank receives its batches from the one that reads for its node.
Deliver receive(const BatchSource& source, Dispatcher& dispatcher, std::uint64_t pass);

}  // namespace hortator::data
